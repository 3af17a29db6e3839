"""How pullback was built, where programs ask PyTorch. PyTorch's `torch.__config__`."""

from pullback.backend.configuration import describe_config
from pullback.modes.determinism import get_num_threads

__all__ = ["parallel_info", "show"]


def show() -> str:
    """How pullback was built and what it computes with."""
    return describe_config()


def parallel_info() -> str:
    """How many threads compute."""
    return f"threads: {get_num_threads()}\n"
