"""What PyTorch's `torch.distributed.tensor.experimental` has for DTensors: functions of parts, and mixtures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import Any

from pullback.distributed.device_mesh import DeviceMesh
from pullback.distributed.tensor.dtensor import DTensor
from pullback.distributed.tensor.operations import implicit_replication
from pullback.distributed.tensor.placement_types import Placement
from pullback.tensor.tensor import Tensor
from pullback.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["implicit_replication", "local_map"]

Laid = Sequence[Placement] | None


def local_map(
    func: Callable[..., Any] | None = None, out_placements: Laid | tuple[Laid, ...] = None,
    in_placements: tuple[Laid, ...] | None = None, in_grad_placements: tuple[Laid, ...] | None = None,
    device_mesh: DeviceMesh | None = None, *, redistribute_inputs: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    """A function of DTensors that runs `func` on the parts of this rank, and makes DTensors of what it returns."""
    if func is None:
        return partial(
            local_map, out_placements=out_placements, in_placements=in_placements,
            in_grad_placements=in_grad_placements, device_mesh=device_mesh, redistribute_inputs=redistribute_inputs,
        )  # fmt: skip

    @wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        flat, structure = tree_flatten(args)
        mesh = device_mesh or next((each.device_mesh for each in flat if isinstance(each, DTensor)), None)
        if in_placements is not None and len(in_placements) != len(flat):
            raise AssertionError(f"in_placements length {len(in_placements)} does not match the {len(flat)} inputs")
        for index, each in enumerate(flat):
            if isinstance(each, DTensor):
                wanted = None if in_placements is None else in_placements[index]
                grads = None if in_grad_placements is None else in_grad_placements[index]
                flat[index] = _laid(each, wanted, redistribute_inputs).to_local(grad_placements=grads)
        result = func(*tree_unflatten(flat, structure), **kwargs)
        if mesh is None or all(each is given for each, given in zip(flat, tree_flatten(args)[0], strict=True)):
            return result  # there was no DTensor
        return _wrapped(result, mesh, out_placements)

    return call


def _laid(tensor: DTensor, wanted: Laid, may_redistribute: bool) -> DTensor:
    if wanted is None or tuple(wanted) == tuple(tensor.placements):
        return tensor
    if not may_redistribute:
        raise ValueError(
            f"arg {tensor.placements} in local_map has a mismatched placements: it is to lie as {tuple(wanted)}! If "
            "redistribute_inputs is wanted, set redistribute_inputs=True to local_map."
        )
    return tensor.redistribute(placements=wanted)


def _wrapped(result: Any, mesh: DeviceMesh, how: Any) -> Any:
    """The results as DTensors; `how` is the placements of one, or of each in a tuple."""
    flat, structure = tree_flatten(result)
    each_how = how if isinstance(how, tuple) and not all(isinstance(p, Placement) for p in how) else (how,)
    if len(each_how) != len(flat):
        raise AssertionError(
            f"local_map requires one PlacementType for each output value, got {len(each_how)} out_placements but "
            f"{len(flat)} is expected."
        )
    return tree_unflatten(
        [
            DTensor.from_local(value, mesh, placements) if isinstance(value, Tensor) and placements else value
            for value, placements in zip(flat, each_how, strict=True)
        ],
        structure,
    )
