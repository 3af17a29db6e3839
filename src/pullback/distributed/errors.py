"""What goes wrong between processes. All are RuntimeErrors, as in PyTorch."""

from __future__ import annotations

__all__ = ["DistBackendError", "DistError", "DistNetworkError", "DistStoreError"]


class DistError(RuntimeError):
    """Something went wrong between processes."""


class DistBackendError(DistError):
    """A collective failed: it timed out, a rank left, or ranks disagree."""


class DistNetworkError(DistError):
    """Another process could not be reached."""


class DistStoreError(DistError):
    """A store did not answer, or not in time."""
