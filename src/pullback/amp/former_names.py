"""What `torch.cuda.amp` and `torch.cpu.amp` had before `torch.amp` took the device as an argument: it warns and goes on."""

from __future__ import annotations

import warnings


def warn_of_former_name(former: str, present: str) -> None:
    """Tell the program's author, who called one of these functions, what to write instead."""
    warnings.warn(f"`{former}` is deprecated. Please use `{present}` instead.", FutureWarning, stacklevel=3)
