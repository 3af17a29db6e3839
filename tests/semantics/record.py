"""Run every row on PyTorch and record what it reports: python -m tests.semantics.record"""

from __future__ import annotations

import json
from pathlib import Path

from tests.semantics.reporting import all_rows, run_row

EXPECTED = Path(__file__).parent / "expected.json"


def main() -> None:
    """Write expected.json."""
    import torch

    expected: dict[str, list[str]] = {}
    for name, row in all_rows().items():
        try:
            expected[name] = run_row(row, torch)
        except Exception as error:
            print(f"{name} does not run on PyTorch: {type(error).__name__}: {error}")
    EXPECTED.write_text(json.dumps(expected, indent=1, sort_keys=True) + "\n")
    print(f"{len(expected)} rows recorded")


if __name__ == "__main__":
    main()
