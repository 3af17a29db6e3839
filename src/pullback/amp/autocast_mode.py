"""autocast: inside of the block, matrix products and convolutions run in a lower precision, delicate operations in float32.

Casts are recorded, so parameters get gradients in their own dtype. Entered through the one place where operations can be
intercepted (Note [Interception]).
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping
from typing import Any

from pullback import functions
from pullback.backend.device import device, find_library
from pullback.backend.dtype import bfloat16, dtype, float16, float32
from pullback.facts import fact_of
from pullback.modes.guards import guarded
from pullback.modes.interception import pop_interceptor, push_interceptor
from pullback.modes.switches import set_switch, stack_block, switches
from pullback.modes.user_warnings import warn_user
from pullback.tensor.tensor import Tensor

# The devices that a program may name, with the dtype that autocast uses there unless told otherwise.
_DTYPES = {"cpu": bfloat16, "cuda": float16, "xpu": float16, "mps": float16}


class _Settings(threading.local):
    """What autocast is set to in one thread: the dtypes of devices, and the open blocks, innermost last."""

    dtypes: Mapping[str, dtype] = _DTYPES
    cache_enabled = True
    nesting = 0
    current: tuple[autocast, ...] = ()


_settings = _Settings()


def is_autocast_available(device_type: str) -> bool:
    """Whether autocast exists for a device.

    >>> is_autocast_available("cpu")
    True
    """
    return device(device_type).type in _DTYPES


class autocast(stack_block):
    """Run operations in the precision that suits them.

    >>> import pullback
    >>> x = pullback.ones(2, 2)
    >>> with autocast("cpu", dtype=pullback.float16):
    ...     (x @ x).dtype is pullback.float16
    True
    """

    _stack = "interceptors"
    _around: tuple[Any, ...] = ()
    """What `_settings.current` was around each of its blocks."""

    def __init__(
        self, device_type: str, dtype: dtype | None = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
        self.device = device(device_type).type
        if self.device not in _DTYPES:
            raise RuntimeError(f"User specified an unsupported autocast device_type '{self.device}'")
        self.fast_dtype = get_autocast_dtype(self.device) if dtype is None else dtype
        self._cache_enabled = is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        self._enabled = enabled and self._is_usable()

    def _is_usable(self) -> bool:
        """Whether this machine has the device, and the device the dtype; else a warning says why not."""
        if self.device != "cpu":
            if find_library(self.device) is not None:
                return True
            if self.device == "cuda":
                warn_user("CUDA is not available or torch_xla is imported. Disabling autocast.")
            return False
        if self.fast_dtype in (bfloat16, float16):
            return True
        warn_user(
            "In CPU autocast, but the target dtype is not supported. Disabling autocast.\n"
            "CPU Autocast only supports dtypes of torch.bfloat16, torch.float16 currently."
        )
        return False

    def __enter__(self) -> autocast:
        self._around = (*self._around, _settings.current)
        try:
            self._push(_Caster(self))
            _settings.current = (*_settings.current, self)
        except BaseException:
            self.__exit__()
            raise
        return self

    @guarded
    def __exit__(self, *exception: object) -> None:
        depths, around = self._depths, self._around
        if len(depths) == len(around):  # else it is interrupted before the entry is there
            set_switch("interceptors", switches.interceptors[: depths[-1]])
            self._depths = depths[:-1]
        _settings.current, self._around = around[-1], around[:-1]

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return wrapped


class _Caster:
    """Casts the arguments of operations inside of one block; an inner block hides it."""

    takes_whole = True

    def __init__(self, block: autocast) -> None:
        self.block = block

    def __call__(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not self.block._enabled or _settings.current[-1] is not self.block:
            return NotImplemented
        name = getattr(function, "__name__", "")
        if kwargs.get("out") is not None or name.endswith("_"):
            return function(*args, **kwargs)  # what writes to a given tensor is not cast, here and in its steps
        policy = fact_of(name, "autocast")
        if policy == "stepwise" or (name == "lstm_layer" and args[-2] is not None):  # sequences of several lengths
            return self._step_by_step(name, args)
        wanted = self._wanted(policy, args)
        if wanted is None:
            return NotImplemented
        cast = functools.partial(_cast, wanted=wanted)
        return function(*[cast(a) for a in args], **{k: cast(v) for k, v in kwargs.items()})

    def _wanted(self, policy: str | None, args: tuple[Any, ...]) -> dtype | None:
        if policy == "lower":
            return self.block.fast_dtype
        if policy == "float32":
            return float32
        if policy == "widest":
            tensors = args[0] if isinstance(args[0], (list, tuple)) else args
            return float32 if any(isinstance(t, Tensor) and t.dtype is float32 for t in tensors) else None
        return None

    def _step_by_step(self, name: str, args: tuple[Any, ...]) -> Any:
        """A recurrent layer as its operations, as PyTorch computes it: each of them under this block."""
        end = 3 if name == "lstm_layer" else 2  # of the states, which the sequence precedes
        weights, rest = (*args[end : end + 4], None), args[end + 4 :]
        kind = {"lstm_layer": "lstm", "gru_layer": "gru"}.get(name) or rest[0]
        push_interceptor(self)
        try:
            return functions.unrolled(kind, args[0], args[1:end], weights, *rest[-2:])
        finally:
            pop_interceptor()


def _cast(value: Any, wanted: dtype) -> Any:
    if isinstance(value, Tensor):
        eligible = value.dtype in (float32, float16, bfloat16) and value.dtype is not wanted
        return value.to(wanted) if eligible else value
    if isinstance(value, (list, tuple)):
        return type(value)(_cast(v, wanted) for v in value)
    return value


def custom_fwd(fwd: Any = None, *, device_type: str, cast_inputs: dtype | None = None) -> Any:
    """Decorate a custom Function's forward: its inputs are cast and autocast is off inside, or it runs as the caller."""
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorated(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        ctx._dtype = get_autocast_dtype(device_type)
        ctx._fwd_used_autocast = is_autocast_enabled(device_type)
        if cast_inputs is None or not ctx._fwd_used_autocast:
            return fwd(ctx, *args, **kwargs)
        ctx._fwd_used_autocast = False
        with autocast(device_type, enabled=False):
            return fwd(
                ctx, *[_cast(a, cast_inputs) for a in args], **{k: _cast(v, cast_inputs) for k, v in kwargs.items()}
            )

    return decorated


def custom_bwd(bwd: Any = None, *, device_type: str) -> Any:
    """Decorate a custom Function's backward: it runs under the autocast state of its forward."""
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorated(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, enabled=ctx._fwd_used_autocast, dtype=ctx._dtype):
            return bwd(ctx, *args, **kwargs)

    return decorated


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether autocast is on for a device in this block."""
    return bool(_settings.current) and _settings.current[-1]._enabled and _settings.current[-1].device == device_type


def get_autocast_dtype(device_type: str = "cuda") -> dtype:
    """The dtype that autocast uses on a device."""
    return _settings.current[-1].fast_dtype if is_autocast_enabled(device_type) else _settings.dtypes[device_type]


def is_autocast_cpu_enabled() -> bool:
    """Whether autocast is on for the CPU."""
    return is_autocast_enabled("cpu")


def get_autocast_cpu_dtype() -> dtype:
    """The dtype that autocast uses on the CPU."""
    return get_autocast_dtype("cpu")


def get_autocast_gpu_dtype() -> dtype:
    """The dtype that autocast uses on a GPU."""
    return get_autocast_dtype("cuda")


def set_autocast_gpu_dtype(wanted: dtype) -> None:
    """Set the dtype that autocast uses on a GPU by default."""
    set_autocast_dtype("cuda", wanted)


def set_autocast_cpu_dtype(wanted: dtype) -> None:
    """Set the dtype that autocast uses on the CPU by default."""
    set_autocast_dtype("cpu", wanted)


def set_autocast_dtype(device_type: str, dtype: dtype) -> None:
    """Set the dtype that autocast uses on a device, in the open block too."""
    _settings.dtypes = {**_settings.dtypes, device_type: dtype}
    if _settings.current and _settings.current[-1].device == device_type:
        _settings.current[-1].fast_dtype = dtype


def set_autocast_enabled(device_type: str | bool, enabled: bool | None = None) -> None:
    """Switch autocast in the innermost block, or where none is open, from here on."""
    if enabled is None:
        device_type, enabled = "cuda", bool(device_type)
    is_on = bool(enabled) and device(device_type).type == "cpu"
    if _settings.current:
        _settings.current[-1]._enabled = is_on
    elif is_on:
        autocast("cpu").__enter__()


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """Switch autocast on the CPU."""
    set_autocast_enabled("cpu", enabled)


def autocast_increment_nesting() -> int:
    """Count one more block that a program opens by hand."""
    _settings.nesting += 1
    return _settings.nesting


def autocast_decrement_nesting() -> int:
    """Count one block less."""
    _settings.nesting -= 1
    return _settings.nesting


def is_autocast_cache_enabled() -> bool:
    """Whether casts of parameters may be kept for the block."""
    return _settings.cache_enabled


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Accepted and remembered."""
    _settings.cache_enabled = enabled


def clear_autocast_cache() -> None:
    """Accepted: casts are not kept."""
