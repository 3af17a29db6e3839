"""The CUDA text of several elementwise calls in one kernel. See Note [Deferred work]."""

from __future__ import annotations

from typing import Any

from pullback.devices.cuda.elementwise_table import KERNELS
from pullback.devices.cuda.rows import TYPES, name_of
from pullback.expressions.cuda_printer import PREAMBLE

_HEAD = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n"
_PACKS = "template <class V, int N> struct __align__(sizeof(V) * N) Pack { V at[N]; };\n"
_CAST = ((("input", "ARRAY", ...),), False, (("True", "", "input"),))
"""A cast as an entry of KERNELS: rounding to the dtype of the result is what every step does."""
_ELEMENTS = ("ARRAY", "ARRAY_OR_NUMBER", "OPTIONAL_ARRAY")


def fused_source(steps: list[Any], held: list[int], inputs: list[tuple[str, Any]], width: int) -> str:
    """One kernel that computes the steps and stores the results whose numbers are in `held`.

    Inputs are "full" (as many elements as the results), "single" (one for all), "rows" (repeated after so many packs of
    `width` elements as the launch says) or "channels" (an element serves so many packs).
    """
    is_double = steps[0].dtype.itemsize == 8
    types = [_stored(dtype) for _, dtype in inputs]
    numbers = sum(step.kinds.count("n") for step in steps)
    given = [f"{_stored(steps[n].dtype)} *__restrict__ o{k}" for k, n in enumerate(held)]
    given += [f"const {type} *__restrict__ x{k}" for k, type in enumerate(types)]
    given += [f"const double n{k}" for k in range(numbers)]
    for k, (kind, _) in enumerate(inputs):
        if kind in ("rows", "channels"):
            given.append(f"const long long period{k}")
        if kind == "channels":
            given.append(f"const long long channels{k}")
    lines = [f"{_HEAD}#define REAL {'double' if is_double else 'float'}\n{PREAMBLE}{_PACKS}"]
    lines.append(f'extern "C" __global__ void run({", ".join(given)}, const long long count)')
    lines.append("{")
    lines += [f"    const {_real(types[k])} a{k} = *x{k};" for k, (kind, _) in enumerate(inputs) if kind == "single"]
    lines.append("    const long long turn = (long long)gridDim.x * blockDim.x;")
    lines.append("    for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < count; i += turn) {")
    for k, (kind, _) in enumerate(inputs):
        if kind == "channels":
            lines.append(f"        const {_real(types[k])} a{k} = x{k}[i / period{k} % channels{k}];")
        elif kind != "single":
            place = "i" if kind == "full" else f"i % period{k}"
            pack = f"Pack<{types[k]}, {width}>"
            lines.append(f"        const {pack} p{k} = ((const {pack} *)x{k})[{place}];")
    lines += [f"        Pack<{_stored(steps[n].dtype)}, {width}> q{k};" for k, n in enumerate(held)]
    lines += ["        #pragma unroll", f"        for (int k = 0; k < {width}; k++) {{"]
    for k, (kind, _) in enumerate(inputs):
        if kind in ("full", "rows"):
            lines.append(f"            const {_real(types[k])} a{k} = p{k}.at[k];")
    used = 0
    for number, step in enumerate(steps):
        text, count = _step(step, number, used)
        used += count
        lines.append(f"            {text}")
    lines += [f"            q{k}.at[k] = ({_stored(steps[n].dtype)})v{n};" for k, n in enumerate(held)]
    lines.append("        }")
    for k, n in enumerate(held):
        lines.append(f"        ((Pack<{_stored(steps[n].dtype)}, {width}> *)o{k})[i] = q{k};")
    return "\n".join([*lines, "    }", "}", ""])


def _step(step: Any, number: int, used: int) -> tuple[str, int]:
    """A step as a block that sets a variable, and how many numbers it takes."""
    parameters, _, variants = KERNELS.get(step.kernel.name, _CAST)
    operands, declared, count = list(step.operands), [], 0
    for (name, kind, _), letter in zip(parameters, step.kinds, strict=True):
        if letter in "am":
            operand = operands.pop(0)
            value = f"v{operand}" if operand >= 0 else f"a{~operand}"
            declared.append(f"const {'bool' if letter == 'm' else 'REAL'} {name} = {value};")
        elif letter == "n":
            type = "REAL" if kind in _ELEMENTS else "double"
            declared.append(f"const {type} {name} = ({type})n{used + count};")
            count += 1
    _, steps, result = variants[step.place]
    stored = _stored(step.dtype)
    return f"REAL v{number}; {{ {' '.join(declared)} {steps} v{number} = (REAL)({stored})({result}); }}", count


def _stored(dtype: Any) -> str:
    return "bool" if dtype.char == "?" else TYPES[name_of(dtype)]


def _real(stored: str) -> str:
    return stored if stored in ("bool", "double") else "float"
