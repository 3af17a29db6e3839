"""Names of backends."""

from pullback.pytorch.compiler.backend_names import list_backends, lookup_backend, register_backend

__all__ = ["list_backends", "lookup_backend", "register_backend"]
