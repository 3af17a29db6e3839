"""Optimizers and their schedules. PyTorch's `torch.optim`."""

from pullback.optim import lr_scheduler, swa_utils
from pullback.optim._adafactor import Adafactor
from pullback.optim._muon import Muon
from pullback.optim.adadelta import Adadelta
from pullback.optim.adagrad import Adagrad
from pullback.optim.adam import Adam
from pullback.optim.adamax import Adamax
from pullback.optim.adamw import AdamW
from pullback.optim.asgd import ASGD
from pullback.optim.lbfgs import LBFGS
from pullback.optim.nadam import NAdam
from pullback.optim.optimizer import Optimizer
from pullback.optim.radam import RAdam
from pullback.optim.rmsprop import RMSprop
from pullback.optim.rprop import Rprop
from pullback.optim.sgd import SGD
from pullback.optim.sparse_adam import SparseAdam

__all__ = [
    "ASGD", "LBFGS", "SGD", "Adadelta", "Adafactor", "Adagrad", "Adam", "AdamW", "Adamax", "Muon", "NAdam",
    "Optimizer", "RAdam", "RMSprop", "Rprop", "SparseAdam", "lr_scheduler", "swa_utils",
]  # fmt: skip
