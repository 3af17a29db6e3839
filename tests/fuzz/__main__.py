"""`python -m tests.fuzz --seed 0 --programs 1000`: run random programs on PyTorch and on pullback and compare.

Needs PyTorch. `--record` writes the programs of the everyday test with what PyTorch did.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

import pullback
from tests.fuzz import RECORDED
from tests.fuzz.accepted import is_accepted, times_accepted
from tests.fuzz.comparison import Difference, first_difference
from tests.fuzz.execution import run
from tests.fuzz.generation import make_program
from tests.fuzz.shrinking import shrink


def looks_always(seed: int) -> bool:
    """Whether tensors are looked at after each statement: in two of three programs."""
    return seed % 3 != 0


def examine(library: Any, statements: Sequence[str], look_always: bool) -> Difference | None:
    """Run a program on both and compare."""
    expected = run(library, statements, look_always)
    return first_difference(statements, expected, run(pullback, statements, look_always), is_accepted)


def record(library: Any, count: int = 40) -> None:
    """Write programs on which both agree, with what PyTorch did, for the everyday test."""
    entries: list[dict[str, Any]] = []
    seed = 1_000_000
    while len(entries) < count:
        seed += 1
        statements = make_program(library, seed)
        if examine(library, statements, True) is None:
            steps = [{"raised": s.raised[:1], "state": s.state} for s in run(library, statements, True)]
            entries.append({"statements": statements, "steps": steps})
    RECORDED.write_text(
        "[\n" + ",\n".join(json.dumps(e, separators=(",", ":")) for e in entries) + "\n]\n", encoding="utf-8"
    )


def main() -> int:
    """Run the programs; print the first difference of each kind when it is found, and the counts at the end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--show", type=int, default=20, help="how many kinds of differences to print")
    parser.add_argument("--record", action="store_true", help="write the programs of the everyday test")
    arguments = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    if arguments.record:
        record(torch)
        return 0
    begun = time.monotonic()
    kinds: Counter[tuple[str, str]] = Counter()
    for number, seed in enumerate(range(arguments.seed, arguments.seed + arguments.programs)):
        if number and number % 1000 == 0:
            print(f"{number} programs, {kinds.total()} differ", file=sys.stderr, flush=True)
        statements, look_always = make_program(torch, seed), looks_always(seed)
        difference = examine(torch, statements, look_always)
        if difference is None:
            continue
        kinds[difference.kind] += 1
        if kinds[difference.kind] == 1 and len(kinds) <= arguments.show:
            shorter, found = shrink(statements, difference, partial(examine, torch, look_always=look_always))
            print(f"\n# Seed {seed}: {found.field}\n" + "\n".join(shorter))
            print(f"#   PyTorch: {found.expected}\n#   pullback: {found.actual}", flush=True)
    print("\nListed differences, by their reason:")
    for reason, count in times_accepted.most_common():
        print(f"{count:6}  {reason}")
    print("\nDifferences that are not listed:")
    for (field, form), count in kinds.most_common(arguments.show):
        print(f"{count:6}  {field}: {form}")
    took = time.monotonic() - begun
    print(f"\n{arguments.programs} programs, {kinds.total()} differ ({len(kinds)} kinds), {took:.0f} s")
    return 1 if kinds else 0


if __name__ == "__main__":
    sys.exit(main())
