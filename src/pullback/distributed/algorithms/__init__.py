"""What is built on collectives: uneven inputs, and ways of averaging gradients."""

from pullback.distributed.algorithms.join import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]
