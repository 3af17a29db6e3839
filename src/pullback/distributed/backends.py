"""The names of backends, and which of them can be asked for."""

from __future__ import annotations

import os
from typing import Any, ClassVar

from pullback.distributed import mpi

__all__ = [
    "Backend", "get_default_backend_for_device", "is_available", "is_backend_available", "is_gloo_available",
    "is_mpi_available", "is_nccl_available", "is_torchelastic_launched", "is_ucc_available", "is_xccl_available",
]  # fmt: skip


class Backend(str):
    """The name of a backend, in lower case.

    >>> Backend("GLOO") == Backend.GLOO == "gloo"
    True
    """

    __slots__ = ()
    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    MPI = "mpi"
    UCC = "ucc"
    XCCL = "xccl"
    backend_list: ClassVar = ["undefined", "gloo", "nccl", "xccl", "ucc", "mpi", "fake"]
    default_device_backend_map: ClassVar = {"cpu": "gloo", "cuda": "nccl", "xpu": "xccl", "mps": "gloo"}

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError(f"Backend constructor parameter must be string-ish: {name!r}")
        return super().__new__(cls, name.lower())


def get_default_backend_for_device(device: Any) -> str:
    """The backend that tensors on a device are sent by.

    >>> get_default_backend_for_device("cpu")
    'gloo'
    """
    return "nccl" if str(device).startswith("cuda") else "gloo"


def is_available() -> bool:
    """Whether programs can ask for process groups.

    >>> is_available()
    True
    """
    return True


def is_mpi_available() -> bool:
    """Whether mpi4py is installed."""
    return mpi.is_installed()


def is_gloo_available() -> bool:
    """Whether "gloo" is understood: it is, and means MPI."""
    return True


def is_nccl_available() -> bool:
    """Whether CuPy with NCCL is installed."""
    from pullback.distributed import nccl

    return nccl.is_installed()


def is_ucc_available() -> bool:
    """Never: PyTorch's other backends are not here."""
    return False


is_xccl_available = is_ucc_available


def is_backend_available(backend: str) -> bool:
    """Whether a backend of this name can be asked for.

    >>> is_backend_available("gloo"), is_backend_available("smoke signals")
    (True, False)
    """
    known = {"gloo": is_gloo_available, "mpi": is_mpi_available, "nccl": is_nccl_available}
    return backend.lower() in known and known[backend.lower()]()


def is_torchelastic_launched() -> bool:
    """Whether `pullback launch` or `python -m pullback.distributed.run` started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def backend_name(backend: str | None) -> str:
    """The backend for tensors in main memory of what may be "cpu:gloo,cuda:nccl"."""
    given = str(backend or "gloo").lower()
    if ":" in given:
        pairs = dict(pair.split(":", 1) for pair in given.split(","))
        given = pairs.get("cpu") or next(iter(pairs.values()))
    if given not in ("gloo", "mpi", "nccl", "undefined", "fake"):
        raise ValueError(f"Invalid backend: '{given}': pullback knows mpi, nccl, and gloo, which means mpi")
    return "gloo" if given == "undefined" else given
