"""The hooks of a Module, those of all Modules, and the call that runs them."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from pullback.modes.guards import guarded
from pullback.modes.source_lines import enter_module, leave_module
from pullback.modes.user_warnings import warn_user
from pullback.nn.modules.backward_hook import BackwardHook
from pullback.tensor.tensor import Tensor
from pullback.utils.hooks import RemovableHandle

Hooks = OrderedDict[int, Callable[..., Any]]


class GlobalHooks:
    """The hooks that every Module runs."""

    forward_pre: Hooks = OrderedDict()
    forward: Hooks = OrderedDict()
    forward_always_called: OrderedDict[int, bool] = OrderedDict()
    forward_with_kwargs: OrderedDict[int, bool] = OrderedDict()
    backward_pre: Hooks = OrderedDict()
    backward: Hooks = OrderedDict()
    is_full_backward: bool | None = None
    buffer_registration: Hooks = OrderedDict()
    module_registration: Hooks = OrderedDict()
    parameter_registration: Hooks = OrderedDict()


# PyTorch's names, which every call reads.
_global_forward_pre_hooks, _global_forward_hooks = GlobalHooks.forward_pre, GlobalHooks.forward
_global_backward_pre_hooks, _global_backward_hooks = GlobalHooks.backward_pre, GlobalHooks.backward
_global_forward_hooks_always_called = GlobalHooks.forward_always_called
_global_forward_hooks_with_kwargs = GlobalHooks.forward_with_kwargs
_global_buffer_registration_hooks = GlobalHooks.buffer_registration
_global_module_registration_hooks = GlobalHooks.module_registration
_global_parameter_registration_hooks = GlobalHooks.parameter_registration


def add_hook(hooks: Any, hook: Any, *extra: Any, prepend: bool = False) -> RemovableHandle:
    """Register `hook` under the id of a new handle."""
    handle = RemovableHandle(hooks, extra_dict=list(extra) or None)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def first_tensor(value: Any) -> Tensor | None:
    """The first tensor in nested results."""
    while not isinstance(value, Tensor):
        if isinstance(value, dict):
            value = next((v for v in value.values() if isinstance(v, Tensor)), None)
        elif isinstance(value, (tuple, list)) and value:
            value = value[0]
        else:
            return None
    return value


class ModuleHooks:
    """The part of Module that registers hooks and calls `forward` between them."""

    forward: Callable[..., Any]
    _forward_hooks: Hooks
    _forward_hooks_with_kwargs: OrderedDict[int, bool]
    _forward_hooks_always_called: OrderedDict[int, bool]
    _forward_pre_hooks: Hooks
    _forward_pre_hooks_with_kwargs: OrderedDict[int, bool]
    _backward_hooks: Hooks
    _backward_pre_hooks: Hooks
    _is_full_backward_hook: bool | None

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args)` before `forward`; what it returns replaces the arguments."""
        handle = add_hook(self._forward_pre_hooks, hook, self._forward_pre_hooks_with_kwargs, prepend=prepend)
        if with_kwargs:
            self._forward_pre_hooks_with_kwargs[handle.id] = True
        return handle

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args, output)` after `forward`; what it returns replaces the output."""
        handle = add_hook(
            self._forward_hooks,
            hook,
            self._forward_hooks_with_kwargs,
            self._forward_hooks_always_called,
            prepend=prepend,
        )
        if with_kwargs:
            self._forward_hooks_with_kwargs[handle.id] = True
        if always_call:
            self._forward_hooks_always_called[handle.id] = True
        return handle

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_output)` before backward runs through the module."""
        return add_hook(self._backward_pre_hooks, hook, prepend=prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` after backward ran through the module."""
        if self._is_full_backward_hook is False:
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module: this one has hooks of "
                "the other kind."
            )
        self._is_full_backward_hook = True
        return add_hook(self._backward_hooks, hook, prepend=prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Register the old kind of backward hook, which sees only the last node of the module."""
        if self._is_full_backward_hook is True:
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module: this one has hooks of "
                "the other kind."
            )
        self._is_full_backward_hook = False
        return add_hook(self._backward_hooks, hook)

    def _slow_forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        former = enter_module(self)
        try:
            if (
                self._forward_hooks
                or self._forward_pre_hooks
                or self._backward_hooks
                or self._backward_pre_hooks
                or _global_forward_pre_hooks
                or _global_forward_hooks
                or _global_backward_hooks
                or _global_backward_pre_hooks
            ):
                return self._call_with_hooks(args, kwargs)
            return self.forward(*args, **kwargs)
        finally:
            leave_module(former)

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        return ModuleHooks.__call__(self, *args, **kwargs)

    _wrapped_call_impl = _call_impl

    def _call_with_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        called: set[int] = set()
        result = None
        try:
            args, kwargs = self._run_forward_pre_hooks(args, kwargs)
            backward_hook = self._make_backward_hook()
            if backward_hook is not None:
                args = backward_hook.setup_input_hook(args)
            result = self.forward(*args, **kwargs)
            result = self._run_forward_hooks(args, kwargs, result, called)
        except Exception:
            self._run_always_called(args, kwargs, result, called)
            raise
        if backward_hook is not None:
            if not isinstance(result, (Tensor, tuple)):
                warn_user(
                    "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors: "
                    f"{type(self).__name__} returned {type(result)}"
                )
            result = backward_hook.setup_output_hook(result)
        self._attach_non_full_hooks(args, result)
        return result

    def _run_forward_pre_hooks(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        for hook_id, hook in (*GlobalHooks.forward_pre.items(), *self._forward_pre_hooks.items()):
            if hook_id in self._forward_pre_hooks_with_kwargs:
                returned = hook(self, args, kwargs)
                if returned is None:
                    continue
                if not (isinstance(returned, tuple) and len(returned) == 2):
                    raise RuntimeError(
                        f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {returned}."
                    )
                args, kwargs = returned
            else:
                returned = hook(self, args)
                if returned is not None:
                    args = returned if isinstance(returned, tuple) else (returned,)
        return args, kwargs

    def _run_forward_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, called: set[int]) -> Any:
        for hook_id, hook in (*GlobalHooks.forward.items(), *self._forward_hooks.items()):
            if hook_id in self._forward_hooks_always_called or hook_id in GlobalHooks.forward_always_called:
                called.add(hook_id)
            if hook_id in self._forward_hooks_with_kwargs or hook_id in GlobalHooks.forward_with_kwargs:
                replaced = hook(self, args, kwargs, result)
            else:
                replaced = hook(self, args, result)
            if replaced is not None:
                result = replaced
        return result

    def _run_always_called(self, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any, called: set[int]) -> None:
        """After an error: run the hooks that are to be called always; errors of their own become warnings."""
        always = {**GlobalHooks.forward_always_called, **self._forward_hooks_always_called}
        hooks = {**GlobalHooks.forward, **self._forward_hooks}
        with_kwargs = {**GlobalHooks.forward_with_kwargs, **self._forward_hooks_with_kwargs}
        for hook_id in [i for i in hooks if i in always and i not in called]:
            try:
                replaced = hooks[hook_id](self, args, *([kwargs] if hook_id in with_kwargs else []), result)
                if replaced is not None:
                    result = replaced
            except Exception as error:
                warn_user(
                    f"module forward hook with ``always_call=True`` raised an exception after forward had raised one, "
                    f"which goes on: {error!s}"
                )

    def _make_backward_hook(self) -> BackwardHook | None:
        """The watch on this call where full backward hooks want one."""
        full = [*GlobalHooks.backward.values()] if GlobalHooks.is_full_backward is True else []
        full += [*self._backward_hooks.values()] if self._is_full_backward_hook is True else []
        pre = [*GlobalHooks.backward_pre.values(), *self._backward_pre_hooks.values()]
        return BackwardHook(self, full, pre) if full or pre else None

    def _attach_non_full_hooks(self, args: tuple[Any, ...], result: Any) -> None:
        hooks = [*GlobalHooks.backward.values()] if GlobalHooks.is_full_backward is False else []
        hooks += [*self._backward_hooks.values()] if self._is_full_backward_hook is False else []
        if not hooks:
            return
        tensor = first_tensor(result)
        node = tensor.grad_fn if tensor is not None else None
        if node is None:
            return
        for hook in hooks:
            node.register_hook(functools.partial(hook, self))
        _warn_of_several_nodes(args, result, node)


def _warn_of_several_nodes(args: tuple[Any, ...], result: Any, node: Any) -> None:
    """The old kind of hook sees one node's inputs, which are the module's only if it is the only node."""
    if not isinstance(result, Tensor):
        warn_user(
            "Using non-full backward hooks on a Module that does not return a single Tensor is deprecated: the hook sees "
            "the last node of the first tensor only. Use register_full_backward_hook.",
            FutureWarning,
        )
        return
    inputs = {arg.grad_fn for arg in args if isinstance(arg, Tensor) and arg.grad_fn is not None}
    behind = {function for function, _ in node.next_functions if function is not None}
    leaves = {f for f in behind if f.name() == "torch::autograd::AccumulateGrad" or hasattr(f, "variable")}
    if (behind - leaves) - inputs:
        warn_user(
            "Using a non-full backward hook when the forward contains multiple autograd Nodes is deprecated: the hook "
            "sees the inputs of the last node, not the module's. Use register_full_backward_hook.",
            FutureWarning,
        )


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, args)` before the `forward` of every Module."""
    return add_hook(GlobalHooks.forward_pre, hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call `hook(module, args, output)` after the `forward` of every Module."""
    handle = add_hook(GlobalHooks.forward, hook, GlobalHooks.forward_always_called, GlobalHooks.forward_with_kwargs)
    if with_kwargs:
        GlobalHooks.forward_with_kwargs[handle.id] = True
    if always_call:
        GlobalHooks.forward_always_called[handle.id] = True
    return handle


def watch_modules(before: Callable[..., Any], after: Callable[..., Any]) -> None:
    """Call `before(module, args)` and `after(module, args, output)` around every `forward`, until `unwatch_modules`."""
    register_module_forward_pre_hook(before)
    register_module_forward_hook(after, always_call=True)


@guarded
def unwatch_modules(before: Callable[..., Any], after: Callable[..., Any]) -> None:
    """End `watch_modules`, also one that was interrupted before there was a handle to remove a hook by."""
    for hooks, watching in ((GlobalHooks.forward_pre, before), (GlobalHooks.forward, after)):
        for number in [number for number, hook in hooks.items() if hook == watching]:
            GlobalHooks.forward_always_called.pop(number, None)
            hooks.pop(number, None)


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Register the old kind of backward hook for every Module."""
    _set_global_backward_kind(full=False)
    return add_hook(GlobalHooks.backward, hook)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_output)` before backward runs through any Module."""
    return add_hook(GlobalHooks.backward_pre, hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` after backward ran through any Module."""
    _set_global_backward_kind(full=True)
    return add_hook(GlobalHooks.backward, hook)


def _set_global_backward_kind(*, full: bool) -> None:
    if GlobalHooks.is_full_backward is (not full) and GlobalHooks.backward:
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook: there are hooks of "
            "the other kind."
        )
    GlobalHooks.is_full_backward = full


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, buffer)` when a Module registers a buffer; what it returns is registered instead."""
    return add_hook(GlobalHooks.buffer_registration, hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, submodule)` when a Module registers a child."""
    return add_hook(GlobalHooks.module_registration, hook)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, parameter)` when a Module registers a parameter."""
    return add_hook(GlobalHooks.parameter_registration, hook)
