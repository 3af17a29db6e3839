"""The recorded graph of a model in TensorBoard's terms: a node per operation and per parameter."""

from __future__ import annotations

from typing import Any

from pullback.autograd.grad_mode import enable_grad
from pullback.tensor.tensor import Tensor
from pullback.utils._pytree import tree_leaves
from pullback.utils.tensorboard.records import field


def graph_definition(model: Any, inputs: Any) -> bytes:
    """Run a model and describe what it recorded."""
    arguments = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
    with enable_grad():
        outputs = [t for t in tree_leaves(model(*arguments)) if isinstance(t, Tensor)]
    names = {id(p): name for name, p in model.named_parameters()}
    described = _Description(names)
    for number, output in enumerate(outputs):
        sources = [described.name_of(output.grad_fn)] if output.grad_fn is not None else []
        described.add(f"output/{number}", "IO Node", sources)
    return b"".join([field(1, node) for node in described.nodes]) + field(4, field(1, 22))


class _Description:
    def __init__(self, parameters: dict[int, str]) -> None:
        self.parameters = parameters
        self.nodes: list[bytes] = []
        self.names: dict[int, str] = {}
        self.kept: list[Any] = []

    def add(self, name: str, operation: str, sources: list[str]) -> None:
        self.nodes.append(field(1, name) + field(2, operation) + b"".join([field(3, s) for s in sources]))

    def name_of(self, top: Any) -> str:
        """Describe everything that leads to a node, sources first, and return its name."""
        waiting = [top]
        while waiting:
            node = waiting[-1]
            sources = [source for source, _ in node.next_functions if source is not None]
            missing = [source for source in sources if id(source) not in self.names]
            if missing:
                waiting.extend(missing)
                continue
            waiting.pop()
            if id(node) not in self.names:
                self._describe(node, [self.names[id(source)] for source in sources])
        return self.names[id(top)]

    def _describe(self, node: Any, sources: list[str]) -> None:
        variable = getattr(node, "variable", None)
        operation = node.name().removesuffix("Backward0")
        name = self.parameters.get(id(variable), "").replace(".", "/") or f"{operation}/{len(self.names)}"
        self.kept.append(node)  # so that no other node gets its id
        self.names[id(node)] = name
        self.add(name, "Parameter" if variable is not None else operation, sources)
