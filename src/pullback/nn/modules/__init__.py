"""The layers, one file per family, which lists its public names."""

# Bound here too, so that the files are attributes even where this one is executed a second time.
from pullback.nn.modules import (  # noqa: F401
    activation,
    adaptive,
    batchnorm,
    channelshuffle,
    container,
    conv,
    distance,
    dropout,
    flatten,
    fold,
    instancenorm,
    lazy,
    linear,
    loss,
    module,
    normalization,
    padding,
    pixelshuffle,
    pooling,
    rnn,
    sparse,
    transformer,
    upsampling,
    utils,
)
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
from pullback.nn.modules.linear_cross_entropy_options import LinearCrossEntropyOptions
from pullback.nn.modules.loss import *
from pullback.nn.modules.module import Module
from pullback.nn.modules.normalization import *
from pullback.nn.modules.padding import *
from pullback.nn.modules.pixelshuffle import *
from pullback.nn.modules.pooling import *
from pullback.nn.modules.rnn import *
from pullback.nn.modules.sparse import *
from pullback.nn.modules.transformer import *
from pullback.nn.modules.upsampling import *

__all__ = ["LinearCrossEntropyOptions", "Module"]
__all__ += activation.__all__
__all__ += adaptive.__all__
__all__ += batchnorm.__all__
__all__ += channelshuffle.__all__
__all__ += container.__all__
__all__ += conv.__all__
__all__ += distance.__all__
__all__ += dropout.__all__
__all__ += flatten.__all__
__all__ += fold.__all__
__all__ += instancenorm.__all__
__all__ += linear.__all__
__all__ += loss.__all__
__all__ += normalization.__all__
__all__ += padding.__all__
__all__ += pixelshuffle.__all__
__all__ += pooling.__all__
__all__ += rnn.__all__
__all__ += sparse.__all__
__all__ += transformer.__all__
__all__ += upsampling.__all__
