"""BatchedTensor: what a function sees inside of `vmap`, one example that stands for all of them.

# Note [Batched tensors]
`_value` is the tensor of the whole batch, whose dimension `_dim` counts the examples; `_level` is the `vmap` that made it.
`_physical` is the same batch with the examples along dimension 0, as most batching rules want it: a view that is made when
a rule first asks for it, and the batch itself where the examples lie so already, which costs nothing.
`_array` has the geometry of one example, so that functions composed of operations run unchanged; the operations
themselves are taken over by the level and run on the batch (see vmap_level.py). Autograd state is that of the batch:
the graph is always recorded on whole batches, below every level, and a physical tensor may itself be batched at an outer
level. At the bottom the outermost level has the first dimension, the next one the second, and so on.
A tangent may be batched where its primal is not, as those of `jacfwd` are: the primal is then computed once for all. Where
it meets a tensor of the level, it is expanded first (see `has_batched_tangent`).

# Note [Uniform batches]
A transform inside of vmap gives each example a place of its own in the graph, also where the input is the same for all of
them: `jacfwd(grad(f))` runs `f` on such a batch. PyTorch does not batch it, so `f` may branch on its values. `_uniform` says
that all examples are equal because they were made so; results of operations on uniform batches alone are uniform too
(`apply_rule` says so), and their values can be read. A level that draws other numbers for every example has none.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from pullback.backend.logical_array import ITEM, first_example
from pullback.graph.tangents import levels_of, set_tangent, tangent_at, without_tangents
from pullback.modes.grad_mode import set_grad_mode
from pullback.modes.switches import switches
from pullback.tensor.tensor import Tensor, _disabled_torch_function_impl
from pullback.tensor.tensor_base import TensorBase

if TYPE_CHECKING:
    from pullback.func.vmap_level import VmapLevel

_CONTROL_FLOW = (
    "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't support that yet: "
    "every example of the batch would take a branch of its own. Use where() on both results instead."
)
_READ_INSIDE = (
    "vmap: It looks like you're either (1) calling .item() on a Tensor or (2) attempting to use a Tensor in some "
    "data-dependent control flow, inside of a function that is differentiated: every example of the batch has a value, and "
    "would take a branch, of its own. Compute with tensor operations, and use where() on both results instead of a branch."
)

NO_STORAGE = (
    "Cannot access data pointer of Tensor that doesn't have storage: a tensor under vmap stands for all examples, whose "
    "memory would be reached. Compute with tensor operations, or do this outside of vmap."
)
_DATA = (
    "accessing `data` under vmap transform is not allowed: it is the memory of all examples. Use detach(), or no_grad() and "
    "an in-place operation."
)


def _state(name: str) -> Any:
    """A piece of autograd state, which is the physical tensor's."""

    def read(self: BatchedTensor) -> Any:
        return getattr(self._physical if self._dim == 0 else self._value, name)

    def write(self: BatchedTensor, value: Any) -> None:
        setattr(self._physical if self._dim == 0 else self._value, name, value)

    return property(read, write)


class _Batch:
    """`_value` of a batch whose examples lie along dimension 0: it is not stored twice."""

    def __get__(self, tensor: BatchedTensor, owner: type) -> Any:
        return tensor._physical


class _MovedBatch:
    """`_physical` of a batch whose examples lie along another dimension: made on first use, then found in `__dict__`."""

    def __get__(self, tensor: BatchedTensor, owner: type) -> Any:
        import pullback.generated as G

        value, dim = tensor._value, tensor._dim
        order = (dim, *range(dim), *range(dim + 1, value._array.ndim))
        if switches.records:
            moved = G.permute(value, order)
        else:
            former = set_grad_mode(True)  # else a view made where nothing is recorded could not be written to later
            try:
                moved = G.permute(value, order)
            finally:
                set_grad_mode(former)
        tensor._physical = moved
        return moved


class BatchedTensor(Tensor):
    """One example that stands for all of a batch. See Note [Batched tensors]."""

    __torch_function__ = _disabled_torch_function_impl
    _physical: Any = _MovedBatch()
    _value: Any = _Batch()
    _dim: int = 0
    _level: VmapLevel
    _uniform: bool = False
    """Whether all examples are the same by the way they were made. See Note [Uniform batches]."""

    _requires_grad = _state("_requires_grad")
    _edge = _state("_edge")
    _counter = _state("_counter")
    _grad = _state("_grad")
    _accumulator = _state("_accumulator")
    _extra = _state("_extra")
    _made_in = _state("_made_in")

    @property
    def _bottom(self) -> Tensor:
        return self._value._bottom

    def _at_bottom(self, function: Callable[[Tensor], Tensor]) -> Tensor:
        return self._like(batched_at(self._value._at_bottom(function), self._dim, self._level))

    def _like(self, alias: BatchedTensor) -> BatchedTensor:
        """An alias, which is uniform where this tensor is."""
        if self._uniform:
            alias._uniform = True
        return alias

    def _only_value(self, refusal: str) -> Any:
        """What all examples are, without history, where they are the same."""
        if not self._uniform or not self._level.has_uniform:
            raise RuntimeError(
                _READ_INSIDE if refusal != NO_STORAGE and switches.transforms > self._level.depth else refusal
            )
        return self._value.detach().select(self._dim, 0)

    def _gradient_edge(self) -> Any:
        return self._value._gradient_edge()

    @property
    def _base(self) -> Any:
        base = self._value._base
        return None if base is None else batched_at(base, self._dim, self._level)

    def _set_requires_grad(self, value: bool, assigned: bool = False) -> None:
        self._value._set_requires_grad(value, assigned)
        self._forget_moved()

    def _forget_moved(self) -> None:
        """Let `_physical` be made anew: the batch has got another history."""
        if self._dim:
            self.__dict__.pop("_physical", None)

    def _become(self, other: BatchedTensor) -> None:
        """Stand for the batch of `other` from now on."""
        self._dim, self._value, self._physical = 0, other._physical, other._physical
        self._array = other._array
        self._uniform = other._uniform

    def detach(self) -> Tensor:
        """An alias that shares memory but has no history."""
        return self._like(batched_at(self._value.detach(), self._dim, self._level))

    def detach_(self) -> Tensor:
        """Cut the batch off its history, in place."""
        self._value.detach_()
        self._forget_moved()
        return self

    @property
    def data(self) -> Tensor:
        """Refused: writing to it would reach the memory of all examples behind the back of autograd."""
        raise RuntimeError(_DATA)

    @data.setter
    def data(self, value: Any) -> None:
        raise RuntimeError(
            "mutating directly with `.data` under vmap transform is not allowed. Use an in-place operation such as copy_."
        )

    def register_hook(self, hook: Any) -> Any:
        """Call `hook` with the gradient of the batch, seen as one example."""
        level = self._level

        def call(grad: Any) -> Any:
            result = hook(batched(grad, level))
            return None if result is None else level.to_physical(result)

        return self._physical.register_hook(call)

    def item(self) -> Any:
        """The one number of a uniform batch; else every example has a value of its own."""
        return self._only_value(ITEM).item()

    def tolist(self) -> Any:
        """The numbers of a uniform batch; else it is refused, as `numpy`."""
        return self._only_value(NO_STORAGE).tolist()

    def numpy(self, *, force: bool = False) -> NoReturn:
        """Refused: the array would be that of the whole batch."""
        raise RuntimeError(NO_STORAGE)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        self.numpy()

    def __bool__(self) -> bool:
        return bool(self._only_value(_CONTROL_FLOW))

    def _only_element(self) -> Any:
        if self._array.size != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        return self._only_value(ITEM)

    def __int__(self) -> int:
        return int(self._only_element())

    def __float__(self) -> float:
        return float(self._only_element())

    def __complex__(self) -> complex:
        return complex(self._only_element())

    def __index__(self) -> int:
        return operator.index(self._only_value(ITEM))

    def is_nonzero(self) -> bool:
        """Whether the one number of a uniform batch is not zero; else every example has a value of its own."""
        return bool(self._only_value(_CONTROL_FLOW))

    def new_zeros(self, *size: Any, **options: Any) -> Tensor:
        """Zeros for every example."""
        return self._new("new_zeros", size, options)

    def new_ones(self, *size: Any, **options: Any) -> Tensor:
        """Ones for every example."""
        return self._new("new_ones", size, options)

    def new_empty(self, *size: Any, **options: Any) -> Tensor:
        """Uninitialised memory for every example."""
        return self._new("new_empty", size, options)

    def new_full(self, size: Any, fill_value: Any, **options: Any) -> Tensor:
        """One value for every example."""
        level = self._level
        return self._like(batched(self._physical.new_full((level.batch_size, *size), fill_value, **options), level))

    def new_empty_strided(self, size: Any, stride: Any, **options: Any) -> Tensor:
        """Memory with the given strides for every example."""
        level = self._level
        span = 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) if 0 not in size else 0
        whole = (level.batch_size, *size), (span, *stride)
        return batched(self._physical.new_empty_strided(*whole, **options), level)

    def _new(self, name: str, size: tuple[Any, ...], options: dict[str, Any]) -> Tensor:
        level = self._level
        if "size" in options:
            size = (options.pop("size"),)
        sizes = tuple(size[0]) if len(size) == 1 and isinstance(size[0], (tuple, list)) else size
        return self._like(batched(getattr(self._physical, name)((level.batch_size, *sizes), **options), level))

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        from pullback.func.wrapper_text import describe  # lazy: it looks into all that transforms make

        return describe(self) or repr(self._physical)

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(repr(self), spec) if self._array.ndim else self.item()

    def __deepcopy__(self, memo: Any) -> Tensor:
        from copy import deepcopy

        return batched_at(deepcopy(self._value, memo), self._dim, self._level)

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise NotImplementedError(
            "Cannot access storage of BatchedTensorImpl: a tensor under vmap cannot be saved; save the result of vmap "
            "instead."
        )


def batched(physical: Any, level: VmapLevel) -> BatchedTensor:
    """The tensor whose examples lie along dimension 0 of `physical`."""
    result: BatchedTensor = TensorBase.__new__(BatchedTensor)
    result._physical = physical
    result._level = level
    result._array = first_example(physical._array)
    return result


def batched_at(value: Any, dim: int, level: VmapLevel) -> BatchedTensor:
    """The tensor whose examples lie along dimension `dim` of `value`."""
    if not dim:
        return batched(value, level)
    result: BatchedTensor = TensorBase.__new__(BatchedTensor)
    result._value = value
    result._dim = dim
    result._level = level
    result._array = first_example(value._array, dim)
    return result


def become_batch(tensor: Any, batch: BatchedTensor) -> None:
    """Let `tensor`, which was the same for all examples, be `batch`, whose examples are the same."""
    tensor.__class__ = BatchedTensor
    tensor._level = batch._level
    tensor._become(batch)
    tensor._uniform = True


def swap_leading(tensor: Any) -> Any:
    """The tensor with its first two dimensions swapped."""
    import pullback.generated as G

    return G.transpose(tensor, 0, 1)


def without_level(tensor: Any, level: VmapLevel) -> Any:
    """The tensor with the examples of `level` as its first dimension; what is the same for all is expanded."""
    import pullback.generated as G

    if isinstance(tensor, BatchedTensor):
        if tensor._level is level:
            return tensor._physical
        if tensor._level.number > level.number or has_batched_tangent(tensor, level):
            return batched(swap_leading(without_level(tensor._physical, level)), tensor._level)
    if switches.dual_level >= 0 and has_batched_tangent(tensor, level):
        return _with_tangents_below(tensor, level)
    return G.expand(G.unsqueeze(tensor, 0), (level.batch_size, *tensor._array.shape))


def has_batched_tangent(tensor: Any, level: VmapLevel) -> bool:
    """Whether a tensor that is the same for all examples of `level` has a tangent that is not."""
    bottom = tensor._bottom
    return any(level in levels_of_batch(tangent_at(bottom, dual)) for dual in levels_of(bottom))


def _with_tangents_below(tensor: Any, level: VmapLevel) -> Any:
    """As `without_level`, of a tensor whose tangents are batched at `level` and itself is not."""
    whole = without_level(without_tangents(tensor, 0), level)
    for dual in levels_of(tensor):
        set_tangent(whole, dual, without_level(tangent_at(tensor, dual), level))
    return whole


def with_level(tensor: Any, level: VmapLevel, dim: int = 0) -> BatchedTensor:
    """The tensor whose dimension `dim` becomes the examples of `level`, below the levels it is batched at above it."""
    if isinstance(tensor, BatchedTensor) and tensor._level.number > level.number:
        return batched(with_level(tensor._physical, level, dim + 1), tensor._level)
    return batched_at(tensor, dim, level)


def places_of(tensor: Any) -> list[tuple[VmapLevel, int]]:
    """The levels that a tensor is batched at, outermost first, and where the examples of each lie."""
    found: list[tuple[VmapLevel, int]] = []
    while isinstance(tensor, BatchedTensor):
        found.insert(0, (tensor._level, tensor._dim))
        tensor = tensor._value
    return found


def wrapped_at(bottom: Any, places: list[tuple[VmapLevel, int]]) -> Any:
    """The tensor that has `bottom` at its bottom and is batched at `places`."""
    for level, dim in places:
        bottom = with_level(bottom, level, dim)
    return bottom


def levels_of_batch(tensor: Any) -> list[VmapLevel]:
    """The levels that a tensor is batched at, innermost vmap first."""
    found = []
    while isinstance(tensor, BatchedTensor):
        found.append(tensor._level)
        tensor = tensor._physical
    return found


def innermost(tensor: Any) -> Any:
    """The plain tensor at the bottom, where the graph is recorded."""
    while isinstance(tensor, BatchedTensor):
        tensor = tensor._value
    return tensor
