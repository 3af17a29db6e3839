"""The errors of compile, under PyTorch's names."""

from pullback.errors import BackendCompilerFailed, CompileError, InvalidBackend, Unsupported

__all__ = [
    "BackendCompilerFailed", "FailOnRecompileLimitHit", "InternalTorchDynamoError", "InvalidBackend", "RecompileError",
    "ResetRequired", "TorchDynamoException", "TorchRuntimeError", "UncapturedHigherOrderOpError", "Unsupported", "UserError",
]  # fmt: skip

TorchDynamoException = CompileError


class InternalTorchDynamoError(CompileError):
    """Never raised: a fault of compile itself lets the function run as it is."""


class TorchRuntimeError(CompileError):
    """Never raised: an error of an operation is eager's."""


class ResetRequired(CompileError):
    """Never raised: backends may change at any time."""


class RecompileError(CompileError):
    """Never raised: the stance "fail_on_recompile" raises a RuntimeError, as in PyTorch."""


class FailOnRecompileLimitHit(CompileError):
    """Never raised: beyond the limit a function runs eagerly, and a warning says so."""


class UserError(CompileError):
    """Never raised."""


class UncapturedHigherOrderOpError(Unsupported):
    """Never raised: an operation that takes functions is recorded, or ends a segment."""
