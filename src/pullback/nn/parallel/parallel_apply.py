"""Modules of several GPUs, called side by side in threads."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pullback
from pullback.amp.autocast_mode import autocast, get_autocast_dtype, is_autocast_enabled
from pullback.autograd.grad_mode import set_grad_enabled
from pullback.backend.device import usable_device
from pullback.modes.grad_mode import is_grad_enabled
from pullback.tensor.tensor import Tensor
from pullback.utils.data.exception_wrapper import ExceptionWrapper

__all__ = ["get_a_var", "parallel_apply"]


def get_a_var(obj: Any) -> Any:
    """The first tensor in an object; None if there is none."""
    if isinstance(obj, Tensor):
        return obj
    parts = obj.items() if isinstance(obj, dict) else obj if isinstance(obj, (list, tuple)) else ()
    return next((found for found in map(get_a_var, parts) if found is not None), None)


def parallel_apply(
    modules: Sequence[Any], inputs: Sequence[Any], kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Sequence[Any] | None = None,
) -> list[Any]:  # fmt: skip
    """Call each module with its inputs, in a thread of its own, on its GPU or on that of its first tensor.

    What one raises is raised here, with the number of the module, when all have ended.
    """
    count = len(modules)
    named = [{}] * count if kwargs_tup is None else kwargs_tup
    for what, given in (("inputs", inputs), ("arguments by name", named), ("devices", devices)):
        if given is not None and len(given) != count:
            raise AssertionError(f"The number of modules {count} is not equal to the number of {what} {len(given)}")
    if count and not pullback.cuda.is_available():
        raise RuntimeError("Cannot access accelerator device when none is available.")
    places = [None if device is None else usable_device(device) for device in devices or [None] * count]
    streams = [None if place is None else pullback.cuda.current_stream(place) for place in places]
    results: dict[int, Any] = {}
    modes = is_grad_enabled(), is_autocast_enabled("cuda"), get_autocast_dtype("cuda")

    def call(number: int) -> None:
        given, place, stream = inputs[number], places[number], streams[number]
        try:
            if place is None:
                found = get_a_var(given)
                if found is None:
                    raise RuntimeError(f"no device for replica {number}: give `devices`, or a tensor among its inputs")
                place = found.device
                stream = pullback.cuda.current_stream(place)
            arguments = given if isinstance(given, (list, tuple)) else (given,)
            with (
                pullback.cuda.stream(stream),
                set_grad_enabled(modes[0]),
                autocast("cuda", enabled=modes[1], dtype=modes[2]),
            ):
                results[number] = modules[number](*arguments, **named[number])
        except Exception as error:
            results[number] = ExceptionWrapper(error, f"in replica {number} on device {place}")

    if count == 1:
        call(0)
    else:
        threads = [threading.Thread(target=call, args=(number,)) for number in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for number in range(count):
        if isinstance(results[number], ExceptionWrapper):
            results[number].reraise()
    return [results[number] for number in range(count)]
