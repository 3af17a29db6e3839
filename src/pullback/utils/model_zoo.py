"""The former place of `hub.load_state_dict_from_url`, and the progress bar that programs take from there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

from pullback.pytorch.hub import load_state_dict_from_url as load_url

__all__ = ["load_url", "tqdm"]


class _NoProgress:
    """Stands for a progress bar where the package tqdm is not installed: shows nothing."""

    def __init__(self, iterable: Iterable[Any] = (), *args: Any, **options: Any) -> None:
        self._iterable = iterable
        self.n = 0

    def __iter__(self) -> Iterator[Any]:
        return iter(self._iterable)

    def update(self, n: int) -> None:
        """Count progress."""
        self.n += n

    def close(self) -> None:
        """Do nothing."""

    def set_description(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing."""

    def __enter__(self) -> _NoProgress:
        return self

    def __exit__(self, *exception: object) -> None:
        return None


def _progress_bar() -> Any:
    try:
        return import_module("tqdm.auto").tqdm
    except ImportError:
        return _NoProgress


tqdm = _progress_bar()
