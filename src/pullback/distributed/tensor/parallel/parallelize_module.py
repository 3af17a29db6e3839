"""`parallelize_module`: divide the layers that a plan names."""

from __future__ import annotations

from fnmatch import fnmatch
from typing import Any

from pullback.distributed.device_mesh import DeviceMesh, init_device_mesh
from pullback.distributed.process_group import get_world_size
from pullback.distributed.tensor.parallel.style import ParallelStyle
from pullback.modes.user_warnings import warn_user

__all__ = ["parallelize_module"]


def parallelize_module(
    module: Any, device_mesh: DeviceMesh | None = None,
    parallelize_plan: ParallelStyle | dict[str, ParallelStyle] | None = None, *, src_data_rank: int | None = 0,
) -> Any:  # fmt: skip
    """Divide a module, or the parts of it that a plan names, among the ranks of a mesh of one dimension.

    Names are paths such as "layers.0.attention", whose pieces may be patterns: "layers.*.attention". Parameters are those
    of the rank `src_data_rank`; with None every rank keeps a part of its own.

    >>> import pullback
    >>> import pullback.distributed as dist
    >>> from pullback.distributed.tensor.parallel import ColwiseParallel
    >>> dist.init_process_group("gloo", rank=0, world_size=1)
    >>> model = pullback.nn.Sequential(pullback.nn.Linear(2, 4))
    >>> parallelize_module(model, None, {"0": ColwiseParallel()})[0].weight.placements
    (Shard(dim=0),)
    >>> dist.destroy_process_group()
    """
    mesh = device_mesh or init_device_mesh("cpu", (get_world_size(),))
    if mesh.ndim > 1:
        raise ValueError(f"Tensor parallel takes a mesh of one dimension, not {mesh}: pass mesh['name']")
    if parallelize_plan is None:
        warn_user("No parallelize_plan is provided: the module stays as it is.")
        return module
    if isinstance(parallelize_plan, ParallelStyle):
        parallelize_plan.src_data_rank = src_data_rank
        return parallelize_plan._apply(module, mesh)
    if not isinstance(parallelize_plan, dict):
        raise TypeError(
            "Expect Union[ParallelStyle, Dict[str, ParallelStyle]] for parallelize_plan, "
            f"{type(parallelize_plan)} found!"
        )
    for path, style in parallelize_plan.items():
        if not isinstance(style, ParallelStyle):
            raise TypeError(
                f"Expect Union[ParallelStyle, Dict[str, ParallelStyle]] for parallelize_plan, {type(style)} found! "
                f"It is the plan for {path!r}."
            )
        found = _parts(module, path)
        if not found:
            warn_user(f"Parallelize plan key '{path}' could not be resolved: no submodule of that name.")
        for part in found:
            style.src_data_rank = src_data_rank
            style._apply(part, mesh)
    return module


def _parts(module: Any, path: str) -> list[Any]:
    """The parts of a module that a path of patterns means; the module itself for an empty one."""
    parts = [module]
    for pattern in path.split(".") if path else []:
        parts = [child for part in parts for name, child in part.named_children() if fnmatch(name, pattern)]
    return parts
