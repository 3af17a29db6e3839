"""The process that examines entries: it reads a name per line and answers with one line of JSON.

It is a process of its own because an operation may crash or hang; see supervisor.py.
"""

from __future__ import annotations

import json
import os
import sys

import torch

from .entries import Entry
from .examination import examine
from .places import load_device


def all_entries() -> dict[str, Entry]:
    """Give the entries of the database and our own, by name."""
    from .entries import database
    from .own_entries import own_entries

    return {entry.name: entry for entry in (*own_entries(), *database())}


def main() -> None:
    """Answer until the input ends."""
    torch.set_num_threads(1)
    load_device()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    entries = all_entries()
    print(json.dumps({name: entry.family for name, entry in entries.items()}), file=answers, flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        result = examine(entries[request["name"]], factor=request["factor"])
        print(json.dumps(result), file=answers, flush=True)


if __name__ == "__main__":
    main()
