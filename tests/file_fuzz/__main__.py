"""`python -m tests.file_fuzz --seed 0 --files 1000`: load so many changed files of each kind, and count what went wrong."""

from __future__ import annotations

import argparse
import random
import resource
import sys
import time
import zlib
from collections import Counter
from pathlib import Path

from tests.file_fuzz.changing import changed_bytes, changed_pickles_in_a_row, changed_records
from tests.file_fuzz.examination import CodeWatch, examine
from tests.file_fuzz.real_files import Kind, real_files


def changed_file(kind: Kind, name: str, seed: int, number: int) -> bytes:
    """The file of this number: the same for the same seed."""
    rng = random.Random(zlib.crc32(f"{seed} {name} {number}".encode()))
    if kind.is_zip and rng.random() < 0.8:
        return changed_records(kind.content, rng)
    if name == "legacy" and rng.random() < 0.7:
        return changed_pickles_in_a_row(kind.content, rng)
    return changed_bytes(kind.content, rng)


def main() -> int:
    """Change, load, count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--files", type=int, default=1000, help="files of each kind")
    parser.add_argument("--only", default="", help="one kind of files")
    parser.add_argument("--show", type=int, default=20, help="how many wrong files to tell of")
    parser.add_argument("--write", type=Path, help="write the wrong files into this folder")
    arguments = parser.parse_args()
    limit = 4 << 30
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    watch, begun, wrong = CodeWatch(), time.monotonic(), 0
    outcomes: Counter[str] = Counter()
    for name, kind in real_files().items():
        if arguments.only not in name:
            continue
        watch.may_compile = kind.is_compiled
        kind.load(kind.content)  # imports what loading needs
        for number in range(arguments.files):
            content = changed_file(kind, name, arguments.seed, number)
            found = examine(content, kind.load, watch)
            outcomes["wrong" if found else "right"] += 1
            if not found:
                continue
            wrong += 1
            if wrong <= arguments.show:
                print(f"{name} {number}: {found}", flush=True)
            if arguments.write:
                (arguments.write / f"{name}_{number}").write_bytes(content)
    took = time.monotonic() - begun
    print(f"{sum(outcomes.values())} files, {wrong} wrong, seed {arguments.seed}, {took:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
