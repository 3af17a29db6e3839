"""GradScaler for the CPU under its former name."""

from __future__ import annotations

from pullback.amp.former_names import FormerGradScaler
from pullback.amp.grad_scaler import OptState

__all__ = ["GradScaler", "OptState"]


class GradScaler(FormerGradScaler):
    """`torch.amp.GradScaler("cpu", ...)`."""

    former_device = "cpu"
