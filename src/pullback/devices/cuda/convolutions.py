"""Convolutions of one, two and three dimensions on the GPU.

With x (N, C, ...), w (O, C / groups, K...): the unfolded x is (N, C * K, places), one launch, and the convolution is a
batched product of cuBLAS's for each group; its adjoint is a product whose result is folded, one launch. Where a group has
few products to add up, as in depthwise convolutions, one launch computes all of it directly instead.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from pullback.backend.precision import allows_tf32
from pullback.devices.cuda.family import Family, serves
from pullback.devices.cuda.rows import compiled, dense_operands, name_of

DIRECT_TERMS = 64
"""Up to how many products a result of a group is computed directly: below, matrices are too thin for cuBLAS."""


class Geometry:
    """Windows: their sizes, strides, paddings and dilations, by dimension."""

    def __init__(self, kernel: Any, stride: Any, padding: Any, dilation: Any) -> None:
        self.kernel, self.stride, self.padding, self.dilation = (
            tuple([int(n) for n in given]) for given in (kernel, stride, padding, dilation)
        )
        self.count = math.prod(self.kernel)
        self.key = (self.kernel, self.stride, self.padding, self.dilation)

    def is_point(self) -> bool:
        """Whether a window is one place, and each place has one: then nothing is to be unfolded."""
        return self.count == 1 and max(self.stride) == 1 and not any(self.padding)

    def convolved(self, sizes: Any) -> tuple[int, ...]:
        """How many windows there are along each dimension."""
        parts = zip(sizes, *self.key, strict=True)
        return tuple([(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in parts])

    def transposed(self, sizes: Any, rest: Any) -> tuple[int, ...]:
        """How many places as many windows come from; `rest` is the output padding."""
        parts = zip(sizes, *self.key, rest, strict=True)
        return tuple([(n - 1) * s + d * (k - 1) + 1 + o - 2 * p for n, k, s, p, d, o in parts])


# Texts. `n0, n1, ...` are sizes of the input, `p0, p1, ...` those of the windows, `k0, k1, ...` a place in a window.


def numbers_text(geometry: Any, width: int) -> str:
    """The numbers of a window, and of elements that a thread has, as CUDA's constants."""
    lines = [f"#define V {width}"]
    for letters, values in zip(("K", "S", "P", "D"), geometry, strict=True):
        lines += [f"#define {letters}{dim} {value}" for dim, value in enumerate(values)]
    return "\n".join([*lines, f"#define KERNEL {math.prod(geometry[0])}", ""])


def _sizes(dims: int) -> str:
    return ", ".join(f"const int {letter}{dim}" for letter in "np" for dim in range(dims))


def _product(letter: str, dims: int) -> str:
    return " * ".join(f"{letter}{dim}" for dim in range(dims))


def _taken_apart(name: str, rest: str, letter: str, dims: int) -> list[str]:
    """Lines that make a place along each dimension, `name0, name1, ...`, of one number; the last varies fastest."""
    lines = [f"int {name}_rest = {rest};"]
    for dim in range(dims - 1, 0, -1):
        lines.append(f"const int {name}{dim} = {name}_rest % {letter}{dim}; {name}_rest /= {letter}{dim};")
    return [*lines, f"const int {name}0 = {name}_rest;"]


def _looped(dims: int, body: list[str], guards: list[list[str]]) -> list[str]:
    """`body` for every place `k0, k1, ...` of a window; the guards of a dimension come first in its loop."""
    lines: list[str] = []
    for dim in range(dims):
        lines += ["#pragma unroll", f"for (int k{dim} = 0; k{dim} < K{dim}; k{dim}++) {{", *guards[dim]]
    return [*lines, *body, "}" * dims]


def _inside(dims: int) -> list[list[str]]:
    """For each dimension: the place `a0, a1, ...` in the input that a window at `i0, i1, ...` has at `k0, k1, ...`."""
    return [
        [f"const int a{d} = i{d} * S{d} - P{d} + k{d} * D{d};", f"if (a{d} < 0 || a{d} >= n{d}) continue;"]
        for d in range(dims)
    ]


def _windows_over(dims: int) -> list[list[str]]:
    """For each dimension: the window `w0, w1, ...` that has the place `i0, i1, ...` of the input at `k0, k1, ...`."""
    return [
        [
            f"const int b{d} = i{d} + P{d} - k{d} * D{d}, w{d} = b{d} / S{d};",
            f"if (b{d} < 0 || b{d} - w{d} * S{d} || w{d} >= p{d}) continue;",
        ]
        for d in range(dims)
    ]


def _flat(name: str, letter: str, dims: int) -> str:
    """One number for a place along all dimensions."""
    text = f"{name}0"
    for dim in range(1, dims):
        text = f"({text}) * {letter}{dim} + {name}{dim}"
    return text


@cache
def unfold_text(geometry: Any, width: int) -> str:
    """A block has one row: one channel, one place in the window, one sample. A thread has V windows next to each other."""
    dims = len(geometry[0])
    last = dims - 1
    lines = [
        *_taken_apart("k", "blockIdx.x % KERNEL", "K", dims),
        f"const T *x = input + (long long)(blockIdx.x / KERNEL) * ({_product('n', dims)});",
        f"const int count = {_product('p', dims)};",
        "T *y = out + (long long)blockIdx.x * count;",
        "for (int n = (blockIdx.y * blockDim.x + threadIdx.x) * V; n < count; n += gridDim.y * blockDim.x * V) {",
        *_taken_apart("i", "n", "p", dims),
        "bool inside = true;",
        "int row = 0;",
    ]
    for d in range(last):
        lines.append(f"const int a{d} = i{d} * S{d} - P{d} + k{d} * D{d};")
        lines.append(f"inside = inside && a{d} >= 0 && a{d} < n{d}; row = row * n{d} + a{d};")
    lines += [
        "Pack pack;", "#pragma unroll", "for (int v = 0; v < V; v++) {",
        f"const int a{last} = (i{last} + v) * S{last} - P{last} + k{last} * D{last};",
        f"pack.at[v] = inside && a{last} >= 0 && a{last} < n{last} ? x[row * n{last} + a{last}] : (T)(REAL)0;",
        "}", "*(Pack *)(y + n) = pack;", "}",
    ]  # fmt: skip
    head = "struct __align__(sizeof(T) * V) Pack { T at[V]; };\n"
    return _kernel(geometry, width, f"T *out, const T *input, {_sizes(dims)}", lines, head)


@cache
def fold_text(geometry: Any) -> str:
    """A block has one channel of one sample; a thread adds up what windows hold of its place."""
    dims = len(geometry[0])
    lines = [
        f"const T *x = input + (long long)blockIdx.x * KERNEL * ({_product('p', dims)});",
        f"const int count = {_product('n', dims)};",
        "T *y = out + (long long)blockIdx.x * count;",
        "for (int n = blockIdx.y * blockDim.x + threadIdx.x; n < count; n += gridDim.y * blockDim.x) {",
        *_taken_apart("i", "n", "n", dims),
        "REAL total = 0;",
        *_looped(
            dims,
            [f"total += (REAL)x[({_flat('k', 'K', dims)}) * ({_product('p', dims)}) + {_flat('w', 'p', dims)}];"],
            _windows_over(dims),
        ),
        "y[n] = (T)total;",
        "}",
    ]
    return _kernel(geometry, 1, f"T *out, const T *input, {_sizes(dims)}", lines)


@cache
def direct_text(geometry: Any, is_adjoint: bool) -> str:
    """A block has one channel of the result of one sample; a thread adds up the products of its place.

    `weight` is (groups, channels of the windows in a group, channels of the input in a group, K...).
    """
    dims = len(geometry[0])
    whole, other = ("n", "p") if is_adjoint else ("p", "n")
    element = _flat("w", "p", dims) if is_adjoint else _flat("a", "n", dims)
    weight = "weight + ((long long)group * outputs * inputs + " + (
        "(long long)c * inputs + channel % inputs) * KERNEL;" if is_adjoint
        else "(long long)(channel % outputs) * inputs + c) * KERNEL;"
    )  # fmt: skip
    own, others = ("inputs", "outputs") if is_adjoint else ("outputs", "inputs")
    lines = [
        f"const int channels = groups * {own}, channel = blockIdx.x % channels, group = channel / {own};",
        f"const long long sample = blockIdx.x / channels, size = {_product(other, dims)};",
        f"const T *x = input + (sample * groups + group) * {others} * size;",
        f"const int count = {_product(whole, dims)};",
        "T *y = out + (long long)blockIdx.x * count;",
        "for (int n = blockIdx.y * blockDim.x + threadIdx.x; n < count; n += gridDim.y * blockDim.x) {",
        *_taken_apart("i", "n", whole, dims),
        "REAL total = 0;",
        f"for (int c = 0; c < {others}; c++) {{",
        f"const T *w = {weight}",
        *_looped(
            dims,
            [f"total += (REAL)x[c * size + {element}] * (REAL)w[{_flat('k', 'K', dims)}];"],
            _windows_over(dims) if is_adjoint else _inside(dims),
        ),
        "}",
        "y[n] = (T)total;",
        "}",
    ]
    given = "T *out, const T *input, const T *weight, const int groups, const int outputs, const int inputs"
    return _kernel(geometry, 1, f"{given}, {_sizes(dims)}", lines)


@cache
def direct_weight_text(geometry: Any) -> str:
    """A block has one element of the weight: it adds up the products of all windows of all samples."""
    dims = len(geometry[0])
    guards = [line for lines in _inside(dims) for line in lines]
    lines = [
        *_taken_apart("k", "blockIdx.x % KERNEL", "K", dims),
        "const int element = blockIdx.x / KERNEL, c = element % inputs, channel = element / inputs;",
        f"const int group = channel / outputs, count = {_product('p', dims)};",
        f"const long long size = {_product('n', dims)}, all = (long long)samples * count;",
        "REAL total = 0;",
        "for (long long n = threadIdx.x; n < all; n += blockDim.x) {",
        "const long long sample = n / count;",
        "const int place = (int)(n - sample * count);",
        *_taken_apart("i", "place", "p", dims),
        *guards,
        "const T *x = input + ((sample * groups + group) * inputs + c) * size;",
        "const T *g = grad + (sample * groups * outputs + channel) * count;",
        f"total += (REAL)g[place] * (REAL)x[{_flat('a', 'n', dims)}];",
        "}",
        "total = reduce<plus>(total, 0);",
        "if (!threadIdx.x) out[blockIdx.x] = (T)total;",
    ]
    given = "T *out, const T *grad, const T *input, const int samples, const int groups, const int outputs, const int inputs"
    return _kernel(geometry, 1, f"{given}, {_sizes(dims)}", lines)


def _kernel(geometry: Any, width: int, parameters: str, lines: list[str], head: str = "") -> str:
    body = "\n".join([line if line.startswith("#") else f"    {line}" for line in lines])
    return f'{numbers_text(geometry, width)}{head}extern "C" __global__ void run({parameters})\n{{\n{body}\n}}\n'


class Convolutions(Family):
    """The kernels, for one library."""

    def __init__(self, library: Any, products: Any, rows: Any) -> None:
        super().__init__(library)
        self._products = products
        self._rows = rows

    @serves()
    def convolution(
        self, input: Any, weight: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool,
        output_padding: Any, groups: int,
    ) -> Any:  # fmt: skip
        """Convolve up to three dimensions; `transposed` gives the adjoint of that."""
        dims = len(stride)
        if dims > 3 or input.ndim != dims + 2 or (bias is not None and bias.dtype != input.dtype):
            return NotImplemented
        served = dense_operands(self._library, input, weight)
        if served is None:
            return NotImplemented
        x, w = served
        geometry = Geometry(w.shape[2:], stride, padding, dilation)
        sizes = x.shape[2:]
        places = geometry.transposed(sizes, output_padding) if transposed else geometry.convolved(sizes)
        if min(places) < 1:
            return NotImplemented
        out = (self._transposed if transposed else self._convolved)(x, w, geometry, places, groups)
        result = self._library.wrapper(out)
        if bias is None:
            return result
        return self._library.kernels["add"](result, bias.reshape((-1,) + (1,) * dims))

    def _convolved(self, x: Any, w: Any, geometry: Geometry, places: Any, groups: int) -> Any:
        """w @ unfolded x, group by group."""
        outputs, inputs = w.shape[0] // groups, w.shape[1]
        if _is_thin(groups, inputs * geometry.count):
            return self._directly(x, w, geometry, places, groups, (outputs, inputs), False)
        columns = self._unfolded(x, geometry, places)
        out = self._cupy.ndarray((x.shape[0], w.shape[0], *places), x.dtype)
        matrices = w.reshape(groups, outputs, -1)
        self._by_group(matrices, columns, out.reshape(x.shape[0], w.shape[0], -1), groups)
        return out

    def _transposed(self, x: Any, w: Any, geometry: Geometry, places: Any, groups: int) -> Any:
        """The folded w.T @ x, group by group, where w is (C, O / groups, K...)."""
        samples, channels = x.shape[:2]
        outputs, inputs = channels // groups, w.shape[1]
        if _is_thin(groups, outputs * geometry.count):
            return self._directly(x, w, geometry, places, groups, (outputs, inputs), True)
        out = self._cupy.ndarray((samples, groups * inputs, *places), x.dtype)
        is_whole = geometry.is_point() and tuple(places) == x.shape[2:]
        flat = x.reshape(samples, channels, -1)
        rows = groups * inputs * geometry.count
        windows = (
            out.reshape(samples, rows, -1) if is_whole else self._cupy.ndarray((samples, rows, flat.shape[2]), x.dtype)
        )
        matrices = w.reshape(groups, outputs, -1).transpose(0, 2, 1)
        self._by_group(matrices, flat, windows, groups)
        if not is_whole:
            count = math.prod(places)
            threads, parts = threads_and_parts(count, samples * groups * inputs)
            sizes = [np.int32(n) for n in (*places, *x.shape[2:])]
            kernel = compiled(self._library, fold_text(geometry.key), name_of(x.dtype))
            kernel((samples * groups * inputs, parts), (threads,), (out, windows, *sizes))
        return out

    def _by_group(self, matrices: Any, columns: Any, out: Any, groups: int) -> None:
        """Products of the matrix of each group with that group's rows of all samples."""
        rows, inner = matrices.shape[1:]
        for n in range(groups):
            part = out[:, n * rows : (n + 1) * rows]
            self._products.batched(
                matrices[n : n + 1], columns[:, n * inner : (n + 1) * inner], part.shape, allows_tf32(True), into=part
            )

    def _directly(
        self, x: Any, w: Any, geometry: Geometry, places: Any, groups: int, channels: tuple[int, int], is_adjoint: bool
    ) -> Any:
        """A convolution, or its adjoint, without products of matrices."""
        samples = x.shape[0]
        own = channels[1] if is_adjoint else channels[0]
        out = self._cupy.ndarray((samples, groups * own, *places), x.dtype)
        windows = (*places, *x.shape[2:]) if is_adjoint else (*x.shape[2:], *places)
        threads, parts = threads_and_parts(math.prod(places), samples * groups * own)
        given = [np.int32(n) for n in (groups, *channels, *windows)]
        kernel = compiled(self._library, direct_text(geometry.key, is_adjoint), name_of(x.dtype))
        kernel((samples * groups * own, parts), (threads,), (out, x, w, *given))
        return out

    def _unfolded(self, x: Any, geometry: Geometry, places: Any) -> Any:
        samples, channels = x.shape[:2]
        count = math.prod(places)
        if geometry.is_point():
            return x.reshape(samples, channels, count)
        rows = samples * channels * geometry.count
        out = self._cupy.ndarray((samples, channels * geometry.count, count), x.dtype)
        width = width_of(places[-1], x.dtype.itemsize)
        threads, parts = threads_and_parts(count // width, rows)
        sizes = [np.int32(n) for n in (*x.shape[2:], *places)]
        kernel = compiled(self._library, unfold_text(geometry.key, width), name_of(x.dtype))
        kernel((rows, parts), (threads,), (out, x, *sizes))
        return out

    @serves()
    def convolution_grad_weight(
        self, input: Any, output_grad: Any, weight_shape: Any, stride: Any, padding: Any, dilation: Any, groups: int
    ) -> Any:
        """The gradient of a convolution with respect to its weight: the sum of grad @ unfolded input.T."""
        dims = len(stride)
        if dims > 3 or input.ndim != dims + 2:
            return NotImplemented
        served = dense_operands(self._library, input, output_grad)
        if served is None:
            return NotImplemented
        x, g = served
        geometry = Geometry(weight_shape[2:], stride, padding, dilation)
        samples, places = x.shape[0], g.shape[2:]
        outputs, inputs = g.shape[1] // groups, x.shape[1] // groups
        if _is_thin(groups, inputs * geometry.count):
            out = self._cupy.ndarray(weight_shape, x.dtype)
            given = [np.int32(n) for n in (samples, groups, outputs, inputs, *x.shape[2:], *places)]
            kernel = compiled(self._library, direct_weight_text(geometry.key), name_of(x.dtype))
            kernel((out.size,), (256,), (out, g, x, *given))
            return self._library.wrapper(out)
        columns = self._unfolded(x, geometry, places)
        wide = x.dtype if x.dtype.itemsize > 2 else np.dtype(np.float32)
        flat, rest = g.reshape(samples, groups * outputs, -1), inputs * geometry.count
        found = self._cupy.ndarray((samples, groups, outputs, rest), wide)
        for n in range(groups):
            part = columns[:, n * rest : (n + 1) * rest].transpose(0, 2, 1)
            own = flat[:, n * outputs : (n + 1) * outputs]
            self._products.batched(own, part, (samples, outputs, rest), allows_tf32(True), wide, found[:, n])
        if samples > 1:
            found = self._rows.add_rows_up(found.reshape(samples, -1))
        return self._library.wrapper(found.reshape(weight_shape).astype(x.dtype, copy=False))


def _is_thin(groups: int, terms: int) -> bool:
    """Whether products of matrices do not pay for a convolution with so many terms to an element."""
    return groups > 1 and terms <= DIRECT_TERMS


def width_of(count: int, itemsize: int) -> int:
    """How many elements a thread has at a time: as many of a row of `count` as make 16 bytes, or fewer."""
    width = 16 // itemsize
    while count % width:
        width //= 2
    return width


def threads_and_parts(count: int, rows: int) -> tuple[int, int]:
    """Threads of a block, and blocks to a row of `count` pieces of work."""
    threads = 32 if count <= 32 else 128 if count <= 128 else 256
    return threads, max(1, min(-(-count // threads), 2112 // max(rows, 1)))
