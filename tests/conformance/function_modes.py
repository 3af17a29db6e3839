"""Compare what a TorchFunctionMode is told: `python -m tests.conformance.function_modes [word ...]`.

Every public function, method, property and operator is called on plain tensors inside of a mode in both libraries, with
the arguments that PyTorch takes (those of tests/overriding, found anew), and the calls that the mode is told must be the
same: function, types, arguments by their sizes, keywords. A few lines for each call that differs; the last line counts.
"""

from __future__ import annotations

import json
import sys

import torch

import pullback
from tests.overriding.differing import DIFFERING_IN_MODES
from tests.overriding.expressions import IN_MODES, told_to_mode
from tests.overriding.record import calls


def compare(words: list[str]) -> int:
    """Print every difference in the calls that hold one of the words; how many are not on the list of kept ones."""
    looked_at = [call for call in (*calls(torch), *IN_MODES) if not words or any(word in call for word in words)]
    kept = unknown = 0
    for call in looked_at:
        expected, actual = told_to_mode(torch, call), json.loads(json.dumps(told_to_mode(pullback, call)))
        if actual == json.loads(json.dumps(expected)):
            continue
        kept += call in DIFFERING_IN_MODES
        unknown += call not in DIFFERING_IN_MODES
        print(f"{call}\n    PyTorch: {expected}\n    pullback: {actual}")
        print(f"    kept: {DIFFERING_IN_MODES.get(call, 'no')}")
    print(f"{len(looked_at)} calls, {kept} differ and are kept, {unknown} differ otherwise")
    return unknown


if __name__ == "__main__":
    sys.exit(compare(sys.argv[1:]) > 0)
