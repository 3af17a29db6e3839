"""ParameterGroup: the parameters of one fully sharded module, gathered and reduced together.

# Note [Fully sharded]
Between passes a module holds a DTensor for every parameter: the rows of this rank (or, on request, its part along another
dimension, which travels with that dimension first). Before its forward the rows of all
ranks are gathered, in one message, into whole parameters that take the DTensors' places; after it they are dropped. The
graph must not keep them alive, so what forward saves of a whole parameter is saved as its name and its place in memory
(`pack`), and looked up in parameters gathered anew when backward asks (`unpack`). Whole gradients are collected as they
appear; when the last one of the group is there, their sum over ranks is scattered, in one message that travels while
backward goes on, and becomes the `.grad` of the DTensors at the end of the pass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pullback
from pullback.backend.array_module import as_strided, data_address, element_strides, empty_beside, storage_offset
from pullback.distributed import collectives
from pullback.distributed.device_mesh import DeviceMesh
from pullback.distributed.fsdp.policies import MixedPrecisionPolicy
from pullback.distributed.reduce_operation import RedOpType, ReduceOp
from pullback.distributed.tensor.dtensor import DTensor, keep_part, rows_of
from pullback.distributed.tensor.placement_types import Replicate, Shard
from pullback.engine.engine import engine
from pullback.native import silent
from pullback.nn.parameter import Parameter
from pullback.tensor.tensor import new_tensor
from pullback.typing import Array

__all__ = ["ParameterGroup"]


@dataclass
class Place:
    """Where a module keeps a parameter, in its two forms."""

    owners: list[tuple[Any, str]]
    shard: DTensor
    padded: int  # the elements that every rank sends, the largest part of any
    dim: int = 0  # along which it is divided
    whole: Any = None
    grad: Array | None = None


@dataclass
class Saved:
    """What forward saved of a whole parameter: which one, and where in it."""

    place: Place
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int


@dataclass
class Reduction:
    """Gradients on their way."""

    work: Any
    received: Array
    places: list[Place] = field(default_factory=list)


class ParameterGroup:
    """The parameters of one fully sharded module. See Note [Fully sharded]."""

    def __init__(
        self, named: list[tuple[Any, str, Any]], mesh: DeviceMesh, policy: MixedPrecisionPolicy, reshards: bool,
        placement_of: Callable[[Any], Any] | None = None,
    ) -> None:  # fmt: skip
        self.policy = policy
        self.reshards_after_forward = reshards
        self.synchronises = True
        self.divisor: float | None = None
        self.all_reduce_hook: Callable[[Any], Any] | None = None
        self._mesh = mesh
        self.shard_group = mesh.get_group(mesh.ndim - 1)
        self._replicate_group = mesh.get_group(0) if mesh.ndim > 1 else None
        self.places: list[Place] = []
        by_id: dict[int, Place] = {}
        for module, name, parameter in named:
            if id(parameter) not in by_id:
                wish = None if placement_of is None else placement_of(parameter)
                by_id[id(parameter)] = place = self._shard(parameter, wish or Shard(0))
                self.places.append(place)
            by_id[id(parameter)].owners.append((module, name))
        self.is_whole = True
        self._arrived: set[int] = set()
        self._callback_is_queued = False
        self._reduction: Reduction | None = None
        self.reshard()

    def _shard(self, parameter: Any, wish: Any) -> Place:
        shaped = parameter if parameter.ndim else parameter.reshape(1)
        if not isinstance(wish, Shard):
            raise NotImplementedError(f"shard_placement_fn returns a Shard or None: it returned {wish!r}")
        dim, ranks = wish.dim % shaped.ndim, self.shard_group.size()
        if dim and shaped.shape[dim] % ranks:
            raise NotImplementedError(
                f"FSDP does not support uneven sharding on dim {dim}: {shaped.shape} (world size: {ranks})"
            )
        shard = keep_part(shaped.detach(), self._mesh, (*[Replicate()] * (self._mesh.ndim - 1), Shard(dim)))
        shard._is_param = True
        shard.requires_grad_(parameter.requires_grad)
        rows = -(-shaped.shape[dim] // ranks)
        return Place([], shard, rows * (shaped.numel() // max(shaped.shape[dim], 1)), dim)

    # Gathering.

    def unshard(self) -> None:
        """Put whole parameters into the module."""
        if self.is_whole:
            return
        self._adopt_replacements()
        for dtype in {self._dtype_of(place) for place in self.places}:
            self._gather([place for place in self.places if self._dtype_of(place) is dtype], dtype)
        for place in self.places:
            for module, name in place.owners:
                module._parameters[name] = place.whole
        self.is_whole = True

    def _adopt_replacements(self) -> None:
        """Take over parts that the module was given since: by `to_empty`, `to(dtype)` or `load_state_dict(assign=True)`."""
        for place in self.places:
            module, name = place.owners[0]
            current = module._parameters[name]
            if current is not place.shard:
                place.shard = place.shard.like(current._array)
                place.shard._is_param = True
                place.shard.requires_grad_(current.requires_grad)

    def _dtype_of(self, place: Place) -> Any:
        own = place.shard.dtype
        return self.policy.param_dtype if self.policy.param_dtype is not None and own.is_floating_point else own

    def _gather(self, places: list[Place], dtype: Any) -> None:
        ranks = self.shard_group.size()
        sent = empty_beside(places[0].shard._array, (sum(place.padded for place in places),), dtype.numpy_dtype)
        start = 0
        for place in places:
            local = _first(place.shard._array, place.dim).reshape(-1)
            sent[start : start + local.size] = local
            start += place.padded
        received = empty_beside(sent, (ranks * sent.size,), sent.dtype)
        self.shard_group.start(
            "all_gather", lambda comm: comm.all_gather(received, sent), tensors=[new_tensor(sent)], details="parameters"
        )
        rows = received.reshape(ranks, -1)
        start = 0
        for place in places:
            shape = _first_size(place.shard.shape, place.dim)
            whole = rows[:, start : start + place.padded].reshape(-1)[: place.shard.numel()].reshape(shape)
            # In one piece: see `pack`.
            place.whole = self._whole(place, whole if place.dim == 0 else _back(whole, place.dim).copy())
            start += place.padded

    def _whole(self, place: Place, array: Array) -> Any:
        """The leaf that forward records: the same one in every pass, whose memory comes and goes."""
        if isinstance(place.whole, _Remembered) and place.whole.fits(array, place.shard.requires_grad):
            return place.whole.revive(array)
        made = Parameter(new_tensor(array), requires_grad=place.shard.requires_grad)
        if made.requires_grad:
            made.register_post_accumulate_grad_hook(lambda whole: self._gradient_is_there(place, whole))
        return made

    def reshard(self) -> None:
        """Put the parts back, and let the whole parameters go."""
        if not self.is_whole:
            return
        for place in self.places:
            for module, name in place.owners:
                module._parameters[name] = place.shard
            if place.whole is not None:
                place.whole = _Remembered(place.whole)
        self.is_whole = False

    def summon(self, with_grads: bool) -> None:
        """Put whole parameters into the module, in the dtype of the parts, with their gradients if wanted."""
        self.reshard()
        policy, self.policy = self.policy, MixedPrecisionPolicy()
        try:
            self.unshard()
        finally:
            self.policy = policy
        for place in self.places:
            if with_grads and place.shard._grad is not None:
                place.whole._grad = place.shard.like(place.shard._grad._array).full_tensor()

    def dismiss(self, writeback: bool, with_grads: bool) -> None:
        """Let the whole parameters go, after the parts of what was written to them are kept."""
        group = self.shard_group
        for place in self.places:
            start, rows = rows_of(place.shard.shape[place.dim], group.size(), group.rank())
            if writeback:
                place.shard._array[...] = new_tensor(place.whole._array).narrow(place.dim, start, rows)._array
            if writeback and with_grads and place.whole._grad is not None:
                part = place.whole._grad.narrow(place.dim, start, rows).contiguous()
                place.shard._grad = place.shard.like(part._array)
            place.whole._grad = None
        self.reshard()

    # What the graph keeps.

    def pack(self, tensor: Any) -> Any:
        """Save a whole parameter, or a view of one, as its place."""
        array = tensor._array
        for place in self.places:
            whole = place.whole
            if whole is None or isinstance(whole, _Remembered) or not array.size:
                continue
            first = data_address(whole._array)
            if first <= data_address(array) < first + whole._array.nbytes and array.dtype == whole._array.dtype:
                offset = (data_address(array) - first) // array.itemsize
                return Saved(place, array.shape, element_strides(array), offset)
        return tensor

    def unpack(self, saved: Any) -> Any:
        """Look up what was saved, in parameters gathered anew if need be."""
        if not isinstance(saved, Saved):
            return saved
        if not self.is_whole:
            self.unshard()
            self._queue_callback()
        array = saved.place.whole._array
        return new_tensor(as_strided(array, saved.shape, saved.strides, storage_offset(array) + saved.offset))

    # Reducing.

    def _gradient_is_there(self, place: Place, whole: Any) -> None:
        grad = whole._grad._array
        place.grad = grad if place.grad is None else place.grad + grad
        whole._grad = None
        self._arrived.add(id(place))
        self._queue_callback()
        if self.synchronises and len(self._arrived) == sum(each.shard.requires_grad for each in self.places):
            self._reduce()

    def _queue_callback(self) -> None:
        if not self._callback_is_queued:
            self._callback_is_queued = True
            engine.queue_callback(self._finish)

    def _reduce(self) -> None:
        """Begin to scatter the sums of the gradients that have come, and let parameters go."""
        self._arrived.clear()
        places = [place for place in self.places if place.grad is not None]
        dtype = self.policy.reduce_dtype or new_tensor(places[0].grad).dtype
        ranks = self.shard_group.size()
        sent = empty_beside(places[0].grad, (ranks, sum(place.padded for place in places)), dtype.numpy_dtype)
        sent[...] = 0
        factor = self._factor()
        start = 0
        for place in places:
            assert place.grad is not None
            flat = _first(place.grad, place.dim).reshape(-1)
            for rank in range(ranks):
                part = flat[rank * place.padded : (rank + 1) * place.padded]
                sent[rank, start : start + part.size] = part * part.dtype.type(factor)
            start += place.padded
            place.grad = None
        received = empty_beside(sent, (start,), sent.dtype)
        flat_sent = sent.reshape(-1)
        work = self.shard_group.start(
            "reduce_scatter", lambda comm: comm.reduce_scatter(received, flat_sent, RedOpType.SUM),
            tensors=[new_tensor(received)], details="gradients", async_op=True,
        )  # fmt: skip
        if self._reduction is not None:
            self._deliver()
        self._reduction = Reduction(work, received, places)
        self.shard_group.poll()
        self.reshard()

    def _factor(self) -> float:
        replicas = 1 if self._replicate_group is None else self._replicate_group.size()
        return 1.0 / (self.divisor or self.shard_group.size() * replicas)

    def _finish(self) -> None:
        """At the end of a pass: reduce what is left, wait, and hand the gradients over."""
        self._callback_is_queued = False
        self._arrived.clear()
        if self.synchronises and any(place.grad is not None for place in self.places):
            self._reduce()
        if self._reduction is not None:
            self._deliver()
        self.reshard()

    @silent
    def _deliver(self) -> None:
        reduction, self._reduction = self._reduction, None
        assert reduction is not None
        reduction.work.wait()
        if self._replicate_group is not None:
            collectives.all_reduce(new_tensor(reduction.received), ReduceOp.SUM, self._replicate_group)
        if self.all_reduce_hook is not None:
            self.all_reduce_hook(new_tensor(reduction.received))
        start = 0
        for place in reduction.places:
            shard = place.shard
            count, local = shard._array.size, _first_size(shard._array.shape, place.dim)
            values = _back(reduction.received[start : start + count].reshape(local), place.dim)
            values = values.astype(shard._array.dtype, order="C")
            if shard._grad is None:
                shard._grad = shard.like(values)
            else:
                shard._grad._array += values
            start += place.padded

    def reset(self) -> None:
        """Forget a pass that failed, with the gradients that were on their way."""
        self._callback_is_queued = False
        self._arrived.clear()
        if self._reduction is not None:
            self._reduction.work.wait()
            self._reduction = None
        for place in self.places:
            place.grad = None
        self.reshard()


def _first(array: Array, dim: int) -> Array:
    """The array with this dimension first: parts along it then are parts of memory."""
    return array if dim == 0 else array.transpose(dim, *range(dim), *range(dim + 1, array.ndim))


def _first_size(shape: Sequence[int], dim: int) -> tuple[int, ...]:
    return (shape[dim], *shape[:dim], *shape[dim + 1 :])


def _back(array: Array, dim: int) -> Array:
    """The reverse of `_first`."""
    return array if dim == 0 else array.transpose(*range(1, dim + 1), 0, *range(dim + 1, array.ndim))


class _Remembered:
    """A whole parameter whose memory was let go: one element stands in for all of it."""

    def __init__(self, leaf: Any) -> None:
        self._leaf = leaf
        array = leaf._array
        leaf._array = as_strided(empty_beside(array, (1,), array.dtype), array.shape, (0,) * array.ndim, 0)

    def fits(self, array: Array, requires_grad: bool) -> bool:
        """Whether this memory can become the leaf's."""
        known = self._leaf._array
        return bool(
            known.dtype == array.dtype and known.shape == array.shape and self._leaf.requires_grad == requires_grad
        )

    def revive(self, array: Array) -> Any:
        """The leaf, with new memory."""
        self._leaf._array = array
        return self._leaf


def saved_tensors_of(groups: list[ParameterGroup]) -> Any:
    """A block in which what forward saves of whole parameters is saved as their place."""

    def pack(tensor: Any) -> Any:
        for group in groups:
            packed = group.pack(tensor)
            if packed is not tensor:
                return (group, packed)
        return tensor

    def unpack(saved: Any) -> Any:
        return saved[0].unpack(saved[1]) if isinstance(saved, tuple) else saved

    return pullback.autograd.graph.saved_tensors_hooks(pack, unpack)
