"""OptimizedModule: what `compile` makes of a module."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from pullback.nn.modules.module import Module

__all__ = ["OptimizedModule"]


class OptimizedModule(Module):
    """A module whose call is compiled, or wrapped otherwise. It holds the module, `_orig_mod`, and answers for it.

    >>> import pullback
    >>> layer = pullback.compile(pullback.nn.Linear(2, 1))
    >>> type(layer).__name__, layer.in_features, list(layer.state_dict())
    ('OptimizedModule', 2, ['_orig_mod.weight', '_orig_mod.bias'])
    """

    def __init__(
        self, mod: Module, wrap: Callable[[Any], Any] | Literal["compile"] | None = "compile", **options: Any
    ) -> None:
        super().__init__()
        self._orig_mod = mod
        self.__dict__["_wrap"] = wrap
        self.__dict__["_options"] = options
        self.__dict__["training"] = mod.training
        self._compile()

    def _compile(self) -> None:
        from pullback.compiling.compiled_function import CompiledFunction  # lazy: above this layer

        call, wrap = self._orig_mod.__call__, self.__dict__["_wrap"]
        made = call if wrap is None else wrap(call) if callable(wrap) else CompiledFunction(call, **self._options)
        self.__dict__["forward"] = made

    def __getattr__(self, name: str) -> Any:
        if name == "_orig_mod":
            return super().__getattr__(name)
        return getattr(self._orig_mod, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_orig_mod" or "_orig_mod" not in self.__dict__.get("_modules", {}):
            super().__setattr__(name, value)
        elif name == "training":
            self.__dict__["training"] = value
        else:
            setattr(self._orig_mod, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._orig_mod, name)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "forward"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._compile()

    def __len__(self) -> int:
        return len(self._orig_mod)

    def __getitem__(self, index: Any) -> Any:
        return self._orig_mod[index]  # type: ignore[index]  # a container's

    def __iter__(self) -> Any:
        return iter(self._orig_mod)
