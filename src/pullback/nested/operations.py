"""What an operation does to nested tensors.

Elementwise ones run on the buffer as it is; the others, one by one, on the parts, with the dimension counted in these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from pullback import functions
from pullback.backend.layout import jagged, strided
from pullback.nested.nested_tensor import NestedTensor, is_nested, join, like, parts_of, ragged_dim
from pullback.overrides import DisableTorchFunctionSubclass, as_subclass
from pullback.overrides.operation_handlers import Handlers, is_elementwise
from pullback.tensor.dims import wrap_dim
from pullback.tensor.tensor import Tensor

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _named(names: str) -> Callable[[_Function], _Function]:
    """Decorate what serves operations whose dimensions are counted in the parts; an argument of None is left out."""

    def register(function: _Function) -> _Function:
        @_handlers.named(names)
        def serve(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **{key: value for key, value in kwargs.items() if value is not None})

        return function

    return register


def _refusal(name: str) -> NotImplementedError:
    return NotImplementedError(
        f"Could not run 'aten::{name}' with arguments from the 'NestedTensorCPU' backend: it is not defined for nested "
        "tensors. Apply it to the parts that unbind() gives, or to to_padded_tensor()."
    )


_handlers = Handlers(_refusal)


def operate(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run an operation some of whose arguments are nested."""
    return _handlers.operate(func, args, kwargs)


_ABOUT_THE_TENSOR = frozenset(
    "__get__ __set__ __delete__ backward register_hook retain_grad requires_grad_ data_ptr element_size is_floating_point "
    "is_complex get_device __hash__ __format__ __repr__ is_contiguous dim __len__ tolist numpy __bool__ offsets "
    "values".split()
)
"""Methods and properties that compute nothing: they are what the tensor says."""


@_handlers.of_kind(_ABOUT_THE_TENSOR.__contains__)
def _ask_the_tensor(func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    with DisableTorchFunctionSubclass():
        return func(*args, **kwargs)


@_handlers.of_kind(is_elementwise)
def _elementwise(func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run on the buffers, where every tensor is one number or nested in the same parts; otherwise part by part."""
    given = [value for value in (*args, *kwargs.values()) if isinstance(value, Tensor)]
    first = next(value for value in given if is_nested(value))
    if any(is_nested(value) and value._shapes != first._shapes for value in given):
        raise RuntimeError(f"{name} expects nested tensors whose parts have the same sizes.")
    if all(is_nested(value) or value._array.ndim == 0 for value in given):
        with DisableTorchFunctionSubclass():
            result = func(*args, **kwargs)
        return first if name.endswith("_") and not name.startswith("__") else like(as_subclass(result, Tensor), first)
    if first._nested_layout is strided:
        raise RuntimeError("Expected both self and other to be nested, but got a nested self and non-nested other")
    return _on_parts(func, first, args, kwargs)


def _flat(value: Any) -> Any:
    return as_subclass(value, Tensor) if is_nested(value) else value


def _on_parts(func: Any, first: NestedTensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> NestedTensor:
    """Run on each part in turn; a dense tensor is shared by all parts, or has a row for each."""
    count = len(first._shapes)
    columns = [_column(value, count, first.dim()) for value in args]
    named = {key: _column(value, count, first.dim()) for key, value in kwargs.items()}
    with DisableTorchFunctionSubclass():
        results = [
            func(*[column[i] for column in columns], **{key: column[i] for key, column in named.items()})
            for i in range(count)
        ]
    return join(results, first._nested_layout, first._length)


def _column(value: Any, count: int, ndim: int) -> Sequence[Any]:
    """What each part meets of a value."""
    if is_nested(value):
        return parts_of(value)
    if isinstance(value, Tensor) and value.dim() == ndim and value.shape[0] in (1, count):
        rows = value.unbind(0)
        return rows if len(rows) == count else rows * count
    return [value] * count


def _inner(input: NestedTensor, dim: int, name: str) -> int:
    """A dimension as the parts count it."""
    place = wrap_dim(dim, input.dim())
    if place == 0:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on dim=0")
    return place - 1


def _mapped(input: NestedTensor, function: Callable[[Tensor], Tensor]) -> NestedTensor:
    return _on_parts(function, input, (input,), {})


@_named("to_padded_tensor")
def to_padded(input: NestedTensor, padding: float, output_size: Any = None) -> Tensor:
    """A dense tensor of all parts, filled up with a number."""
    parts = parts_of(input)
    largest = [max(sizes) for sizes in zip(*input._shapes, strict=True)]
    wanted = list(output_size)[1:] if output_size is not None else largest
    if any(asked < needed for asked, needed in zip(wanted, largest, strict=True)):
        raise RuntimeError(
            "Value in output_size is less than NestedTensor padded size. Truncation is not supported: "
            f"at least {[len(parts), *largest]} is needed, got {list(output_size)}."
        )
    padded = []
    for part in parts:
        ends = [edge for size, given in zip(wanted[::-1], part.shape[::-1], strict=True) for edge in (0, size - given)]
        padded.append(functions.constant_pad_nd(part, ends, padding))
    return functions.stack(padded)


@_named("softmax")
def _softmax(input: NestedTensor, dim: int, dtype: Any = None, **unused: Any) -> NestedTensor:
    place = _inner(input, dim, "softmax")
    return _mapped(input, lambda part: functions.softmax(part, place, dtype=dtype))


@_named("log_softmax")
def _log_softmax(input: NestedTensor, dim: int, dtype: Any = None, **unused: Any) -> NestedTensor:
    place = _inner(input, dim, "log_softmax")
    return _mapped(input, lambda part: functions.log_softmax(part, place, dtype=dtype))


@_named("linear linear_bias")
def _linear(input: NestedTensor, weight: Tensor, bias: Tensor | None = None) -> NestedTensor:
    return _mapped(input, lambda part: functions.linear(part, weight, bias))


@_named("matmul bmm mm")
def _matmul(input: Any, other: Any) -> NestedTensor:
    first = input if is_nested(input) else other
    if first._nested_layout is strided and not (is_nested(input) and is_nested(other)):
        kinds = ["nested" if is_nested(value) else "non-nested" for value in (input, other)]
        raise RuntimeError(f"Expected both to be nested, but got a {kinds[0]} self and {kinds[1]} other")
    return _on_parts(functions.matmul, first, (input, other), {})


@_named("layer_norm")
def _layer_norm(
    input: NestedTensor, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5, *unused: Any
) -> NestedTensor:
    return _mapped(input, lambda part: functions.layer_norm(part, normalized_shape, weight, bias, eps))


@_named("scaled_dot_product_attention")
def _attention(query: Any, key: Any, value: Any, *args: Any, **kwargs: Any) -> NestedTensor:
    from pullback.nn.functional import scaled_dot_product_attention  # lazy: nn is beside

    def attend(*parts: Tensor) -> Tensor:
        result: Tensor = scaled_dot_product_attention(*parts, *args, **kwargs)
        return result

    return _on_parts(attend, query, (query, key, value), {})


@_named("transpose")
def _transpose(input: NestedTensor, dim0: int, dim1: int) -> NestedTensor:
    first, second = _inner(input, dim0, "transpose"), _inner(input, dim1, "transpose")
    return _mapped(input, lambda part: part.transpose(first, second))


@_named("reshape view")
def _reshape(input: NestedTensor, *shape: Any) -> NestedTensor:
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    inner = [-1 if size is input._length else size for size in sizes[1:]]
    return _mapped(input, lambda part: part.reshape(_with_own_length(inner, part, input)))


def _with_own_length(sizes: Sequence[int], part: Tensor, input: NestedTensor) -> list[int]:
    """The sizes for one part: the first -1 of several stands for the length that differs."""
    place = ragged_dim(input._shapes)
    if list(sizes).count(-1) < 2:
        return list(sizes)
    sizes = list(sizes)
    sizes[sizes.index(-1)] = part.shape[place]
    return sizes


@_named("unsqueeze")
def _unsqueeze(input: NestedTensor, dim: int) -> NestedTensor:
    place = wrap_dim(dim, input.dim() + 1)
    return _mapped(input, lambda part: part.unsqueeze(place - 1))


@_named("squeeze")
def _squeeze(input: NestedTensor, dim: int) -> NestedTensor:
    place = _inner(input, dim, "squeeze")
    return _mapped(input, lambda part: part.squeeze(place))


@_named("flatten")
def _flatten(input: NestedTensor, start_dim: int = 0, end_dim: int = -1) -> NestedTensor:
    start, end = _inner(input, start_dim, "flatten"), _inner(input, end_dim, "flatten")
    return _mapped(input, lambda part: part.flatten(start, end))


@_named("chunk")
def _chunk(input: NestedTensor, chunks: int, dim: int = 0) -> tuple[NestedTensor, ...]:
    place = _inner(input, dim, "chunk")
    return _split_parts(input, [part.chunk(chunks, place) for part in parts_of(input)])


@_named("split")
def _split(input: NestedTensor, split_size: Any, dim: int = 0) -> tuple[NestedTensor, ...]:
    place = _inner(input, dim, "split")
    return _split_parts(input, [part.split(split_size, place) for part in parts_of(input)])


def _split_parts(input: NestedTensor, pieces: list[Any]) -> tuple[NestedTensor, ...]:
    return tuple(join(column, input._nested_layout, input._length) for column in zip(*pieces, strict=True))


@_named("select")
def _select(input: NestedTensor, dim: int, index: int) -> Any:
    if wrap_dim(dim, input.dim()) == 0:
        return parts_of(input)[index]
    place = _inner(input, dim, "select")
    return _mapped(input, lambda part: part.select(place, index))


@_named("__getitem__ index")
def _getitem(input: NestedTensor, index: Any) -> Any:
    first, *rest = index if isinstance(index, tuple) else (index,)
    if isinstance(first, int):
        part = parts_of(input)[first]
        return part[tuple(rest)] if rest else part
    if first not in (slice(None), Ellipsis):
        raise RuntimeError("NestedTensor can be indexed by a number or a whole slice in its first dimension only")
    return _mapped(input, lambda part: part[(first, *rest)] if first is Ellipsis else part[tuple(rest)])


def _reduced(name: str) -> Callable[..., Any]:
    def reduce(input: NestedTensor, dim: Any = None, keepdim: bool = False, dtype: Any = None, **unused: Any) -> Any:
        function = getattr(functions, name)
        if input._nested_layout is strided:
            _check_strided_reduction(input, dim, keepdim)
        if dim is None:
            return function(_flat(input))
        (given,) = dim if isinstance(dim, (tuple, list)) else (dim,)
        place = _inner(input, given, name)
        results = [function(part, place, keepdim) for part in parts_of(input)]
        if input._nested_layout is jagged and place == ragged_dim(input._shapes):
            return functions.stack(results)
        return join(results, input._nested_layout, input._length)

    reduce.__name__ = name
    return reduce


def _check_strided_reduction(input: NestedTensor, dim: Any, keepdim: bool) -> None:
    if dim is None:
        return
    (given,) = dim if isinstance(dim, (tuple, list)) else (dim,)
    if wrap_dim(given, input.dim()) != input.dim() - 1:
        raise RuntimeError(
            f"NestedTensor can only be reduced across the last dimension for now got dimension {given} instead."
        )
    if not keepdim:
        raise RuntimeError("NestedTensor always requires keepdim=True for now.")


@_named("cat")
def _cat(tensors: Sequence[Any], dim: int = 0) -> NestedTensor:
    first = next(tensor for tensor in tensors if is_nested(tensor))
    if wrap_dim(dim, first.dim()) == 0:
        if first._nested_layout is jagged:
            raise RuntimeError("cat(): not supported for NestedTensor on dim=0")
        return join([part for tensor in tensors for part in parts_of(tensor)], strided)
    place = _inner(first, dim, "cat")
    columns = zip(*map(parts_of, tensors), strict=True)
    return join([functions.cat(column, place) for column in columns], first._nested_layout, first._length)


for _name in ("sum", "mean", "amax", "amin"):
    _named(_name)(_reduced(_name))
for _name in ("unbind", "size", "numel"):
    _named(_name)(getattr(NestedTensor, _name))
