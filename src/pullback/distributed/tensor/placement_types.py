"""How a tensor lies on several ranks."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """How a tensor lies along one dimension of a mesh."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether ranks have parts of it, along this dimension of the tensor."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Whether every rank has all of it."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether what the ranks have must still be joined, in this way."""
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """Every rank has a part along `dim`.

    >>> Shard(0).is_shard(), str(Shard(0))
    (True, 'S(0)')
    """

    dim: int

    def __str__(self) -> str:
        return f"S({self.dim})"


@dataclass(frozen=True)
class Replicate(Placement):
    """Every rank has all of it."""

    def __str__(self) -> str:
        return "R"


@dataclass(frozen=True, repr=False)
class Partial(Placement):
    """The value is the sum (mean, maximum, ...) of what the ranks have.

    >>> Partial(), Partial("max").is_partial()
    (Partial(sum), True)
    """

    reduce_op: str = "sum"

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"
