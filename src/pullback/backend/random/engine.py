"""Loops that draw straight from the engine's memory, where the compiled kernels are built.

# Note [Memory of the engine]
NumPy's MT19937 keeps its state as 624 words followed by the position of the next one. An array over that memory is what
the compiled loops advance, so that NumPy and they draw one stream; and copying it takes a hundredth of the time of NumPy's
own way to a state. Whether the memory is laid out so is looked at when a generator is made; where it is not, there is no
such array, and where nothing is compiled either, everything is drawn through NumPy.
Each function here says whether it has drawn; these references never have.
"""

from __future__ import annotations

import numpy as np

from pullback.backend.c_types import ctypes
from pullback.native import extension, native
from pullback.typing import Array

_WORDS = 624


def engine_memory(bits: np.random.MT19937) -> Array | None:
    """The memory of a bit generator as an array of words. See Note [Memory of the engine]."""
    if ctypes is None:
        return None
    address = bits.ctypes.state_address
    words = np.frombuffer((ctypes.c_uint32 * (_WORDS + 1)).from_address(address), np.uint32)
    state = bits.state["state"]
    return words if words[_WORDS] == state["pos"] and (words[:_WORDS] == state["key"]).all() else None


def memory_of_loops(memory: Array | None) -> Array | None:
    """What compiled loops draw from: the memory of the engine, where there are such loops."""
    return memory if extension is not None else None


@native
def fill_words(engine: Array | None, target: Array) -> bool:
    """Fill with words of 32 or 64 bits."""
    return False


@native
def fill_uniform(engine: Array | None, target: Array, low: float, high: float) -> bool:
    """Fill a row-major float32 or float64 array from [low, high)."""
    return False


@native
def fill_normal(engine: Array | None, target: Array, mean: float, std: float) -> bool:
    """Fill a row-major float32 or float64 array of 16 or more elements with normal numbers."""
    return False


@native
def fill_normal_pairs(
    engine: Array | None, target: Array, kept: float | None, mean: float, std: float
) -> float | bool | None:
    """As `fill_normal`, number by number, `kept` first; return the number to keep or None, and False if not drawn."""
    return False


@native
def fill_exponential(engine: Array | None, target: Array, lambd: float) -> bool:
    """Fill a row-major float32 or float64 array with exponential numbers."""
    return False


@native
def fill_bernoulli(engine: Array | None, target: Array, p: float, success: float) -> bool:
    """Fill a row-major float32 or float64 array with `success` with probability `p`, else with 0."""
    return False


@native
def fill_integers(engine: Array | None, target: Array, first: int, width: int) -> bool:
    """Fill an int64 array from [first, first + width)."""
    return False


@native
def fill_permutation(engine: Array | None, target: Array) -> bool:
    """Fill an int64 array with a permutation of its positions."""
    return False


@native
def fill_poisson(engine: Array | None, rates: Array, samples: Array) -> bool:
    """Fill float64 `samples` from the Poisson distributions of the float64 `rates`."""
    return False


@native
def fill_gamma(
    engine: Array | None, alpha: Array, exponent: Array, d: Array, samples: Array, kept: float | None
) -> float | bool | None:
    """Fill float64 `samples` from gamma distributions; return the normal number to keep or None, and False if not drawn."""
    return False


@native
def fill_binomial(engine: Array | None, counts: Array, probs: Array, samples: Array) -> bool:
    """Fill float64 `samples` from binomial distributions, whose arguments are both float32 or both float64."""
    return False
