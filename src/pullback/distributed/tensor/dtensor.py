"""DTensor: a tensor of which every rank holds a part, as `fully_shard` makes of parameters.

The memory is that of the part: whatever works element by element (optimizers, copying, scaling) works on parts, and needs
no communication. `shape` is that of the whole. Operations that need the whole ask for it: `full_tensor()`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.backend.layout import contiguous_format
from pullback.distributed import collectives
from pullback.distributed.device_mesh import DeviceMesh, init_device_mesh
from pullback.distributed.process_group import ProcessGroup, get_world_size
from pullback.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard
from pullback.distributed.tensor.redistribution import (
    Alias,
    Placements,
    Redistribute,
    gather_parts,
    move,
    placements_of_gradient,
    rows_of,
)
from pullback.tensor.dims import wrap_dim
from pullback.tensor.foreign_arguments import PLAIN
from pullback.tensor.size import Size
from pullback.tensor.tensor import Tensor, _disabled_torch_function_impl, new_tensor
from pullback.tensor.tensor_base import TensorBase, copy_state
from pullback.tensor.version_counter import VersionCounter
from pullback.typing import Array

__all__ = ["DTensor", "distribute_tensor", "gather_parts", "placed", "rows_of"]


class DTensor(Tensor):
    """A tensor of which every rank of a mesh holds a part, along one dimension, or a copy.

    >>> import pullback
    >>> import pullback.distributed as dist
    >>> dist.init_process_group("gloo", rank=0, world_size=1)
    >>> shared = distribute_tensor(pullback.arange(4.0))
    >>> list(shared.shape), shared.to_local()
    ([4], tensor([0., 1., 2., 3.]))
    >>> dist.destroy_process_group()
    """

    __torch_function__ = _disabled_torch_function_impl
    _whole: Size
    device_mesh: DeviceMesh
    placements: tuple[Placement, ...]

    def __new__(cls, local: Array, whole: Sequence[int], mesh: DeviceMesh, placements: Sequence[Placement]) -> Any:
        made: Any = TensorBase.__new__(cls)
        made._array = local
        made._whole = Size(whole)
        made.device_mesh = mesh
        made.placements = tuple(placements)
        return made

    def like(self, array: Array) -> DTensor:
        """Another tensor that lies as this one does."""
        return DTensor(array, self._whole, self.device_mesh, self.placements)

    @property
    def shape(self) -> Size:
        """The shape of the whole."""
        return self._whole

    def size(self, dim: int | None = None, *, axis: int | None = None) -> Any:
        """The shape of the whole, or its length along one dimension."""
        wanted = axis if dim is None else dim
        return self._whole if wanted is None else self._whole[wanted]

    def __len__(self) -> int:
        return self._whole[0]

    def item(self) -> Any:
        """The value of the one element of the whole."""
        return self.full_tensor().item()

    def __bool__(self) -> bool:
        return bool(self.full_tensor())

    def __float__(self) -> float:
        return float(self.full_tensor())

    def __int__(self) -> int:
        return int(self.full_tensor())

    def numel(self) -> int:
        """The number of elements of the whole."""
        return int(self._whole.numel())

    def shard_group(self) -> ProcessGroup | None:
        """The ranks among which the rows are divided."""
        for index, placement in enumerate(self.placements):
            if placement.is_shard():
                return self.device_mesh.get_group(index)
        return None

    def shard_dim(self) -> int:
        """The dimension along which it is divided; 0 where every rank has all of it."""
        return next((placement.dim for placement in self.placements if isinstance(placement, Shard)), 0)

    @staticmethod
    def from_local(
        local_tensor: Any, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, *,
        run_check: bool = False, shape: Any = None, stride: Any = None, grad_placements: Any = None,
    ) -> DTensor:  # fmt: skip
        """The tensor of which every rank has `local_tensor`; parts of different sizes need the `shape` of the whole.

        With `run_check`, ranks that are to have the same take it from the first of them.
        """
        _answer_operations()
        mesh = device_mesh or init_device_mesh("cpu", (get_world_size(),))
        how = normalized(placements, mesh, local_tensor.ndim, Replicate())
        if (shape is None) != (stride is None):
            raise RuntimeError(
                f"Found shape:{shape}, stride:{stride}. Please pass both shape and stride at the same time."
            )
        for index, placement in enumerate(how):
            if run_check and isinstance(placement, Replicate):
                collectives.broadcast(local_tensor, group=mesh.get_group(index), group_src=0)
        return lay_local(local_tensor, mesh, how, shape, grad_placements)

    def to_local(self, *, grad_placements: Any = None) -> Tensor:
        """The part of this rank, in the same memory; `grad_placements` if its gradient will lie in another way."""
        if self._requires_grad or self._has_edge():
            own = placements_of_gradient(self.placements)
            grads = own if grad_placements is None else normalized(grad_placements, self.device_mesh, len(self._whole))
            local: Tensor = Alias.apply(self, tuple(self._whole), self.device_mesh, grads, own)
            return local
        local = new_tensor(self._array)
        if self._counter is None:
            self._counter = VersionCounter()
        local._counter = self._counter
        return local

    @property
    def _local_tensor(self) -> Tensor:
        return self.detach().to_local()

    def redistribute(
        self, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, *,
        async_op: bool = False, forward_dtype: Any = None, backward_dtype: Any = None,
    ) -> DTensor:  # fmt: skip
        """The same tensor, lying in another way. All ranks must call it."""
        if placements is None:
            raise RuntimeError("placements is needed for redistribute!")
        if device_mesh is not None and device_mesh != self.device_mesh:
            raise NotImplementedError("Cross device mesh comm not supported yet!")
        if forward_dtype is not None or backward_dtype is not None:
            raise NotImplementedError(
                "redistribute(forward_dtype=..., backward_dtype=...): convert with .to(dtype) instead"
            )
        target = normalized(placements, self.device_mesh, len(self._whole))
        for old, new in zip(self.placements, target, strict=True):
            if isinstance(new, Partial) and old != new:
                raise RuntimeError(
                    f"Can not redistribute from {old} to {new}, redistributing to Partial is for internal use only!"
                )
        _answer_operations()
        return lay_again(self, target)

    def full_tensor(self, *, grad_placements: Any = None) -> Tensor:
        """The whole, on every rank. All ranks must call it."""
        everywhere = (Replicate(),) * self.device_mesh.ndim
        if self._requires_grad or self._has_edge():
            return lay_again(self, everywhere).to_local(grad_placements=grad_placements)
        local = new_tensor(self._array)
        whole = move(local, self._whole, self.device_mesh, self.placements, everywhere)
        return whole.clone() if whole is local else whole

    @property
    def grad(self) -> Any:
        """The accumulated gradient, which lies as this tensor does."""
        found = self._wrap_gradient(Tensor.grad.fget(self))  # type: ignore[attr-defined]  # a property
        if found is not None:
            self._grad = found
        return found

    @grad.setter
    def grad(self, value: Any) -> None:
        Tensor.grad.fset(self, value)  # type: ignore[attr-defined]  # a property

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    def _wrap_gradient(self, gradient: Any) -> Any:
        """A gradient as hooks and `autograd.grad` show it."""
        if gradient is None or isinstance(gradient, DTensor):
            return gradient
        return placed(gradient, self._whole, self.device_mesh, placements_of_gradient(self.placements))

    def register_hook(self, hook: Callable[[Any], Any]) -> Any:
        """Call `hook` with the gradient, as a DTensor, when it is there."""
        whole, mesh, how = self._whole, self.device_mesh, placements_of_gradient(self.placements)

        def call(gradient: Any) -> Any:
            changed = hook(placed(gradient, whole, mesh, how))
            return changed.to_local() if isinstance(changed, DTensor) else changed

        return Tensor.register_hook(self, call)

    @property
    def data(self) -> Tensor:
        """The same parts, without history and without counting writes."""
        return self.like(self._array)

    @data.setter
    def data(self, value: Any) -> None:
        Tensor.data.fset(self, value)  # type: ignore[attr-defined]  # a property

    def detach(self) -> DTensor:
        """The same parts, without history."""
        alias = self.like(self._array)
        if self._counter is None:
            self._counter = VersionCounter()
        alias._counter = self._counter
        return alias

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            copied = self.like(self._array.copy())
            copied._requires_grad = self._requires_grad
            if getattr(self, "_is_param", False):
                copied._is_param = True
            memo[id(self)] = copied
        return memo[id(self)]

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return (
            f"DTensor(local_tensor={self.to_local()!r}, device_mesh={self.device_mesh}, placements={self.placements})"
        )


PLAIN.add(DTensor)


def placed(local: Any, whole: Sequence[int], mesh: DeviceMesh, placements: Placements) -> DTensor:
    """The tensor of which this rank holds `local`, at the same place of the graph."""
    made = DTensor(local._array, whole, mesh, placements)
    copy_state(local, made)
    return made


def lay_local(
    local: Any, mesh: DeviceMesh, how: Placements, shape: Any = None, grad_placements: Sequence[Placement] | None = None
) -> DTensor:
    """The tensor of which every rank has `local`, with its history; of parts of one size unless `shape` is given."""
    whole = list(local.shape) if shape is None else list(shape)
    for index, placement in enumerate(how):
        if shape is None and isinstance(placement, Shard):
            whole[placement.dim] *= mesh.size(index)
    grads = how if grad_placements is None else normalized(grad_placements, mesh, local.ndim)
    lies = (tuple(whole), mesh, placements_of_gradient(how), placements_of_gradient(grads))
    return placed(Alias.apply(local, *lies), whole, mesh, how)


def lay_again(tensor: DTensor, target: Placements) -> DTensor:
    """The same tensor, lying in another way, with its history."""
    local = Redistribute.apply(tensor, tuple(tensor._whole), tensor.device_mesh, tensor.placements, target)
    return placed(local, tensor._whole, tensor.device_mesh, target)


def _answer_operations() -> None:
    from pullback.distributed.tensor.operations import answer_operations  # lazy: operations are about this class

    answer_operations()


def normalized(
    placements: Sequence[Placement] | None, mesh: DeviceMesh, ndim: int, default: Placement | None = None
) -> Placements:
    """Placements for every dimension of the mesh, with dimensions of the tensor counted from 0."""
    given = (default or Shard(0),) * mesh.ndim if placements is None else tuple(placements)
    if len(given) != mesh.ndim:
        raise ValueError(
            "`placements` must have the same length as `device_mesh.ndim`! Found placements length: "
            f"{len(given)}, and device_mesh.ndim: {mesh.ndim}."
        )
    for placement in given:
        if not isinstance(placement, Placement):
            raise RuntimeError(f"placements are Shard(dim), Replicate() or Partial(), not {placement!r}")
    return tuple(Shard(wrap_dim(p.dim, ndim)) if isinstance(p, Shard) else p for p in given)


def distribute_tensor(
    tensor: Any, device_mesh: DeviceMesh | None = None, placements: Sequence[Placement] | None = None, *,
    src_data_rank: int | None = 0,
) -> DTensor:  # fmt: skip
    """Keep the own part of a tensor: of that of the rank `src_data_rank` of the mesh, or, with None, of the own one."""
    _answer_operations()
    return lay_tensor(tensor, device_mesh, placements, src_data_rank)


def lay_tensor(
    tensor: Any, device_mesh: DeviceMesh | None, placements: Sequence[Placement] | None, src_data_rank: int | None = 0
) -> DTensor:
    """See `distribute_tensor`."""
    mesh = device_mesh or init_device_mesh("cpu", (get_world_size(),))
    how = normalized(placements, mesh, tensor.ndim, Replicate())
    if isinstance(tensor, DTensor):
        if tensor.device_mesh != mesh or tensor.placements != how:
            raise ValueError(
                f"Cannot distribute a DTensor with placements {tensor.placements} to {how}: call redistribute instead"
            )
        return tensor
    local = tensor.detach()
    if src_data_rank is not None:
        local = local.clone(memory_format=contiguous_format)
        for index in range(mesh.ndim):
            collectives.broadcast(local, group=mesh.get_group(index), group_src=src_data_rank)
    result = keep_part(local, mesh, how)
    return result.requires_grad_(tensor.requires_grad)  # type: ignore[return-value]  # itself


def keep_part(tensor: Any, mesh: DeviceMesh, placements: Placements) -> DTensor:
    """The own part of a tensor that every rank has; nothing is sent."""
    local = move(new_tensor(tensor._array), tensor.shape, mesh, (Replicate(),) * mesh.ndim, placements)
    return DTensor(local._array, tensor.shape, mesh, placements)
