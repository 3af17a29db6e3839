"""What every recorded operation does to its new node and its results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.backend.dtype import is_float_or_complex, scalar_type_name
from pullback.graph.history import set_history
from pullback.graph.node import Node, next_sequence_nr
from pullback.graph.recording import metadata_of
from pullback.tensor.tensor import TensorBase


def attach_view(node: Node, result: Any) -> None:
    """Make a view the output of a new node."""
    node.sequence_nr = next_sequence_nr()
    node.shape = result._array.shape
    node.dtype = result._array.dtype
    set_history(result, node)


def attach_views(node: Node, results: Sequence[Any]) -> None:
    """Make several views the outputs of a new node."""
    node.sequence_nr = next_sequence_nr()
    node.output_count = len(results)
    node.output_metadata = metadata_of(results)
    for index, result in enumerate(results):
        set_history(result, node, index)


def shapes_and_dtypes(inputs: Sequence[Any]) -> tuple[Any, ...]:
    """What undoes broadcasting and promotion: shape and dtype of each input, None of one that is not a tensor.

    The dtype is None where any will do: the gradient of a leaf whose `grad_dtype` is None is not cast.
    """
    return tuple([(t._array.shape, gradient_dtype(t, None)) if isinstance(t, TensorBase) else None for t in inputs])


def require_float(result: Any) -> None:
    """Refuse to record that something with a gradient was put into integers."""
    if not is_float_or_complex(result._array.dtype):
        raise RuntimeError(
            f"Autograd not support dtype: {scalar_type_name(result._array.dtype)}. A value that requires grad is put into "
            "integers: convert them to floating point numbers first, or pass the value's .detach()."
        )


def gradient_dtype(tensor: Any, free: Any) -> Any:
    """The dtype that a tensor's gradient is cast to; `free` where its `grad_dtype` is None, so that any will do."""
    extra = tensor._extra
    return tensor._array.dtype if extra is None or extra.grad_dtype is not None else free
