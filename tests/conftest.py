"""What holds for every run of the tests: an interrupt that arrives, and what the head of a report tells."""

from __future__ import annotations

import signal

import pytest

from pullback.backend.configuration import describe_kernels
from pullback.native import compiled_kernels


def pytest_configure(config: pytest.Config) -> None:
    """Let SIGINT interrupt: a background job of a shell is started with it ignored, and so would be all its children."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header() -> str:
    return f"kernels: {describe_kernels(compiled_kernels())}"
