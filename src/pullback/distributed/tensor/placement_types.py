"""How a tensor lies on several ranks."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Placement", "Replicate", "Shard"]


class Placement:
    """How a tensor lies along one dimension of a mesh."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether ranks have parts of it, along this dimension of the tensor."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Whether every rank has all of it."""
        return isinstance(self, Replicate)


@dataclass(frozen=True)
class Shard(Placement):
    """Every rank has a part along `dim`.

    >>> Shard(0).is_shard()
    True
    """

    dim: int


@dataclass(frozen=True)
class Replicate(Placement):
    """Every rank has all of it."""
