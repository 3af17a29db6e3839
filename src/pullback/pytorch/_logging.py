"""Logs that PyTorch's `set_logs` switches: of them, backward's."""

from __future__ import annotations

import logging
from typing import Any

from pullback.modes.switches import process

__all__ = ["set_logs"]


def set_logs(*, autograd: int | None = None, **others: Any) -> None:
    """Log each node that backward runs, at DEBUG level of the logger `pullback.autograd`; other logs are accepted.

    >>> import logging
    >>> set_logs(autograd=logging.WARNING)
    """
    logger = logging.getLogger("pullback.autograd")
    level = logging.WARNING if autograd is None else autograd
    logger.setLevel(level)
    process.log_nodes = level <= logging.DEBUG
    if process.log_nodes and not logger.handlers and not logging.getLogger().handlers:
        logger.addHandler(logging.StreamHandler())
