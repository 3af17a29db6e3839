"""Progress of long work, for who looks: a line in the terminal, a bar in a notebook, nothing in logs and tests.

With tqdm where it is installed. Nothing is shown of what takes less than a second, and inside of shown work.
`PULLBACK_PROGRESS=0` in the environment turns it off, 1 on also where nobody seems to look.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

__all__ = ["Line", "is_watched", "track", "waiting"]

Item = TypeVar("Item")
DELAY = 1.0


class _Shown(threading.local):
    now = False


_shown = _Shown()


def track(items: Iterable[Item], total: int, words: str) -> Iterable[Item]:
    """Iterate over `items`, of which there are `total`, and show how far that is.

    >>> [number**2 for number in track(range(3), 3, "squares")]
    [0, 1, 4]
    """
    if total < 2 or _shown.now or not is_watched():
        return items
    return _tracked(items, total, words)


@contextmanager
def waiting(words: str) -> Iterator[None]:
    """Show that work goes on whose length nobody knows, and for how long.

    >>> with waiting("thinking"):
    ...     answer = 6 * 7
    """
    if _shown.now or not is_watched():
        yield
        return
    done = threading.Event()
    clock = threading.Thread(target=_show_time, args=(words, done), daemon=True)
    _shown.now = True
    clock.start()
    try:
        yield
    finally:
        _shown.now = False
        done.set()
        clock.join()


def _show_time(words: str, done: threading.Event) -> None:
    if done.wait(DELAY):
        return
    bar = _bar(0, words, 0)
    bar.start_t -= max(DELAY, 0.0)
    while not done.wait(0.2):
        bar.update(0)
    bar.close()


def is_watched() -> bool:
    """Whether somebody looks: standard error is a terminal, or a notebook runs the program."""
    wish = os.environ.get("PULLBACK_PROGRESS", "")
    if wish in ("0", "1"):
        return wish == "1"
    return _in_notebook() or (sys.stderr is not None and sys.stderr.isatty())


def _in_notebook() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and hasattr(shell, "kernel")


def _tracked(items: Iterable[Item], total: int, words: str) -> Iterator[Item]:
    bar: Any = None
    started = time.monotonic()
    _shown.now = True
    try:
        for done, item in enumerate(items):
            if bar is None and time.monotonic() - started > DELAY:
                bar = _bar(total, words, done)
            yield item
            if bar is not None:
                bar.update(1)
    finally:
        _shown.now = False
        if bar is not None:
            bar.close()


def _bar(total: int, words: str, done: int) -> Any:
    try:
        tqdm = importlib.import_module("tqdm.auto").tqdm
    except ImportError:
        return Line(total, words, done)
    form = {} if total else {"bar_format": "{desc} {elapsed}"}
    return tqdm(total=total or None, desc=words, initial=done, leave=False, **form)


class Line:
    """One line on standard error, drawn anew at most ten times a second and taken away at the end."""

    def __init__(self, total: int, words: str, done: int = 0) -> None:
        self._total, self._words, self._done = total, words, done
        self.start_t, self._drawn = time.monotonic(), -1.0  # tqdm's name
        self._first = done

    def update(self, count: int) -> None:
        """Count on."""
        self._done += count
        now = time.monotonic()
        if now - self._drawn >= 0.1:
            self._drawn = now
            sys.stderr.write(f"\r{self.text(now - self.start_t)}")
            sys.stderr.flush()

    def text(self, elapsed: float) -> str:
        """The line after this many seconds; without a total it tells the seconds alone."""
        if not self._total:
            return f"{self._words} {elapsed:.0f} s "
        share = self._done / max(self._total, 1)
        filled = int(24 * share)
        pace = elapsed / max(self._done - self._first, 1)
        left = pace * (self._total - self._done)
        return f"{self._words} [{'█' * filled}{'·' * (24 - filled)}] {self._done}/{self._total}, {left:.0f} s left "

    def close(self) -> None:
        """Take the line away."""
        if self._drawn >= 0:
            sys.stderr.write(f"\r{' ' * len(self.text(1e6))}\r")
            sys.stderr.flush()
