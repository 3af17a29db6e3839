"""Policies that choose the parts of a model which get a wrapper of their own, and the wrapping."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from pullback.nn.modules.activation import MultiheadAttention
from pullback.nn.modules.container import ModuleDict, ModuleList
from pullback.nn.modules.module import Module

__all__ = [
    "CustomPolicy", "ModuleWrapPolicy", "always_wrap_policy", "enable_wrap", "lambda_auto_wrap_policy",
    "size_based_auto_wrap_policy", "transformer_auto_wrap_policy", "wrap",
]  # fmt: skip


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    """Choose every module.

    >>> always_wrap_policy()
    True
    """
    return True


def lambda_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable[[Module], bool]
) -> bool:
    """Choose the modules that a function says True to."""
    return True if recurse else lambda_fn(module)


def transformer_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, transformer_layer_cls: set[type[Module]]
) -> bool:
    """Choose the modules of some classes."""
    return True if recurse else isinstance(module, tuple(transformer_layer_cls))


def size_based_auto_wrap_policy(
    module: Module, recurse: bool, nonwrapped_numel: int, min_num_params: int = int(1e8),
    force_leaf_modules: set[type[Module]] | None = None, exclude_wrap_modules: set[type[Module]] | None = None,
) -> bool:  # fmt: skip
    """Choose modules of which as many parameters as `min_num_params` belong to no chosen part."""
    leaves = _FORCE_LEAF_MODULES if force_leaf_modules is None else force_leaf_modules
    excluded = _EXCLUDE_WRAP_MODULES if exclude_wrap_modules is None else exclude_wrap_modules
    return nonwrapped_numel >= min_num_params and not isinstance(module, tuple(leaves if recurse else excluded))


_FORCE_LEAF_MODULES: set[type[Module]] = {MultiheadAttention}
_EXCLUDE_WRAP_MODULES: set[type[Module]] = {ModuleList, ModuleDict}
size_based_auto_wrap_policy.FORCE_LEAF_MODULES = _FORCE_LEAF_MODULES  # type: ignore[attr-defined]  # PyTorch's names
size_based_auto_wrap_policy.EXCLUDE_WRAP_MODULES = _EXCLUDE_WRAP_MODULES  # type: ignore[attr-defined]


class ModuleWrapPolicy:
    """Choose the modules of some classes.

    >>> import pullback
    >>> ModuleWrapPolicy({pullback.nn.Linear})(pullback.nn.Linear(1, 1), recurse=False)
    True
    """

    def __init__(self, module_classes: Iterable[type[Module]]) -> None:
        self._module_classes = set(module_classes)
        self._module_classes_str = str(self._module_classes)

    def __call__(self, module: Module, recurse: bool, *args: Any, **kwargs: Any) -> bool:
        return transformer_auto_wrap_policy(module, recurse, -1, self._module_classes)

    def __repr__(self) -> str:
        return f"{super().__repr__()}({self._module_classes_str})"


class CustomPolicy:
    """Choose the modules that a function says True to, or for which it gives arguments of the wrapper."""

    def __init__(self, lambda_fn: Callable[[Module], bool | dict[str, Any]]) -> None:
        self._lambda_fn = lambda_fn

    def __call__(self, module: Module, recurse: bool, *args: Any, **kwargs: Any) -> Any:
        if recurse:
            return True
        found = self._lambda_fn(module)
        if not isinstance(found, dict | bool):
            raise ValueError(
                "The lambda_fn passed to CustomPolicy should return False/True or a kwarg dict, but it returned "
                f"{found}"
            )
        return found


class _Wrapping:
    """What `enable_wrap` has set for the block that runs."""

    wrapper: Any = None
    options: dict[str, Any] = {}


@contextmanager
def enable_wrap(*, wrapper_cls: Any, **wrapper_kwargs: Any) -> Iterator[None]:
    """A block in which `wrap(module)` wraps."""
    before = _Wrapping.wrapper, _Wrapping.options
    _Wrapping.wrapper, _Wrapping.options = wrapper_cls, wrapper_kwargs
    try:
        yield
    finally:
        _Wrapping.wrapper, _Wrapping.options = before


def wrap(module: Module, **wrap_overrides: Any) -> Module:
    """Wrap a module inside of `enable_wrap`; outside of it, return it as it is.

    >>> import pullback
    >>> layer = pullback.nn.Linear(1, 1)
    >>> with enable_wrap(wrapper_cls=pullback.nn.Sequential):
    ...     print(type(wrap(layer)).__name__)
    Sequential
    >>> wrap(layer) is layer
    True
    """
    if _Wrapping.wrapper is None:
        return module
    made: Module = _Wrapping.wrapper(module, **{**_Wrapping.options, **wrap_overrides})
    return made


def wrap_parts(
    module: Module, policy: Callable[..., Any], wrapper: Callable[..., Module], *, only_children: bool = False,
    ignored: Iterable[Module] = (), **options: Any,
) -> tuple[Module, int]:  # fmt: skip
    """Wrap the parts of a module that a policy chooses, innermost first; the result, and how many parameters are wrapped."""
    left = set(ignored)
    count = sum(parameter.numel() for parameter in module.parameters())
    if not policy(module=module, recurse=True, nonwrapped_numel=count):
        return module, 0
    wrapped = 0
    for name, child in list(module.named_children()):
        if child not in left:
            made, taken = wrap_parts(child, policy, wrapper, ignored=left, **options)
            setattr(module, name, made)
            wrapped += taken
    if only_children:
        return module, wrapped
    chosen = policy(module=module, recurse=False, nonwrapped_numel=count - wrapped)
    if not chosen:
        return module, wrapped
    return wrapper(module, **{**options, **(chosen if isinstance(chosen, dict) else {})}), count
