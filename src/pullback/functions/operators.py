"""Python's operators on tensors. A foreign operand gives NotImplemented, so that its own method gets its turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback import functions
from pullback.backend.array_module import is_array
from pullback.backend.layout import strided
from pullback.errors import UnansweredError, is_pytorch_tensor, mixed_libraries
from pullback.modes.call_site import as_method
from pullback.modes.switches import switches
from pullback.modes.user_warnings import warn_user
from pullback.tensor.tensor import Tensor, new_tensor

# NumPy leaves comparisons with a tensor to the tensor, where it takes over arithmetic.
_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


def _operator(function_name: str) -> Callable[[Any, Any], Any]:
    """An operator method that calls the function, and leaves operands that it refuses to the other side."""
    function: Callable[..., Any] | None = None

    def method(self: Any, other: Any) -> Any:
        nonlocal function
        if function is None:
            function = getattr(functions, function_name)
        try:
            return function(self, other)
        except UnansweredError:
            return NotImplemented
        except TypeError:
            if is_pytorch_tensor(other):
                raise mixed_libraries(function_name.removeprefix("reflected_")) from None
            if isinstance(other, Tensor) or (
                isinstance(other, (int, float, complex)) and "matmul" not in function_name
            ):
                raise
            if is_array(other) and function_name in _COMPARISONS:
                return function(self, new_tensor(other))
            return NotImplemented

    return method


OPERATORS: dict[str, Any] = {}
for _method, _name in {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "true_divide", "floordiv": "floor_divide", "mod": "remainder",
    "pow": "pow", "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift",
    **{name: name for name in _COMPARISONS},
}.items():  # fmt: skip
    OPERATORS[f"__{_method}__"] = as_method(f"__{_method}__", _operator(_name))
for _method, _name in {
    "radd": "reflected_add", "rmul": "reflected_mul", "rsub": "reflected_sub", "rtruediv": "reflected_div",
    "rfloordiv": "reflected_floor_divide", "rmod": "reflected_remainder", "rpow": "reflected_pow",
    "rmatmul": "reflected_matmul", "rand": "reflected_and", "ror": "reflected_or", "rxor": "reflected_xor",
    "rlshift": "reflected_left_shift", "rrshift": "reflected_right_shift",
}.items():  # fmt: skip
    OPERATORS[f"__{_method}__"] = as_method(f"__{_method}__", _operator(_name))


def _own(method: str) -> Any:
    """A reflected operator which, called on the class, refuses what is not a tensor, as a built-in method does."""
    plain = OPERATORS[method]

    def reflected(self: Any, other: Any) -> Any:
        if is_pytorch_tensor(other):
            raise mixed_libraries(method.strip("_").removeprefix("r"))
        if not isinstance(self, Tensor):
            kind = type(self).__name__
            raise TypeError(
                f"descriptor '{method}' for 'torch._C.TensorBase' objects doesn't apply to a '{kind}' object"
            )
        return plain(self, other)

    return reflected


for _method in ("__radd__", "__rmul__"):
    OPERATORS[_method] = as_method(_method, _own(_method))
for _method, _name in {
    "iadd": "add_", "isub": "sub_", "imul": "mul_", "itruediv": "true_divide_", "ifloordiv": "floor_divide_",
    "imod": "remainder_", "iand": "bitwise_and_", "ior": "bitwise_or_", "ixor": "bitwise_xor_", "ipow": "pow_",
    "ilshift": "bitwise_left_shift_", "irshift": "bitwise_right_shift_",
}.items():  # fmt: skip
    OPERATORS[f"__{_method}__"] = as_method(f"__{_method}__", _operator(_name))


def _unary(function_name: str) -> Callable[[Any], Any]:
    return lambda self: getattr(functions, function_name)(self)


for _method, _name in {
    "neg": "neg", "pos": "positive", "abs": "abs", "invert": "bitwise_not", "getitem": "getitem", "setitem": "setitem",
}.items():  # fmt: skip
    OPERATORS[f"__{_method}__"] = _unary(_name)


def _invert(self: Any) -> Any:
    if self._array.dtype.kind not in "biu":
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return functions.bitwise_not(self)


OPERATORS["__invert__"] = _invert


def _getitem(self: Any, index: Any) -> Any:
    return functions.getitem(self, index)


def _setitem(self: Any, index: Any, value: Any) -> None:
    functions.setitem(self, index, value)


OPERATORS["__getitem__"] = as_method("__getitem__", _getitem)
OPERATORS["__setitem__"] = as_method("__setitem__", _setitem)


def _getter(function_name: str) -> Callable[[Any], Any]:
    """A property that calls a function, found when it is first read."""
    return lambda self: getattr(functions, function_name)(self)


def _part_setter(function_name: str) -> Callable[[Any, Any], None]:
    """Writes a part of complex numbers; overriding classes are not asked, as in PyTorch."""

    def write(self: Any, value: Any) -> None:
        former, switches.overrides_disabled = switches.overrides_disabled, True
        try:
            getattr(functions, function_name)(self).copy_(value)
        finally:
            switches.overrides_disabled = former

    return write


def _volatile(self: Tensor) -> bool:
    warn_user("volatile was removed (Variable.volatile is always False): use torch.no_grad() instead.")
    return False


def _cuda_array_interface(self: Tensor) -> Any:
    """The memory on a GPU, for other libraries to use without a copy."""
    if not self.is_cuda:
        raise AttributeError(
            f"Can't get __cuda_array_interface__ on non-CUDA tensor type: {self.type()} If CUDA data is required use "
            "tensor.cuda() to copy tensor to device memory."
        )
    return self._array.__cuda_array_interface__


PROPERTIES: dict[str, Any] = {
    "T": property(_getter("tensor_T")),
    "mT": property(_getter("tensor_mT")),
    "H": property(_getter("tensor_H")),
    "mH": property(_getter("tensor_mH")),
    "real": property(_getter("real"), _part_setter("real")),
    "imag": property(_getter("imag"), _part_setter("imag")),
    "is_cpu": property(lambda self: self.device.type == "cpu"),
    "__cuda_array_interface__": property(_cuda_array_interface),
    "is_meta": property(lambda self: self.device.type == "meta"),
    "name": property(lambda self: None),
    "volatile": property(_volatile),
    "layout": property(lambda self: strided),
}
for _name in (
    "is_ipu", "is_maia", "is_mkldnn", "is_mps", "is_mtia", "is_nested", "is_quantized", "is_sparse",
    "is_sparse_csr", "is_vulkan", "is_xla", "is_xpu",
):  # fmt: skip
    PROPERTIES[_name] = property(lambda self: False)


def _delitem(self: Any, index: Any) -> None:
    raise TypeError("Tensor does not support deleting items")


OPERATORS["__delitem__"] = _delitem

for _method, _name in {
    "__pow__": "pow", "__ipow__": "pow_", "__rtruediv__": "__rdiv__", "__itruediv__": "__idiv__", "__neg__": "neg",
    "__pos__": "positive", "__abs__": "abs",
}.items():  # fmt: skip
    OPERATORS[_method].__name__ = _name  # as PyTorch names them
    OPERATORS[_method].__qualname__ = f"Tensor.{_method}"
OPERATORS.update({f"__{p}div__": OPERATORS[f"__{p}truediv__"] for p in ("", "r", "i")})
