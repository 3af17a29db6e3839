"""The layers, one file per family."""

from pullback.nn.modules import (
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
    linear,
    loss,
    normalization,
    padding,
    pixelshuffle,
    pooling,
    rnn,
    sparse,
    transformer,
    upsampling,
)
from pullback.nn.modules.activation import *  # noqa: F403
from pullback.nn.modules.adaptive import *  # noqa: F403
from pullback.nn.modules.batchnorm import *  # noqa: F403
from pullback.nn.modules.channelshuffle import *  # noqa: F403
from pullback.nn.modules.container import *  # noqa: F403
from pullback.nn.modules.conv import *  # noqa: F403
from pullback.nn.modules.distance import *  # noqa: F403
from pullback.nn.modules.dropout import *  # noqa: F403
from pullback.nn.modules.flatten import *  # noqa: F403
from pullback.nn.modules.fold import *  # noqa: F403
from pullback.nn.modules.instancenorm import *  # noqa: F403
from pullback.nn.modules.linear import *  # noqa: F403
from pullback.nn.modules.loss import *  # noqa: F403
from pullback.nn.modules.module import Module
from pullback.nn.modules.normalization import *  # noqa: F403
from pullback.nn.modules.padding import *  # noqa: F403
from pullback.nn.modules.pixelshuffle import *  # noqa: F403
from pullback.nn.modules.pooling import *  # noqa: F403
from pullback.nn.modules.rnn import *  # noqa: F403
from pullback.nn.modules.sparse import *  # noqa: F403
from pullback.nn.modules.transformer import *  # noqa: F403
from pullback.nn.modules.upsampling import *  # noqa: F403

__all__ = ["Module"]
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
