"""Writes src/pullback/dispatch/aten_schemas.txt: the signatures of PyTorch's operators that pullback can name.

Needs PyTorch. A signature is listed if a function, a method or a declaration of pullback has the operator's name. Forms
with `out=` are left out: they follow from the form without. A line that begins with `~` is an operator that PyTorch itself
computes by others, so that a dispatch mode never sees it. Run as `python -m tools.record_aten_schemas`.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

TARGET = Path(__file__).resolve().parents[1] / "src" / "pullback" / "dispatch" / "aten_schemas.txt"

MADE = (
    "arange empty empty_like empty_permuted empty_strided eye full full_like linspace logspace ones ones_like rand "
    "rand_like randint randint_like randn randn_like randperm scalar_tensor tril_indices triu_indices zeros zeros_like"
)
"""Operators that make tensors of nothing."""

PRIVATE = (
    "_local_scalar_dense _to_copy _unsafe_view _reshape_alias alias lift_fresh lift_fresh_copy _linalg_check_errors "
    "sym_size"
)
"""Operators that no user calls and that modes see."""


def named_by_pullback() -> set[str]:
    """The names that pullback has a meaning for."""
    functions: Any = import_module("pullback.functions")
    functional: Any = import_module("pullback.nn.functional")
    tensor: Any = import_module("pullback").Tensor
    operations: Any = import_module("pullback.generated.registry").OPERATIONS
    names = {*f"{MADE} {PRIVATE}".split(), *functions.public_names(), *dir(functional), *dir(tensor), *operations}
    for prefix in ("linalg", "fft", "special"):
        names |= {f"{prefix}_{name}" for name in dir(import_module(f"pullback.{prefix}"))}
    for operation in operations.values():
        names |= set(re.findall(r"\w+(?=[(.])", f"{operation.aten} {operation.backward}"))
    return names


def record() -> str:
    """The text of the file."""
    import torch

    wanted = named_by_pullback()
    lines = []
    for schema in torch._C._jit_get_all_schemas():
        namespace, _, name = schema.name.partition("::")
        text = str(schema)
        if namespace != "aten" or name not in wanted or "out" in schema.overload_name or "Dimname" in text:
            continue
        if "Tensor" not in text:
            continue
        full = f"aten::{name}" + (f".{schema.overload_name}" if schema.overload_name else "")
        try:
            composite = torch._C._dispatch_has_kernel_for_dispatch_key(full, "CompositeImplicitAutograd")
        except RuntimeError:
            continue
        lines.append(f"{'~' if composite else ''}{text.removeprefix('aten::')}")
    return "\n".join(sorted(set(lines), key=lambda line: line.lstrip("~"))) + "\n"


if __name__ == "__main__":
    TARGET.write_text(record())
