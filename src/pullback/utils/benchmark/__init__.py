"""How long statements take: PyTorch's `torch.utils.benchmark`."""

from pullback.utils.benchmark.compare import Colorize, Compare
from pullback.utils.benchmark.measurement import (
    Measurement,
    TaskSpec,
    ordered_unique,
    select_unit,
    trim_sigfig,
    unit_to_english,
)
from pullback.utils.benchmark.timer import Language, Timer, set_torch_threads, timer

__all__ = [
    "Colorize", "Compare", "Language", "Measurement", "TaskSpec", "Timer", "ordered_unique", "select_unit",
    "set_torch_threads", "timer", "trim_sigfig", "unit_to_english",
]  # fmt: skip
