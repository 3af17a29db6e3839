"""Switches of PyTorch's backends: they can be read and set, and most change nothing here."""

from __future__ import annotations

from typing import Any

from pullback.backend.precision import Switches
from pullback.backend.processor import cpu_capability
from pullback.modes.user_warnings import warn_user

__all__ = ["cpu", "cuda", "cudnn", "mha", "mkl", "mkldnn", "mps", "openmp", "opt_einsum"]


class _Backend:
    """The switches of one backend."""

    def __init__(self, available: bool, **switches: Any) -> None:
        self._available = available
        self.__dict__.update(switches)

    def is_available(self) -> bool:
        """Whether this build has the backend."""
        return self._available

    def is_built(self) -> bool:
        """Whether this build has the backend."""
        return self._available

    def flags(self, **switches: Any) -> _Flags:
        """Set switches for a block."""
        return _Flags(self, switches)

    def version(self) -> None:
        """The backend's version: none."""


class _Attention(_Backend):
    """The switch for what PyTorch's encoders compute otherwise in inference."""

    @staticmethod
    def get_fastpath_enabled() -> bool:
        """Whether padding comes out as zeros there."""
        from pullback.nn.modules.transformer import fast_path  # lazy: few programs ask

        return fast_path.enabled

    @staticmethod
    def set_fastpath_enabled(value: bool) -> None:
        """Say whether padding comes out as zeros there."""
        from pullback.nn.modules.transformer import fast_path  # lazy: few programs ask

        fast_path.enabled = value


class _Flags:
    """Switches that are put back at the end of a block."""

    def __init__(self, backend: _Backend, switches: dict[str, Any]) -> None:
        self._backend, self._switches = backend, switches

    def __enter__(self) -> None:
        self._former = dict(vars(self._backend))
        vars(self._backend).update(self._switches)

    def __exit__(self, *exception: object) -> None:
        vars(self._backend).clear()
        vars(self._backend).update(self._former)


class _CudaBackend(_Backend):
    """CUDA's switches, with those of its matrix products."""

    def sdp_kernel(self, **switches: Any) -> _Flags:
        """Accepted: attention has one implementation here."""
        warn_user("`torch.backends.cuda.sdp_kernel()` is deprecated. In the future, this context manager will be removed: "
                  "use torch.nn.attention.sdpa_kernel() instead.", FutureWarning)  # fmt: skip
        return _Flags(self, {})

    def enable_flash_sdp(self, enabled: bool) -> None:
        """Accepted: attention has one implementation here."""

    enable_mem_efficient_sdp = enable_math_sdp = enable_cudnn_sdp = enable_flash_sdp

    def flash_sdp_enabled(self) -> bool:
        """Whether that implementation of attention is used: it does not exist here."""
        return False

    mem_efficient_sdp_enabled = flash_sdp_enabled


class _CpuBackend(_Backend):
    """The processor."""

    def get_cpu_capability(self) -> str:
        """The widest vectors of the processor: "AVX512", "AVX2" or "DEFAULT"."""
        return cpu_capability()


cudnn = _Backend(False, enabled=True, benchmark=False, deterministic=False, allow_tf32=True, benchmark_limit=10)
cuda = _CudaBackend(False, matmul=_Backend(False, allow_tf32=False, allow_fp16_reduced_precision_reduction=True))
Switches.convolutions, Switches.matmul = cudnn, vars(cuda)["matmul"]
mps = _Backend(False)
mkl = _Backend(False)
mkldnn = _Backend(False, enabled=True, deterministic=False)
openmp = _Backend(False)
opt_einsum = _Backend(False, enabled=False, strategy=None)
mha = _Attention(True)
cpu = _CpuBackend(True)


def flags_frozen() -> bool:
    """Whether switches may only be set for a block: never."""
    return False


def disable_global_flags() -> None:
    """Accepted: switches change nothing here, wherever they are set."""


def __allow_nonbracketed_mutation() -> _Flags:
    """A block in which switches may be set, as they may everywhere."""
    return _Flags(cpu, {})
