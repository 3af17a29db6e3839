"""torch.ops: custom operators by namespace and name."""

from __future__ import annotations

from typing import Any

from pullback.library import _operators


class _Namespace:
    """The operators of one namespace."""

    def __init__(self, name: str) -> None:
        self._namespace = name

    def __getattr__(self, name: str) -> Any:
        operator = _operators.get(f"{self._namespace}::{name}")
        if operator is None:
            raise AttributeError(f"'_OpNamespace' '{self._namespace}' object has no attribute '{name}'")
        return operator


class _Ops:
    """The namespaces."""

    def __getattr__(self, name: str) -> _Namespace:
        return _Namespace(name)


ops = _Ops()
