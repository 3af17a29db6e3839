"""The settings of PyTorch's compiler: programs set and read them by name, and most have no effect here.

`settings.json`, which `python -m tools.compiler_settings` writes, knows their names and defaults, so that a name
which PyTorch refuses is refused.
"""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

_ALIASES = {
    "cache_size_limit": "recompile_limit",
    "accumulated_cache_size_limit": "accumulated_recompile_limit",
}


class Settings(ModuleType):
    """A module whose attributes are settings; one that PyTorch does not have is refused."""

    _own: dict[str, Any]
    _watchers: dict[str, Callable[[Any], None]]

    def __getattr__(self, name: str) -> Any:
        found = read(self, name)
        if found is _NO_SETTING:
            raise AttributeError(f"{_told_name(self)}.{name} does not exist")
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("__") or "_own" not in self.__dict__:
            super().__setattr__(name, value)
        else:
            write(self, name, value)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *[name for name in self._own if "." not in name]]

    def get_config_copy(self) -> dict[str, Any]:
        """All settings, those of groups with dots."""
        return dict(self._own)

    shallow_copy_dict = to_dict = get_config_copy

    def load_config(self, config: dict[str, Any]) -> None:
        """Set what a dictionary says."""
        for name, value in config.items():
            write(self, name, value)

    @contextlib.contextmanager
    def patch(self, arg1: Any = None, arg2: Any = None, **kwargs: Any) -> Iterator[None]:
        """Other settings for a block, or a decorated function: a name and a value, a dictionary, or keywords."""
        changes = {arg1: arg2} if isinstance(arg1, str) else {**(arg1 or {}), **kwargs}
        former = {name: read(self, name) for name in changes}
        try:
            self.load_config(changes)
            yield
        finally:
            self.load_config({name: value for name, value in former.items() if value is not _NO_SETTING})


class _Group:
    """Settings with a dot in their names: `config.triton.cudagraphs`."""

    def __init__(self, settings: Settings, prefix: str) -> None:
        self.__dict__.update(_settings=settings, _prefix=prefix)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._settings, f"{self._prefix}.{name}")

    def __setattr__(self, name: str, value: Any) -> None:
        write(self._settings, f"{self._prefix}.{name}", value)


class _NoSetting:
    """Stands for a setting that does not exist."""


_NO_SETTING = _NoSetting()


def read(settings: Settings, name: str) -> Any:
    """A setting, or a group of them."""
    name = _ALIASES.get(name, name)
    own = settings.__dict__.get("_own", {})
    if name in own:
        return own[name]
    return _Group(settings, name) if any(key.startswith(f"{name}.") for key in own) else _NO_SETTING


def write(settings: Settings, name: str, value: Any) -> None:
    """Change a setting."""
    name = _ALIASES.get(name, name)
    if name not in settings._own:
        raise AttributeError(f"{_told_name(settings)}.{name} does not exist")
    settings._own[name] = value
    if name in settings._watchers:
        settings._watchers[name](value)


def _told_name(settings: Settings) -> str:
    return settings.__name__.replace("pullback.pytorch", "torch").replace("pullback", "torch", 1)


def settings_of(part: str) -> dict[str, Any]:
    """The names of the settings of a part, with their defaults."""
    known: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))[part]
    return known


def make_settings(module: str, part: str, **watchers: Callable[[Any], None]) -> None:
    """Turn a module that is being imported into the settings of a part; `watchers` are told of changes."""
    made: Any = sys.modules[module]
    made._own, made._watchers = settings_of(part), watchers
    made.__class__ = Settings
