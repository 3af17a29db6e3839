"""On which devices the two sides of a comparison compute: the CPU, unless CONFORMANCE_DEVICE names one for ours."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from typing import Any

import torch

import pullback

DEVICE = os.environ.get("CONFORMANCE_DEVICE", "")
"""The device that ours is examined on; the command line passes it on to worker processes through the environment."""


class Places:
    """Where tensors are made now, "" for the CPU."""

    ours = theirs = ""


def load_device() -> None:
    """Make the stand-ins usable; a GPU is found when it is asked for."""
    if DEVICE in ("fake", "emulated"):
        import_module("tests.devices.fake_library" if DEVICE == "fake" else "tests.devices.emulator")
    Places.ours = DEVICE
    if DEVICE == "cuda":  # rounding to TF32 is not what is compared
        for package in (pullback, torch):
            package.backends.cudnn.allow_tf32 = package.backends.cuda.matmul.allow_tf32 = False


@contextmanager
def sides_on(ours: str, theirs: str) -> Iterator[None]:
    """A block in which the sides compute there."""
    former = Places.ours, Places.theirs
    Places.ours, Places.theirs = ours, theirs
    try:
        yield
    finally:
        Places.ours, Places.theirs = former


def place_of(is_ours: bool) -> str:
    """The device of a side."""
    return Places.ours if is_ours else Places.theirs


def default_device(package: Any) -> Any:
    """A block in which new tensors of a package are made on the device of its side."""
    place = place_of(package is pullback)
    return package.device(place) if place else nullcontext()


class Waited(Exception):
    """A value was read on the host."""


def told_by(run: Callable[..., None], *arguments: Any) -> str | None:
    """What a run says where it reads a value on the host; None if it does not."""
    try:
        run(*arguments)
    except Waited as error:
        return str(error)
    return None


@contextmanager
def refusing_reads() -> Iterator[None]:
    """A block in which nothing of ours may be read on the host."""
    if DEVICE == "cuda":
        cupyx: Any = import_module("cupyx")
        block, refused = cupyx.allow_synchronize(False), cupyx.DeviceSynchronized
    else:
        from tests.devices.fake_library import HostRead

        block, refused = pullback.ones(1, device=DEVICE)._array.library.strict(), HostRead
    try:
        with block:
            yield
    except refused as error:
        raise Waited(_where(error)) from None


def _where(error: BaseException) -> str:
    """The lines of the package that led to an error, innermost first."""
    found, trace = [], error.__traceback__
    while trace is not None:
        if "/src/pullback/" in trace.tb_frame.f_code.co_filename:
            found.append(f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}")
        trace = trace.tb_next
    found = [place for place in found if not place.startswith(("library.py", "device_array.py", "loading.py"))]
    return f"reads values on the host: {' < '.join(found[::-1][:4])}"


@contextmanager
def refusing_waits() -> Iterator[None]:
    """A block in which PyTorch may not wait for the GPU."""
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    except RuntimeError as error:
        raise (Waited(str(error)) if "synchronizing" in str(error) else error) from None
    finally:
        torch.cuda.set_sync_debug_mode("default")
