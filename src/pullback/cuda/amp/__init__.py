"""Mixed precision on a GPU under its former names."""

from pullback.cuda.amp.autocast_mode import autocast, custom_bwd, custom_fwd
from pullback.cuda.amp.common import amp_definitely_not_available
from pullback.cuda.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "amp_definitely_not_available", "autocast", "custom_bwd", "custom_fwd"]
