"""Leave out what records expectations: it needs PyTorch, and doctests would import it."""

collect_ignore = ["record.py"]
