"""Function: operations with a backward of the user's own."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from typing import Any

from pullback.autograd.function_tangents import OutputKind, carry_tangents
from pullback.backend.dtype import is_float_or_complex
from pullback.errors import LeafModificationError, ViewModificationError
from pullback.graph.basic_nodes import DelayedError
from pullback.graph.custom_function_node import BackwardCFunction, FunctionCtx, _FunctionBase, _HookMixin
from pullback.graph.history import adopt_switches, bump_version, gradient_edge, rebase_history, set_history
from pullback.graph.node import begin_recording
from pullback.graph.tangents import levels_of, without_tangents
from pullback.graph.views import check_view_modification, make_view
from pullback.modes.cuts import excuse, note_cut
from pullback.modes.grad_mode import is_grad_enabled
from pullback.modes.interception import intercept
from pullback.modes.switches import process, resume_gradients, set_switch, suspend_gradients, switched, switches
from pullback.modes.user_warnings import warn_user
from pullback.tensor.autograd_extra import CUSTOM_FUNCTION, DEFAULT, MULTI_OUTPUT
from pullback.tensor.tensor import Tensor, new_tensor

__all__ = [
    "BackwardCFunction", "Function", "FunctionCtx", "FunctionMeta", "InplaceFunction", "NestedIOFunction",
    "once_differentiable",
]  # fmt: skip


class FunctionMeta(type):
    """Gives each Function its node class, named `<Class>Backward`."""

    _backward_cls: type[BackwardCFunction]

    def __init__(cls, name: str, bases: tuple[type, ...], attributes: dict[str, Any]) -> None:
        super().__init__(name, bases, attributes)
        cls._backward_cls = type(
            f"{name}Backward", (BackwardCFunction,), {"_forward_cls": cls, "__module__": "torch.autograd.function"}
        )


class _SingleLevelFunction(_FunctionBase, FunctionCtx, _HookMixin, metaclass=FunctionMeta):
    """A Function as transforms of pullback.func do not see it; `Function` is what users derive from."""


class Function(_SingleLevelFunction):
    """An operation with forward and backward of your own; call it with `apply`.

    >>> import pullback
    >>> class Square(pullback.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         (x,) = ctx.saved_tensors
    ...         return 2 * x * grad
    >>> x = pullback.tensor(3.0, requires_grad=True)
    >>> Square.apply(x).backward()
    >>> x.grad
    tensor(6.)
    """

    generate_vmap_rule = False
    clear_saved_tensors_on_access = False
    boxed_grads_call = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warn_user(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should invoke "
            "them on the class itself. Instantiating an autograd function will raise an error in a future version of "
            "PyTorch.",
            DeprecationWarning,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function "
            "with static forward method: define forward as a staticmethod and call apply on the class."
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the outputs: `forward(ctx, *inputs)`, or `forward(*inputs)` together with `setup_context`."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Save for backward, where `forward` takes no ctx."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Compute the gradient of each input from those of the outputs."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with backward "
            "mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Compute the tangent of each output from those of the inputs."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """Compute a batch at once."""
        raise NotImplementedError("To use autograd.Function with vmap, you must either override the vmap staticmethod or "
                                  "set generate_vmap_rule=True.")  # fmt: skip

    @classmethod
    def _backward_function(cls) -> Callable[..., Any]:
        """The user's backward, under either of its names."""
        own_backward = cls.backward is not Function.backward
        own_vjp = cls.vjp is not Function.vjp
        if own_backward and own_vjp:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement "
                "one of them."
            )
        return cls.vjp if own_vjp else cls.backward

    @classmethod
    def _has_setup_context(cls) -> bool:
        return cls.setup_context is not Function.setup_context

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run the Function on `args` and record it."""
        if switches.transforms and not cls._has_setup_context():
            raise RuntimeError(
                "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must "
                f"override the setup_context staticmethod, which {cls.__name__} does not: move what uses ctx there."
            )
        if cls._has_setup_context() and _may_have_defaults(cls.forward):
            args, kwargs = _bound(cls, args, kwargs)
        if process.changed and switches.interceptors:
            taken = intercept(_FunctionCall(cls), args, kwargs)
            if taken is not NotImplemented:
                return taken
        return _run(cls, args, kwargs)


def _run(cls: type[Function], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return _apply(cls, _as_positional(cls, args, kwargs) if kwargs else args)


class _FunctionCall:
    """A custom Function as interceptors see it: a callable that knows its class."""

    def __init__(self, function: type[Function]) -> None:
        self.function = function
        self.__name__ = function.__name__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function.apply(*args, **kwargs)

    def run_openly(self, *args: Any, **kwargs: Any) -> Any:
        """Call it without offering it to interceptors again: those that are there see the operations of its forward."""
        return _run(self.function, args, kwargs)


def _as_positional(cls: type[Function], args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    """Keyword arguments in their place among the positional ones, which is where backward returns their gradients."""
    args, keyword_only = _bound(cls, args, kwargs)
    if keyword_only:
        name = next(iter(keyword_only))
        raise TypeError(
            f"forward() got an unexpected keyword argument '{name}': {cls.__name__}.apply() hands its arguments over by "
            "position, so forward can have no keyword-only parameters."
        )
    return args


def _bound(
    cls: type[Function], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments in the order of forward's parameters, with default values, and those by keyword only."""
    leading = () if cls._has_setup_context() else (None,)
    bound = inspect.signature(cls.forward).bind(*leading, *args, **kwargs)
    bound.apply_defaults()
    return bound.args[len(leading) :], bound.kwargs


def _may_have_defaults(forward: Any) -> bool:
    """Whether a parameter may have a default value, which `setup_context` is to see; binding takes microseconds."""
    return (
        getattr(forward, "__defaults__", True) is not None
        or forward.__kwdefaults__ is not None
        or hasattr(forward, "__wrapped__")
    )


def _apply(cls: type[Function], args: tuple[Any, ...]) -> Any:
    ctx = cls._backward_cls()
    tensors = [a for a in args if isinstance(a, Tensor)]
    ctx.is_tensor_input = tuple([isinstance(a, Tensor) for a in args])
    ctx.needs_input_grad = tuple([isinstance(a, Tensor) and a._requires_grad for a in args])
    grad_mode = not process.changed or switches.records
    records = grad_mode and any(t._requires_grad for t in tensors)
    dual = bool(process.changed) and switches.dual_level >= 0 and any(levels_of(t) for t in tensors)
    if records:
        ctx.next_edges = tuple([gradient_edge(t) for t in tensors])
        begin_recording(ctx)
    inputs = tuple([without_tangents(a, 0) if isinstance(a, Tensor) else a for a in args]) if dual else args
    former, former_level = (switches.grad_mode, switches.forward_grad), switches.dual_level
    excused = excuse(args) if records else None
    try:
        suspend_gradients()
        if dual:
            set_switch("dual_level", -1)
        if cls._has_setup_context():
            output = cls.forward(*inputs)
            cls.setup_context(ctx, inputs, output)
            _refuse_saved_outputs(ctx, inputs, output)
        else:
            output = cls.forward(ctx, *inputs)
    finally:
        if dual:
            set_switch("dual_level", former_level)
        resume_gradients(former)
        if records:
            excuse(excused)
    outputs = output if isinstance(output, tuple) else (output,)
    if dual:
        ctx.to_save, ctx.saved_for_forward = (
            _with_tangents(s, inputs, args) for s in (ctx.to_save, ctx.saved_for_forward)
        )
    kinds = [OutputKind(ctx, o, inputs) for o in outputs] if dual else []
    saved = ctx.saved_for_forward
    wrapped = _wrap_outputs(ctx, outputs, inputs, args, records)
    if dual:
        carry_tangents(ctx, args, wrapped, kinds, saved)
    if records:
        ctx.store(wrapped)  # after the tangents came: those of saved outputs are saved too
        adopt_switches(ctx)
    return tuple(wrapped) if isinstance(output, tuple) else wrapped[0]


def _refuse_saved_outputs(ctx: BackwardCFunction, inputs: Sequence[Any], output: Any) -> None:
    """Refuse an input that is an output as well and was saved: which of the two backward is to see is not clear."""
    outputs = output if isinstance(output, tuple) else (output,)
    returned = [t for t in inputs if isinstance(t, Tensor) and any(t is o for o in outputs)]
    saved = (*(ctx.to_save or ()), *(ctx.saved_for_forward or ()))
    if any(t is s for t in returned if all(t is not d for d in ctx.dirty_tensors) for s in saved):
        raise RuntimeError(
            "An input that has been returned as-is as output is being saved for backward. This is not supported if you "
            "override setup_context. You should return and save a view of the input instead, e.g. with x.view_as(x) or "
            "setup ctx inside the forward function itself."
        )


def _wrap_outputs(
    ctx: BackwardCFunction, outputs: Sequence[Any], inputs: Sequence[Any], args: Sequence[Any], records: bool
) -> list[Any]:
    """Attach the outputs to the node: modified inputs, inputs returned as they are, views and fresh tensors."""
    if records and len(outputs) == 1 and _is_fresh(ctx, outputs[0], inputs):
        ctx.describe_outputs(outputs)
        outputs[0]._requires_grad, outputs[0]._edge = True, (ctx, 0)
        return list(outputs)
    for tensor in ctx.dirty_tensors:
        if all(o is not tensor for o in outputs):
            raise RuntimeError(
                "Some elements marked as dirty during the forward method were not returned as output. The inputs that are "
                "modified inplace must all be outputs of the Function."
            )
        bump_version(tensor)
    ctx.describe_outputs(outputs)
    if ctx._is_pure_view and (len(outputs) > 1 or sum(ctx.is_tensor_input) > 1):
        raise RuntimeError(
            "Pure view custom Function can only have one input Tensor and one output Tensor: it has "
            f"{sum(ctx.is_tensor_input)} and {len(outputs)}."
        )
    wrapped: list[Any] = []
    for number, output in enumerate(outputs):
        if not isinstance(output, Tensor):
            wrapped.append(output)
            continue
        position = next((i for i, x in enumerate(inputs) if x is output), None)
        dirty = any(output is t for t in ctx.dirty_tensors)
        differentiable = (
            records and all(output is not t for t in ctx.non_differentiable) and output._array.dtype.kind in "fcV"
        )
        original = args[position] if position is not None else None
        if differentiable:
            wrapped.append(_wrap_differentiable(ctx, output, original, number, dirty))
        else:
            wrapped.append(_wrap_constant(ctx, output, original, dirty))
            if records:
                note_cut(sys.intern(ctx.name().removesuffix("Backward")), wrapped[-1], *args)
    ctx.dirty_tensors = ctx.non_differentiable = ()  # a modified input leads back to this node: no cycle
    return wrapped


def _is_fresh(ctx: BackwardCFunction, output: Any, inputs: Sequence[Any]) -> bool:
    """Whether an output is what most are: a tensor that forward made, with a gradient, of which nothing was said."""
    if ctx.dirty_tensors or ctx.non_differentiable or ctx._is_pure_view:
        return False
    if type(output) is not Tensor or output._extra is not None or output._array.dtype.kind not in "fcV":
        return False
    for value in inputs:  # noqa: SIM110  # a generator costs more than what is compared
        if value is output:
            return False
    return True


def _wrap_constant(ctx: BackwardCFunction, output: Tensor, original: Tensor | None, dirty: bool) -> Tensor:
    """An output without gradient: an input is never handed out as it is, unless it was modified."""
    if original is None:
        _note_creation(ctx, output, recorded=False)
        return output.detach_() if output._requires_grad and not output._is_view() else output
    if original._requires_grad:
        return original.detach()
    return original if dirty else _view_of_input(ctx, original, recorded=False)


def _wrap_differentiable(
    ctx: BackwardCFunction, output: Tensor, original: Tensor | None, number: int, dirty: bool
) -> Tensor:
    if dirty:
        _check_dirty(ctx, output, original)
    if dirty and original is not None:
        rebase_history(original, ctx)
        if original._edge is not None and original._edge[0] is ctx:
            original._edge = (ctx, number)
        return original
    if original is not None:
        output = _view_of_input(ctx, original, recorded=True)
    else:
        _note_creation(ctx, output, recorded=True)
    set_history(output, ctx, number)
    return output


def _view_of_input(ctx: BackwardCFunction, original: Tensor, *, recorded: bool) -> Tensor:
    view = new_tensor(original._array)
    make_view(view, original, CUSTOM_FUNCTION)
    _note_creation(ctx, view, recorded=recorded)
    return view


def _note_creation(ctx: BackwardCFunction, output: Tensor, *, recorded: bool) -> None:
    """Say of a view where it was made: only a pure view may be modified, as its backward is that of the view alone."""
    info = output._extra.view if output._extra is not None else None
    if info is not None:
        several = recorded and ctx.output_count > 1
        info.creation = DEFAULT if ctx._is_pure_view else MULTI_OUTPUT if several else CUSTOM_FUNCTION


def _check_dirty(ctx: BackwardCFunction, output: Tensor, original: Tensor | None) -> None:
    """Refuse a tensor marked as modified whose new history could not be followed."""
    info = output._extra.view if output._extra is not None else None
    if output._requires_grad and not output._has_edge():
        raise LeafModificationError("a leaf Variable that requires grad has been used in an in-place operation.")
    if original is None:
        message = (
            "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been mutated should "
            "be passed to ctx.mark_dirty()"
        )
        if info is not None:
            raise RuntimeError(f"{message}: this one is a view that forward made.")
        warn_user(f"{message}.")
    elif info is not None:
        if ctx.output_count > 1:
            raise ViewModificationError(
                "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot return "
                "more than one Tensor. Clone the input before apply(), or split the Function into one that modifies and "
                "one that computes the rest."
            )
        check_view_modification(original, info, records=True)


def _with_tangents(saved: Any, inputs: Sequence[Any], args: Sequence[Any]) -> Any:
    """What forward saved, with the inputs it saw without tangents replaced by those that the caller gave."""
    if saved is None:
        return None
    return tuple([next((a for i, a in zip(inputs, args, strict=True) if i is t), t) for t in saved])


def once_differentiable(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a backward that must not be differentiated itself: a second derivative raises."""

    @functools.wraps(fn)
    def wrapper(ctx: Any, *args: Any) -> Any:
        former = is_grad_enabled()
        with switched("grad_mode", False):
            outputs = fn(ctx, *args)
        if not former or not any(isinstance(a, Tensor) and a._requires_grad for a in args):
            return outputs
        results = outputs if isinstance(outputs, tuple) else (outputs,)
        refuse = DelayedError(
            "trying to differentiate twice a function that was marked with @once_differentiable", len(results)
        )
        return refuse(*[_as_leaf(o) if isinstance(o, Tensor) else o for o in results])

    wrapper.is_once_differentiable = True  # type: ignore[attr-defined]  # what strict_derivatives looks for
    return wrapper


def _as_leaf(tensor: Tensor) -> Tensor:
    """An alias that requires grad, where it can."""
    alias = tensor.detach()
    return alias.requires_grad_() if is_float_or_complex(tensor._array.dtype) else alias


class InplaceFunction(Function):
    """A Function with an `inplace` flag; kept for old programs."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class NestedIOFunction(Function):
    """A Function whose inputs and outputs may be nested; kept for old programs."""
