"""torch.export: a module as a graph of ATen calls, with its parameters and buffers, run, printed, saved and loaded.

The graph is the trace of `make_fx`. Calls are those that dispatch modes see: PyTorch's graphs before `run_decompositions()`
have `linear` and `batch_norm` where these have `addmm` and `native_batch_norm`.
"""

from __future__ import annotations

from pullback.export.dynamic_shapes import Dim, dims
from pullback.export.exported_program import ExportedProgram
from pullback.export.exporting import export
from pullback.export.graph_signature import ExportGraphSignature
from pullback.export.saving import load, save

__all__ = ["Dim", "ExportGraphSignature", "ExportedProgram", "dims", "export", "load", "save"]
