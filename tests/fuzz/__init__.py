"""Random programs about views, in-place operations and the graph, run on PyTorch and on pullback."""

from pathlib import Path

CLEAN_SEEDS = range(5_000_000, 5_100_000)
"""A row of programs that were all run: no difference is left that is not listed (tests/fuzz/accepted.py)."""

RECORDED = Path(__file__).parent / "recorded.json"
"""Programs of the everyday test, with what PyTorch did after each statement."""
