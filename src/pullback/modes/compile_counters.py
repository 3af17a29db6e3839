"""What compile counts, under PyTorch's names: `torch._dynamo.utils.counters`."""

from __future__ import annotations

from collections import Counter, defaultdict

counters: defaultdict[str, Counter[str]] = defaultdict(Counter)
"""`stats` (`unique_graphs`, `calls_captured`), `graph_break` by reason, `frames`."""
