"""Which dtypes the tensors given as `out=` may have."""

from __future__ import annotations

from pullback.backend.dtype import can_cast, cpp_type_name, scalar_type_name
from pullback.facts import fact_of
from pullback.typing import DType

_PHRASES = {
    "c_types": "Expected out tensor to have dtype {0}, but got {1} instead",
    "found": "Found dtype {1} but expected {0}",
    "for_input": (
        "Expected the dtype for input and out to match, but got {0} for input's dtype and {1} for out's dtype."
    ),
    "for_object": "Expected object of scalar type {0} but got scalar type {1} for argument 'out'",
    "for_dot": "result dtype {1} does not match input dtype {0}",
    "for_tensordot": (
        "tensordot: Expected the output tensor to have dtype {0}, but got an output tensor with dtype {1}"
    ),
    "scalar_type": "expected scalar type {0} but found {1}",
    "same_scalar_type": "{2}(): self and result must have the same scalar type: {0}, not {1}",
    "not_bool": "{2} does not support non-boolean outputs: {1}",
    "histogram": (
        "torch.histogram: input tensor and hist tensor should have the same dtype, but got input {0} and hist {1}"
    ),
}
"""The message about an `out=` of another dtype, by the fact `out_dtype`: dtype of the result, of out, function."""


def check_out_dtype(name: str, result: DType, out: DType) -> None:
    """Refuse to write a result into a tensor of another dtype where PyTorch does."""
    names = (scalar_type_name(result), scalar_type_name(out))
    phrase = fact_of(name, "out_dtype")
    if phrase == "c_types":
        names = (cpp_type_name(result), cpp_type_name(out))
    if phrase is not None:
        raise RuntimeError(_PHRASES.get(phrase, phrase).format(*names, name))
    if name in ("all", "any") and names[1] != "Byte":
        raise RuntimeError(f"{name} only supports bool tensor for result, got: {names[1]}")
    if can_cast(result, out):
        return
    if name in ("cat", "stack"):
        raise TypeError(f"torch.cat(): input types can't be cast to the desired output type {names[1]}")
    raise RuntimeError(f"result type {names[0]} can't be cast to the desired output type {names[1]}")
