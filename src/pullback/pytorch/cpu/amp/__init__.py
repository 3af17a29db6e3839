"""Mixed precision on the CPU under its former names."""

from pullback.pytorch.cpu.amp.autocast_mode import autocast
from pullback.pytorch.cpu.amp.grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast"]
