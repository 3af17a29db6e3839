"""The yardstick: every public operation on pullback and on PyTorch, side by side (`python -m tests.conformance`)."""
