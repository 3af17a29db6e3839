"""Graphs that compute the same with fewer layers: for inference."""

from __future__ import annotations

import copy
from typing import Any

from pullback import nn
from pullback.fx._symbolic_trace import symbolic_trace
from pullback.fx.graph_module import GraphModule
from pullback.fx.node import Node
from pullback.nn.modules.module import Module
from pullback.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

__all__ = ["fuse", "remove_dropout"]

_FUSING = (
    (nn.Conv1d, nn.BatchNorm1d, fuse_conv_bn_eval),
    (nn.Conv2d, nn.BatchNorm2d, fuse_conv_bn_eval),
    (nn.Conv3d, nn.BatchNorm3d, fuse_conv_bn_eval),
    (nn.Linear, nn.BatchNorm1d, fuse_linear_bn_eval),
)


def fuse(model: Module, inplace: bool = False, no_trace: bool = False) -> GraphModule:
    """Put batch norms into the convolutions and linear layers before them; the model must be in evaluation mode.

    >>> import pullback
    >>> model = nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2)).eval()
    >>> [str(node.target) for node in fuse(model).graph.nodes if node.op == "call_module"]
    ['0']
    """
    model = model if inplace else copy.deepcopy(model)
    traced: Any = model if no_trace and isinstance(model, GraphModule) else symbolic_trace(model)
    modules = dict(traced.named_modules())
    for node in list(traced.graph.nodes):
        before = node.args[0] if node.op == "call_module" and node.args else None
        if not isinstance(before, Node) or before.op != "call_module" or len(before.users) > 1:
            continue
        layer, norm = modules[str(before.target)], modules[str(node.target)]
        for kind, kind_of_norm, join in _FUSING:
            if type(layer) is kind and type(norm) is kind_of_norm and norm.track_running_stats:
                modules[str(before.target)] = joined = join(layer, norm)
                parent, _, name = str(before.target).rpartition(".")
                setattr(modules[parent], name, joined)
                node.replace_all_uses_with(before)
                traced.graph.erase_node(node)
                break
    traced.graph.lint()
    traced.recompile()
    made: GraphModule = traced
    return made


def remove_dropout(model: Module) -> GraphModule:
    """The model without its dropout layers."""
    traced = symbolic_trace(model)
    modules = dict(traced.named_modules())
    for node in list(traced.graph.nodes):
        if node.op == "call_module" and type(modules[str(node.target)]) is nn.Dropout:
            node.replace_all_uses_with(node.args[0])
            traced.graph.erase_node(node)
    traced.recompile()
    return traced
