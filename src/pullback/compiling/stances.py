"""What compiled functions do in general: compile, run as they are, or refuse to compile anew."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

STANCES = (
    "default", "force_eager", "eager_on_recompile", "fail_on_recompile", "eager_then_compile", "aot_eager_then_compile",
)  # fmt: skip
_LIKE_DEFAULT = ("default", "eager_then_compile", "aot_eager_then_compile")
"""The first calls run eagerly in any case."""


class Stance:
    """That of the process."""

    other: str | None = None
    """Its name, where it is not to compile."""


class SetStance:
    """A stance that is taken: for good, for the time of a context, or for the calls of a function that it decorates."""

    def __init__(self, stance: str, force_backend: Any) -> None:
        if stance not in STANCES:
            raise RuntimeError(f"invalid torch.compile stance {stance!r}: it is one of {', '.join(STANCES)}")
        if force_backend is not None and stance != "default":
            raise RuntimeError("non-default stance cannot have force_backend set")
        wanted = None if stance in _LIKE_DEFAULT else stance
        self._wanted = "force_eager" if force_backend == "eager" else wanted
        self._former, Stance.other = Stance.other, self._wanted

    def __enter__(self) -> None:
        Stance.other = self._wanted

    def __exit__(self, *error: object) -> None:
        Stance.other = self._former

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        Stance.other = self._former

        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            former, Stance.other = Stance.other, self._wanted
            try:
                return function(*args, **kwargs)
            finally:
                Stance.other = former

        return run
