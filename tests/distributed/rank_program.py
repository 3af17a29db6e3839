"""One rank of the tests: runs the checks of the modules that it is given and writes what went wrong to a file."""

from __future__ import annotations

import importlib
import json
import sys
import traceback
from datetime import timedelta
from pathlib import Path

from pullback import distributed as dist
from tests.distributed.running import checks_of


def main(folder: str, *modules: str) -> None:
    dist.init_process_group("mpi", timeout=timedelta(seconds=120))
    outcomes: dict[str, str] = {}
    path = Path(folder) / f"rank{dist.get_rank()}.json"
    for name in modules:
        for check in checks_of(importlib.import_module(f"tests.distributed.checks.{name}")):
            key = f"{name}.{check.__name__}"
            try:
                check()
                outcomes[key] = ""
            except BaseException:
                outcomes[key] = traceback.format_exc()
            path.write_text(json.dumps(outcomes))
            if outcomes[key]:
                dist.monitored_barrier(timeout=timedelta(seconds=20))  # the others may fail in the same check
                sys.exit(1)
            dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
