"""The state of the random number generator.

>>> import pullback
>>> _ = pullback.manual_seed(7)
>>> state = pullback.get_rng_state()
>>> first = pullback.rand(2)
>>> pullback.set_rng_state(state)
>>> pullback.equal(pullback.rand(2), first)
True
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any

from pullback.backend.device import known_libraries
from pullback.backend.random import Generator, default_generator
from pullback.creation import wrap
from pullback.tensor.tensor import Tensor

__all__ = [
    "Generator", "default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state",
]  # fmt: skip


def _unwrap_state(state: Any) -> Any:
    return state._array if isinstance(state, Tensor) else state


Generator.wrap_state = staticmethod(wrap)
Generator.unwrap_state = staticmethod(_unwrap_state)


def manual_seed(seed: Any) -> Generator:
    """Seed the default generator and return it.

    `seed` is an integer of 64 bits. The numbers that follow are those of PyTorch after the same seed.
    """
    for library in known_libraries():
        library.manual_seed(int(seed))
    default_generator.was_seeded = True
    return default_generator.manual_seed(int(seed))


def seed() -> int:
    """Seed the default generator at random and return the seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed that the default generator started from.

    What `manual_seed` or `seed` set last.

    >>> import pullback
    >>> _ = pullback.manual_seed(7)
    >>> pullback.initial_seed()
    7
    """
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The state of the default generator, as a tensor of bytes.

    `set_rng_state` of it makes the same numbers come again.

    >>> import pullback
    >>> state = pullback.get_rng_state()
    >>> first = pullback.rand(3)
    >>> pullback.set_rng_state(state)
    >>> bool((pullback.rand(3) == first).all())
    True
    """
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Set the state of the default generator."""
    default_generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(
    devices: Iterable[Any] | None = None, enabled: bool = True, _caller: str = "", _devices_kw: str = "",
    device_type: str = "cuda",
) -> Iterator[None]:  # fmt: skip
    """Restore the default generator's state at the end of a block."""
    if not enabled:
        yield
        return
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)
