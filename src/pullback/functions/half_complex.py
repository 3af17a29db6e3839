"""complex32: tensors of it are stored and viewed as they are, and computed with in complex64.

# Note [complex32]
NumPy knows nothing of complex32 (its arrays come from ml_dtypes, and `.real` or `.conjugate()` of such an array is the
array itself), so no kernel is given one, apart from views and copies. Operations are offered to `operate` before they
run, as they are offered to overriding subclasses. That costs nothing until the dtype is first used.
"""

from __future__ import annotations

import sys
from typing import Any

from pullback.backend.dtype import complex32, complex64, float16, float32, when_loaded
from pullback.facts import fact_of
from pullback.graph.in_place import write_out
from pullback.modes.interception import register_overriding_type
from pullback.tensor.tensor import Tensor

ROUNDED = {complex64: complex32, float32: float16}


class HalfComplexInUse:
    """Stands among the overriding types once complex32 is used, so that operations are offered at all."""


when_loaded("complex32", lambda: register_overriding_type(HalfComplexInUse))


def concerns(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether an argument is a complex32 tensor, once the dtype is in use."""
    if complex32._numpy is None:
        return False
    return any(_has_half_complex(value) for value in (*args, *kwargs.values()))


def _has_half_complex(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_has_half_complex(v) for v in value)
    return isinstance(value, Tensor) and value._array.dtype.kind == "W"


def operate(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run an operation on complex32 tensors: views and copies as they are, the rest in complex64."""
    from pullback.generated.registry import OPERATIONS  # not needed until complex32 is used

    name = getattr(function, "__name__", "")
    if fact_of(name, "complex32") or (name in OPERATIONS and OPERATIONS[name].view):
        return function(*args, **kwargs)
    if name.endswith("_"):
        changed = _out_of_place(function, name.removesuffix("_"))(*_widened(args), **_widened(kwargs))
        return args[0].copy_(changed)
    out = kwargs.pop("out", None) if "out" in kwargs else None
    if out is not None:
        return write_out(name, out, operate(function, args, kwargs))
    wide = any(map(_is_wide, (*args, *kwargs.values())))
    result = function(*_widened(args), **_widened(kwargs))
    return result if wide else _rounded(result)


def _out_of_place(function: Any, name: str) -> Any:
    """The function whose in-place form this is; an operation's has parameters that the public one lacks."""
    from pullback import functions

    beside = getattr(sys.modules[getattr(function, "__module__", "")], name, None)
    return beside if callable(beside) else getattr(functions, name)


def _is_wide(value: Any) -> bool:
    """Whether an operand by itself asks for more than half precision."""
    if isinstance(value, (list, tuple)):
        return any(map(_is_wide, value))
    if not isinstance(value, Tensor):
        return False
    numpy_dtype = value._array.dtype
    return value.ndim > 0 and numpy_dtype.kind in "fc" and numpy_dtype.itemsize > 2


def _widened(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.to(complex64) if value._array.dtype.kind == "W" else value
    if isinstance(value, dict):
        return {name: _widened(one) for name, one in value.items()}
    return type(value)(map(_widened, value)) if isinstance(value, (list, tuple)) else value


def _rounded(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.to(ROUNDED[value.dtype]) if value.dtype in ROUNDED else value
    return type(value)(map(_rounded, value)) if type(value) in (list, tuple) else value
