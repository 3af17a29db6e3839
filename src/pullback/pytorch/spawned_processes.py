"""Lets processes that are spawned by a program under `install_as_torch` find pullback as torch, too."""

from __future__ import annotations

from multiprocessing import spawn, util
from pathlib import Path
from typing import Any

PREPARE = "import sys; sys.path.append({!r}); import pullback; pullback.install_as_torch(); "
_FORK_SERVER = "from multiprocessing.forkserver import"


def prepare_spawned_processes() -> None:
    """A spawned process runs the main program anew, before anything of ours reaches it: change what it is started with.

    A server that forks children is started so, too; they have of it what it has imported.
    """
    plain_command, plain_start = spawn.get_command_line, util.spawnv_passfds

    def prepared_command(**options: Any) -> list[str]:
        return _prepared(plain_command(**options), "")

    def prepared_start(path: Any, args: Any, passfds: Any) -> int:
        return plain_start(path, _prepared(list(args), _FORK_SERVER), passfds)

    spawn.get_command_line = prepared_command
    util.spawnv_passfds = prepared_start


def _prepared(command: list[Any], part: str) -> list[Any]:
    """A command line whose text, if it has this part, installs pullback as torch first."""
    place = command.index("-c") + 1 if "-c" in command else 0
    if place and part in command[place]:  # Python 3.14 begins with another import
        command[place] = PREPARE.format(str(Path(__file__).parents[2])) + command[place]
    return command
