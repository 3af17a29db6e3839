"""Modules called with other parameters than their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pullback.modes.user_warnings import warn_user

__all__ = ["functional_call"]


@contextmanager
def _reparametrize_module(
    module: Any, parameters_and_buffers: dict[str, Any], *, tie_weights: bool = False, strict: bool = False,
    stack_weights: bool = False,
) -> Iterator[None]:  # fmt: skip
    """The module with other tensors in place of its own, inside of the block."""
    from pullback.func.functional_call import _replaced  # lazy: func is beside nn

    with _replaced(module, parameters_and_buffers, tie_weights, strict):
        yield


def functional_call(
    module: Any, parameters_and_buffers: dict[str, Any], args: Any = None, kwargs: dict[str, Any] | None = None, *,
    tie_weights: bool = True, strict: bool = False,
) -> Any:  # fmt: skip
    """Old place of `pullback.func.functional_call`."""
    from pullback.func.functional_call import functional_call as call  # lazy: func is beside nn

    warn_user(
        "`torch.nn.utils.stateless.functional_call` is deprecated: `torch.func.functional_call` takes the same arguments.",
        FutureWarning,
    )
    return call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)
