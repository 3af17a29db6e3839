"""The functional forms of the optimizers: one step on lists of parameters, gradients and states."""

from pullback.optim.adadelta import adadelta
from pullback.optim.adagrad import adagrad
from pullback.optim.adam import adam
from pullback.optim.adamax import adamax
from pullback.optim.adamw import adamw
from pullback.optim.asgd import asgd
from pullback.optim.nadam import nadam
from pullback.optim.radam import radam
from pullback.optim.rmsprop import rmsprop
from pullback.optim.rprop import rprop
from pullback.optim.sgd import sgd

__all__ = [
    "adadelta", "adagrad", "adam", "adamax", "adamw", "asgd", "nadam", "radam", "rmsprop", "rprop", "sgd",
]  # fmt: skip
