"""GradScaler for a GPU under its former name."""

from __future__ import annotations

from pullback import amp
from pullback.amp.former_names import warn_of_former_name
from pullback.amp.grad_scaler import OptState

__all__ = ["GradScaler", "OptState"]


class GradScaler(amp.GradScaler):
    """`torch.amp.GradScaler("cuda", ...)`."""

    def __init__(
        self, init_scale: float = 2.0**16, growth_factor: float = 2.0, backoff_factor: float = 0.5,
        growth_interval: int = 2000, enabled: bool = True,
    ) -> None:  # fmt: skip
        warn_of_former_name("torch.cuda.amp.GradScaler(args...)", "torch.amp.GradScaler('cuda', args...)")
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
