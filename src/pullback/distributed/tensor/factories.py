"""New tensors that lie on several ranks, and modules whose parameters do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pullback
from pullback.distributed.device_mesh import DeviceMesh, init_device_mesh
from pullback.distributed.process_group import get_world_size
from pullback.distributed.tensor.dtensor import DTensor, distribute_tensor, keep_part, lay_tensor, normalized
from pullback.distributed.tensor.operations import answer_operations
from pullback.distributed.tensor.placement_types import Placement, Replicate
from pullback.nn.parameter import Parameter

__all__ = ["distribute_module", "empty", "full", "ones", "rand", "randn", "zeros"]


def _made(
    tensor: Any,
    mesh: DeviceMesh | None,
    placements: Sequence[Placement] | None,
    requires_grad: bool,
    alike: bool = True,
) -> Any:
    answer_operations()
    used = mesh or init_device_mesh("cpu", (get_world_size(),))
    if alike:
        how = normalized(placements, used, tensor.ndim, Replicate())
        return keep_part(tensor, used, how).requires_grad_(requires_grad)
    return distribute_tensor(tensor, used, placements).requires_grad_(requires_grad)


def _size(size: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple(size[0]) if len(size) == 1 and isinstance(size[0], Sequence) else size


def full(
    size: Sequence[int], fill_value: Any, *, dtype: Any = None, layout: Any = None, requires_grad: bool = False,
    device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None,
) -> DTensor:  # fmt: skip
    """A tensor with one value everywhere.

    >>> import pullback.distributed as dist
    >>> dist.init_process_group("gloo", rank=0, world_size=1)
    >>> full((2,), 3.0).to_local()
    tensor([3., 3.])
    >>> dist.destroy_process_group()
    """
    values = pullback.full(tuple(size), fill_value, dtype=dtype)
    return _made(values, device_mesh, placements, requires_grad)


def zeros(
    *size: Any, requires_grad: bool = False, dtype: Any = None, layout: Any = None, device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:  # fmt: skip
    """A tensor of zeros."""
    values = pullback.zeros(_size(size), dtype=dtype)
    return _made(values, device_mesh, placements, requires_grad)


def ones(
    *size: Any, requires_grad: bool = False, dtype: Any = None, layout: Any = None, device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:  # fmt: skip
    """A tensor of ones."""
    values = pullback.ones(_size(size), dtype=dtype)
    return _made(values, device_mesh, placements, requires_grad)


def empty(
    *size: Any, requires_grad: bool = False, dtype: Any = None, layout: Any = None, device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:  # fmt: skip
    """A tensor whose values are not set."""
    values = pullback.empty(_size(size), dtype=dtype)
    return _made(values, device_mesh, placements, requires_grad)


def rand(
    *size: Any, requires_grad: bool = False, dtype: Any = None, layout: Any = None, device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:  # fmt: skip
    """Uniform random numbers, those that the first rank of the mesh draws."""
    values = pullback.rand(_size(size), dtype=dtype)
    return _made(values, device_mesh, placements, requires_grad, alike=False)


def randn(
    *size: Any, requires_grad: bool = False, dtype: Any = None, layout: Any = None, device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
) -> DTensor:  # fmt: skip
    """Normal random numbers, those that the first rank of the mesh draws."""
    values = pullback.randn(_size(size), dtype=dtype)
    return _made(values, device_mesh, placements, requires_grad, alike=False)


def distribute_module(
    module: Any, device_mesh: DeviceMesh | None = None,
    partition_fn: Callable[[str, Any, DeviceMesh], None] | None = None,
    input_fn: Callable[[Any, Any, DeviceMesh], Any] | None = None,
    output_fn: Callable[[Any, Any, DeviceMesh], Any] | None = None,
) -> Any:  # fmt: skip
    """Let parameters and buffers lie on a mesh: as `partition_fn(name, module, mesh)` lays them, all others as copies.

    `input_fn` and `output_fn`, called with the module, the inputs or outputs, and the mesh, prepare these.
    """
    answer_operations()
    mesh = device_mesh or init_device_mesh("cpu", (get_world_size(),))
    for name, part in module.named_modules():
        if partition_fn is not None:
            partition_fn(name, part, mesh)
        replicate(part, mesh)
    if input_fn is not None:
        module.register_forward_pre_hook(lambda part, inputs: input_fn(part, inputs, mesh))
    if output_fn is not None:
        module.register_forward_hook(lambda part, inputs, outputs: output_fn(part, outputs, mesh))
    return module


def replicate(module: Any, mesh: DeviceMesh) -> None:
    """Let the parameters and buffers of a module, not those of its parts, lie on a mesh as copies."""
    everywhere = (Replicate(),) * mesh.ndim
    for name, parameter in module._parameters.items():
        if parameter is not None and not isinstance(parameter, DTensor):
            module.register_parameter(
                name, Parameter(lay_tensor(parameter.detach(), mesh, everywhere), parameter.requires_grad)
            )
    for name, buffer in module._buffers.items():
        if buffer is not None and not isinstance(buffer, DTensor):
            module._buffers[name] = lay_tensor(buffer, mesh, everywhere)
