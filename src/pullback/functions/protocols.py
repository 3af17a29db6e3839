"""What Python and NumPy ask of a tensor: length, truth, numbers, iteration, arrays, text, copies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pullback import functions
from pullback.backend.array_module import as_array
from pullback.backend.dtype import default_float, from_numpy_dtype
from pullback.facts import declare
from pullback.modes.cuts import note_cut
from pullback.modes.interception import is_dispatching
from pullback.modes.switches import process, switches
from pullback.modes.user_warnings import warn_user
from pullback.tensor.tensor import Tensor, new_tensor
from pullback.tensor.tensor_base import STATE, TensorBase


def _value(self: Tensor) -> Any:
    """The one number that a tensor holds, which dispatch modes see being read."""
    return functions.item(self) if process.changed and is_dispatching() else self._array.item()


def _item(self: Tensor) -> Any:
    if self._array.size != 1:
        raise RuntimeError(f"a Tensor with {self._array.size} elements cannot be converted to Scalar")
    return _value(self)


def _only_element(self: Tensor) -> Any:
    if self._array.size != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    return _value(self)


def _warn_scalar(self: Tensor) -> None:
    if self._requires_grad:
        note_cut("item", None, self)
        warn_user(
            "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
            "Consider using tensor.detach() first."
        )


def _bool(self: Tensor) -> bool:
    if self._array.size == 1:
        return bool(_value(self))
    if self._array.size == 0:
        raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
    raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")


def _real_number(value: Any) -> Any:
    """A number without an imaginary part, which a complex one may be."""
    if not isinstance(value, complex):
        return value
    if value.imag:
        raise RuntimeError("value cannot be converted to type double without overflow")
    return value.real


def _float(self: Tensor) -> float:
    _warn_scalar(self)
    return float(_real_number(_only_element(self)))


def _int(self: Tensor) -> int:
    if self._requires_grad:
        note_cut("item", None, self)
    return int(_real_number(_only_element(self)))


def _complex(self: Tensor) -> complex:
    _warn_scalar(self)
    return complex(_only_element(self))


def _index(self: Tensor) -> int:
    if self._array.dtype.kind not in "iub" or self._array.size != 1:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return int(_value(self))


def _len(self: Tensor) -> int:
    if self._array.ndim == 0:
        raise TypeError("len() of a 0-d tensor")
    return int(self._array.shape[0])


def _iter(self: Tensor) -> Iterator[Tensor]:
    if self._array.ndim == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(functions.unbind(self, 0))


def _contains(self: Tensor, element: Any) -> bool:
    if isinstance(element, (Tensor, int, float, complex)):
        return bool((self == element).any())
    raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.")


def _reversed(self: Tensor) -> Tensor:
    return self if self._array.ndim == 0 else functions.flip(self, tuple(range(self._array.ndim)))


def _array(self: Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
    array = functions.numpy(self)
    if dtype is not None and array.dtype != dtype:
        return array.astype(dtype)
    return array.copy() if copy else array


def _array_wrap(self: Tensor, array: Any, context: Any = None, return_scalar: bool = False) -> Tensor:
    array = as_array(array)
    if array.dtype == bool:
        return new_tensor(array)
    return new_tensor(array)


class Transforms:
    """What pullback.func lends to `repr`: how a tensor looks inside of a running transform, None if as always."""

    describe: Callable[[Tensor], str | None] | None = None


def _repr(self: Tensor, *, tensor_contents: str | None = None) -> str:
    if Transforms.describe is not None and (switches.transforms or "_tracked_by" in self.__dict__):
        text = Transforms.describe(self)
        if text is not None:
            return text
    tangent = _shown_tangent(self)
    try:
        node = self.grad_fn
        invalid = False
    except RuntimeError:
        node, invalid = None, True
    return plain_repr(self, node, invalid=invalid, tangent=tangent, tensor_contents=tensor_contents)


def plain_repr(
    self: Tensor, node: Any, *, invalid: bool = False, tangent: str | None = None, requires_grad: bool | None = None,
    tensor_contents: str | None = None,
) -> str:  # fmt: skip
    """A tensor as PyTorch prints it, with `node` as what made it."""
    from pullback.tensor.formatting import format_parameter, format_tensor  # only who prints pays for it

    kind = type(self)
    subclass = kind._is_param and kind.__name__ not in ("Parameter", "Tensor")
    plain = kind is Tensor or (kind._is_param and not subclass)
    text = format_tensor(
        self._array,
        dtype_name=self.dtype.name,
        default_dtype_name=from_numpy_dtype(default_float()).name,
        requires_grad=self._requires_grad if requires_grad is None else requires_grad,
        grad_fn_name=None if node is None else node.name().rpartition("::")[2],
        invalid_grad_fn=invalid,
        tangent=tangent,
        device=str(self.device),
        class_name="tensor" if plain else kind.__name__,
        contents=tensor_contents,
    )
    return format_parameter(text, is_subclass=subclass) if kind._is_param else text


def _shown_tangent(self: Tensor) -> str | None:
    from pullback.graph.tangents import tangent_at
    from pullback.modes.dual_level import current_dual_level

    tangent = tangent_at(self, current_dual_level())
    return None if tangent is None else f"{tangent}"


def _format(self: Tensor, spec: str) -> str:
    if self._array.ndim == 0 and type(self) is Tensor:
        return format(self._array.item(), spec)
    from pullback.tensor.formatting import format_spec  # only who prints pays for it

    return format_spec(self._array, spec, str(self), type(self).__name__)


def _deepcopy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    if id(self) in memo:
        return memo[id(self)]
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment. "
            "Copy a non-leaf with .clone(), or with .detach() to leave the graph."
        )
    import copy

    made: Tensor = TensorBase.__new__(type(self))
    memo[id(self)] = made
    made._array = _copied_storage(self._array, memo)
    made._requires_grad = self._requires_grad
    made._made_in = switches.transform
    if self._grad is not None:
        made._grad = copy.deepcopy(self._grad, memo)
    own = {k: v for k, v in self.__dict__.items() if k not in STATE}
    for name, value in own.items():
        setattr(made, name, copy.deepcopy(value, memo))
    return made


def _copied_storage(array: Any, memo: dict[int, Any]) -> Any:
    """A copy of the whole storage, shared again by tensors that shared it, seen with the same geometry."""
    from pullback.backend.array_module import as_strided, copy_array, element_strides, storage_of, storage_offset
    from pullback.backend.meta_array import empty_meta, is_meta

    if is_meta(array):
        return empty_meta(array)
    storage = storage_of(array)
    key = ("storage", id(storage))
    copied = memo.get(key)  # type: ignore[call-overload]
    if copied is None:
        copied = copy_array(storage)
        memo[key] = copied  # type: ignore[index]
        memo.setdefault(id(memo), []).append(storage)
    if storage.dtype != array.dtype or not storage.flags.c_contiguous:
        return copy_array(array)
    return as_strided(copied.reshape(-1), array.shape, element_strides(array), storage_offset(array))


@declare(complex32=True)
def _conj(self: Tensor) -> Tensor:
    return functions.conj(self)


def _neg_view(self: Tensor) -> Tensor:
    from pullback.functions.complex_views import _neg_view as neg_view  # lazy: few programs negate lazily

    return neg_view(self)


def _dlpack(
    self: Tensor, *, stream: Any = -1, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
) -> Any:
    options = {"max_version": max_version, "dl_device": dl_device, "copy": copy}
    return functions.dlpack(self, **options) if stream == -1 else functions.dlpack(self, stream=stream, **options)


def _dlpack_device(self: Tensor) -> tuple[int, int]:
    return functions.dlpack_device(self)


def _repr_html(self: Tensor) -> str:
    """What a notebook shows."""
    from pullback.utils.rich_display import tensor_html  # lazy: notebooks alone ask

    return tensor_html(self)


PROTOCOLS: dict[str, Any] = {
    "__bool__": _bool, "__float__": _float, "__int__": _int, "__complex__": _complex, "__index__": _index,
    "__len__": _len, "__iter__": _iter, "__contains__": _contains, "__reversed__": _reversed, "__array__": _array,
    "__array_wrap__": _array_wrap, "__repr__": _repr, "__format__": _format, "__deepcopy__": _deepcopy,
    "__dlpack__": _dlpack, "__dlpack_device__": _dlpack_device, "_repr_html_": _repr_html,
    "__nonzero__": _bool, "__long__": _int, "_conj": _conj, "_neg_view": _neg_view,
}  # fmt: skip
