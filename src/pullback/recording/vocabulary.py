"""The names that the modules of generated/ share: each imports those it uses from here."""

from __future__ import annotations

from pullback.backend.array_module import as_array, ndarray
from pullback.backend.dtype import (
    promote_arrays,
    promote_arrays_to_float,
    promote_for_product,
    promote_for_quotient,
    promote_for_subtraction,
    promote_to_float,
)
from pullback.errors import derivative_not_implemented
from pullback.graph.basic_nodes import NotImplementedNode
from pullback.graph.edge import Edges
from pullback.graph.history import gradient_edge
from pullback.graph.in_place import in_place
from pullback.graph.node import new_node, next_sequence_nr
from pullback.graph.overwriting import overwrite
from pullback.graph.partial_gradient import PartialGradient
from pullback.graph.recording import metadata_of, zero_grad_array
from pullback.graph.saved_tensor import SavedList, SavedOutput, as_saved, raise_stale, unpack_list
from pullback.graph.views import make_view
from pullback.kernels.broadcasting import sum_to_like
from pullback.kernels.overwriting import overwriting
from pullback.modes.cuts import note_cut
from pullback.modes.switches import process, switches
from pullback.native import native
from pullback.recording.operation_node import OperationNode
from pullback.recording.recorder import (
    attach_view,
    attach_views,
    gradient_dtype,
    require_float,
    shapes_and_dtypes,
)
from pullback.recording.rendered import apply_rarely
from pullback.recording.slow_road import PROCEED, ask_foreign_of, divert, finish, refuse
from pullback.tensor.arguments import (
    NUMBERS,
    as_number_argument,
    as_numpy_dtype,
    as_shape,
    as_tensor_list,
    plain_float,
    plain_int,
    promote_list,
    promote_many,
    promote_many_to_float,
    wrap_dims,
)
from pullback.tensor.autograd_extra import MULTI_OUTPUT
from pullback.tensor.dims import wrap_dim
from pullback.tensor.foreign_arguments import is_foreign
from pullback.tensor.tensor import Tensor, TensorBase, new_tensor
from pullback.tensor.tensor_base import new
from pullback.typing import Scalar

__all__ = [
    "MULTI_OUTPUT",
    "NUMBERS",
    "PROCEED",
    "Edges",
    "NotImplementedNode",
    "OperationNode",
    "PartialGradient",
    "SavedList",
    "SavedOutput",
    "Scalar",
    "Tensor",
    "TensorBase",
    "apply_rarely",
    "as_array",
    "as_number_argument",
    "as_numpy_dtype",
    "as_saved",
    "as_shape",
    "as_tensor_list",
    "ask_foreign_of",
    "attach_view",
    "attach_views",
    "derivative_not_implemented",
    "divert",
    "finish",
    "gradient_dtype",
    "gradient_edge",
    "in_place",
    "is_foreign",
    "make_view",
    "metadata_of",
    "native",
    "ndarray",
    "new",
    "new_node",
    "new_tensor",
    "next_sequence_nr",
    "note_cut",
    "overwrite",
    "overwriting",
    "plain_float",
    "plain_int",
    "process",
    "promote_arrays",
    "promote_arrays_to_float",
    "promote_for_product",
    "promote_for_quotient",
    "promote_for_subtraction",
    "promote_list",
    "promote_many",
    "promote_many_to_float",
    "promote_to_float",
    "raise_stale",
    "refuse",
    "require_float",
    "shapes_and_dtypes",
    "sum_to_like",
    "switches",
    "unpack_list",
    "wrap_dim",
    "wrap_dims",
    "zero_grad_array",
]  # fmt: skip
