"""The paths under which PyTorch programs also import collation and worker functions."""

from pullback.utils.data._utils import collate, worker

__all__ = ["collate", "worker"]
