"""The situations that forms of an operation are called in: in-place, `out=`, method and function forms.

A situation prepares the arguments of one library (copies, the same for both), makes the call, and tells what can be
observed of it. Everything goes through the `Call` given, so that one text serves both libraries.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

DTYPES = ("bool", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128")
NUMBERS = (2, 2.5, True, 1j, 0)


@dataclass
class Call:
    """One call of one library: the package, the form, and copies of the arguments."""

    library: Any
    form: Callable[..., Any]
    arguments: list[Any]
    options: dict[str, Any]
    watched: dict[str, Any] = field(default_factory=dict)

    def make(self, **more: Any) -> Any:
        """Call the form."""
        return self.form(*self.arguments, **{**self.options, **more})

    def is_tensor(self, position: int) -> bool:
        """Whether there is a tensor at this position."""
        return len(self.arguments) > position and isinstance(self.arguments[position], self.library.Tensor)

    def dtype(self, name: str) -> Any:
        """A dtype of this library."""
        return getattr(self.library, name)


class Inapplicable(Exception):
    """The sample has nothing that this situation is about."""


Situation = Callable[[Call], Any]


def need(condition: bool) -> None:
    """Leave a situation that does not fit the sample."""
    if not condition:
        raise Inapplicable


def modified(call: Call, target: Any) -> Any:
    """Call an in-place form on `target` and tell what became of it."""
    call.arguments[0] = target
    call.watched["target"] = target
    result = call.make()
    return result, target, result is target


def _self_of_dtype(name: str) -> Situation:
    def situation(call: Call) -> Any:
        need(call.is_tensor(0) and call.arguments[0].dtype != call.dtype(name))
        return modified(call, call.arguments[0].to(call.dtype(name)))

    return situation


def _others_of_dtype(name: str) -> Situation:
    def situation(call: Call) -> Any:
        need(call.is_tensor(0) and any(call.is_tensor(i) for i in range(1, len(call.arguments))))
        for i in range(1, len(call.arguments)):
            if call.is_tensor(i):
                call.arguments[i] = call.arguments[i].to(call.dtype(name))
        return modified(call, call.arguments[0])

    return situation


def _number(value: Any, wrapped: bool) -> Situation:
    def situation(call: Call) -> Any:
        need(call.is_tensor(0) and call.is_tensor(1))
        call.arguments[1] = call.library.tensor(value) if wrapped else value
        return modified(call, call.arguments[0])

    return situation


def _integer_self_and_number(value: Any) -> Situation:
    def situation(call: Call) -> Any:
        need(call.is_tensor(0) and call.is_tensor(1))
        call.arguments[1] = value
        return modified(call, call.arguments[0].to(call.library.int64))

    return situation


def _plain(call: Call) -> Any:
    need(call.is_tensor(0))
    return modified(call, call.arguments[0])


def _scalar_self(call: Call) -> Any:
    need(call.is_tensor(0) and call.arguments[0].numel() > 0 and call.arguments[0].dim() > 0)
    return modified(call, call.arguments[0].flatten()[0].clone())


def _others_broadcast(call: Call) -> Any:
    need(call.is_tensor(0) and call.is_tensor(1))
    call.arguments[1] = call.library.stack([call.arguments[1], call.arguments[1]])
    return modified(call, call.arguments[0])


def _others_of_one(call: Call) -> Any:
    need(call.is_tensor(0) and call.is_tensor(1) and call.arguments[1].numel() > 0)
    call.arguments[1] = call.arguments[1].flatten()[:1]
    return modified(call, call.arguments[0])


def _leaf(call: Call) -> Any:
    need(call.is_tensor(0) and call.arguments[0].is_floating_point())
    return modified(call, call.arguments[0].clone().requires_grad_())


def _view_of_leaf(call: Call) -> Any:
    need(call.is_tensor(0) and call.arguments[0].is_floating_point())
    return modified(call, call.arguments[0].clone().requires_grad_()[...])


def _recorded(call: Call) -> Any:
    need(call.is_tensor(0) and call.arguments[0].is_floating_point())
    leaf = call.arguments[0].clone().requires_grad_()
    return modified(call, leaf.clone())


def _others_recorded(call: Call) -> Any:
    need(call.is_tensor(0) and call.is_tensor(1) and call.arguments[1].is_floating_point())
    call.arguments[1] = call.arguments[1].clone().requires_grad_()
    return modified(call, call.arguments[0])


def _recorded_view(call: Call) -> Any:
    need(call.is_tensor(0) and call.arguments[0].is_floating_point())
    base = call.arguments[0].clone().requires_grad_().clone()
    call.watched["base"] = base
    return modified(call, base[...])


def _view_without_recording(call: Call) -> Any:
    need(call.is_tensor(0) and call.arguments[0].is_floating_point())
    base = call.arguments[0].clone().requires_grad_()
    call.watched["base"] = base
    with call.library.no_grad():
        return modified(call, base[...])


def _leaf_without_recording(call: Call) -> Any:
    need(call.is_tensor(0) and call.arguments[0].is_floating_point())
    with call.library.no_grad():
        return modified(call, call.arguments[0].clone().requires_grad_())


def _expanded(call: Call) -> Any:
    need(call.is_tensor(0) and call.arguments[0].dim() > 0 and call.arguments[0].numel() > 1)
    first = call.arguments[0].flatten()[:1].clone()
    return modified(call, first.expand(call.arguments[0].shape))


def _strided(call: Call) -> Any:
    need(call.is_tensor(0) and call.arguments[0].dim() > 1)
    given = call.arguments[0]
    return modified(call, given.transpose(0, -1).contiguous().transpose(0, -1))


def _same_tensor_twice(call: Call) -> Any:
    need(call.is_tensor(0) and call.is_tensor(1) and call.arguments[0].shape == call.arguments[1].shape)
    call.arguments[1] = call.arguments[0]
    return modified(call, call.arguments[0])


def _shifted_memory(call: Call) -> Any:
    need(call.is_tensor(0) and call.is_tensor(1) and call.arguments[0].shape == call.arguments[1].shape)
    flat = call.arguments[0].flatten()
    need(flat.numel() > 1)
    memory = call.library.cat([flat, flat[:1]])
    call.arguments[1] = memory[1:].view(call.arguments[0].shape)
    return modified(call, memory[:-1].view(call.arguments[0].shape))


IN_PLACE: dict[str, Situation] = {
    "plain": _plain,
    **{f"self of {name}": _self_of_dtype(name) for name in DTYPES},
    **{f"others of {name}": _others_of_dtype(name) for name in DTYPES},
    **{f"number {value}": _number(value, False) for value in NUMBERS},
    **{f"tensor of number {value}": _number(value, True) for value in NUMBERS},
    **{f"int64 and number {value}": _integer_self_and_number(value) for value in NUMBERS},
    "self of no dimension": _scalar_self,
    "others of more dimensions": _others_broadcast,
    "others of one element": _others_of_one,
    "leaf": _leaf,
    "view of a leaf": _view_of_leaf,
    "recorded": _recorded,
    "others recorded": _others_recorded,
    "recorded view": _recorded_view,
    "view without recording": _view_without_recording,
    "leaf without recording": _leaf_without_recording,
    "expanded": _expanded,
    "strided": _strided,
    "same tensor twice": _same_tensor_twice,
    "shifted memory": _shifted_memory,
}

CALLS: dict[str, Situation] = {
    name: IN_PLACE[name]
    for name in IN_PLACE
    if name.split()[0] in ("plain", "self", "others", "number", "tensor", "int64") and "recorded" not in name
}
"""What methods and functions are called with."""


def _results(call: Call) -> list[Any]:
    """The results without out=, to make tensors like them."""
    with call.library.no_grad():
        result = call.make()
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    need(all(isinstance(r, call.library.Tensor) for r in results))
    call.watched["several"] = isinstance(result, (tuple, list))
    return results


def written(call: Call, outs: list[Any]) -> Any:
    """Call with out= and tell what became of the tensors given."""
    several = call.watched.pop("several")
    out = tuple(outs) if several else outs[0]
    for i, tensor in enumerate(outs):
        call.watched[f"out {i}"] = tensor
    result = call.make(out=out)
    results = list(result) if several else [result]
    return results, outs, [a is b for a, b in zip(results, outs, strict=True)]


def _out_like(change: Callable[[Call, Any], Any]) -> Situation:
    def situation(call: Call) -> Any:
        return written(call, [change(call, result) for result in _results(call)])

    return situation


def _blank(call: Call, result: Any) -> Any:
    return call.library.ones_like(result, memory_format=call.library.contiguous_format)


def _other_dtype(name: str) -> Callable[[Call, Any], Any]:
    def change(call: Call, result: Any) -> Any:
        need(result.dtype != call.dtype(name))
        return call.library.ones(result.shape, dtype=call.dtype(name))

    return change


def _longer(call: Call, result: Any) -> Any:
    return call.library.ones((*result.shape, 2), dtype=result.dtype)


def _empty(call: Call, result: Any) -> Any:
    return call.library.empty(0, dtype=result.dtype)


def _single(call: Call, result: Any) -> Any:
    need(result.dim() > 0 and result.numel() > 1)
    return call.library.ones((), dtype=result.dtype)


def _one_more(call: Call, result: Any) -> Any:
    need(result.dim() > 0)
    return call.library.ones((result.shape[0] + 1, *result.shape[1:]), dtype=result.dtype)


def _strided_out(call: Call, result: Any) -> Any:
    need(result.dim() > 1)
    shape = list(result.shape)
    shape[0], shape[-1] = shape[-1], shape[0]
    return call.library.ones(shape, dtype=result.dtype).transpose(0, -1)


def _expanded_out(call: Call, result: Any) -> Any:
    need(result.dim() > 0 and result.numel() > 1)
    return call.library.ones(1, dtype=result.dtype).expand(result.shape)


def _recorded_out(call: Call, result: Any) -> Any:
    need(result.is_floating_point())
    return call.library.ones_like(result).requires_grad_()


def _view_out(call: Call, result: Any) -> Any:
    base = call.library.ones((2, *result.shape), dtype=result.dtype)
    call.watched["base"] = base
    return base[1]


def _out_is_input(call: Call) -> Any:
    results = _results(call)
    need(len(results) == 1 and call.is_tensor(0))
    need(results[0].shape == call.arguments[0].shape and results[0].dtype == call.arguments[0].dtype)
    return written(call, [call.arguments[0]])


def _inputs_recorded(call: Call) -> Any:
    need(call.is_tensor(0) and call.arguments[0].is_floating_point())
    results = _results(call)
    call.arguments[0] = call.arguments[0].requires_grad_()
    return written(call, [_blank(call, r) for r in results])


def _inputs_without_recording(call: Call) -> Any:
    need(call.is_tensor(0) and call.arguments[0].is_floating_point())
    results = _results(call)
    call.arguments[0] = call.arguments[0].requires_grad_()
    with call.library.no_grad():
        return written(call, [_blank(call, r) for r in results])


def _no_tensor(value: Any) -> Situation:
    def situation(call: Call) -> Any:
        return call.make(out=value)

    return situation


OUT: dict[str, Situation] = {
    "out": _out_like(_blank),
    **{f"out of {name}": _out_like(_other_dtype(name)) for name in DTYPES},
    "out with a dimension more": _out_like(_longer),
    "empty out": _out_like(_empty),
    "out of one element": _out_like(_single),
    "out one longer": _out_like(_one_more),
    "strided out": _out_like(_strided_out),
    "expanded out": _out_like(_expanded_out),
    "out that requires grad": _out_like(_recorded_out),
    "out is a view": _out_like(_view_out),
    "out is the input": _out_is_input,
    "inputs that require grad": _inputs_recorded,
    "inputs that require grad, without recording": _inputs_without_recording,
    "out a str": _no_tensor("x"),
    "out an empty tuple": _no_tensor(()),
    "out None": _no_tensor(None),
}
