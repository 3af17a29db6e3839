"""Examining one entry: all kinds over its chosen samples, counted, with the first failure of each in words."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import torch

import pullback

from . import checks
from .comparison import Mismatch
from .entries import Entry, Sample, choose
from .exceptions import NOT_COMPARED, NOT_ON_DEVICES, READ_ON_THE_HOST
from .places import DEVICE, sides_on
from .report import KINDS

# How many samples of each dtype a kind takes; the seconds after which an entry draws no more.
COUNTS = {
    "forward": 16,
    "backward": 8,
    "double-backward": 4,
    "forward-AD": 5,
    "in-place": 5,
    "method": 3,
    "out": 3,
    "vmap": 3,
    "stays": 3,
}
SECONDS = 25.0


@dataclass
class Tally:
    """How often one kind was tried and failed, by dtype, with failures in words."""

    tried: int = 0
    failed: int = 0
    dtypes: dict[str, bool] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def add(self, dtype: str, failure: str | None) -> None:
        """Count one trial."""
        self.tried += 1
        self.dtypes[dtype] = self.dtypes.get(dtype, True) and failure is None
        if failure is not None:
            self.failed += 1
            if len(self.failures) < 12:
                self.failures.append(failure)

    def as_data(self) -> dict[str, Any]:
        """Give it as JSON takes it."""
        return vars(self)


def examine(
    entry: Entry, plant: Callable[[Any], Any] | None = None, kinds: Iterable[str] = KINDS, factor: float = 1.0
) -> dict[str, dict[str, Any]]:
    """Run the kinds of check on one entry; `plant` puts a fault into our function first."""
    warnings.simplefilter("ignore")
    kinds = set(kinds)
    tallies: dict[str, Tally] = {kind: Tally() for kind in KINDS}
    ours = _look_up(entry, tallies["exists"])
    if ours is not None:
        ours = plant(ours) if plant else ours
        end = time.monotonic() + SECONDS * max(1.0, factor)
        drawn = _Drawn(entry, round(120 * max(1.0, factor)))
        for kind, check, dtypes, requires_grad in _plan(entry):
            if kind not in kinds or (entry.name, kind) in NOT_COMPARED:
                continue
            for dtype in dtypes:
                for sample in choose(drawn(dtype, requires_grad), max(2, round(COUNTS[kind] * factor))):
                    if time.monotonic() < end:
                        _try(check, entry, ours, sample, _name(dtype), tallies[kind], sample)
        if "errors" in kinds and not DEVICE:
            for given in entry.errors():
                _try(checks.check_error, entry, ours, given, "", tallies["errors"], given.sample)
    return {kind: tally.as_data() for kind, tally in tallies.items() if tally.tried}


class _Drawn:
    """The samples of an entry, drawn once: checks copy what they call with."""

    def __init__(self, entry: Entry, count: int) -> None:
        self._entry = entry
        self._count = count
        self._known: dict[tuple[Any, bool], list[Sample]] = {}

    def __call__(self, dtype: Any, requires_grad: bool) -> list[Sample]:
        key = (dtype, requires_grad)
        if key not in self._known:
            self._known[key] = []
            # Some of PyTorch's larger sets of samples cannot be drawn to their end with gradients.
            with suppress(Exception):
                self._known[key].extend(islice(self._entry.samples(dtype, requires_grad), self._count))
        return self._known[key]


def _name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def _look_up(entry: Entry, tally: Tally) -> Any:
    try:
        ours = entry.ours()
    except AttributeError as error:
        tally.add("", str(error))
        return None
    tally.add("", None)
    return ours


def _plan(entry: Entry) -> list[tuple[str, Any, tuple[Any, ...], bool]]:
    plan: list[tuple[str, Any, tuple[Any, ...], bool]] = [("forward", checks.check_forward, entry.dtypes, False)]
    precise = tuple(dtype for dtype in entry.differentiable if dtype in (torch.float64, torch.complex128))
    if entry.differentiable:
        plan.append(("backward", checks.check_backward, entry.differentiable, True))
    if precise:
        plan.append(("double-backward", checks.check_double_backward, precise, True))
        plan.append(("forward-AD", checks.check_forward_ad, precise, True))
    if entry.in_place is not None:
        plan.append(("in-place", checks.check_in_place, entry.dtypes, False))
        if precise:
            plan.append(("in-place", checks.check_in_place, precise, True))
    if entry.method is not None:
        plan.append(("method", checks.check_method, entry.dtypes, False))
    if entry.dtypes and entry.measure.values:
        plan.append(("vmap", checks.check_vmap, entry.dtypes[:1], False))
    if entry.has_out:
        plan.append(("out", checks.check_out, entry.dtypes, False))
    if DEVICE and _plain(entry) in NOT_ON_DEVICES:
        return []
    if DEVICE and _plain(entry) not in READ_ON_THE_HOST:
        plan.append(("stays", checks.check_stays, precise or entry.dtypes[:1], bool(precise)))
    return plan


def _plain(entry: Entry) -> str:
    """The name without that of a variant."""
    return entry.name.split(" ")[0]


def _try(check: Any, entry: Entry, ours: Any, given: Any, dtype: str, tally: Tally, sample: Any) -> None:
    try:
        (_on_device if DEVICE else _here)(check, entry, ours, given)
    except checks.Inapplicable:
        return
    except Mismatch as difference:
        tally.add(dtype, f"{difference} <- {checks.describe(sample)}")
    except Exception as error:
        words = (str(error).split("\n")[0])[:240]
        tally.add(dtype, f"{type(error).__name__}: {words} <- {checks.describe(sample)}")
    else:
        tally.add(dtype, None)


def _here(check: Any, entry: Entry, ours: Any, given: Any) -> None:
    check(entry, ours, given)


def _on_device(check: Any, entry: Entry, ours: Any, given: Any) -> None:
    """Ours on the device beside PyTorch on the CPU; where they differ, beside PyTorch on the GPU.

    What differs on the CPU as well is the business of the comparison there, with the version of PyTorch that it is for.
    """
    with sides_on(DEVICE, ""):
        try:
            return check(entry, ours, given)
        except checks.Inapplicable:
            raise
        except Exception as error:
            failure = error
    if check is not checks.check_stays:
        if DEVICE == "cuda":
            try:
                with sides_on(DEVICE, DEVICE):
                    return check(entry, ours, given)
            except checks.Inapplicable:
                raise
            except Exception as error:
                failure.__context__ = error
        try:
            with sides_on("", ""):
                check(entry, ours, given)
        except Exception as error:
            raise checks.Inapplicable("differs on the CPU too") from error
    raise failure


def versions() -> str:
    """Name the two packages compared."""
    return f"pullback {pullback.__version__}, torch {torch.__version__}"
