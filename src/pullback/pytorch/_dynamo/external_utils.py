"""Questions about whether a compiler traces."""

from pullback.pytorch.compiler import is_compiling

__all__ = ["is_compiling"]
