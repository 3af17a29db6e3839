"""NestedTensor: tensors of different lengths as one, stored end to end in one buffer.

The class is a Tensor on the buffer, recorded as any other, so that gradients and leaves need nothing of their own;
`operations` says what each operation does. It is loaded when it is first asked for: a subclass that overrides
operations makes every operation look for it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, TypeGuard

from pullback import creation, functions
from pullback.backend.layout import jagged, layout, strided
from pullback.overrides import DisableTorchFunctionSubclass, as_subclass
from pullback.tensor.dims import wrap_dim
from pullback.tensor.size import Size
from pullback.tensor.tensor import Tensor

_numbers = itertools.count(1)


class NestedInt:
    """The length that differs between the parts of a jagged tensor: equal to itself, and to no number."""

    _number: int | None = None

    def __repr__(self) -> str:
        if self._number is None:  # who looks first is first
            self._number = next(_numbers)
        return f"j{self._number}"


class NestedTensor(Tensor):
    """Tensors with the same number of dimensions, whose sizes may differ.

    >>> import pullback
    >>> pullback.nested.nested_tensor([pullback.ones(2), pullback.ones(3)])
    nested_tensor([
      tensor([1., 1.]),
      tensor([1., 1., 1.])
    ])
    """

    _shapes: tuple[tuple[int, ...], ...]
    _nested_layout: layout
    _length: NestedInt

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        from pullback.nested.operations import operate  # lazy: operations make nested tensors

        return operate(func, tuple(args), dict(kwargs or {}))

    is_nested = True

    @property
    def layout(self) -> Any:
        """Strided or jagged."""
        return self._nested_layout

    def dim(self) -> int:
        """The number of dimensions, that of the parts and one."""
        return 1 + (len(self._shapes[0]) if self._shapes else 0)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.dim()

    @property
    def shape(self) -> Any:
        """The sizes of a jagged tensor, with a sign for the length that differs."""
        if self._nested_layout is strided:
            raise RuntimeError("Internal error: NestedTensorImpl doesn't support sizes: ask size(dim) or unbind()")
        return tuple.__new__(Size, [self.size(dim) for dim in range(self.dim())])

    def size(self, dim: int | None = None, *, axis: int | None = None) -> Any:
        """The size of a dimension, which must be the same in all parts."""
        dim = axis if dim is None else dim
        if dim is None:
            return self.shape
        place = wrap_dim(dim, self.dim())
        if place == 0:
            return len(self._shapes)
        if self._nested_layout is jagged and place == 1 + ragged_dim(self._shapes):
            return self._length
        sizes = {shape[place - 1] for shape in self._shapes}
        if len(sizes) != 1:
            raise RuntimeError(f"Given dimension {place} is irregular and does not have a size.")
        return sizes.pop()

    def __len__(self) -> int:
        return len(self._shapes)

    def numel(self) -> int:
        """The number of elements of all parts."""
        return sum(map(math.prod, self._shapes))

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Whether the parts lie in order: always."""
        return True

    def unbind(self, dim: int = 0) -> tuple[Tensor, ...]:
        """The parts, views of this tensor."""
        if wrap_dim(dim, self.dim()) != 0:
            raise RuntimeError(f"NestedTensor can only be unbound along dimension 0 got dimension {dim} instead.")
        return parts_of(self)

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.unbind())

    def values(self) -> Tensor:
        """The elements of all parts: of a jagged tensor one part after the other, of others flat."""
        with DisableTorchFunctionSubclass():
            flat = as_subclass(self, Tensor)
            if self._nested_layout is strided or not self._shapes:
                return flat
            place = ragged_dim(self._shapes)
            parts = parts_of(self)
            return functions.cat(parts, place) if place else flat.view(-1, *self._shapes[0][1:])

    def offsets(self) -> Tensor:
        """Where each part of a jagged tensor begins, and where the last one ends."""
        if self._nested_layout is strided:
            raise AttributeError("'Tensor' object has no attribute 'offsets'")
        place = ragged_dim(self._shapes)
        return creation.tensor([0, *itertools.accumulate(shape[place] for shape in self._shapes)])

    def detach(self) -> Any:
        """The same parts without history."""
        return like(Tensor.detach(self), self)

    def to_padded_tensor(self, padding: float, output_size: Any = None) -> Tensor:
        """A dense tensor of all parts, filled up with `padding`."""
        from pullback.nested.operations import to_padded  # lazy: operations make nested tensors

        return to_padded(self, padding, output_size)

    @property
    def grad(self) -> Any:
        """The accumulated gradient, in the parts of this tensor."""
        return self._wrap_gradient(Tensor.grad.fget(self))  # type: ignore[attr-defined]  # a property

    @grad.setter
    def grad(self, value: Any) -> None:
        Tensor.grad.fset(self, value)  # type: ignore[attr-defined]  # a property

    def _wrap_gradient(self, gradient: Any) -> Any:
        return gradient if gradient is None or is_nested(gradient) else like(gradient, self)

    def numpy(self, *, force: bool = False) -> Any:
        """Refused: an array has one shape."""
        raise RuntimeError(".numpy() is not supported for tensor subclasses. Take the parts with unbind().")

    def tolist(self) -> Any:
        """Refused, as in PyTorch."""
        raise RuntimeError(".tolist() is not supported for tensor subclasses, got NestedTensor")

    def __bool__(self) -> bool:
        raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")

    def __repr__(self, **options: Any) -> str:
        with DisableTorchFunctionSubclass():
            history = f"grad_fn=<{self.grad_fn.name()}>" if self.grad_fn is not None else ""
            history = history or ("requires_grad=True" if self.requires_grad else "")
            if self._nested_layout is strided:
                texts = [repr(part.detach()).replace("\n", "\n  ") for part in parts_of(self)]
                return "nested_tensor([\n  " + ",\n  ".join(texts) + "\n]" + (f", {history}" if history else "") + ")"
            sizes = ", ".join(map(str, self.shape))
            end = f", {history}" if history else ""
            return f"NestedTensor(size=({sizes}), offsets={self.offsets()}{end}, contiguous=True)"

    __str__ = __repr__


def ragged_dim(shapes: Sequence[tuple[int, ...]]) -> int:
    """The one dimension of the parts whose sizes differ; the first where none does."""
    for place in range(len(shapes[0]) if shapes else 0):
        if len({shape[place] for shape in shapes}) > 1:
            return place
    return 0


def nested(
    flat: Tensor, shapes: Sequence[tuple[int, ...]], layout: layout = strided, length: NestedInt | None = None
) -> NestedTensor:
    """A nested tensor on a flat buffer, at its place of the graph."""
    made: NestedTensor = as_subclass(flat, NestedTensor)
    made._shapes, made._nested_layout, made._length = tuple(map(tuple, shapes)), layout, length or NestedInt()
    return made


def like(flat: Tensor, other: NestedTensor) -> NestedTensor:
    """A flat buffer in the parts of another nested tensor."""
    return nested(flat, other._shapes, other._nested_layout, other._length)


def join(parts: Sequence[Tensor], layout: layout, length: NestedInt | None = None) -> NestedTensor:
    """Parts end to end, with their history."""
    with DisableTorchFunctionSubclass():
        flat = functions.cat([part.reshape(-1) for part in parts]) if parts else creation.empty(0)
        return nested(flat, [tuple(part.shape) for part in parts], layout, length)


def parts_of(tensor: NestedTensor) -> tuple[Tensor, ...]:
    """The parts as views of the buffer."""
    with DisableTorchFunctionSubclass():
        pieces = functions.split(tensor, [math.prod(shape) for shape in tensor._shapes]) if tensor._shapes else ()
        return tuple(piece.view(shape) for piece, shape in zip(pieces, tensor._shapes, strict=True))


def is_nested(value: Any) -> TypeGuard[NestedTensor]:
    """Whether a value is a nested tensor."""
    return isinstance(value, NestedTensor)
