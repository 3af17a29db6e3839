"""`pullback view script.py`: run a program until a backward pass has ended, and show the page about it."""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from pullback.utils.graph_page import Page, watch_backward

__all__ = ["view"]

USAGE = """\
usage: pullback view [options] script.py [args...]

Run a program, with 'torch' meaning pullback, until its first backward pass has ended. Then write a page about the pass,
open it where there is a browser, and end the program.

options:
  --pass N         show the N-th backward pass
  --output FILE    where to write the page (default: the script's name with .graph.html)
  --no-open        only write the page
  --keep-running   let the program go on after the pass
"""


class _PassEnded(BaseException):
    """Ends the program: no `except Exception` of its own holds it up."""


def view(arguments: Sequence[str], execute: Callable[[str, Sequence[str]], None]) -> int:
    """Run the command; `execute` runs a script with its arguments. Return the exit status."""
    options = _Options()
    rest = options.read(list(arguments))
    if rest is None:
        print(USAGE, end="", file=sys.stderr)
        return 2
    if not rest:
        print(USAGE, end="")
        return 0
    script = rest[0]
    output = Path(options.output or Path(script).stem + ".graph.html")
    ended = threading.Event()

    def show(page: Page) -> None:
        page.save(output)
        print(f"pullback: the page is {output}", file=sys.stderr)
        if options.opens and _has_screen():
            page.open(output)
        if not options.goes_on and not page.data["notes"]:  # of a pass that failed, Python shows the error
            ended.set()
            if threading.current_thread() is threading.main_thread():
                raise _PassEnded
            _interrupt_main_thread()
            raise SystemExit  # ends this thread without a word

    with watch_backward(number=options.number, title=Path(script).name, then=show, every_thread=True) as watch:
        try:
            execute(script, rest[1:])
        except (_PassEnded, KeyboardInterrupt, SystemExit):
            if not ended.is_set():
                raise
            return 0
    if watch.page is None:
        seen = f"only {watch.passes} ran" if watch.passes else "none ran"
        print(f"pullback: there is no backward pass number {options.number} to show: {seen}", file=sys.stderr)
        return 1
    return 0


def _interrupt_main_thread() -> None:
    """Raise KeyboardInterrupt there, also where it sleeps or waits."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        _thread.interrupt_main()


class _Options:
    """What the command line asks for."""

    def __init__(self) -> None:
        self.number, self.output, self.opens, self.goes_on = 1, "", True, False

    def read(self, arguments: list[str]) -> list[str] | None:
        """Take the options; return the script and its arguments, [] for help, None if something is wrong."""
        while arguments and arguments[0].startswith("-"):
            option = arguments.pop(0)
            if option in ("--help", "-h"):
                return []
            if option in ("--no-open", "--keep-running"):
                self.opens = self.opens and option != "--no-open"
                self.goes_on = self.goes_on or option == "--keep-running"
            elif option == "--output" and arguments:
                self.output = arguments.pop(0)
            elif option == "--pass" and arguments and arguments[0].isdigit() and int(arguments[0]) > 0:
                self.number = int(arguments.pop(0))
            else:
                return None
        return arguments or None


def _has_screen() -> bool:
    """Whether a browser could show something here: not so in a remote shell without a display."""
    return sys.platform in ("win32", "darwin") or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
