"""Shapes and dtypes of all values of a graph, found by running it."""

from __future__ import annotations

from typing import Any, NamedTuple

import pullback
from pullback.fx.interpreter import Interpreter
from pullback.fx.node import Node, map_aggregate
from pullback.tensor.tensor import Tensor

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """What is known of a tensor without its values."""

    shape: Any
    dtype: Any
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: Any
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Any, include_contiguity: bool = True) -> TensorMetadata:
    formats = [pullback.contiguous_format, pullback.channels_last] if include_contiguity else []
    memory_format = None
    for candidate in formats:
        if (candidate is pullback.contiguous_format or result.ndim == 4) and result.is_contiguous(
            memory_format=candidate
        ):
            memory_format = candidate
            break
    return TensorMetadata(
        result.shape, result.dtype, bool(result.requires_grad), tuple(result.stride()), memory_format, False, {}
    )


class ShapeProp(Interpreter):
    """Runs a graph and writes `tensor_meta` into the meta of each node."""

    def __init__(self, gm: Any, fake_mode: Any = None) -> None:
        super().__init__(gm)

    def run_node(self, n: Node) -> Any:
        """Run a node and note its result's shape."""
        result = super().run_node(n)
        found = False

        def describe(value: Any) -> Any:
            nonlocal found
            if isinstance(value, Tensor):
                found = True
                return _extract_tensor_metadata(value)
            return value

        described = map_aggregate(result, describe)
        if found:
            n.meta["tensor_meta"] = described
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the graph on these arguments."""
        return super().run(*args)
