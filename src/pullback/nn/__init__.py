"""Neural networks: modules with parameters, their initialisation, and utilities. PyTorch's `torch.nn`."""

from pullback.nn import attention, functional, init, modules, parallel, parameter, utils
from pullback.nn.modules.activation import *
from pullback.nn.modules.adaptive import *
from pullback.nn.modules.batchnorm import *
from pullback.nn.modules.channelshuffle import *
from pullback.nn.modules.container import *
from pullback.nn.modules.conv import *
from pullback.nn.modules.distance import *
from pullback.nn.modules.dropout import *
from pullback.nn.modules.flatten import *
from pullback.nn.modules.fold import *
from pullback.nn.modules.instancenorm import *
from pullback.nn.modules.linear import *
from pullback.nn.modules.linear_cross_entropy_options import LinearCrossEntropyOptions as LinearCrossEntropyOptions
from pullback.nn.modules.loss import *
from pullback.nn.modules.module import Module as Module
from pullback.nn.modules.normalization import *
from pullback.nn.modules.padding import *
from pullback.nn.modules.pixelshuffle import *
from pullback.nn.modules.pooling import *
from pullback.nn.modules.rnn import *
from pullback.nn.modules.sparse import *
from pullback.nn.modules.transformer import *
from pullback.nn.modules.upsampling import *
from pullback.nn.parallel import DataParallel
from pullback.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    "Buffer", "DataParallel", "Parameter", "UninitializedBuffer", "UninitializedParameter", "attention", "functional",
    "init", "modules", "parallel", "parameter", "utils",
]  # fmt: skip
__all__ += modules.__all__
