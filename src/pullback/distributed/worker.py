"""One rank of a program that `pullback launch` started: sets torchrun's variables, then runs the script.

A rank that fails leaves its traceback and its exit status for the launcher, and ends without MPI's farewell, so that the
launcher ends all others.
"""

from __future__ import annotations

import io
import json
import os
import runpy
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from pullback.distributed.environment import Placement, find_master, find_placement
from pullback.distributed.initialization import end_all, show_failure

__all__ = ["main"]

REPORTS = "PULLBACK_LAUNCH_REPORTS"
"""The variable with the folder in which a failing rank leaves its report."""


def main(arguments: Sequence[str]) -> int:
    """Run `[-m] script arguments...` as a rank."""
    placement = find_placement() or Placement(0, 1, 0, 1)
    os.environ.update(placement.variables())
    host, port = find_master()
    os.environ.setdefault("MASTER_ADDR", host)
    os.environ.setdefault("MASTER_PORT", str(port))
    os.environ.setdefault("TORCHELASTIC_RUN_ID", "none")
    note = _note(placement.rank)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # whole lines, so that those of several ranks do not mix
            stream.reconfigure(line_buffering=True, write_through=False)
    try:
        _run(list(arguments))
    except SystemExit as exit:
        status = exit.code if isinstance(exit.code, int) else 0 if exit.code is None else 1
        if not isinstance(exit.code, int | None):
            print(exit.code, file=sys.stderr)
        if status == 0:
            return _leave(note)
        _report(placement.rank, status, "")
        end_all(status)
    except BaseException as error:
        error.__traceback__ = _from_the_script_on(error)
        text = "".join(traceback.format_exception(error))
        # Only the first rank to fail shows its traceback at once; the launcher shows the others after it.
        if _report(placement.rank, 130 if isinstance(error, KeyboardInterrupt) else 1, text):
            show_failure(type(error), error, error.__traceback__)
        end_all(130 if isinstance(error, KeyboardInterrupt) else 1)
    return _leave(note)


def _note(rank: int) -> Path | None:
    """Tell the launcher which rank this process is."""
    folder = os.environ.get(REPORTS, "")
    if not os.path.isdir(folder):
        return None
    note = Path(folder, f"process{os.getpid()}")
    unfinished = note.with_name(f"new{os.getpid()}")
    unfinished.write_text(str(rank))
    return unfinished.rename(note)


def _leave(note: Path | None) -> int:
    """Tell the launcher that this rank ends in order: of one that does not it is known that it was killed."""
    if note is not None and note.exists():
        note.rename(note.with_name(f"ended{os.getpid()}"))
    return 0


def _run(arguments: list[str]) -> None:
    from pullback.pytorch.as_torch import install_as_torch  # lazy: the command line is above this layer

    install_as_torch()
    if arguments[0] == "-m":
        sys.argv[:] = arguments[1:]
        sys.path[0] = os.getcwd()
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        return
    from pullback.__main__ import execute_script  # lazy: the same

    execute_script(arguments[0], arguments[1:])


def _from_the_script_on(error: BaseException) -> TracebackType | None:
    from pullback.__main__ import user_frames  # lazy: the command line is above this layer

    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    return user_frames(trace)


def _report(rank: int, status: int, text: str) -> bool:
    """Leave a report for the launcher; whether this rank was the first to fail."""
    folder = os.environ.get(REPORTS)
    if folder is None or not os.path.isdir(folder):
        return True
    try:
        with open(Path(folder) / "first", "x") as file:
            json.dump({"rank": rank, "status": status}, file)
        is_first = True
    except FileExistsError:
        is_first = False
    (Path(folder) / f"rank{rank}.txt").write_text(text)
    return is_first


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
