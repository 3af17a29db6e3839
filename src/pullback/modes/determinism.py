"""Settings of the whole process: how many threads compute, and whether bits, precision and warnings may depend on it."""

from __future__ import annotations

from pullback import native
from pullback.backend.blas import describe_blas, set_blas_threads
from pullback.backend.unpromised_bits import UnpromisedBits
from pullback.errors import wrong_type
from pullback.modes.user_warnings import warn_user


def get_num_threads() -> int:
    """The number of threads that one operation may use: at first OMP_NUM_THREADS or the number of processors."""
    return native.get_num_threads()


def set_num_threads(count: int, /) -> None:
    """Set the number of threads that one operation, of a compiled kernel or of BLAS, may use."""
    if not isinstance(count, int):
        raise RuntimeError(f"set_num_threads expects an int, but got {count.__class__.__name__}")
    if count < 1:
        raise RuntimeError("set_num_threads expects a positive integer")
    native.set_num_threads(count)
    if not _Determinism.enabled:
        set_blas_threads(count)


class _Interop:
    count = 1


def get_num_interop_threads() -> int:
    """The number of threads for independent operations; kept for programs that ask."""
    return _Interop.count


def set_num_interop_threads(count: int, /) -> None:
    """Accepted and remembered."""
    _Interop.count = count


class _Determinism:
    enabled = False
    warn_only = False


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Promise the same bits for any number of threads.

    Operations here are deterministic, but how BLAS and LAPACK divide some work among threads (complex products, a float64
    matrix times its own transpose, systems and factorizations) shows in the last bits: while `mode` is on, they use one. If
    they cannot be told so (only OpenBLAS can), this raises, or warns with `warn_only`, before anything is computed. Compiled
    functions run the kernels that they recorded one by one, and so have the bits of eager; where one cannot, it raises, or
    warns, before it runs.
    """
    if not isinstance(mode, bool):
        raise wrong_type("_set_deterministic_algorithms", "mode", 1, "bool", mode)
    if not set_blas_threads(1 if mode else get_num_threads()) and mode:
        _alert(
            f"matrix products do not have a deterministic implementation here: {describe_blas()} cannot be told to use one "
            "thread. Set the environment variable of that library (MKL_NUM_THREADS=1, VECLIB_MAXIMUM_THREADS=1), and call "
            "use_deterministic_algorithms(True, warn_only=True).",
            warn_only,
        )
    _Determinism.enabled, _Determinism.warn_only = mode, warn_only
    UnpromisedBits.is_kept = not mode


def _alert(message: str, warn_only: bool) -> None:
    if not warn_only:
        raise RuntimeError(message)
    warn_user(message)


def alert_not_deterministic(what: str, remedy: str) -> None:
    """Raise or warn, where deterministic algorithms are asked for, before `what` runs, which cannot promise its bits."""
    if _Determinism.enabled:
        _alert(
            f"{what} does not have a deterministic implementation, but you set "
            f"'torch.use_deterministic_algorithms(True)'. {remedy}",
            _Determinism.warn_only,
        )


def are_deterministic_algorithms_enabled() -> bool:
    """What `use_deterministic_algorithms` was last told."""
    return _Determinism.enabled


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """What `use_deterministic_algorithms` was last told."""
    return _Determinism.warn_only


_DEBUG_MODES = ("default", "warn", "error")


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Set determinism by one number or word: 0 `default`, 1 `warn`, 2 `error`."""
    if isinstance(debug_mode, str):
        if debug_mode not in _DEBUG_MODES:
            raise RuntimeError(
                f"invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got {debug_mode}"
            )
        debug_mode = _DEBUG_MODES.index(debug_mode)
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}")
    use_deterministic_algorithms(debug_mode > 0, warn_only=debug_mode == 1)


def get_deterministic_debug_mode() -> int:
    """What determinism is set to: 0, 1 (warn) or 2 (error)."""
    if not _Determinism.enabled:
        return 0
    return 1 if _Determinism.warn_only else 2


class _Settings:
    matmul_precision = "highest"


def set_float32_matmul_precision(precision: str) -> None:
    """Accepted and remembered: products of float32 matrices are always of the highest precision here."""
    if precision in ("highest", "high", "medium"):
        _Settings.matmul_precision = precision


def get_float32_matmul_precision() -> str:
    """What `set_float32_matmul_precision` was last told."""
    return _Settings.matmul_precision


def set_flush_denormal(mode: bool) -> bool:
    """False: NumPy cannot flush subnormal numbers to zero. Asking to keep them is granted."""
    return not mode


def init_num_threads() -> None:
    """Accepted; see `set_num_threads`."""
