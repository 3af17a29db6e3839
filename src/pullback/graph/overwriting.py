"""The short road of in-place operations: where nothing is recorded or intercepted, a kernel writes into its input.

Optimizers take it most: small tensors, many calls. Whatever is not plain takes the road of Note [In-place], which
decides all semantics and all errors.
"""

from __future__ import annotations

from typing import Any

from pullback.backend.array_module import overlaps_in_part
from pullback.graph.history import bump_version
from pullback.modes.cuts import note_cut
from pullback.modes.interception import overrides
from pullback.modes.switches import process, switches
from pullback.tensor.tensor import TensorBase


def overwrite(kernel: Any, input: Any, *operands: Any) -> bool:
    """Write what `kernel` makes of `input` and operands into `input`; return False where that is not plain.

    `kernel` is a form of kernels/overwriting.py.
    """
    records = True
    asked: Any = ()
    if process.changed:
        if not switches.plain:
            return False
        records = switches.records
        asked = overrides.types
    if not isinstance(input, TensorBase) or (records and input._requires_grad) or (asked and type(input) in asked):
        return False
    extra = input._extra
    if extra is not None and (extra.tangents or (extra.inference and not switches.inference_mode)):
        return False
    array = input._array
    given = [array]
    cut = False
    for operand in operands:
        if type(operand) is float or type(operand) is int:
            given.append(operand)
            continue
        if not isinstance(operand, TensorBase):
            return False
        if operand._requires_grad:
            if records:
                return False
            cut = True
        if asked and type(operand) in asked:
            return False
        if overlaps_in_part(array, operand._array):
            return False
        given.append(operand._array)
    count = len(given)
    done = True  # unless the kernel says otherwise: one that was interrupted may have written
    try:
        done = kernel(array) if count == 1 else kernel(array, given[1]) if count == 2 else kernel(*given)
    finally:
        if done:
            bump_version(input)  # type: ignore[arg-type]  # every TensorBase is a Tensor
            if cut:
                note_cut(None, input, *operands)
    return done
