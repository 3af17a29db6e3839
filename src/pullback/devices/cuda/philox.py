"""Random numbers on the GPU: Philox 4x32-10 with PyTorch's seeds, offsets and launch shape, so the numbers are PyTorch's.

# Note [Random numbers of the GPU]
A thread draws four words of 32 bits at a time from the block (seed, number of the thread, counter). Blocks have 256
threads, and there are as many blocks as the numbers need, at most as many as run at once. A thread's four words go to
elements that lie as far apart as there are threads; 64-bit numbers take two words each. Dropout draws for 16 bytes of
neighbours. The offset grows by four for every round of all threads. Launches of a graph read seed and offset from memory.
"""

from __future__ import annotations

import math
import secrets
import threading
from functools import cache, partial
from importlib import import_module
from typing import Any

import numpy as np

from pullback.backend.array_module import memory_order
from pullback.backend.random.generator import Generator, default_generator

_BLOCK = 256
_FIRST_SEED = 67280421310721

_SOURCE = r"""
#include <cuda_fp16.h>
#include <cuda_bf16.h>
typedef unsigned int word;
typedef unsigned long long wide;
static __device__ inline void draw(wide seed, wide thread, wide counter, word r[4])
{
    word c0 = (word)counter, c1 = (word)(counter >> 32), c2 = (word)thread, c3 = (word)(thread >> 32);
    word k0 = (word)seed, k1 = (word)(seed >> 32);
    for (int round = 0; round < 10; round++) {
        const word h0 = __umulhi(0xD2511F53u, c0), l0 = 0xD2511F53u * c0;
        const word h1 = __umulhi(0xCD9E8D57u, c2), l1 = 0xCD9E8D57u * c2;
        c0 = h1 ^ c1 ^ k0; c1 = l1; c2 = h0 ^ c3 ^ k1; c3 = l0;
        k0 += 0x9E3779B9u; k1 += 0xBB67AE85u;
    }
    r[0] = c0; r[1] = c1; r[2] = c2; r[3] = c3;
}
static __device__ inline float unit(word x) { return x * 2.3283064e-10f + (2.3283064e-10f / 2.0f); }
static __device__ inline double unit_double(word x, word y)
{
    const wide z = (wide)x ^ ((wide)y << 21);
    return z * 1.1102230246251565e-16 + 1.1102230246251565e-16 / 2.0;
}
static __device__ inline void normals(const word r[4], float *out)
{
    for (int pair = 0; pair < 4; pair += 2) {
        const float u = r[pair] * 2.3283064e-10f + (2.3283064e-10f / 2.0f);
        const float v = r[pair + 1] * (2.3283064e-10f * 6.2831855f) + (2.3283064e-10f * 6.2831855f / 2.0f);
        const float s = sqrtf(-2.0f * logf(u));
        sincosf(v, &out[pair], &out[pair + 1]);
        out[pair] *= s; out[pair + 1] *= s;
    }
}
extern "C" __global__ void fill(TYPE *out, const wide n, wide seed, wide counter, const wide *state, const double a,
                                const double b, const wide range, const long long low)
{
    if (state) {
        seed = state[0];
        counter += state[1];
    }
    const wide thread = blockIdx.x * (wide)blockDim.x + threadIdx.x, threads = (wide)gridDim.x * blockDim.x;
    for (wide base = thread; base < n; base += threads * UNROLL, counter++) {
        word r[4];
        draw(seed, thread, counter, r);
        PREPARE
        for (int i = 0; i < UNROLL; i++) {
            const wide place = base + threads * i;
            if (place < n)
                out[place] = (TYPE)(VALUE);
        }
    }
}
"""
_DROPOUT = r"""
extern "C" __global__ void fill(TYPE *out, const wide n, wide seed, wide counter, const wide *state, const double p,
                                const double kept, const wide range, const long long low)
{
    if (state) {
        seed = state[0];
        counter += state[1];
    }
    const wide thread = blockIdx.x * (wide)blockDim.x + threadIdx.x, threads = (wide)gridDim.x * blockDim.x;
    for (wide base = thread * WIDTH; base < n; base += threads * WIDTH)
        for (int part = 0; part < WIDTH; part += 4, counter++) {
            word r[4];
            draw(seed, thread, counter, r);
            for (int i = 0; i < 4 && i < WIDTH; i++)
                if (base + part + i < n)
                    out[base + part + i] = (TYPE)(unit(r[i]) < (float)p ? (float)kept : 0.0f);
        }
}
"""
_FLOAT = {
    "uniform_": ("", "REVERSED"),
    "normal_": ("float z[4]; normals(r, z);", "z[i] * (float)b + (float)a"),
    "log_normal_": ("float z[4]; normals(r, z);", "expf(z[i] * (float)b + (float)a)"),
    "exponential_": (
        "",
        "(float)(-1.0 / a) * (unit(r[i]) >= 1.0f - 5.9604645e-08f ? -5.9604645e-08f : logf(unit(r[i])))",
    ),
    "bernoulli_": ("", "unit(r[i]) <= (float)a ? (float)b : 0.0f"),
    "cauchy_": ("", "(float)a + (float)b * tanf(3.14159265358979f * (unit(r[i]) - 0.5f))"),
}
_DOUBLE = {
    "uniform_": ("", "(UNIT == 1.0 ? 0.0 : UNIT) * b + a"),
    "normal_": (
        "double z[2]; { const double s = sqrt(-2.0 * log(unit_double(r[0], r[1]))); "
        "sincospi(2.0 * unit_double(r[2], r[3]), &z[0], &z[1]); z[0] *= s; z[1] *= s; }",
        "z[i] * b + a",
    ),
    "log_normal_": (
        "double z[2]; { const double s = sqrt(-2.0 * log(unit_double(r[0], r[1]))); "
        "sincospi(2.0 * unit_double(r[2], r[3]), &z[0], &z[1]); z[0] *= s; z[1] *= s; }",
        "exp(z[i] * b + a)",
    ),
    "exponential_": ("", "-1.0 / a * (UNIT >= 1.0 - 1.1102230246251565e-16 ? -1.1102230246251565e-16 : log(UNIT))"),
    "bernoulli_": ("", "UNIT <= a ? b : 0.0"),
    "cauchy_": ("", "a + b * tan(3.14159265358979323846 * (UNIT - 0.5))"),
}
_TYPES = {
    "float32": "float", "float64": "double", "float16": "__half", "bfloat16": "__nv_bfloat16", "int64": "long long",
    "int32": "int", "int16": "short", "int8": "signed char", "uint8": "unsigned char", "bool": "bool",
}  # fmt: skip


class CudaGenerator(Generator):
    """A source of random numbers on a GPU: a seed and how far it was drawn from. See Note [Random numbers of the GPU]."""

    def __init__(self, device: Any = "cuda") -> None:
        from pullback.backend.device import usable_device

        self._device = usable_device(device)
        self.lock = threading.RLock()
        self._initial_seed, self._offset = _FIRST_SEED, 0

    def manual_seed(self, seed: int) -> CudaGenerator:
        """Start over from `seed`."""
        with self.lock:
            self._initial_seed, self._offset = int(seed) % 2**64, 0
        return self

    def seed(self) -> int:
        """Start over from a seed that nobody can guess, and return it."""
        self.manual_seed(seed := secrets.randbits(53))
        return seed

    def get_offset(self) -> int:
        """How far was drawn."""
        return self._offset

    def set_offset(self, offset: int) -> None:
        """Go on from there."""
        if offset % 4:
            raise RuntimeError(f"offset must be a multiple of 4, got {offset}")
        self._offset = int(offset)

    def pack_state(self) -> Any:
        """Seed and offset, 8 bytes each, as PyTorch has them."""
        return np.array([self._initial_seed, self._offset], np.uint64).view(np.uint8).copy()

    def unpack_state(self, state: Any) -> None:
        """Take over what `pack_state` gave."""
        if not isinstance(state, np.ndarray) or state.dtype != np.uint8 or state.size != 16:
            raise RuntimeError("RNG state is wrong size: that of a GPU has 16 bytes, a seed and an offset")
        seed, offset = state.copy().view(np.uint64)
        self._initial_seed, self._offset = int(seed), int(offset)

    def advance(self, count: int) -> tuple[int, int]:
        """The seed and the counter to draw from; the offset is moved past what is drawn."""
        with self.lock:
            start = self._offset
            self._offset += count
        return self._initial_seed, start // 4


class CapturedStream:
    """Where the launches of a graph draw from: seed and counter lie in the GPU's memory, and are set before each run."""

    def __init__(self, sampler: Sampler, cupy: Any) -> None:
        self._generator = sampler.generator(cupy.cuda.runtime.getDevice())
        self._state = cupy.zeros(2, np.uint64)
        self.address = self._state.data.ptr
        self._drawn = 0

    def advance(self, count: int) -> int:
        """The counter to draw from, from the beginning of the graph; the next launch draws after that."""
        start = self._drawn
        self._drawn += count
        return start // 4

    def go_on(self) -> None:
        """Let the next run of the graph draw from where the generator is, and move that past what it draws."""
        if self._drawn:
            seed, counter = self._generator.advance(self._drawn)
            _setting()((1,), (1,), (self._state, np.uint64(seed), np.uint64(counter)))


class Sampler:
    """Fills arrays of one GPU library."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._cupy = import_module("cupy")
        self._generators: dict[int, CudaGenerator] = {}
        self.captured: CapturedStream | None = None
        """What draws from the GPU's own generator while launches are taken down."""

    def generator(self, index: int) -> CudaGenerator:
        """The generator of a GPU that is meant when none is named."""
        found = self._generators.get(index)
        if found is None:
            found = self._generators[index] = CudaGenerator(f"cuda:{index}")
            if default_generator.was_seeded:  # by `manual_seed`, before the GPU was used
                found.manual_seed(default_generator.initial_seed())
        return found

    def kernels(self) -> dict[str, Any]:
        """The functions that fill, by their names in backend/random."""
        return {
            "uniform_": self._uniform,
            "normal_": partial(self._of_two, "normal_", 0.0, 1.0),
            "log_normal_": partial(self._of_two, "log_normal_", 1.0, 2.0),
            "cauchy_": partial(self._of_two, "cauchy_", 0.0, 1.0),
            "exponential_": partial(self._of_two, "exponential_", 1.0, 0.0),
            "bernoulli_": self._bernoulli,
            "random_": self._integers,
        }

    def _uniform(self, array: Any, low: float = 0.0, high: float = 1.0, generator: Any = None) -> Any:
        return self._real("uniform_", array, low, high - low, generator)

    def _of_two(self, name: str, first: float, second: float, array: Any, *given: Any, **options: Any) -> Any:
        """A distribution of up to two numbers, with their defaults; a generator may come last."""
        numbers = [value for value in given if type(value) in (int, float)]
        named = {"mean": 0, "median": 0, "lambd": 0, "std": 1, "sigma": 1}
        chosen = [*numbers, first, second][:2] if len(numbers) != 1 else [numbers[0], second]
        for option, value in options.items():
            if option in named:
                chosen[named[option]] = value
        source = options.get("generator", next((v for v in given if isinstance(v, Generator)), None))
        return self._real(name, array, chosen[0], chosen[1], source)

    def _real(self, name: str, array: Any, a: float, b: float, generator: Any) -> Any:
        if array.dtype.kind == "c":
            scale = b / math.sqrt(2) if name == "normal_" else b
            parts = array if array.ndim else array.reshape(1)
            self._real(name, parts.view(np.float32 if array.itemsize == 8 else np.float64), a, scale, generator)
            return array
        is_double = array.dtype == np.float64
        prepare, value = (_DOUBLE if is_double else _FLOAT)[name]
        return self._fill(array, prepare, value, 2 if is_double else 4, generator, a, b)

    def _bernoulli(self, array: Any, p: Any = 0.5, generator: Any = None, success: float = 1.0) -> Any:
        if hasattr(p, "dtype"):
            drawn = self._library.wrapper(self._cupy.empty(array.shape, np.float32))
            self._real("uniform_", drawn, 0.0, 1.0, generator)
            array[...] = (drawn < p).astype(array.dtype) * success
            return array
        if success == 1.0:
            return self._real("bernoulli_", array, p, 1.0, generator) if array.dtype.kind in "fV" else self._fill(
                array, "", "unit(r[i]) <= (float)a", 4, generator, p, 1.0
            )  # fmt: skip
        return self._dropout(array, p, success, generator)

    def _dropout(self, array: Any, p: float, success: float, generator: Any) -> Any:
        widths = [w for w in (8, 4, 2, 1) if w * array.itemsize <= 16]
        width = next(w for w in widths if array.size % w == 0) if array.itemsize < 8 else 1
        if width == 1 or array.itemsize == 8:
            is_double = array.itemsize == 8
            value = "unit(r[i]) < (float)a ? b : 0.0" if is_double else "unit(r[i]) < (float)a ? (float)b : 0.0f"
            return self._fill(array, "", value, 4, generator, p, success)
        return self._fill(array, "", "", 4, generator, p, success, width=width)

    def _integers(self, array: Any, low: int | None = None, high: int | None = None, generator: Any = None) -> Any:
        if low is None or high is None:
            first = 0 if low is None else low
            top = {"f": {2: 2**11, 4: 2**24, 8: 2**53}.get(array.itemsize, 0) + 1, "V": 2**8 + 1, "b": 2}.get(
                array.dtype.kind, 0
            ) or int(np.iinfo(array.dtype).max) + (0 if array.itemsize == 8 else 1)
            width = top - first if array.itemsize < 8 or array.dtype.kind == "f" else 2**63
        else:
            first, width = low, high - low
        if width >= 2**32:
            prepare = "const wide q[2] = {((wide)r[0] << 32) | r[1], ((wide)r[2] << 32) | r[3]};"
            return self._fill(array, prepare, "(long long)(q[i] % range) + low", 2, generator, 0, 0, width, first)
        value = "(long long)(r[i] % (word)range) + low"
        if array.dtype.kind in "fV":
            value = f"(float)({value})"
        return self._fill(array, "", value, 4, generator, 0, 0, width, first)

    def _fill(
        self, array: Any, prepare: str, value: str, unroll: int, generator: Any, a: float, b: float, range: int = 1,
        low: int = 0, width: int = 0,
    ) -> Any:  # fmt: skip
        raw, cupy = array.raw, self._cupy
        if not raw.size:
            return array
        order = memory_order(raw)
        dense = raw.transpose(order)
        target = dense if dense.flags.c_contiguous else cupy.empty(dense.shape, raw.dtype)
        device = cupy.cuda.Device()
        threads = device.attributes["MaxThreadsPerMultiProcessor"]
        grid = min(device.attributes["MultiProcessorCount"] * (threads // _BLOCK), -(-raw.size // _BLOCK))
        rounds = (raw.size - 1) // (_BLOCK * grid * unroll) + 1
        own = self.generator(raw.data.device_id)
        source = generator if isinstance(generator, CudaGenerator) else own
        kernel = _compiled(_TYPES[raw.dtype.name], unroll, prepare, value, width)
        u = np.uint64
        stream = self.captured
        if stream is None:
            seed, counter = source.advance(rounds * 4)
            state = 0
        elif source is own:
            seed, counter = 0, stream.advance(rounds * 4)
            state = stream.address
        else:
            raise RuntimeError("a generator of the program's own is drawn from")
        given = (target, u(raw.size), u(seed), u(counter), u(state), float(a), float(b), u(range), np.int64(low))
        kernel((grid,), (_BLOCK,), given)
        if target is not dense:
            dense[...] = target
        return array


_SET = """
extern "C" __global__ void set(unsigned long long *state, unsigned long long seed, unsigned long long counter)
{
    state[0] = seed;
    state[1] = counter;
}
"""


@cache
def _setting() -> Any:
    return import_module("cupy").RawKernel(_SET, "set")


@cache
def _compiled(type: str, unroll: int, prepare: str, value: str, width: int) -> Any:
    cupy = import_module("cupy")
    head, _, loop = _SOURCE.partition('extern "C"')
    text = head + _DROPOUT if width else head + 'extern "C"' + loop
    prepare = prepare or ""
    drawn = "(unit(r[i]) == 1.0f ? 0.0f : unit(r[i])) * (float)b + (float)a"
    # In 16 bits a number may round up to the end of the interval, which is not part of it.
    value = value.replace(
        "REVERSED", drawn if type == "float" else f"(float)({type})({drawn}) == (float)(a + b) ? (float)a : {drawn}"
    )
    value = value.replace("UNIT", "unit_double(r[2 * i], r[2 * i + 1])")
    for word, meaning in (
        ("PREPARE", prepare),
        ("VALUE", value),
        ("TYPE", type),
        ("UNROLL", str(unroll)),
        ("WIDTH", str(width)),
    ):
        text = text.replace(word, meaning)
    return cupy.RawKernel(text, "fill")
