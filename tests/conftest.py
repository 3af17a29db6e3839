"""What the head of a report of pytest tells about the kernels under test."""

from __future__ import annotations

from pullback.backend.configuration import describe_kernels
from pullback.native import compiled_kernels


def pytest_report_header() -> str:
    return f"kernels: {describe_kernels(compiled_kernels())}"
