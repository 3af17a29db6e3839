"""Programs as graphs that Python code can read and change: the names of torch.fx.

>>> import pullback
>>> traced = symbolic_trace(pullback.nn.Sequential(pullback.nn.Linear(2, 2), pullback.nn.ReLU()))
>>> [node.name for node in traced.graph.nodes]
['input_1', '_0', '_1', 'output']
"""

from __future__ import annotations

from pullback.fx import _symbolic_trace as _symbolic_trace
from pullback.fx import experimental as experimental
from pullback.fx import immutable_collections as immutable_collections
from pullback.fx import passes as passes
from pullback.fx._symbolic_trace import Tracer, symbolic_trace, wrap
from pullback.fx.graph import CodeGen, Graph
from pullback.fx.graph_module import GraphModule
from pullback.fx.interpreter import Interpreter, Transformer
from pullback.fx.node import Node, has_side_effect, map_arg
from pullback.fx.proxy import Proxy
from pullback.fx.subgraph_rewriter import replace_pattern

__all__ = [
    "CodeGen", "Graph", "GraphModule", "Interpreter", "Node", "Proxy", "Tracer", "Transformer", "has_side_effect", "map_arg",
    "replace_pattern", "symbolic_trace", "wrap",
]  # fmt: skip
