"""The class of compiled modules: `compile` here returns the module itself, so nothing is an instance."""

from pullback.nn.modules.module import Module

__all__ = ["OptimizedModule"]


class OptimizedModule(Module):
    """A module that PyTorch's compiler has wrapped; none are made here."""
