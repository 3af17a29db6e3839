"""Module: the base of all layers and models. It owns parameters, buffers and child modules by name.

Hooks and the call are in module_hooks.py, state dicts in module_state.py, conversions in module_conversion.py.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from pullback.nn.modules.module_conversion import ModuleConversion
from pullback.nn.modules.module_hooks import (
    GlobalHooks,
    ModuleHooks,
    _global_backward_hooks,
    _global_backward_pre_hooks,
    _global_buffer_registration_hooks,
    _global_forward_hooks,
    _global_forward_hooks_always_called,
    _global_forward_hooks_with_kwargs,
    _global_forward_pre_hooks,
    _global_module_registration_hooks,
    _global_parameter_registration_hooks,
    register_module_backward_hook,
    register_module_buffer_registration_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from pullback.nn.modules.module_state import EXTRA_STATE_KEY as _EXTRA_STATE_KEY_SUFFIX
from pullback.nn.modules.module_state import ModuleState, _IncompatibleKeys
from pullback.nn.modules.module_tree import ModuleTree
from pullback.nn.modules.naming import typename
from pullback.nn.parameter import Parameter
from pullback.tensor.tensor import Tensor

__all__ = [
    "_EXTRA_STATE_KEY_SUFFIX", "Module", "_IncompatibleKeys", "_global_backward_hooks", "_global_backward_pre_hooks",
    "_global_buffer_registration_hooks", "_global_forward_hooks", "_global_forward_hooks_always_called",
    "_global_forward_hooks_with_kwargs", "_global_forward_pre_hooks", "_global_module_registration_hooks",
    "_global_parameter_registration_hooks", "register_module_backward_hook",
    "register_module_buffer_registration_hook", "register_module_forward_hook", "register_module_forward_pre_hook",
    "register_module_full_backward_hook", "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook", "register_module_parameter_registration_hook",
]  # fmt: skip


def _forward_unimplemented(self: Any, *input: Any) -> None:
    raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')


def _check_name(module: Any, kind: str, name: Any, owned: dict[str, Any]) -> None:
    """Refuse a name under which nothing can be registered."""
    if not isinstance(name, str):
        raise TypeError(f"{kind} name should be a string. Got {typename(name)}")
    if kind == "module" and hasattr(module, name) and name not in owned:
        raise KeyError(f"attribute '{name}' already exists")
    if "." in name:
        raise KeyError(f"module name can't contain \".\", got: {name}" if kind == "module"
                       else f'{kind} name can\'t contain "."')  # fmt: skip
    if name == "":
        raise KeyError(f'{kind} name can\'t be empty string ""')
    if hasattr(module, name) and name not in owned:
        raise KeyError(f"attribute '{name}' already exists")


class Module(ModuleHooks, ModuleState, ModuleConversion, ModuleTree):
    """The base class of layers and models: assign parameters and modules in `__init__`, compute in `forward`.

    >>> import pullback
    >>> class Scale(Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = Parameter(pullback.tensor(2.0))
    ...     def forward(self, x):
    ...         return self.factor * x
    >>> Scale()(pullback.tensor(3.0))
    tensor(6., grad_fn=<MulBackward0>)
    """

    dump_patches: bool = False
    call_super_init: bool = False
    training: bool

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init and (kwargs or args):
            got = f"unexpected keyword argument '{next(iter(kwargs))}'" if kwargs else None
            raise TypeError(
                f"{type(self).__name__}.__init__() got an {got}" if got
                else f"{type(self).__name__}.__init__() takes 1 positional argument but {len(args) + 1} were given"
            )  # fmt: skip
        state = self.__dict__
        state["training"] = True
        state["_parameters"] = {}
        state["_buffers"] = {}
        state["_non_persistent_buffers_set"] = set()
        for name in _HOOK_DICTS:
            state[name] = OrderedDict()
        state["_is_full_backward_hook"] = None
        state["_modules"] = {}
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    forward: Callable[..., Any] = _forward_unimplemented

    # Registration.

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a tensor that is state but not a parameter; `persistent` ones appear in the state dict."""
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        _check_name(self, "buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        for hook in GlobalHooks.buffer_registration.values():
            replaced = hook(self, name, tensor)
            tensor = tensor if replaced is None else replaced
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name: str, param: Any) -> None:
        """Add a parameter, or None for one that is left out."""
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        _check_name(self, "parameter", name, self._parameters)
        if param is None:
            self._parameters[name] = None
            return
        if not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{typename(param)}' object to parameter '{name}' (torch.nn.Parameter or None required)"
            )
        if param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}': it was computed by {param.grad_fn.name()}. Assign a "
                "new Parameter, and compute what depends on it in forward()."
            )
        for hook in GlobalHooks.parameter_registration.values():
            replaced = hook(self, name, param)
            param = param if replaced is None else replaced
        self._parameters[name] = param

    def add_module(self, name: str, module: Any) -> None:
        """Add a child module, or None for one that is left out."""
        if not isinstance(module, Module) and module is not None:
            raise TypeError(f"{typename(module)} is not a Module subclass")
        _check_name(self, "module", name, self._modules)
        self._modules[name] = self._registered_module(name, module)

    def register_module(self, name: str, module: Any) -> None:
        """Add a child module; another name of `add_module`."""
        self.add_module(name, module)

    def _registered_module(self, name: str, module: Any) -> Any:
        for hook in GlobalHooks.module_registration.values():
            replaced = hook(self, name, module)
            module = module if replaced is None else replaced
        return module

    # Attributes.

    def __getattr__(self, name: str) -> Any:
        # Written out: every read of a weight comes here.
        state = self.__dict__
        if "_parameters" in state:
            owned = state["_parameters"]
            if name in owned:
                return owned[name]
        if "_modules" in state:
            owned = state["_modules"]
            if name in owned:
                return owned[name]
        if "_buffers" in state:
            owned = state["_buffers"]
            if name in owned:
                return owned[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        state = self.__dict__
        is_tensor = isinstance(value, Tensor)
        if is_tensor and value._is_param:
            if "_parameters" not in state:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, "__dict__", "_buffers", "_modules")
            self.register_parameter(name, value)
        elif name in state.get("_parameters", ()):
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as parameter '{name}' (torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            if "_modules" not in state:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, "__dict__", "_parameters", "_buffers")
            self._modules[name] = self._registered_module(name, value)
        elif name in state.get("_modules", ()):
            if value is not None:
                raise TypeError(
                    f"cannot assign '{typename(value)}' as child module '{name}' (torch.nn.Module or None expected)"
                )
            self._modules[name] = self._registered_module(name, value)
        elif is_tensor or name in state.get("_buffers", ()):
            self._set_tensor(name, value)
        else:
            super().__setattr__(name, value)

    def _set_tensor(self, name: str, value: Any) -> None:
        buffers = self.__dict__.get("_buffers")
        known = buffers is not None and name in buffers
        is_buffer = getattr(value, "_is_buffer", False)
        if not known and not is_buffer:
            super().__setattr__(name, value)
            return
        if buffers is None:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        if value is not None and not isinstance(value, Tensor):
            raise TypeError(
                f"cannot assign '{typename(value)}' as buffer '{name}' (torch.nn.Buffer, torch.Tensor or None expected)"
            )
        if is_buffer and not known:
            self._forget(name, "__dict__", "_parameters", "_modules")
            self.register_buffer(name, value, bool(getattr(value, "persistent", True)))
            return
        for hook in GlobalHooks.buffer_registration.values():
            replaced = hook(self, name, value)
            value = value if replaced is None else replaced
        buffers[name] = value

    def _forget(self, name: str, *groups: str) -> None:
        """Drop what stood under `name` before something of another kind is put there."""
        for group in groups:
            owned = self.__dict__ if group == "__dict__" else self.__dict__.get(group, {})
            owned.pop(name, None)
        self.__dict__.get("_non_persistent_buffers_set", set()).discard(name)

    def __delattr__(self, name: str) -> None:
        for group in (self._parameters, self._buffers, self._modules):
            if name in group:
                del group[name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self) -> list[str]:
        names = {*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers}
        return sorted(name for name in names if not name[:1].isdigit())

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in _HOOK_DICTS:
            self.__dict__.setdefault(name, OrderedDict())
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.setdefault("_is_full_backward_hook", None)

    def _replicate_for_data_parallel(self) -> Any:
        """A module of the same class and state that holds no tensors and no children: `replicate` puts them in."""
        replica = self.__new__(type(self))
        replica.__dict__ = {**self.__dict__, "_parameters": {}, "_modules": {}, "_buffers": dict(self._buffers)}
        return replica

    # Modes.

    def train(self, mode: bool = True) -> Any:
        """Set the training mode of this module and its children."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Any:
        """Set the evaluation mode: dropout off, batch statistics frozen."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Set whether autograd records operations on the parameters."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Reset the gradients of all parameters."""
        for parameter in self.parameters():
            grad = parameter._grad
            if grad is None:
                continue
            if set_to_none:
                parameter.grad = None
            else:
                parameter.grad = grad.detach().zero_()

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Compile the module's `forward` in place, with the options of `pullback.compile`."""
        from pullback.pytorch.compiler import compile  # lazy: a program may compile nothing

        self.__dict__["forward"] = compile(self.forward, *args, **kwargs)

    # Text.

    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """What the repr shows besides the children."""
        return ""

    def __repr__(self) -> str:
        extra_lines = self.extra_repr().split("\n") if self.extra_repr() else []
        child_lines = [f"({name}): {_addindent(repr(module), 2)}" for name, module in self._modules.items()]
        if not child_lines and len(extra_lines) <= 1:
            return f"{self._get_name()}({''.join(extra_lines)})"
        return f"{self._get_name()}(\n  " + "\n  ".join(extra_lines + child_lines) + "\n)"

    def _repr_html_(self) -> str:
        from pullback.utils.rich_display import module_html

        return module_html(self)


def _addindent(s_: str, numSpaces: int) -> str:
    """Indent all lines but the first."""
    return s_.replace("\n", "\n" + numSpaces * " ")


_HOOK_DICTS = (
    "_backward_pre_hooks", "_backward_hooks", "_forward_hooks", "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called", "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs", "_state_dict_hooks",
    "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks",
)  # fmt: skip
