"""Logs that PyTorch's `set_logs` switches: of them, backward's."""

from __future__ import annotations

import logging
from typing import Any

from pullback.modes.switches import process

__all__ = ["set_logs"]


def set_logs(
    *, autograd: int | None = None, graph_breaks: bool = False, recompiles: bool = False, **others: Any
) -> None:
    """Log each node that backward runs (`autograd`, a level), what ends programs, and what makes new ones needed.

    The loggers are `pullback.autograd`, `pullback.compile.graph_breaks` and `pullback.compile.recompiles`, at DEBUG level.
    Other logs are accepted.

    >>> import logging
    >>> set_logs(autograd=logging.WARNING)
    """
    logger = logging.getLogger("pullback.autograd")
    level = logging.WARNING if autograd is None else autograd
    logger.setLevel(level)
    process.log_nodes = level <= logging.DEBUG
    if process.log_nodes:
        _show(logger)
    for name, wanted in (("graph_breaks", graph_breaks), ("recompiles", recompiles)):
        of_compile = logging.getLogger(f"pullback.compile.{name}")
        of_compile.setLevel(logging.DEBUG if wanted else logging.WARNING)
        if wanted:
            _show(of_compile)


def _show(logger: logging.Logger) -> None:
    """Write a log to the error stream where the program has set up none."""
    if not logger.handlers and not logging.getLogger().handlers:
        logger.addHandler(logging.StreamHandler())
