"""Parameter and Buffer: tensors that a Module registers when they are assigned to it; and their uninitialised forms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback import creation
from pullback.backend.dtype import dtype as Dtype
from pullback.backend.dtype import get_default_dtype, is_float_or_complex
from pullback.errors import is_pytorch_tensor, mixed_libraries
from pullback.modes.cuts import note_cut
from pullback.overrides import as_subclass
from pullback.tensor.foreign_arguments import PLAIN
from pullback.tensor.tensor import Tensor, _disabled_torch_function_impl
from pullback.tensor.tensor_base import TensorBase
from pullback.tensor.version_counter import VersionCounter

__all__ = [
    "Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "UninitializedTensorMixin", "is_lazy",
]  # fmt: skip


def _adopt(kind: type, data: Tensor, requires_grad: bool) -> Any:
    """A leaf of class `kind` that shares the memory and the version counter of `data`."""
    if requires_grad and not is_float_or_complex(data._array.dtype):
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    made: Any = TensorBase.__new__(kind)
    made._array = data._array
    if data._counter is None:
        data._counter = VersionCounter()
    made._counter = data._counter
    made._made_in = data._made_in
    made._requires_grad = bool(requires_grad)
    if data._requires_grad:
        note_cut("new_parameter", made, data)
    return made


class _ParameterMeta(type):
    """Counts a tensor of a class of its own, marked with `_is_param`, as a Parameter too."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return type.__instancecheck__(cls, instance) or (
            cls is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False)
        )


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor to be learned: a leaf that requires grad, and that Modules list among their parameters.

    >>> import pullback
    >>> Parameter(pullback.zeros(2))
    Parameter containing:
    tensor([0., 0.], requires_grad=True)
    """

    _is_param = True
    __torch_function__ = _disabled_torch_function_impl

    def __new__(cls, data: Any = None, requires_grad: bool = True) -> Any:
        if data is None:
            data = creation.empty(0)
        if is_pytorch_tensor(data):
            raise mixed_libraries("Parameter")
        is_plain = type(data) is Tensor or type(data) is Parameter
        if is_plain and (data._extra is None or not data._extra.inference):
            return _adopt(cls, data, requires_grad)
        alias = data.detach().requires_grad_(requires_grad)
        if type(alias) is not type(data):
            raise RuntimeError(
                f"Creating a Parameter from an instance of type {type(data).__name__} requires that detach() returns an "
                f"instance of the same type, but return type {type(alias).__name__} was found instead. Let the class keep "
                "its type in detach(), as the __torch_function__ that Tensor has does."
            )
        alias._is_param = True
        return alias

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Nothing is left to do; arguments are those of `__new__`, which a subclass may have more of."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            copied: Any = self.data.clone()
            memo[id(self)] = type(self)(copied, self.requires_grad)
        return memo[id(self)]


PLAIN.add(Parameter)


class _BufferMeta(type):
    """Counts a tensor of a class of its own, marked with `_is_buffer`, as a Buffer too."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return type.__instancecheck__(cls, instance) or (
            cls is Buffer and isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)
        )


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that belongs to a Module's state without being learned; made from a tensor, and of the tensor's class."""

    __torch_function__ = _disabled_torch_function_impl

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Any:
        if data is None:
            data = creation.empty(0)
        alias = as_subclass(data.detach(), type(data)).requires_grad_(data.requires_grad)
        alias.persistent = persistent
        alias._is_buffer = True
        return alias

    def __init__(self, data: Any = None, *, persistent: bool = True) -> None:
        pass


class UninitializedTensorMixin:
    """What parameters and buffers of unknown shape have in common: every use but conversion is refused.

    Reading `_array`, which every operation does, raises. (An overriding `__torch_function__` would do the same, but
    would close the fast road of all operations for good.)
    """

    cls_to_become: type = Tensor
    __torch_function__ = _disabled_torch_function_impl
    _dtype: Any = None
    _requires_grad: bool

    @property
    def _array(self) -> Any:
        name = type(self).__name__
        raise ValueError(
            f"Attempted to use an uninitialized parameter: this {name} gets its shape when its lazy module is called for "
            "the first time. Call the module with a batch first."
        )

    def materialize(self, shape: Sequence[int], device: Any = None, dtype: Any = None) -> None:
        """Become an ordinary tensor of the given shape, with memory that is not initialised."""
        made = creation.empty(*shape, dtype=dtype or self._dtype)
        self.__dict__.pop("_dtype", None)
        self.__class__ = self.cls_to_become
        self._array = made._array  # type: ignore[misc]  # a field in the class it now has

    @property
    def shape(self) -> Any:
        """Refused: the shape is not known yet."""
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer: its lazy module finds it on the first call. "
            "Call the module with a batch, or load a state dict whose tensors have shapes."
        )

    @property
    def dtype(self) -> Any:
        """The dtype that the tensor will have."""
        return self._dtype or get_default_dtype()

    @property
    def data(self) -> Any:
        """The tensor itself, which has no data to share."""
        return self

    def detach(self) -> Any:
        """The tensor itself, which has no history."""
        return self

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """The same, to be made in another dtype."""
        wanted = next((a for a in args if isinstance(a, Dtype)), kwargs.get("dtype"))
        made = type(self)(self._requires_grad, dtype=wanted or self._dtype)  # type: ignore[call-arg]  # see subclasses
        vars(made).update({k: v for k, v in vars(self).items() if k != "_dtype"})
        return made

    def cpu(self) -> Any:
        """The same, on the CPU."""
        return self

    def share_memory_(self) -> Any:
        """Refused: there is no memory yet."""
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer: it has none yet. Call its lazy module first."
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, proto: Any) -> Any:
        return type(self), (self._requires_grad, None, self._dtype)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return memo.setdefault(id(self), self.to())


def is_lazy(param: Any) -> bool:
    """Whether a parameter or buffer has no shape yet."""
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):  # type: ignore[override]  # `data` cannot be set
    """A parameter whose shape is found on the first call of its LazyModule."""

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Any:
        made: Any = TensorBase.__new__(cls)
        made._requires_grad, made._dtype = requires_grad, dtype
        return made

    def __init__(self, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> None:
        pass


class UninitializedBuffer(UninitializedTensorMixin, Tensor):  # type: ignore[override]  # `data` cannot be set
    """A buffer whose shape is found on the first call of its LazyModule."""

    cls_to_become = Tensor

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> Any:
        made: Any = TensorBase.__new__(cls)
        made._requires_grad, made._dtype = requires_grad, dtype
        made.persistent, made._is_buffer = persistent, True
        return made

    def __init__(
        self, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> None:
        pass
