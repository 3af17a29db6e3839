"""What programs ask about the process: dtypes' limits, threads, determinism, memory formats, type checks."""

from __future__ import annotations

import builtins
import math
from typing import Any

from pullback import native
from pullback.backend.blas import describe_blas, set_blas_threads
from pullback.backend.device import CPU, device, usable_device
from pullback.backend.dtype import TYPE_NAME_TO_DTYPE, finfo, iinfo, qint8, qint32, quint8, set_default_dtype
from pullback.backend.naming import display_namespace
from pullback.errors import wrong_type
from pullback.functions import storages
from pullback.functions.storages import TypedStorage, UntypedStorage
from pullback.modes.anomaly_mode import is_anomaly_check_nan_enabled, is_anomaly_enabled, set_anomaly_mode
from pullback.modes.switches import set_switch, switches
from pullback.modes.user_warnings import warn_user
from pullback.overrides import handle_torch_function
from pullback.pytorch.futures import FutureBase as Future
from pullback.pytorch.missing_names import MissingName
from pullback.tensor.foreign_arguments import PLAIN, is_foreign
from pullback.tensor.formatting import set_printoptions
from pullback.tensor.tensor import Tensor

__all__ = [
    "Future",
    "TypedStorage",
    "UntypedStorage",
    "finfo",
    "iinfo",
    "is_anomaly_check_nan_enabled",
    "is_anomaly_enabled",
    "qint8",
    "qint32",
    "quint8",
    "set_printoptions",
]

inf, nan, pi, e, newaxis = math.inf, math.nan, math.pi, math.e, None


class layout:
    """How a tensor's elements are stored; only strided ones exist here."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"{display_namespace()}.{self.name}"


strided = layout("strided")
sparse_coo = layout("sparse_coo")
sparse_csr = layout("sparse_csr")
sparse_csc = layout("sparse_csc")
jagged = layout("jagged")


class memory_format:
    """The order of dimensions in memory."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"{display_namespace()}.{self.name}"


PLAIN.update((device, layout, memory_format))

contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
legacy_contiguous_format = contiguous_format
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")


def _assert(condition: Any, message: str) -> Any:
    """Assert, by a function that tracers can record."""
    if type(condition) is not Tensor and is_foreign(condition):
        return handle_torch_function(_assert, (condition,), condition, message)
    assert condition, message
    return None


def is_tensor(obj: Any, /) -> bool:
    """Whether `obj` is a Tensor.

    >>> is_tensor([1.0])
    False
    """
    return isinstance(obj, Tensor)


def get_num_threads() -> builtins.int:
    """The number of threads that one operation may use: at first OMP_NUM_THREADS or the number of processors."""
    return native.get_num_threads()


def set_num_threads(count: builtins.int, /) -> None:
    """Set the number of threads that one operation, of a compiled kernel or of BLAS, may use."""
    if not isinstance(count, builtins.int):
        raise RuntimeError(f"set_num_threads expects an int, but got {count.__class__.__name__}")
    if count < 1:
        raise RuntimeError("set_num_threads expects a positive integer")
    native.set_num_threads(count)
    if not _Determinism.enabled:
        set_blas_threads(count)


class _Interop:
    count = 1


def get_num_interop_threads() -> builtins.int:
    """The number of threads for independent operations; kept for programs that ask."""
    return _Interop.count


def set_num_interop_threads(count: builtins.int, /) -> None:
    """Accepted and remembered."""
    _Interop.count = count


class _Determinism:
    enabled = False
    warn_only = False


def use_deterministic_algorithms(mode: builtins.bool, *, warn_only: builtins.bool = False) -> None:
    """Promise the same bits for any number of threads.

    Operations here are deterministic, but how BLAS and LAPACK divide complex products and systems among threads shows in
    the last bits: while `mode` is on, they use one. If they cannot be told so (only OpenBLAS can), this raises, or warns
    with `warn_only`, before anything is computed. Compiled functions run the kernels that they recorded one by one, and so
    have the bits of eager.
    """
    if not isinstance(mode, builtins.bool):
        raise wrong_type("_set_deterministic_algorithms", "mode", 1, "bool", mode)
    if not set_blas_threads(1 if mode else get_num_threads()) and mode:
        message = (
            f"matrix products do not have a deterministic implementation here: {describe_blas()} cannot be told to use one "
            "thread. Set the environment variable of that library (MKL_NUM_THREADS=1, VECLIB_MAXIMUM_THREADS=1), and call "
            "use_deterministic_algorithms(True, warn_only=True)."
        )
        if not warn_only:
            raise RuntimeError(message)
        warn_user(message)
    _Determinism.enabled, _Determinism.warn_only = mode, warn_only


def are_deterministic_algorithms_enabled() -> builtins.bool:
    """What `use_deterministic_algorithms` was last told."""
    return _Determinism.enabled


def is_deterministic_algorithms_warn_only_enabled() -> builtins.bool:
    """What `use_deterministic_algorithms` was last told."""
    return _Determinism.warn_only


def get_default_device() -> device:
    """The device on which tensors are made.

    >>> get_default_device()
    device(type='cpu')
    """
    return switches.new_device or CPU


def set_default_device(device: Any) -> None:
    """Set the device on which tensors are made: the CPU, a GPU, or "meta" for tensors without values."""
    place = usable_device(device)
    set_switch("new_device", None if place.type == "cpu" else place)


def set_default_tensor_type(t: Any, /) -> None:
    """Set the dtype that Python floats become, by the name of a tensor type."""
    name = t if isinstance(t, str) else getattr(t, "__name__", "FloatTensor")
    set_default_dtype(TYPE_NAME_TO_DTYPE[name.rpartition(".")[2]])


_DEBUG_MODES = ("default", "warn", "error")


def set_deterministic_debug_mode(debug_mode: builtins.int | str) -> None:
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


def get_deterministic_debug_mode() -> builtins.int:
    """What determinism is set to: 0, 1 (warn) or 2 (error)."""
    if not _Determinism.enabled:
        return 0
    return 1 if _Determinism.warn_only else 2


class _Settings:
    matmul_precision = "highest"
    warns_always = False


def set_float32_matmul_precision(precision: str) -> None:
    """Accepted and remembered: products of float32 matrices are always of the highest precision here."""
    if precision in ("highest", "high", "medium"):
        _Settings.matmul_precision = precision


def get_float32_matmul_precision() -> str:
    """What `set_float32_matmul_precision` was last told."""
    return _Settings.matmul_precision


def set_warn_always(b: builtins.bool, /) -> None:
    """Accepted and remembered."""
    _Settings.warns_always = b


def is_warn_always_enabled() -> builtins.bool:
    """What `set_warn_always` was last told."""
    return _Settings.warns_always


def set_flush_denormal(mode: builtins.bool) -> builtins.bool:
    """False: NumPy cannot flush subnormal numbers to zero. Asking to keep them is granted."""
    return not mode


def init_num_threads() -> None:
    """Accepted; see `set_num_threads`."""


def set_anomaly_enabled(enabled: builtins.bool, check_nan: builtins.bool = True) -> None:
    """Switch anomaly mode; see `autograd.set_detect_anomaly`."""
    set_anomaly_mode(enabled, check_nan)


def cond(pred: Any, true_fn: Any, false_fn: Any, operands: Any = ()) -> Any:
    """Call `true_fn` or `false_fn` with the operands, as `pred` says.

    >>> import pullback
    >>> pullback.cond(pullback.tensor(True), lambda x: x + 1, lambda x: x - 1, (pullback.tensor(2),))
    tensor(3)
    """
    return (true_fn if pred else false_fn)(*operands)


# PyTorch's functions on numbers that a compiler may not know yet; here a number is always known.


def sym_int(a: Any) -> builtins.int:
    """Round towards zero."""
    return math.trunc(a)


def sym_float(a: Any) -> builtins.float:
    """Convert to a floating-point number."""
    return builtins.float(a)


def sym_not(a: Any) -> builtins.bool:
    """Negate."""
    return not a


def sym_max(a: Any, b: Any) -> Any:
    """The larger number, a float if one of them is."""
    larger = max(a, b)
    return builtins.float(larger) if isinstance(a, builtins.float) or isinstance(b, builtins.float) else larger


def sym_min(a: Any, b: Any) -> Any:
    """The smaller number, a float if one of them is."""
    smaller = min(a, b)
    return builtins.float(smaller) if isinstance(a, builtins.float) or isinstance(b, builtins.float) else smaller


def sym_sqrt(a: Any) -> builtins.float:
    """The square root."""
    return math.sqrt(a)


def sym_sum(args: Any) -> Any:
    """The sum of numbers."""
    return sum(args)


def sym_ite(b: builtins.bool, t: Any, f: Any) -> Any:
    """Give `t` if `b`, else `f`."""
    return t if b else f


def _assert_async(input: Any, assert_msg: str = "Expected Tensor with single nonzero value, but got zero") -> None:
    """Raise unless the only element is not zero; here at once, on an accelerator later."""
    if not input:
        raise RuntimeError(assert_msg)


QUANTIZED_DTYPES = frozenset({"qint8", "quint8", "qint32", "quint4x2", "quint2x4"})
"""Dtypes that programs list beside others; tensors of them do not exist here."""


def __getattr__(name: str) -> Any:
    if name in QUANTIZED_DTYPES:
        return MissingName(f"torch.{name}")
    if name in storages.NAMES or name == "Storage":
        return getattr(storages, name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")


def __dir__() -> list[str]:
    """What is public: what `__all__` names, and what is defined here."""
    here = {n for n, v in globals().items() if getattr(v, "__module__", "") == __name__ or isinstance(v, float)}
    return sorted({*__all__, *[n for n in here if not n.startswith("_")], "newaxis"})
