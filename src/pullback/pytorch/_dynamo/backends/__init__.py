"""The backends that `compile(backend=...)` knows by name."""
