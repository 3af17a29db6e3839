"""Random programs about views, in-place operations and the graph, run on PyTorch and on pullback."""

from pathlib import Path

RECORDED = Path(__file__).parent / "recorded.json"
"""Programs of the everyday test, with what PyTorch did after each statement."""
