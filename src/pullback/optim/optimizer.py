"""Optimizer: parameter groups, state, hooks, state dicts. What a step does is in the subclasses and in update.py."""

from __future__ import annotations

import functools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from itertools import chain
from typing import Any, TypeAlias
from weakref import WeakSet

from pullback.autograd.grad_mode import set_grad_enabled
from pullback.modes.switches import switches
from pullback.nn.modules.naming import typename
from pullback.optim.checks import check_new_group
from pullback.tensor.tensor import Tensor
from pullback.utils.hooks import RemovableHandle

__all__ = [
    "Optimizer", "ParamsT", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook", "required",
]  # fmt: skip

Hooks = OrderedDict[int, Callable[..., Any]]
ParamsT: TypeAlias = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]
"""What optimizers take as parameters."""

_global_optimizer_pre_hooks: Hooks = OrderedDict()
_global_optimizer_post_hooks: Hooks = OrderedDict()


class _RequiredParameter:
    """Stands for a default that every group must give."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()


def _register(hooks: Hooks, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` before the step of every optimizer."""
    return _register(_global_optimizer_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` after the step of every optimizer."""
    return _register(_global_optimizer_post_hooks, hook)


def _with_hooks(step: Callable[..., Any]) -> Callable[..., Any]:
    """A `step` that runs the hooks around itself."""

    @functools.wraps(step)
    def hooked_step(self: Any, *args: Any, **kwargs: Any) -> Any:
        for hook in (*_global_optimizer_pre_hooks.values(), *self._optimizer_step_pre_hooks.values()):
            replaced = hook(self, (self, *args), kwargs)
            if replaced is None:
                continue
            if not (isinstance(replaced, tuple) and len(replaced) == 2):
                raise RuntimeError(f"{step} must return None or a tuple of (new_args, new_kwargs), but got {replaced}.")
            (self, *args), kwargs = replaced
        with _named_in_profiles(self, "step"):
            result = step(self, *args, **kwargs)
        if self not in have_stepped:
            have_stepped.add(self)
        for hook in (*self._optimizer_step_post_hooks.values(), *_global_optimizer_post_hooks.values()):
            hook(self, (self, *args), kwargs)
        return result

    hooked_step.hooked = True  # type: ignore[attr-defined]  # a mark, so that a class is wrapped once
    return hooked_step


_UNNAMED = nullcontext()


def _named_in_profiles(optimizer: Optimizer, method: str) -> AbstractContextManager[Any]:
    """A block that a profile shows as PyTorch's does: `Optimizer.step#SGD.step`."""
    if switches.node_observer is None:
        return _UNNAMED
    from pullback.autograd.profiler import record_function  # lazy: few programs profile

    return record_function(f"Optimizer.{method}#{type(optimizer).__name__}.{method}")


have_stepped: WeakSet[Optimizer] = WeakSet()
"""The optimizers whose `step` ran, which `explain_grad` asks. An attribute would be a change that compiled steps guard."""


class Optimizer:
    """The base of all optimizers. `params` are tensors, (name, tensor) pairs, or dicts of groups.

    >>> import pullback
    >>> x = pullback.tensor(1.0, requires_grad=True)
    >>> optimizer = pullback.optim.SGD([x], lr=0.5)
    >>> (x * x).backward()
    >>> optimizer.step()
    >>> x
    tensor(0., requires_grad=True)
    """

    state: Any
    param_groups: list[dict[str, Any]]
    _optimizer_step_pre_hooks: Hooks
    _optimizer_step_post_hooks: Hooks

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self._make_hook_dicts()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                + typename(params)
            )
        self.state = defaultdict(dict)
        self.param_groups = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def _make_hook_dicts(self) -> None:
        self._optimizer_step_pre_hooks = OrderedDict()
        self._optimizer_step_post_hooks = OrderedDict()
        self._optimizer_state_dict_pre_hooks: Hooks = OrderedDict()
        self._optimizer_state_dict_post_hooks: Hooks = OrderedDict()
        self._optimizer_load_state_dict_pre_hooks: Hooks = OrderedDict()
        self._optimizer_load_state_dict_post_hooks: Hooks = OrderedDict()
        self._patch_step_function()

    def _patch_step_function(self) -> None:
        """Put the hooks around the `step` of this class, unless they are."""
        cls = type(self)
        if not getattr(cls.step, "hooked", False):
            cls.step = _with_hooks(cls.step)  # type: ignore[method-assign]  # users define step, hooks surround it

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "_optimizer_step_pre_hooks" not in self.__dict__:
            self._make_hook_dicts()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        text = type(self).__name__ + " ("
        for i, group in enumerate(self.param_groups):
            text += f"\nParameter Group {i}\n"
            text += "".join(f"    {key}: {group[key]}\n" for key in sorted(group.keys()) if key != "params")
        return text + ")"

    # Groups.

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters with options of its own."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, Tensor):
            param_group["params"] = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections: a set has another order in each run, and "
                "state dicts go by the order. Use a list."
            )
        else:
            param_group["params"] = list(params)
        self._separate_names(param_group)
        check_new_group(param_group, self.param_groups, differentiable=bool(self.defaults.get("differentiable")))
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        self.param_groups.append(param_group)

    def _separate_names(self, group: dict[str, Any]) -> None:
        """Take (name, parameter) pairs apart."""
        pairs = [isinstance(param, tuple) for param in group["params"]]
        if not any(pairs):
            return
        if not all(pairs):
            raise ValueError("all optimizer params should be with/without names. Some param names are missing")
        group["param_names"] = [name for name, _ in group["params"]]
        group["params"] = [param for _, param in group["params"]]

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Reset the gradients of all parameters."""
        with _named_in_profiles(self, "zero_grad"):
            for param in chain.from_iterable(group["params"] for group in self.param_groups):
                grad = param._grad
                if grad is None:
                    continue
                if set_to_none:
                    param.grad = None
                    continue
                if grad._requires_grad:
                    grad.detach_() if grad.grad_fn is not None else grad.requires_grad_(False)
                grad.zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters once; `closure` evaluates the loss anew."""
        raise NotImplementedError

    def _cuda_graph_capture_health_check(self) -> None:
        """Do nothing: optimizers written for PyTorch call it."""

    @staticmethod
    def profile_hook_step(func: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate a `step` with the hooks around it; the constructor does it to every class."""
        return func if getattr(func, "hooked", False) else _with_hooks(func)

    # Hooks.

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` before each step; it may return new ones."""
        return _register(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` after each step."""
        return _register(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` before `state_dict`."""
        return _register(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` after `state_dict`; what it returns is returned instead."""
        return _register(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` before `load_state_dict`; what it returns is loaded instead."""
        return _register(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` after `load_state_dict`."""
        return _register(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    # State dicts.

    def state_dict(self) -> dict[str, Any]:
        """The state by parameter number, and the groups with numbers for parameters."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        numbers: dict[int, int] = {}
        packed_groups = []
        for group in self.param_groups:
            packed = {key: value for key, value in group.items() if key != "params"}
            for param in group["params"]:
                numbers.setdefault(id(param), len(numbers))
            packed["params"] = [numbers[id(param)] for param in group["params"]]
            packed_groups.append(packed)
        packed_state = {(numbers[id(k)] if isinstance(k, Tensor) else k): v for k, v in self.state.items()}
        state_dict: dict[str, Any] = {"state": packed_state, "param_groups": packed_groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            replaced = hook(self, state_dict)
            state_dict = state_dict if replaced is None else replaced
        return state_dict

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned, here or in PyTorch; parameters are matched by their order."""
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            replaced = hook(self, state_dict)
            state_dict = state_dict if replaced is None else replaced
        saved_groups = deepcopy(state_dict["param_groups"])
        if len(self.param_groups) != len(saved_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(a["params"]) != len(b["params"]) for a, b in zip(self.param_groups, saved_groups, strict=True)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        saved_numbers = chain.from_iterable(group["params"] for group in saved_groups)
        params = dict(zip(saved_numbers, self._all_params(), strict=True))
        state: Any = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in params:
                state[params[key]] = _cast(params[key], value, None)
            else:
                state[key] = value
        groups = [_merged(group, saved) for group, saved in zip(self.param_groups, saved_groups, strict=True)]
        self.__setstate__({"state": state, "param_groups": groups})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    def _all_params(self) -> Iterable[Any]:
        return chain.from_iterable(group["params"] for group in self.param_groups)


def _cast(param: Any, value: Any, key: str | None) -> Any:
    """A copy of saved state, in the dtype of the parameter; step counts stay as they are."""
    if isinstance(value, Tensor):
        if key != "step" and value._array.dtype is not param._array.dtype and param.dtype.is_floating_point:
            return value.to(dtype=param.dtype, copy=True)
        return value.clone()
    if isinstance(value, dict):
        return {k: _cast(param, v, k) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_cast(param, v, key) for v in value)
    return value


def _merged(group: dict[str, Any], saved: dict[str, Any]) -> dict[str, Any]:
    """The saved options with this optimizer's parameters, and its names where the saved group has none."""
    saved["params"] = group["params"]
    if "param_names" in group and "param_names" not in saved:
        saved["param_names"] = group["param_names"]
    return saved


def _use_grad_for_differentiable(func: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a `step` so that it is recorded only with `differentiable=True`; for optimizers written for PyTorch."""

    @functools.wraps(func)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        with set_grad_enabled(bool(self.defaults.get("differentiable", False))):
            return func(self, *args, **kwargs)

    return step
