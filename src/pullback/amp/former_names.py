"""What `torch.cuda.amp` and `torch.cpu.amp` had before `torch.amp` took the device as an argument: it warns and goes on."""

from __future__ import annotations

from pullback.amp.grad_scaler import GradScaler
from pullback.modes.user_warnings import warn_user


def warn_of_former_name(former: str, present: str) -> None:
    """Tell the program's author, who called one of these functions, what to write instead."""
    warn_user(f"`{former}` is deprecated. Please use `{present}` instead.", FutureWarning)


class FormerGradScaler(GradScaler):
    """`torch.amp.GradScaler` of a device that its class names."""

    former_device: str

    def __init__(
        self, init_scale: float = 2.0**16, growth_factor: float = 2.0, backoff_factor: float = 0.5,
        growth_interval: int = 2000, enabled: bool = True,
    ) -> None:  # fmt: skip
        device = self.former_device
        warn_of_former_name(f"torch.{device}.amp.GradScaler(args...)", f"torch.amp.GradScaler('{device}', args...)")
        super().__init__(device, init_scale, growth_factor, backoff_factor, growth_interval, enabled)
