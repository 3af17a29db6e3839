"""The planners that are used unless a program brings its own: states taken apart, and what several ranks hold written once.

Subclasses change what is written by `lookup_object` and `transform_object`, and what is read by `lookup_tensor` and
`transform_tensor`.
"""

from __future__ import annotations

import dataclasses
import io
from typing import Any

import pullback
from pullback.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)
from pullback.distributed.checkpoint.nested_state import Path, flatten, put, value_at
from pullback.distributed.checkpoint.planner import (
    BytesIOWriteData,
    LoadItemType,
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    TensorWriteData,
    WriteItem,
    WriteItemType,
)
from pullback.distributed.tensor.dtensor import DTensor, rows_of
from pullback.serialization.checkpoint import load as load_bytes
from pullback.serialization.checkpoint import save as save_bytes
from pullback.tensor.size import Size
from pullback.tensor.tensor import Tensor, new_tensor

__all__ = [
    "DefaultLoadPlanner", "DefaultSavePlanner", "create_default_global_load_plan", "create_default_global_save_plan",
    "create_default_local_load_plan", "create_default_local_save_plan",
]  # fmt: skip


def box_of(value: Any) -> ChunkStorageMetadata:
    """Where in the whole tensor the part of this rank begins, and how large it is."""
    group = value.shard_group() if isinstance(value, DTensor) else None
    if group is None:
        return ChunkStorageMetadata(Size([0] * value.ndim), Size(value.shape))
    dim = value.shard_dim()
    offsets, sizes = [0] * len(value.shape), list(value.shape)
    offsets[dim], sizes[dim] = rows_of(value.shape[dim], group.size(), group.rank())
    return ChunkStorageMetadata(Size(offsets), Size(sizes))


def _taken_apart(state_dict: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Path]]:
    """The values of a nested state by name, and where in it they stand."""
    entries = flatten(state_dict)
    return {name: value for name, (_, value) in entries.items()}, {name: path for name, (path, _) in entries.items()}


class DefaultSavePlanner(SavePlanner):
    """States are taken apart, and what several ranks hold is written once, by the one with least to write so far.

    With `dedup_save_to_lowest_rank` by the first that holds it. `flatten_state_dict=False` saves the entries of the state
    as they are. The other arguments are taken for PyTorch's sake and change nothing.

    >>> planner = DefaultSavePlanner()
    >>> planner.set_up_planner({"model": {"bias": pullback.zeros(2)}, "step": 3}, is_coordinator=True)
    >>> [item.index.fqn for item in planner.create_local_plan().items]
    ['model.bias', 'step']
    """

    mappings: dict[str, Path]

    def __init__(
        self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True,
        dedup_replicated_tensors: bool | None = None, dedup_save_to_lowest_rank: bool = False,
        enable_plan_caching: bool = False,
    ) -> None:  # fmt: skip
        self.flatten_state_dict = flatten_state_dict
        self.flatten_sharded_tensors = flatten_sharded_tensors
        self.dedup_save_to_lowest_rank = dedup_save_to_lowest_rank
        self.mappings = {}

    def set_up_planner(
        self, state_dict: dict[str, Any], storage_meta: StorageMeta | None = None, is_coordinator: bool = False
    ) -> None:
        """Take the state apart."""
        self.state_dict, self.mappings = _taken_apart(state_dict) if self.flatten_state_dict else (state_dict, {})
        self.is_coordinator = is_coordinator

    def create_local_plan(self) -> SavePlan:
        """Every value that this rank holds."""
        plan = create_default_local_save_plan(self.state_dict, self.is_coordinator)
        if self.flatten_state_dict:
            plan = dataclasses.replace(plan, planner_data=self.mappings)
        self.plan = plan
        return plan

    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """Leave every piece to one of the ranks that hold it."""
        _check_shapes(all_plans)
        chosen = _written_once(all_plans, self.dedup_save_to_lowest_rank)
        self.global_plan, self.metadata = create_default_global_save_plan(chosen)
        if self.flatten_state_dict:
            self.metadata.planner_data = {
                name: path for plan in reversed(all_plans) for name, path in (plan.planner_data or {}).items()
            }
        return self.global_plan, self.metadata

    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """Keep the plan."""
        self.plan = new_plan
        return new_plan

    def resolve_data(self, write_item: WriteItem) -> Any:
        """The value as it is written."""
        return self.transform_object(write_item, self.lookup_object(write_item.index))

    def lookup_object(self, index: MetadataIndex) -> Any:
        """The value of a piece: of a tensor the part that lies here."""
        value = self.state_dict[index.fqn]
        return new_tensor(value.to_local()._array) if isinstance(value, DTensor) else value

    def transform_object(self, write_item: WriteItem, object: Any) -> Any:
        """The bytes of what is not a tensor; subclasses may change tensors here."""
        if write_item.type is not WriteItemType.BYTE_IO:
            return object
        packed = io.BytesIO()
        save_bytes(object, packed)
        packed.seek(0)
        return packed


def create_default_local_save_plan(state_dict: dict[str, Any], is_coordinator: bool) -> SavePlan:
    """A piece for every value of a flat state."""
    return SavePlan([item for name, value in state_dict.items() if (item := _write_item(name, value)) is not None])


def _write_item(name: str, value: Any) -> WriteItem | None:
    if not isinstance(value, Tensor):
        return WriteItem(MetadataIndex(name), WriteItemType.BYTE_IO, bytes_io_data=BytesIOWriteData(0))
    box = box_of(value)
    if value.shape.numel() and not box.sizes.numel():
        return None  # the other ranks have it all
    properties = TensorProperties(dtype=value.dtype, requires_grad=value.requires_grad)
    kind = WriteItemType.SHARD if isinstance(value, DTensor) else WriteItemType.TENSOR
    data = TensorWriteData(box, properties, Size(value.shape))
    return WriteItem(MetadataIndex(name, box.offsets), kind, tensor_data=data)


def _check_shapes(plans: list[SavePlan]) -> None:
    sizes: dict[str, Any] = {}
    for item in (item for plan in plans for item in plan.items):
        size = None if item.tensor_data is None else item.tensor_data.size
        if sizes.setdefault(item.index.fqn, size) != size:
            raise ValueError(
                f"ranks hold tensors of different shapes under the name {item.index.fqn}: {sizes[item.index.fqn]}, {size}"
            )


def _written_once(plans: list[SavePlan], by_the_lowest: bool) -> list[SavePlan]:
    holders: dict[MetadataIndex, list[int]] = {}
    for rank, plan in enumerate(plans):
        for item in plan.items:
            holders.setdefault(item.index, []).append(rank)
    load = [0] * len(plans)
    chosen: dict[MetadataIndex, int] = {}
    for rank, plan in enumerate(plans):
        for item in plan.items:
            if item.index not in chosen and holders[item.index][0] == rank:
                ranks = holders[item.index][:1] if by_the_lowest else holders[item.index]
                best = min(ranks, key=lambda rank: (load[rank], rank))
                chosen[item.index] = best
                load[best] += item.tensor_storage_size() or 1
    return [
        dataclasses.replace(plan, items=[item for item in plan.items if chosen[item.index] == rank])
        for rank, plan in enumerate(plans)
    ]


def create_default_global_save_plan(
    all_plans: list[SavePlan], rewrite_index_hints: bool = True
) -> tuple[list[SavePlan], Metadata]:
    """What the checkpoint holds when these plans are carried out; pieces of a tensor are numbered."""
    kinds: dict[str, Any] = {}
    plans = []
    for plan in all_plans:
        items = []
        for item in plan.items:
            name = item.index.fqn
            if item.tensor_data is None:
                kinds[name] = BytesStorageMetadata()
                items.append(item)
                continue
            data = item.tensor_data
            known = kinds.setdefault(name, TensorStorageMetadata(data.properties, data.size, []))
            index = item.index
            if rewrite_index_hints:
                index = dataclasses.replace(item.index, index=len(known.chunks))
            items.append(dataclasses.replace(item, index=index))
            known.chunks.append(data.chunk)
        plans.append(dataclasses.replace(plan, items=items))
    return plans, Metadata(kinds, version="1.0.0")


class DefaultLoadPlanner(LoadPlanner):
    """Tensors are written to where they are, other values replaced.

    With `allow_partial_load` names that the checkpoint lacks are left as they are.
    """

    original_state_dict: dict[str, Any]
    mappings: dict[str, Path]

    def __init__(
        self, flatten_state_dict: bool = True, flatten_sharded_tensors: bool = True, allow_partial_load: bool = False
    ) -> None:
        self.flatten_state_dict = flatten_state_dict
        self.flatten_sharded_tensors = flatten_sharded_tensors
        self.allow_partial_load = allow_partial_load
        self.original_state_dict = {}
        self.mappings = {}

    def set_up_planner(
        self, state_dict: dict[str, Any], metadata: Metadata | None = None, is_coordinator: bool = False
    ) -> None:
        """Take the state apart."""
        self.original_state_dict = state_dict
        self.state_dict, self.mappings = _taken_apart(state_dict) if self.flatten_state_dict else (state_dict, {})
        self.metadata = metadata
        self.is_coordinator = is_coordinator

    def create_local_plan(self) -> LoadPlan:
        """Everything in the state, read from the pieces that overlap it."""
        if self.metadata is None:
            raise RuntimeError("metadata is None: set_up_planner must be called before create_local_plan")
        return create_default_local_load_plan(self.state_dict, self.metadata, not self.allow_partial_load)

    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """Every rank reads what it wants."""
        return create_default_global_load_plan(global_plan)

    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        """Keep the plan."""
        return central_plan

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Put a value that is not a tensor into the state."""
        name, found = read_item.dest_index.fqn, load_bytes(value)
        self.state_dict[name] = found
        if self.flatten_state_dict:
            put(self.original_state_dict, self.mappings[name], found)

    def resolve_tensor(self, read_item: ReadItem) -> Any:
        """The place of a piece, as a view of the state's tensor."""
        return self.transform_tensor(read_item, self.lookup_tensor(read_item.dest_index))

    def commit_tensor(self, read_item: ReadItem, tensor: Any) -> None:
        """Do nothing: the tensor is the state's."""

    def lookup_tensor(self, index: MetadataIndex) -> Any:
        """The tensor of the state, of which this rank may hold a part."""
        value = self.state_dict[index.fqn]
        return value.to_local() if isinstance(value, DTensor) else value

    def transform_tensor(self, read_item: ReadItem, tensor: Any) -> Any:
        """The box of a tensor that a piece fills."""
        return narrowed(tensor.detach(), read_item.dest_offsets, read_item.lengths)


class _EmptyStateDictLoadPlanner(DefaultLoadPlanner):
    """Loads everything that a checkpoint holds (or what begins with one of `keys`) into a state that begins empty."""

    def __init__(self, keys: set[str] | None = None, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.keys = keys

    def set_up_planner(
        self, state_dict: dict[str, Any], metadata: Metadata | None = None, is_coordinator: bool = False
    ) -> None:
        """Fill the state with tensors of the right shapes."""
        assert not state_dict
        assert metadata is not None
        paths = metadata.planner_data or {}
        entries: dict[str, tuple[Path, Any]] = {}
        for name, kind in metadata.state_dict_metadata.items():
            path = paths.get(name, (name,))
            if self.keys is None or name in self.keys or any(str(part) in self.keys for part in path):
                entries[name] = (path, None)
                if isinstance(kind, TensorStorageMetadata):
                    entries[name] = (path, pullback.empty(list(kind.size), dtype=kind.properties.dtype))
        state_dict.update(value_at(entries))
        super().set_up_planner(state_dict, metadata, is_coordinator)


def narrowed(tensor: Any, offsets: Size, lengths: Size) -> Any:
    """A box of a tensor, as a view."""
    for dim, (start, length) in enumerate(zip(offsets, lengths, strict=True)):
        tensor = tensor.narrow(dim, start, length)
    return tensor


def create_default_global_load_plan(all_plans: list[LoadPlan]) -> list[LoadPlan]:
    """Every rank reads what it wants."""
    return all_plans


def create_default_local_load_plan(state_dict: dict[str, Any], metadata: Metadata, strict: bool = True) -> LoadPlan:
    """What is read for a flat state: all of it is checked before anything is changed."""
    items: list[ReadItem] = []
    for name, value in state_dict.items():
        if name in metadata.state_dict_metadata or strict:
            items += _read_items(name, value, metadata)
    return LoadPlan(items)


def _read_items(name: str, value: Any, found: Metadata) -> list[ReadItem]:
    kind = found.state_dict_metadata.get(name)
    if kind is None:
        raise RuntimeError(
            f"Missing key in checkpoint state_dict: {name}. It holds {_few(found)}; "
            "DefaultLoadPlanner(allow_partial_load=True) leaves what is missing as it is."
        )
    if isinstance(value, Tensor) != isinstance(kind, TensorStorageMetadata):
        raise ValueError(f"{name} was saved as {type(kind).__name__}, and the state has a {type(value).__name__} there")
    if not isinstance(kind, TensorStorageMetadata):
        index, nowhere = MetadataIndex(name), Size([0])
        return [ReadItem(LoadItemType.BYTE_IO, index, nowhere, index, nowhere, nowhere)]
    if list(kind.size) != list(value.shape):
        raise ValueError(f"Size mismatch between saved {kind.size} and current: {value.shape} for {name}")
    box = box_of(value)
    items = [
        item
        for number, chunk in enumerate(kind.chunks)
        if (item := _overlap(name, box, chunk, number)).lengths.numel() or not kind.size.numel()
    ]
    missing = box.sizes.numel() - sum(item.lengths.numel() for item in items)
    if missing > 0:
        raise RuntimeError(f"the checkpoint lacks {missing} elements of {name}: it is damaged")
    return items


def _few(found: Metadata) -> str:
    known = list(found.state_dict_metadata)
    return ", ".join(known[:5]) + (f" and {len(known) - 5} more" if len(known) > 5 else "")


def _overlap(name: str, box: ChunkStorageMetadata, chunk: ChunkStorageMetadata, number: int) -> ReadItem:
    """What a part and a saved box have in common."""
    low = [max(pair) for pair in zip(box.offsets, chunk.offsets, strict=True)]
    ends = zip(box.offsets, box.sizes, chunk.offsets, chunk.sizes, strict=True)
    high = [min(first + length, offset + size) for first, length, offset, size in ends]
    return ReadItem(
        LoadItemType.TENSOR,
        MetadataIndex(name, box.offsets),
        Size(start - first for start, first in zip(low, box.offsets, strict=True)),
        MetadataIndex(name, chunk.offsets, number),
        Size(start - first for start, first in zip(low, chunk.offsets, strict=True)),
        Size(max(end - start, 0) for start, end in zip(low, high, strict=True)),
    )
