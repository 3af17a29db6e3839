"""The command line: `pullback run script.py args...` runs a PyTorch program on pullback, otherwise as Python would.

`python -m pullback run` is the same. Nothing here knows about tensors.
"""

from __future__ import annotations

import io
import os
import pkgutil
import runpy
import sys
import zipfile
from collections.abc import Callable, Sequence
from importlib.machinery import FileFinder, SourceFileLoader, SourcelessFileLoader
from types import CodeType, ModuleType, TracebackType
from zipimport import zipimporter

from pullback.pytorch.as_torch import install_as_torch
from pullback.version import __version__

USAGE = """\
usage: pullback run script.py [args...]     run a PyTorch program with 'torch' meaning pullback
       pullback run -m module [args...]     the same for a module
       pullback run -c command [args...]    the same for a program given as text
       pullback run - [args...]             the same for a program read from standard input
       pullback view script.py [args...]    the same until its first backward pass has ended, and show that in the browser
       pullback check path...               list what programs use of torch that pullback lacks
       pullback launch -n N script.py ...   the same on N processes (pullback launch --help)
       pullback coverage [--json FILE] script.py [args...]
                                            the same, and tell which derivatives it used and which of them are checked
       pullback --version
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that `arguments` name and return the exit status."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    match arguments:
        case ["--version" | "-V"]:
            print(f"pullback {__version__}")
            return 0
        case ["--help" | "-h"] | ["run", "--help" | "-h"]:
            print(USAGE, end="")
            return 0
        case ["launch", *rest]:
            from pullback.distributed.launch import main as launch

            return launch(rest)
        case ["view", *rest]:
            from pullback.utils.graph_page.view import view

            return _run_like_the_interpreter(lambda: view(rest, execute_script))
        case ["coverage", "--json", file, script, *rest]:
            return run_with_coverage(script, rest, file)
        case ["coverage", script, *rest] if not script.startswith("-"):
            return run_with_coverage(script, rest)
        case ["run", "-m", module, *rest]:
            return run_module(module, rest)
        case ["run", "-c", command, *rest]:
            return run_text(command, "<string>", "-c", rest)
        case ["run", "-", *rest]:
            return run_text(sys.stdin.read(), "<stdin>", "-", rest)
        case ["check", *paths] if paths:
            from pullback.utils.script_check import main as check

            return check(paths)
        case ["run", script, *rest] if not script.startswith("-"):
            return run_script(script, rest)
    print(USAGE, end="", file=sys.stderr)
    return 2


def run_script(path: str, arguments: Sequence[str]) -> int:
    """Run the file at `path` as `__main__` with `torch` meaning pullback."""
    return _run_like_the_interpreter(lambda: execute_script(path, arguments))


def run_text(text: str, name: str, called: str, arguments: Sequence[str]) -> int:
    """Run a program given as text, as `python -c` and `python -` do, with `torch` meaning pullback."""
    sys.argv[:] = [called, *arguments]
    _look_first_in("")
    install_as_torch()
    return _run_like_the_interpreter(lambda: _execute(compile(text, name, "exec", dont_inherit=True)))


def run_with_coverage(path: str, arguments: Sequence[str], file: str | None = None) -> int:
    """Run a script and print, or write as JSON, which operations and branches of their rules it used."""
    import json

    from pullback.inspection.coverage import program_coverage
    from pullback.inspection.derivative_use import used_derivatives
    from pullback.modes.node_observer import seen_in_new_threads

    used = used_derivatives()

    def run() -> None:
        with used, seen_in_new_threads(used):
            execute_script(path, arguments)

    try:
        return _run_like_the_interpreter(run)
    finally:
        report = program_coverage(used)
        if file is None:
            print(report)
        else:
            with open(file, "w", encoding="utf-8") as output:
                json.dump(report.to_dict(), output)


def execute_script(path: str, arguments: Sequence[str]) -> None:
    """Run the file at `path`, or a folder or zip file with a `__main__`, as `__main__`, and let what it raises pass."""
    place = os.path.join(os.getcwd(), path)  # a program may look for its file after a change of the folder
    sys.argv[:] = [path, *arguments]
    if os.path.isdir(path) or zipfile.is_zipfile(path):
        _execute_main_in(place, path)
        return
    try:
        with io.open_code(place) as file:
            source = file.read()
    except OSError as error:
        print(f"pullback: can't open file '{place}': {_reason(error)}", file=sys.stderr)
        raise SystemExit(2) from None
    _look_first_in(os.path.dirname(os.path.realpath(path)))
    install_as_torch()
    loader = SourceFileLoader("__main__", place)
    _execute(compile(source, place, "exec", dont_inherit=True), __file__=place, __cached__=None, __loader__=loader)


def _execute_main_in(place: str, path: str) -> None:
    """Run the `__main__` of a folder or zip file, which is where its imports are looked for, too."""
    holder = pkgutil.get_importer(place)
    found = holder.find_spec("__main__") if isinstance(holder, (FileFinder, zipimporter)) else None
    if found is None or not isinstance(found.loader, (SourceFileLoader, SourcelessFileLoader, zipimporter)):
        print(f"pullback: can't find '__main__' module in '{path}'", file=sys.stderr)
        raise SystemExit(1)
    code = found.loader.get_code("__main__")
    assert isinstance(code, CodeType)  # the file is there
    if not sys.flags.safe_path:
        sys.path.pop(0)
    sys.path.insert(0, place)
    install_as_torch()
    _execute(
        code, __file__=found.origin, __cached__=found.cached, __loader__=found.loader, __spec__=found, __package__=""
    )


def run_module(name: str, arguments: Sequence[str]) -> int:
    """Run the module `name` as `python -m name` would, with `torch` meaning pullback."""
    sys.argv[:] = ["-m", *arguments]
    _look_first_in(os.getcwd())
    install_as_torch()
    return _run_like_the_interpreter(lambda: runpy.run_module(name, run_name="__main__", alter_sys=True))


def _look_first_in(folder: str) -> None:
    """Put a folder in place of the one that the interpreter put first, unless it was told to put none (`python -P`)."""
    if not sys.flags.safe_path:
        sys.path[0] = folder


def _execute(code: CodeType, **names: object) -> None:
    """Execute `code` in a new `__main__`, which stays in place: pickled classes and threads look it up there."""
    module = ModuleType("__main__")
    vars(module).update(__builtins__=__builtins__, **names)
    sys.modules["__main__"] = module
    exec(code, vars(module))


def _run_like_the_interpreter(action: Callable[[], object]) -> int:
    """Call `action`; an uncaught exception is shown without the frames of this file, SystemExit passes through."""
    try:
        status = action()
    except SystemExit:
        raise
    except BaseException as error:
        error.__traceback__ = user_frames(error.__traceback__)
        sys.excepthook(type(error), error, error.__traceback__)
        return 130 if isinstance(error, KeyboardInterrupt) else 1
    return status if isinstance(status, int) else 0


def user_frames(traceback: TracebackType | None) -> TracebackType | None:
    """Drop the leading frames that belong to the command line and to runpy."""
    view = os.path.join(os.path.dirname(__file__), "utils", "graph_page", "view.py")
    ours = {__file__, view, runpy.__file__, "<frozen runpy>"}
    while traceback is not None and traceback.tb_frame.f_code.co_filename in ours:
        traceback = traceback.tb_next
    return traceback


def _reason(error: OSError) -> str:
    return f"[Errno {error.errno}] {error.strerror}"


if __name__ == "__main__":
    sys.exit(main())
