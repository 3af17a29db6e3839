"""Automatic mixed precision: autocast, and the scaling of gradients."""

from pullback.amp.autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from pullback.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
