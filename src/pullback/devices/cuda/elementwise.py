"""Elementwise kernels of the GPU: one launch for a whole expression, printed in CUDA and compiled at first use.

# Note [Fused kernels of the GPU]
`elementwise_table.py` holds, for every kernel and every line of a rule that C can express, CUDA's text of one element.
A call chooses its way through the kernel as the compiled one on the CPU does, brings its operands together and launches
once: flat, 16 bytes a load, where all operands lie alike; else over at most as many dimensions as differ. Numbers are
handed over, not compiled in. 16-bit floats are computed in float32 and rounded at the end. What is not served (integers,
mixed dtypes, gaps in memory) is declined, and the kernel's text computes it step by step.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.devices.cuda.elementwise_table import KERNELS
from pullback.devices.cuda.rows import TYPES, name_of
from pullback.expressions.cuda_printer import PREAMBLE

_BLOCK = 256
_MOST_BLOCKS = 8448
_HEAD = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n"


class FusedKernel:
    """One kernel or line of a rule; a call answers NotImplemented to what it does not serve."""

    def __init__(self, library: Any, name: str) -> None:
        self._library = library
        self.name = name
        self._kernels: dict[Any, Any] = {}
        self._parameters, self._is_line, variants = KERNELS[name]
        self._names = [parameter[0] for parameter in self._parameters]
        self._texts = [(steps, result) for _, steps, result in variants]
        self._choose = None
        if len(variants) > 1 or variants[0][0] != "True":
            chain = " else ".join(f"{place} if {test}" for place, (test, _, _) in enumerate(variants))
            self._choose = eval(f"lambda {', '.join(self._names)}: {chain} else -1")

    def __call__(self, *args: Any, **options: Any) -> Any:
        owned = False
        if self._is_line and len(args) > len(self._names):
            args, owned = args[:-1], args[-1]
        elif "owned" in options:
            owned = options.pop("owned")
        values = list(args)
        for name, _, default in self._parameters[len(values) :]:
            value = options.pop(name, default)
            if value is ...:
                return NotImplemented
            values.append(value)
        if options or len(values) != len(self._names):
            return NotImplemented
        place = 0 if self._choose is None else self._choose(*values)
        if place < 0 or self._texts[place][1] is None:
            return NotImplemented
        made = self._library.pending.record(self, place, values, self._parameters)
        return self._at_once(place, values, owned) if made is None else made

    def call_into(self, result: Any, values: Any) -> bool:
        """Put a call's result in the place of an array that is still to be computed; False if it does not fit."""
        given = [*values, *[default for _, _, default in self._parameters[len(values) :]]]
        place = 0 if self._choose is None else self._choose(*given)
        if result.shape != values[-1].shape or result.dtype != values[-1].dtype:
            return False
        return self._library.pending.record(self, place, given, self._parameters, result) is not None

    def add_to(self, total: Any, value: Any) -> bool:
        """Add one of the library's arrays to another in place; False if they do not lie alike."""
        if total.shape != value.shape or not total._c_contiguous or not value._c_contiguous:
            return False
        if name_of(total.dtype) not in TYPES:
            return False
        kinds = "aa" + "n" * (len(self._parameters) - 2)
        self._launch_flat(
            self._choose(total, value, 1) if self._choose else 0, kinds, total.dtype, [total, value], [1.0], total
        )
        return True

    def _at_once(self, place: int, values: list[Any], owned: bool) -> Any:
        """Launch a call that cannot wait, or decline it."""
        kinds, raws, numbers = "", [], []
        dtype: Any = None
        wrapper = self._library.wrapper
        for value, (_, kind, _) in zip(values, self._parameters, strict=True):
            type_ = type(value)
            if type_ is wrapper:
                raw = value.raw
                if kind == "MASK":
                    if raw.dtype.char != "?":
                        return NotImplemented
                    kinds += "m"
                else:
                    if dtype is None:
                        dtype = raw.dtype
                    elif raw.dtype is not dtype and raw.dtype != dtype:
                        return NotImplemented
                    kinds += "a"
                raws.append(raw)
            elif value is None or type_ is str:
                kinds += "-"
            elif type_ is float or type_ is int or isinstance(value, (np.floating, np.integer)):
                kinds += "n"
                numbers.append(float(value))
            else:
                return NotImplemented
        if dtype is None or name_of(dtype) not in TYPES:
            return NotImplemented
        shape = raws[0].shape
        if all(raw.shape == shape and raw._c_contiguous for raw in raws):
            out = raws[0] if owned and kinds[0] == "a" else None
            return wrapper(self._launch_flat(place, kinds, dtype, raws, numbers, out))
        found = self._launch_strided(place, kinds, dtype, raws, numbers)
        return NotImplemented if found is None else wrapper(found)

    def launch(self, place: int, kinds: str, dtype: Any, raws: list[Any], numbers: Any, shape: tuple[int, ...]) -> Any:
        """Launch a call whose operands lie row after row and meet in `shape`."""
        if all(raw.shape == shape and raw._c_contiguous for raw in raws):
            return self._launch_flat(place, kinds, dtype, raws, numbers, None)
        return self._launch_over(shape, place, kinds, dtype, raws, numbers)

    def _launch_flat(self, place: int, kinds: str, dtype: Any, raws: list[Any], numbers: Any, out: Any) -> Any:
        if out is None:
            out = self._library.module.ndarray(raws[0].shape, dtype)
        size = out.size
        if size:
            width = 1 if "m" in kinds else _width(size, dtype.itemsize, raws)
            count = size // width
            kernel = self._compiled("flat", place, kinds, name_of(dtype), width)
            kernel((min(-(-count // _BLOCK), _MOST_BLOCKS), 1, 1), (_BLOCK, 1, 1), (out, *raws, *numbers, count))
        return out

    def _launch_strided(self, place: int, kinds: str, dtype: Any, raws: list[Any], numbers: list[float]) -> Any:
        first = raws[0]
        if all(raw.shape == first.shape and raw.strides == first.strides for raw in raws) and first._f_contiguous:
            out = self._library.module.empty_like(first, dtype=dtype)
            if out.strides == first.strides and out.size:
                kernel = self._compiled("flat", place, kinds, name_of(dtype), 1)
                kernel(
                    (min(-(-out.size // _BLOCK), _MOST_BLOCKS), 1, 1), (_BLOCK, 1, 1), (out, *raws, *numbers, out.size)
                )
                return out
        shape = np.broadcast_shapes(*[raw.shape for raw in raws])
        if any(raw.ndim > 1 and not raw._c_contiguous and raw.shape == shape for raw in raws):
            return None  # the result is to lie as the operands do: the text knows how
        return self._launch_over(shape, place, kinds, dtype, raws, numbers)

    def _launch_over(self, shape: Any, place: int, kinds: str, dtype: Any, raws: list[Any], numbers: Any) -> Any:
        out = self._library.module.ndarray(shape, dtype)
        if not out.size:
            return out
        sizes, steps = _collapsed(shape, raws)
        if len(sizes) > 6:
            return None
        kernel = self._compiled("strided", place, kinds, name_of(dtype), len(sizes))
        arguments = (out, *raws, *numbers, out.size, *sizes, *steps)
        kernel((min(-(-out.size // _BLOCK), 2 * _MOST_BLOCKS), 1, 1), (_BLOCK, 1, 1), arguments)
        return out

    def _compiled(self, form: str, *choice: Any) -> Any:
        """The kernel for a way through the text, a way that operands lie and a dtype."""
        key = (form, *choice)
        found = self._kernels.get(key)
        if found is None:
            source = (flat_source if form == "flat" else strided_source)(self.name, *choice)
            found = self._kernels[key] = self._library.compiled(source, joins=False)
        return found


class Cast:
    """Casts between float32 and 16-bit floats, which wait as elementwise calls do. See Note [Deferred work]."""

    name = "cast_half"
    _parameters = (("input", "ARRAY", ...),)

    def __init__(self, library: Any) -> None:
        self._library = library

    def __call__(self, array: Any, dtype: Any) -> Any:
        if type(array) is not self._library.wrapper or dtype == array.dtype or not array.shape:
            return NotImplemented
        if name_of(dtype) not in TYPES or 8 in (dtype.itemsize, array.dtype.itemsize):
            return NotImplemented
        made = self._library.pending.record(self, 0, [array], self._parameters, None, dtype)
        return NotImplemented if made is None else made

    def launch(self, place: int, kinds: str, dtype: Any, raws: list[Any], numbers: Any, shape: tuple[int, ...]) -> Any:
        """Cast now."""
        return self._library.module.ascontiguousarray(raws[0].astype(dtype))


def _width(size: int, itemsize: int, raws: list[Any]) -> int:
    """How many elements a thread reads at once: 16 bytes where arrays begin and end at such places."""
    width = 16 // itemsize
    if size % width:
        return 1
    for raw in raws:
        if raw.data.ptr % 16:
            return 1
    return width


def _collapsed(shape: Any, raws: list[Any]) -> tuple[list[int], list[int]]:
    """Sizes of dimensions, neighbours joined where all operands allow it, and the steps (in elements) of each operand."""
    rows = []
    for raw in raws:
        missing = len(shape) - raw.ndim
        item = raw.dtype.itemsize
        rows.append(
            [0] * missing
            + [0 if size == 1 and shape[missing + d] != 1 else stride // item
               for d, (size, stride) in enumerate(zip(raw.shape, raw.strides, strict=True))]
        )  # fmt: skip
    dims: list[tuple[int, list[int]]] = []
    for d, size in enumerate(shape):
        if size == 1:
            continue
        steps = [row[d] for row in rows]
        if dims and all(before == after * size for before, after in zip(dims[-1][1], steps, strict=True)):
            dims[-1] = (dims[-1][0] * size, steps)
        else:
            dims.append((size, steps))
    if not dims:
        dims = [(1, [0] * len(rows))]
    return [size for size, _ in dims], [steps[row] for row in range(len(rows)) for _, steps in dims]


def _texts_of(name: str, place: int, kinds: str, dtype: str) -> Any:
    """The parameters of a kernel, what an element reads, numbers as elements, its steps and its result."""
    parameters, _, variants = KERNELS[name]
    stored = TYPES[dtype]
    given: list[str] = []
    reads: list[tuple[str, str]] = []
    constants: list[str] = []
    for (parameter, _, _), letter in zip(parameters, kinds, strict=True):
        if letter in "am":
            type = "bool" if letter == "m" else stored
            given.append(f"const {type} *__restrict__ {parameter}_at")
            reads.append((parameter, letter))
    for (parameter, kind, _), letter in zip(parameters, kinds, strict=True):
        if letter == "n":
            is_element = kind in ("ARRAY", "ARRAY_OR_NUMBER", "OPTIONAL_ARRAY")
            given.append(f"const double {parameter}{'_number' if is_element else ''}")
            if is_element:
                constants.append(f"const REAL {parameter} = (REAL){parameter}_number;")
    return given, reads, constants, variants[place][1], variants[place][2]


def _real(dtype: str) -> str:
    return "double" if dtype == "float64" else "float"


def _head(dtype: str) -> str:
    return f"{_HEAD}#define REAL {_real(dtype)}\n{PREAMBLE}"


def flat_source(name: str, place: int, kinds: str, dtype: str, width: int) -> str:
    """CUDA's text for operands that lie alike, `width` elements to a load."""
    given, reads, constants, steps, result = _texts_of(name, place, kinds, dtype)
    stored = TYPES[dtype]
    lines = [_head(dtype), f"struct __align__({width * (8 if stored == 'double' else 4 if stored == 'float' else 2)}) "]
    lines[-1] += f"Pack {{ {stored} at[{width}]; }};"
    restrict = [text.replace("__restrict__ ", "") for text in given]
    lines.append(f'extern "C" __global__ void run({stored} *out, {", ".join(restrict)}, const long long count)')
    lines += ["{", *[f"    {text}" for text in constants]]
    lines.append("    const long long turn = (long long)gridDim.x * blockDim.x;")
    lines.append("    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < count; i += turn) {")
    for parameter, letter in reads:
        if letter == "a":
            lines.append(f"        const Pack {parameter}_pack = ((const Pack *){parameter}_at)[i];")
    lines += ["        Pack pack;", "        #pragma unroll", f"        for (int k = 0; k < {width}; k++) {{"]
    for parameter, letter in reads:
        lines.append(
            f"            const REAL {parameter} = (REAL){parameter}_pack.at[k];" if letter == "a"
            else f"            const bool {parameter} = {parameter}_at[i];"
        )  # fmt: skip
    lines += [f"            {steps}", f"            pack.at[k] = ({stored})({result});", "        }"]
    return "\n".join([*lines, "        ((Pack *)out)[i] = pack;", "    }", "}", ""])


def strided_source(name: str, place: int, kinds: str, dtype: str, ndim: int) -> str:
    """CUDA's text for operands that are repeated or lie otherwise; the result is row-major."""
    given, reads, constants, steps, result = _texts_of(name, place, kinds, dtype)
    stored = TYPES[dtype]
    sizes = [f"const long long n{d}" for d in range(ndim)]
    strides = [f"const long long {parameter}_s{d}" for parameter, _ in reads for d in range(ndim)]
    lines = [_head(dtype)]
    lines.append(
        f'extern "C" __global__ void run({stored} *__restrict__ out, {", ".join(given)}, const long long count, '
        f"{', '.join([*sizes, *strides])})"
    )
    lines += ["{", *[f"    {text}" for text in constants]]
    lines.append("    const long long turn = (long long)gridDim.x * blockDim.x;")
    lines.append("    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < count; i += turn) {")
    lines.append("        long long _rest = i;")
    lines += [f"        long long {parameter}_place = 0;" for parameter, _ in reads]
    for d in range(ndim - 1, -1, -1):
        index = f"_rest % n{d}" if d else "_rest"
        lines.append(f"        {{ const long long at = {index}; " + (f"_rest /= n{d}; " if d else ""))
        lines[-1] += " ".join(f"{parameter}_place += at * {parameter}_s{d};" for parameter, _ in reads) + " }"
    for parameter, letter in reads:
        type = "bool" if letter == "m" else "REAL"
        lines.append(f"        const {type} {parameter} = ({type}){parameter}_at[{parameter}_place];")
    lines += [f"        {steps}", f"        out[i] = ({stored})({result});", "    }", "}", ""]
    return "\n".join(lines)


def fused_kernels(library: Any) -> dict[str, Any]:
    """All of them, by name."""
    made: dict[str, Any] = {name: FusedKernel(library, name) for name, entry in KERNELS.items() if entry[2]}
    return {**made, Cast.name: Cast(library)}
