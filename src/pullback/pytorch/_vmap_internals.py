"""The older name of `vmap`, which libraries still take. PyTorch's `torch._vmap_internals`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.func import vmap

__all__ = ["_vmap", "vmap"]


def _vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, allow_none_pass_through: bool = False
) -> Callable[..., Any]:
    """Like `vmap`; with `allow_none_pass_through`, None among the outputs stays None."""
    if not allow_none_pass_through:
        return vmap(func, in_dims, out_dims)

    def run(*args: Any) -> Any:
        shape: list[Any] = []

        def without_none(*inputs: Any) -> tuple[Any, ...]:
            outputs = func(*inputs)
            several = outputs if isinstance(outputs, (tuple, list)) else (outputs,)
            shape[:] = [isinstance(outputs, (tuple, list)), [output is None for output in several]]
            return tuple(output for output in several if output is not None)

        found = iter(vmap(without_none, in_dims, out_dims)(*args))
        is_several, is_none = shape
        results = tuple(None if absent else next(found) for absent in is_none)
        return results if is_several else results[0]

    return run
