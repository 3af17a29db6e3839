"""`python -m tests.sanitizing --calls 200`: hand odd arguments to every compiled kernel, on the build that is on the path.

What a kernel answers does not matter here. It must not end the process, must not change arrays that are read-only, and
must answer in a few seconds. Calls are made in child processes; one that ends is told with its report, and a new child
goes on behind the call. `make sanitize` runs this on kernels that notice every read and write outside of memory.
"""

from __future__ import annotations

import argparse
import copy
import faulthandler
import os
import random
import signal
import sys
import warnings
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from tests.sanitizing.odd_values import odd_call
from tests.sanitizing.recording import Recorder, read_calls, run_tests, start_recording, write_calls

LONGEST = 10
"""Seconds of the processor that a call may take (a kernel with sanitizers takes some ten times its time)."""


class TooLong(BaseException):
    """A call that took longer than it may. (No Exception: kernels may catch those.)"""


def _stop(*_: Any) -> None:
    raise TooLong


def examine(kernel: Any, args: tuple[Any, ...], options: dict[str, Any]) -> str | None:
    """Make one call; what is wrong with it."""
    arrays = [value for value in (*args, *options.values()) if isinstance(value, np.ndarray)]
    fixed = [
        array for array in arrays if not array.flags.writeable and array.base is None and not array.dtype.hasobject
    ]
    before = [array.tobytes() for array in fixed]
    signal.setitimer(signal.ITIMER_PROF, LONGEST)
    signal.setitimer(signal.ITIMER_VIRTUAL, 2 * LONGEST)  # ends the process: a loop in C cannot be interrupted
    try:
        kernel(*args, **options)
    except TooLong:
        return f"took longer than {LONGEST} seconds"
    except SystemError as error:
        return f"SystemError: {error}"
    except Exception:
        pass
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    if [array.tobytes() for array in fixed] != before:
        return "changed an array that is read-only"
    return None


def calls_of(recorder: Recorder, names: list[str], count: int, seed: int) -> Any:
    """The odd calls, in an order that depends on the seed alone: the name of the kernel, its number, and how to make it."""
    for name in names:
        kept = list(recorder.calls[name].values())
        for number in range(count):
            rng = random.Random(zlib.crc32(f"{seed} {name} {number}".encode()))
            yield name, number, rng, kept[rng.randrange(len(kept))]


def run_child(recorder: Recorder, names: list[str], arguments: argparse.Namespace, begin: int, note: Path) -> None:
    """Make the calls from the given one on; `note` says which one is being made."""
    signal.signal(signal.SIGPROF, _stop)
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    with open(note, "wb", buffering=0) as noted:
        for position, (name, number, rng, call) in enumerate(
            calls_of(recorder, names, arguments.calls, arguments.seed)
        ):
            if position < begin:
                continue
            noted.seek(0)
            noted.write(f"{position:<12}{name} {number}\n".encode())
            noted.truncate()
            given = copy.deepcopy(call)
            args, options = odd_call(given[0], given[1], rng)
            faulthandler.dump_traceback_later(60 * LONGEST, exit=True)  # of a thread that waits for ever
            wrong = examine(recorder.kernels[name], args, options)
            faulthandler.cancel_dump_traceback_later()
            if wrong:
                print(f"WRONG {name} {number}: {wrong}\n  {_shown(args)} {_shown(options)}", flush=True)
                raise SystemExit(3)
        noted.seek(0)
        noted.write(b"done\n")
        noted.truncate()


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"<{value.dtype.str} {value.shape} {value.strides}>"
    if isinstance(value, (list, tuple)):
        return f"({', '.join(_shown(v) for v in value)})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{n}: {_shown(v)}' for n, v in value.items())}}}"
    return repr(value)[:60]


def main() -> int:
    """Record calls, make them odd, and count what went wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--calls", type=int, default=200, help="odd calls of each kernel")
    parser.add_argument("--only", default="", help="kernels with this in their name")
    parser.add_argument("--tests", nargs="*", default=["tests/native"], help="whose calls are made odd")
    parser.add_argument("--every", type=int, default=1, help="run every so manieth test alone")
    parser.add_argument("--keep", type=Path, help="keep the tests' calls in this file; with one no tests are run")
    arguments = parser.parse_args()
    recorder = start_recording()
    if arguments.keep and arguments.keep.exists():
        read_calls(recorder, arguments.keep)
    elif run_tests(arguments.tests, arguments.every):
        print("the kernels' own tests fail")
        return 1
    elif arguments.keep:
        write_calls(recorder, arguments.keep)
    names = sorted(name for name, kept in recorder.calls.items() if kept and name in recorder.kernels)
    missing = sorted(set(recorder.extension.names()) - set(names))
    names = [name for name in names if arguments.only in name]
    note = Path(os.environ.get("TMPDIR", "/tmp")) / f"odd_call_{os.getpid()}"
    begin, failures = 0, 0
    while True:
        sys.stdout.flush()
        child = os.fork()
        if not child:
            run_child(recorder, names, arguments, begin, note)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        noted = note.read_text(encoding="utf-8")
        if noted.startswith("done"):
            break
        failures += 1
        if not noted:
            return 1
        ended = os.waitstatus_to_exitcode(status)
        cause = f"took longer than {2 * LONGEST} seconds" if ended == -signal.SIGVTALRM else f"ended with {ended}"
        print(f"FAILED {noted[12:].strip()}: {cause}", flush=True)
        begin = int(noted[:12]) + 1
    note.unlink()
    print(f"{len(names)} kernels, {len(names) * arguments.calls} calls, {failures} failures, seed {arguments.seed}")
    if missing:
        print(f"never called by the tests: {' '.join(missing)}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
