"""The state of a Module as a flat dict of tensors: writing it, and loading it with all that can go wrong."""

from __future__ import annotations

import itertools
from collections import OrderedDict, namedtuple
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pullback.autograd.grad_mode import no_grad
from pullback.modes.user_warnings import warn_user
from pullback.nn.modules.module_hooks import add_hook
from pullback.nn.parameter import Parameter, is_lazy
from pullback.tensor.tensor import Tensor
from pullback.utils.hooks import RemovableHandle

EXTRA_STATE_KEY = "_extra_state"


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What `load_state_dict` found missing and superfluous."""

    __slots__ = ()

    def __repr__(self) -> str:
        return super().__repr__() if self.missing_keys or self.unexpected_keys else "<All keys matched successfully>"

    __str__ = __repr__


class _LoadHook:
    """A pre-hook of loading that is given the module where asked for."""

    def __init__(self, hook: Callable[..., Any], module: Any = None) -> None:
        self.hook = hook
        self.with_module = module is not None
        self.module = module

    def __call__(self, *args: Any) -> Any:
        return self.hook(self.module, *args) if self.with_module else self.hook(*args)


class _StateBefore:
    """The tensors of a module and its children before they are loaded, for when an exception ends that half-way.

    (Keys and shapes that do not fit are not such an exception: they are told at the end, and what fits is loaded.)
    """

    def __init__(self, module: Any, state_dict: Mapping[str, Any], assign: bool) -> None:
        self._tables = [
            (table, dict(table)) for part in module.modules() for table in (part._parameters, part._buffers)
        ]
        written = [] if assign else [t for name, t in _named_tensors(module, "") if name in state_dict]
        self._values = [(t, t.detach().clone()) for t in written if isinstance(t, Tensor) and not is_lazy(t)]

    def put_back(self) -> None:
        """Let the module hold the same tensors with the same values. The versions of `.data` are not the tensors'."""
        for table, held in self._tables:
            table.clear()
            table.update(held)
        for tensor, values in self._values:
            tensor.data.copy_(values)


def _named_tensors(module: Any, prefix: str) -> Iterator[tuple[str, Any]]:
    yield from ((prefix + name, tensor) for name, tensor in module._persistent_tensors())
    for name, child in module._modules.items():
        if child is not None:
            yield from _named_tensors(child, f"{prefix}{name}.")


class ModuleState:
    """The part of Module that reads and writes state dicts."""

    _version: int | None = 1
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _state_dict_hooks: OrderedDict[int, Callable[..., Any]]
    _state_dict_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _load_state_dict_pre_hooks: OrderedDict[int, Callable[..., Any]]
    _load_state_dict_post_hooks: OrderedDict[int, Callable[..., Any]]

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata)` after `state_dict`; it modifies in place."""
        hook._from_public_api = True  # type: ignore[attr-defined]  # such hooks may not return anything
        return add_hook(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was previously registered with "
                "register_state_dict_post_hook"
            )
        return add_hook(self._state_dict_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, prefix, keep_vars)` before `state_dict`."""
        return add_hook(self._state_dict_pre_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, ...)` before this module loads its part."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        return add_hook(self._load_state_dict_pre_hooks, _LoadHook(hook, self if with_module else None))

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, incompatible_keys)` after this module has loaded."""
        return add_hook(self._load_state_dict_post_hooks, hook)

    def get_extra_state(self) -> Any:
        """Return what else belongs to the state dict; to be defined together with `set_extra_state`."""
        raise RuntimeError(
            "Reached a code path in Module.get_extra_state() that should never be called. Define get_extra_state() in "
            "the class, together with set_extra_state()."
        )

    def set_extra_state(self, state: Any) -> None:
        """Take what `get_extra_state` returned."""
        raise RuntimeError(
            "Reached a code path in Module.set_extra_state() that should never be called. Define set_extra_state() in "
            "the class, together with get_extra_state()."
        )

    def _has_own(self, name: str) -> bool:
        return getattr(type(self), name) is not getattr(ModuleState, name)

    def _persistent_tensors(self) -> Iterator[tuple[str, Any]]:
        buffers = ((k, v) for k, v in self._buffers.items() if k not in self._non_persistent_buffers_set)
        return itertools.chain(self._parameters.items(), buffers)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Write this module's own tensors, without its children's."""
        for name, tensor in self._persistent_tensors():
            if tensor is not None:
                destination[prefix + name] = tensor if keep_vars or is_lazy(tensor) else tensor.detach()
        if self._has_own("get_extra_state"):
            destination[prefix + EXTRA_STATE_KEY] = self.get_extra_state()

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """The tensors of this module and its children by their full names, detached unless `keep_vars`.

        >>> import pullback
        >>> list(pullback.nn.Sequential(pullback.nn.Linear(1, 1)).state_dict())
        ['0.weight', '0.bias']
        """
        if args:
            warn_user(
                "Positional args are being deprecated, use kwargs instead: state_dict(destination=, prefix=, keep_vars=).",
                FutureWarning,
            )
            destination = args[0] if destination is None else destination
            prefix = args[1] if len(args) > 1 and prefix == "" else prefix
            keep_vars = args[2] if len(args) > 2 and keep_vars is False else keep_vars
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            replaced = hook(self, destination, prefix, local_metadata)
            if getattr(hook, "_from_public_api", False):
                if replaced is not None:
                    raise RuntimeError("state_dict post-hook must return None")
            elif replaced is not None:
                destination = replaced
        return destination

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, missing_keys: list[str],
        unexpected_keys: list[str], error_msgs: list[str],
    ) -> None:  # fmt: skip
        """Load this module's own tensors, without its children's."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        assign = local_metadata.get("assign_to_params_buffers", False)
        own = {name: tensor for name, tensor in self._persistent_tensors() if tensor is not None}
        for name, tensor in own.items():
            key = prefix + name
            if key in state_dict:
                self._load_tensor(name, tensor, key, state_dict[key], assign, error_msgs)
            elif strict:
                missing_keys.append(key)
        self._load_extra_state(state_dict, prefix, strict, missing_keys, unexpected_keys)
        if strict:
            known = {*own, EXTRA_STATE_KEY}
            for key in state_dict:
                if key.startswith(prefix) and key != prefix + EXTRA_STATE_KEY:
                    first, *rest = key[len(prefix) :].split(".", 1)
                    if (rest and first not in self._modules) or (not rest and first not in known):
                        unexpected_keys.append(key)

    def _load_extra_state(
        self, state_dict: Any, prefix: str, strict: bool, missing_keys: list[str], unexpected_keys: list[str]
    ) -> None:
        key = prefix + EXTRA_STATE_KEY
        if self._has_own("set_extra_state"):
            if key in state_dict:
                self.set_extra_state(state_dict[key])
            elif strict:
                missing_keys.append(key)
        elif strict and key in state_dict:
            unexpected_keys.append(key)

    def _load_tensor(self, name: str, tensor: Any, key: str, source: Any, assign: bool, error_msgs: list[str]) -> None:
        if not isinstance(source, Tensor):
            error_msgs.append(
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from checkpoint '
                f"but received {type(source)}"
            )
            return
        lazy = is_lazy(tensor)
        if not lazy and tensor.dim() == 0 and source.dim() == 1 and source.shape[0] == 1:
            source = source[0]
        if not lazy and source.shape != tensor.shape:
            error_msgs.append(
                f"size mismatch for {key}: copying a param with shape {source.shape} from checkpoint, the shape in "
                f"current model is {tensor.shape}."
            )
            return
        try:
            if assign:
                self._assign_tensor(name, tensor, source)
            else:
                with no_grad():
                    tensor.copy_(source)
        except Exception as error:
            error_msgs.append(
                f'While copying the parameter named "{key}", whose dimensions in the model are {tensor.size()} and whose '
                f"dimensions in the checkpoint are {source.size()}, an exception occurred : {error.args}."
            )

    def _assign_tensor(self, name: str, tensor: Any, source: Any) -> None:
        if isinstance(tensor, Parameter):
            if not isinstance(source, Parameter):
                source = Parameter(source, requires_grad=tensor.requires_grad)
            else:
                source.requires_grad_(tensor.requires_grad)
        setattr(self, name, source)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Copy tensors from `state_dict` into this module and its children; return the keys that did not match."""
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing_keys: list[str] = []
        unexpected_keys: list[str] = []
        error_msgs: list[str] = []
        metadata = getattr(state_dict, "_metadata", None)
        copied: Any = OrderedDict(state_dict)
        if metadata is not None:
            copied._metadata = metadata

        def load(module: Any, local_state_dict: Any, prefix: str = "") -> None:
            local_metadata = {} if metadata is None else metadata.get(prefix[:-1], {})
            if assign:
                local_metadata["assign_to_params_buffers"] = assign
            module._load_from_state_dict(
                local_state_dict, prefix, local_metadata, True, missing_keys, unexpected_keys, error_msgs
            )
            for name, child in module._modules.items():
                if child is not None:
                    child_prefix = f"{prefix}{name}."
                    load(child, {k: v for k, v in local_state_dict.items() if k.startswith(child_prefix)}, child_prefix)
            incompatible = _IncompatibleKeys(missing_keys, unexpected_keys)
            for hook in module._load_state_dict_post_hooks.values():
                if hook(module, incompatible) is not None:
                    raise AssertionError(
                        "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new "
                        "values: change the lists of incompatible_keys in place."
                    )

        before = _StateBefore(self, copied, assign)
        try:
            load(self, copied)
        except BaseException:
            before.put_back()
            raise
        if strict:
            for what, keys in (("Unexpected", unexpected_keys), ("Missing", missing_keys)):
                if keys:
                    names = ", ".join(f'"{key}"' for key in keys)
                    error_msgs.insert(0, f"{what} key(s) in state_dict: {names}. ")
        if error_msgs:
            raise RuntimeError(
                "Error(s) in loading state_dict for {}:\n\t{}".format(type(self).__name__, "\n\t".join(error_msgs))
            )
        return _IncompatibleKeys(missing_keys, unexpected_keys)
