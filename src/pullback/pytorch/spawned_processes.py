"""Lets processes that are spawned by a program under `install_as_torch` find pullback as torch, too."""

from __future__ import annotations

from multiprocessing import spawn
from pathlib import Path
from typing import Any

PREPARE = "import sys; sys.path.append({!r}); import pullback; pullback.install_as_torch(); "


def prepare_spawned_processes() -> None:
    """A spawned process runs the main program anew, before anything of ours reaches it: change what it is started with."""
    plain = spawn.get_command_line

    def prepared(**options: Any) -> list[str]:
        command = plain(**options)
        if "-c" in command:
            place = command.index("-c") + 1
            command[place] = PREPARE.format(str(Path(__file__).parents[2])) + command[place]
        return command

    spawn.get_command_line = prepared
