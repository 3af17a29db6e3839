"""The call of the function that a user handed to a transform: function modes are told of it. See Note [Function modes]."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def call(function: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """Call a user's function from a file that counts as the user's."""
    return function(*args, **kwargs)
