"""`python -m tests.faults`: plant a fault at every place of every entry point, and say what each left behind."""

from __future__ import annotations

import argparse
import gc
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

from tests.faults.planting import Interrupt, InterruptPlanter, MemoryPlanter, OutOfMemory, Planter
from tests.faults.scenarios import SCENARIOS, Made
from tests.faults.state import Tensors, probe, switches_now

PLANTERS: dict[str, type[Planter]] = {"interrupt": InterruptPlanter, "memory": MemoryPlanter}


def places_of(make: Callable[[], Made], planter: type[Planter]) -> int:
    """How many places there are, when all that is imported and rendered on first use is there."""
    make()[0]()
    run, _ = make()
    counting = planter()
    counting.run(run)
    return counting.reached


def complete_run(make: Callable[[], Made]) -> dict[str, tuple[Any, ...]]:
    """What the tensors hold after a run without fault."""
    run, tensors = make()
    watched = Tensors(tensors)
    run()
    return watched._now()


def examine(make: Callable[[], Made], planter: Planter, complete: dict[str, tuple[Any, ...]]) -> list[str]:
    """Run with one fault; what is not as it was."""
    expected = probe()
    run, tensors = make()
    watched, before = Tensors(tensors), switches_now()
    try:
        planter.run(run)
    except BaseException as error:
        if not _is_planted(error) and planter.place not in str(error):
            return [f"raised {type(error).__name__}: {error!s:.200}"]
        error.__traceback__ = None
        del error
    gc.collect(0)
    found = [f"{n}: {v!r:.60}, not {before[n]!r:.60}" for n, v in switches_now().items() if v != before[n]]
    found += watched.damage(complete)
    try:
        if probe() != expected:
            found.append("another program computes something else")
        for tensor in tensors.values():
            tensor.grad = None if tensor.is_leaf and not complete else tensor.grad if tensor.is_leaf else None
        run()
    except BaseException as error:
        found.append(f"afterwards {type(error).__name__}: {error!s:.200}")
    return found


def _is_planted(error: BaseException | None) -> bool:
    """Whether this is the fault, or what the package makes of it."""
    while error is not None:
        if isinstance(error, (Interrupt, OutOfMemory, MemoryError)):
            return True
        error = error.__cause__ or error.__context__
    return False


def repair() -> None:
    """Put the thread's switches back, so that one finding is not told again by every place after it."""
    import pullback
    from pullback.engine.passes import running
    from pullback.modes.switches import SWITCH_DEFAULTS, process, set_switch, switches

    for name, value in SWITCH_DEFAULTS.items():
        set_switch(name, value)
    switches.__dict__.update(
        changed_switches=0, finishing_switches=0, transforms=0, current_node=None, dual_ids=(), dual_depths={},
        saves_inference_tensors=False, overrides_disabled=False, devices=(), records=True, plain=True,
    )  # fmt: skip
    switches.absence.count(False, False, False, False)
    running.task, process.passes = None, 0
    pullback.set_autocast_enabled("cpu", False)
    pullback.set_default_device(None)


def sweep(name: str, kind: str, every: int, show: int) -> tuple[int, Counter[str]]:
    """Plant faults at every so manieth place of one entry point; how many, and the findings by place."""
    make, planter = SCENARIOS[name], PLANTERS[kind]
    complete = complete_run(make)
    places, found = places_of(make, planter), Counter[str]()
    for at in range(1, places + 1, every):
        planted = planter(at)
        wrong = examine(make, planted, complete)
        if wrong:
            found[planted.place] += 1
            if found[planted.place] <= show:
                print(f"  {name} {kind} {at}/{places} at {planted.place}:\n      " + "\n      ".join(wrong), flush=True)
            repair()
    return len(range(1, places + 1, every)), found


def main() -> int:
    """Sweep, and count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="entry points with this in their name")
    parser.add_argument("--kinds", nargs="*", default=list(PLANTERS), choices=list(PLANTERS))
    parser.add_argument("--every", type=int, default=1, help="plant at every so manieth place")
    parser.add_argument("--show", type=int, default=1, help="tell so many findings of each place")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    begun, planted, wrong = time.monotonic(), 0, 0
    for name in [name for name in SCENARIOS if arguments.only in name]:
        for kind in arguments.kinds:
            count, found = sweep(name, kind, arguments.every, arguments.show)
            planted, wrong = planted + count, wrong + found.total()
            print(f"{name} {kind}: {count} faults, {found.total()} left something behind", flush=True)
    print(f"{planted} faults, {wrong} left something behind, {time.monotonic() - begun:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
