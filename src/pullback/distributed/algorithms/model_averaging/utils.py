"""Averages of the parameters of all ranks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pullback.autograd.grad_mode import no_grad
from pullback.distributed import collectives
from pullback.distributed.buffers import divide, joined
from pullback.distributed.process_group import group_of
from pullback.tensor.tensor import Tensor, new_tensor

__all__ = ["average_parameters", "average_parameters_or_parameter_groups", "get_params_to_average"]


def average_parameters(params: Iterable[Any], process_group: Any) -> None:
    """Replace parameters by their averages over ranks."""
    by_dtype: dict[Any, list[Any]] = {}
    for parameter in params:
        by_dtype.setdefault(parameter.dtype, []).append(parameter)
    with no_grad():
        for alike in by_dtype.values():
            values = joined(alike)
            total = new_tensor(values)
            total.div_(group_of(process_group).size())
            collectives.all_reduce(total, group=process_group)
            divide(values, alike)


def get_params_to_average(params: Iterable[Any]) -> list[Any]:
    """Of parameters, or of an optimizer's groups of them, those that have a gradient."""
    found = []
    for each in params:
        for parameter in [each] if isinstance(each, Tensor) else each["params"]:
            if parameter.grad is not None:
                found.append(parameter)
    return found


def average_parameters_or_parameter_groups(params: Iterable[Any], process_group: Any) -> None:
    """Replace those that have a gradient by their averages over ranks."""
    average_parameters(get_params_to_average(params), process_group)
