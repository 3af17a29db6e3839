"""Small pieces that generated functions and nodes share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.graph.input_metadata import InputMetadata
from pullback.graph.node import Node
from pullback.tensor.tensor import Tensor, new_tensor


def metadata_of(results: Sequence[Tensor]) -> tuple[InputMetadata, ...]:
    """What a node of several outputs remembers of each."""
    return tuple([InputMetadata(r._array.shape, r._array.dtype, device=r.device) for r in results])


def zero_grad_array(node: Node, index: int) -> Any:
    """The gradient of an output that nothing used, as an array."""
    metadata = node.input_metadata(index)
    assert metadata is not None
    return metadata.zeros()


def zero_grad_tensor(node: Node, index: int) -> Tensor:
    """The gradient of an output that nothing used, as a Tensor."""
    return new_tensor(zero_grad_array(node, index))
