"""NumPy's own types and its global random state, for code above this layer that meets a user's NumPy objects."""

from __future__ import annotations

import numpy as np

ndarray = np.ndarray
"""The type of a user's array."""

scalar_types: tuple[type, ...] = (np.bool_, np.number, np.object_)
"""The types of a user's NumPy scalars."""


boolean = np.bool_
number = np.number
"""NumPy's scalar booleans and numbers."""


def holds_numbers(value: object) -> bool:
    """Whether `value` is a NumPy array or scalar whose elements a tensor can hold (no strings, no objects)."""
    return isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind not in "SUO"


def seed_worker_generator(base_seed: int, worker_id: int) -> None:
    """Seed NumPy's global generator in a worker process, far from the streams of the other workers.

    The 128 bits come from hashing the worker and the base seed, because neighbouring integers as seeds of MT19937
    would give related streams.
    """
    words = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    np.random.seed(np.random.SeedSequence(words).generate_state(4))
