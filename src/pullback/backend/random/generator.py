"""The state of PyTorch's CPU generator: an MT19937 engine, the seed it started from and one normal sample kept back.

NumPy's MT19937 is the same engine, so the words come from there in bulk. What the words become is decided in the
sibling modules; each of them holds the generator's lock while it draws.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import numpy as np

from pullback.backend.device import device as Device
from pullback.backend.device import find_library, usable_device
from pullback.backend.random.engine import engine_memory, fill_words, memory_of_loops
from pullback.errors import kind_of
from pullback.native.locks import process_lock
from pullback.typing import Array

# Note [Layout of a generator's state]
# PyTorch hands out its state as 5056 bytes, which checkpoints store; these are the fields behind them. `left` counts
# the words up to the next twist of the engine plus one and `next` is the index of the word to be read, so that
# NumPy's position is 625 - left; only an engine that was never read has next = 0 there. The normal sample kept back
# is `normal_y`; the fields without a meaning here are zero.
_STATE = np.dtype(
    [
        ("initial_seed", "<u8"),
        ("left", "<i4"),
        ("seeded", "<i4"),
        ("next", "<u8"),
        ("words", "<u8", (624,)),
        ("normal_x", "<f8"),
        ("normal_y", "<f8"),
        ("normal_rho", "<f8"),
        ("normal_is_valid", "<i4"),
        ("padding", "<i4"),
        ("next_float_normal", "<f4"),
        ("float_normal_is_valid", "<i4"),
    ]
)
_WORDS = 624
_FEW = 1024  # up to here the raw words cost 1 microsecond, and randint 4.5 before it begins
_FIRST_SEED = 67280421310721  # of every Generator() that was not seeded


def _unchanged(state: Any) -> Any:
    return state


class Generator:
    """A source of random numbers, the same numbers as PyTorch's CPU generator of the same seed.

    >>> generator = Generator().manual_seed(0)
    >>> generator.random(2).tolist()
    [2357136044, 2546248239]
    """

    was_seeded: bool = False
    """Of the default generator: whether the program seeded it."""
    wrap_state: Callable[[Array], Any] = staticmethod(_unchanged)
    unwrap_state: Callable[[Any], Any] = staticmethod(_unchanged)
    """What a state looks like to users: the layer that knows Tensors replaces these two."""

    def __new__(cls, device: Any = "cpu") -> Any:
        if cls is Generator and device != "cpu":
            place = usable_device(device)
            library: Any = None if place.type in ("cpu", "meta") else find_library(place.type)
            if hasattr(library, "new_generator"):
                return object.__new__(type(library.new_generator(place)))
        return object.__new__(cls)

    def __init__(self, device: Any = "cpu") -> None:
        self._device = usable_device(device)
        self.lock = threading.RLock()
        self.next_normal: float | None = None
        """The second normal sample of the last pair, until somebody asks for one."""
        self._bits = np.random.MT19937()
        self._engine = np.random.RandomState(self._bits)
        self.manual_seed(_FIRST_SEED)
        self._words = engine_memory(self._bits)
        self.memory = memory_of_loops(self._words)
        """What compiled loops draw from. See Note [Memory of the engine]."""

    @property
    def device(self) -> Device:
        return self._device

    def manual_seed(self, seed: int) -> Self:
        """Start over from `seed`; a negative one counts from 2**64, and the engine uses the low 32 bits."""
        if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
            raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
        if not -(2**63) <= seed < 2**64:
            raise ValueError(f"Overflow when unpacking long long: the seed {seed} does not fit into 64 bits")
        with self.lock:
            self._initial_seed = int(seed) % 2**64
            self._engine.seed(self._initial_seed % 2**32)
            self.was_read = False
            self.next_normal = None
        return self

    def seed(self) -> int:
        """Start over from a seed that nobody can guess, and return it."""
        seed = secrets.randbits(53)
        self.manual_seed(seed)
        return seed

    def initial_seed(self) -> int:
        """Return the seed that the generator last started from."""
        return self._initial_seed

    def get_offset(self) -> int:
        raise RuntimeError("CPU Generator does not use offset")

    def set_offset(self, offset: int) -> None:
        raise RuntimeError("CPU Generator does not use offset")

    def get_state(self) -> Any:
        """Return the state as an array of 5056 bytes, which PyTorch reads too."""
        return self.wrap_state(self.pack_state())

    def set_state(self, new_state: Any) -> Self:
        """Continue from a state that `get_state`, here or in PyTorch, returned."""
        self.unpack_state(self.unwrap_state(new_state))
        return self

    def clone_state(self) -> Self:
        """Return a generator of its own that continues from this one's state."""
        clone = type(self)(self._device)
        clone.unpack_state(self.pack_state())
        return clone

    def pack_state(self) -> Array:
        """The state's bytes. See Note [Layout of a generator's state]."""
        record = np.zeros((), _STATE)
        with self.lock:
            engine = self.copy_engine()
            record["initial_seed"] = self._initial_seed
            record["left"] = _WORDS + 1 - engine[_WORDS]
            record["next"] = engine[_WORDS] if self.was_read else 0
            record["words"] = engine[:_WORDS]
            if self.next_normal is not None:
                record["normal_y"], record["normal_is_valid"] = self.next_normal, 1
        record["seeded"] = 1
        return np.frombuffer(bytearray(record.tobytes()), np.uint8)

    def unpack_state(self, state: Any) -> None:
        """Take over the state's bytes. See Note [Layout of a generator's state]."""
        if not isinstance(state, np.ndarray):
            raise TypeError(f"expected a torch.ByteTensor, but got {kind_of(state)}")
        if state.dtype != np.uint8:
            raise TypeError(f"RNG state must be a torch.ByteTensor, but its elements are {state.dtype}")
        if state.size != _STATE.itemsize:
            raise RuntimeError(
                f"Expected a CPUGeneratorImplState of size {_STATE.itemsize} but found the input RNG state size to be "
                f"{state.size}"
            )
        record = np.frombuffer(state.tobytes(), _STATE)[0]
        left = int(record["left"])
        if not record["seeded"] or not 0 < left <= _WORDS or record["next"] > _WORDS:
            raise RuntimeError("Invalid mt19937 state: these bytes were not made by get_state()")
        with self.lock:
            self._initial_seed = int(record["initial_seed"])
            self.restore_engine(np.append(record["words"].astype(np.uint32), np.uint32(_WORDS + 1 - left)))
            self.was_read = bool(record["next"])
            self.next_normal = float(record["normal_y"]) if record["normal_is_valid"] else None

    def copy_engine(self) -> Array:
        """The engine's words and, behind them, the position of the next one. See Note [Memory of the engine]."""
        if self._words is not None:
            return self._words.copy()
        state = self._bits.state["state"]
        return np.append(state["key"], np.uint32(state["pos"]))

    def restore_engine(self, words: Array) -> None:
        """Go back to what `copy_engine` returned."""
        if self._words is not None:
            self._words[...] = words
        else:
            self._engine.set_state(("MT19937", words[:_WORDS], int(words[_WORDS]), 0, 0.0))

    def __getstate__(self) -> tuple[Device, Array]:
        return self._device, self.pack_state()

    def __setstate__(self, state: tuple[Device, Array]) -> None:
        Generator.__init__(self, state[0])
        self.unpack_state(state[1])

    @contextmanager
    def noting_reads(self) -> Iterator[None]:
        """Find out whether what runs inside draws at all: a compiled sampler may have nothing to draw for."""
        before = None if self.was_read else self.copy_engine()
        yield
        if before is not None:
            self.was_read = not np.array_equal(self.copy_engine(), before)

    def random(self, count: int) -> Array:
        """Draw `count` words of 32 bits."""
        if count:
            self.was_read = True
        if self.memory is not None:
            words = np.empty(count, np.uint32)
            fill_words(self.memory, words)
            return words
        if count <= _FEW:
            return self._bits.random_raw(count).astype(np.uint32)
        return self._engine.randint(0, 2**32, count, dtype=np.uint32)

    def random64(self, count: int) -> Array:
        """Draw `count` words of 64 bits: two of 32 each, the high one first."""
        if count:
            self.was_read = True
        if self.memory is not None:
            words = np.empty(count, np.uint64)
            fill_words(self.memory, words)
            return words
        if count <= _FEW:
            words = self._bits.random_raw(2 * count)
            return np.asarray(words[::2] << np.uint64(32) | words[1::2])
        return self._engine.randint(0, 2**64, count, dtype=np.uint64)

    def uniform32(self, count: int) -> Array:
        """Draw float32 numbers in [0, 1): the low 24 bits of a word each."""
        words = self.random(count)
        words &= np.uint32(2**24 - 1)
        numbers = words.view(np.int32).astype(np.float32)  # as int32, since NumPy converts that twice as fast
        numbers *= np.float32(2**-24)
        return numbers

    def uniform64(self, count: int) -> Array:
        """Draw float64 numbers in [0, 1): the low 53 bits of two words each."""
        words = self.random64(count)
        words &= np.uint64(2**53 - 1)
        numbers = words.view(np.int64).astype(np.float64)
        numbers *= 2.0**-53
        return numbers


default_generator = Generator()
default_generator.lock = process_lock(threading.RLock)
"""The generator that is meant when none is named."""
default_generator.seed()


def chosen(generator: Generator | None) -> Generator:
    """The generator that an argument `generator` means."""
    return default_generator if generator is None else generator


def numpy_random_state(seed: int) -> np.random.RandomState:
    """NumPy's own older generator, for the few places where PyTorch draws from it."""
    return np.random.RandomState(seed)
