"""Programs on torch.fx that report texts and numbers; `torch` is PyTorch or pullback."""

from __future__ import annotations

import importlib
import math
import operator
from typing import Any


def _model(torch: Any) -> Any:
    nn: Any = torch.nn
    F: Any = torch.nn.functional

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(2, 2, 3, padding=1)
            self.scale = nn.Parameter(torch.ones(1))
            self.register_buffer("shift", torch.ones(1))

        def forward(self, x: Any) -> Any:
            return F.relu(self.conv(x) * self.scale + self.shift + x, inplace=True)

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU())
            self.blocks = nn.ModuleList([Block(), Block()])
            self.fc = nn.Linear(2, 4)

        def forward(self, x, mask=None, *, flag: bool = False):  # type: ignore[no-untyped-def]
            x = self.stem(x)
            for block in self.blocks:
                x = block(x)
            x = torch.flatten(F.adaptive_avg_pool2d(x, 1), 1)
            x = F.dropout(self.fc(x.view(x.size(0), -1)), 0.0, self.training)
            first, second = x.chunk(2, dim=1)
            y = torch.cat([first, second], dim=1).softmax(dim=-1) * 2 - 1 / (x + 9)
            return {"y": -(y**2) @ x.t(), "parts": [torch.max(y, dim=1).values, y[:, 1:]]}, math.pi

    torch.manual_seed(0)
    return Net()


def trace_a_model(torch: Any) -> Any:
    """The text of the graph and of the code, and equal results and gradients."""
    model = _model(torch)
    traced = importlib.import_module(f"{torch.__name__}.fx").symbolic_trace(model)
    x = torch.randn(3, 1, 6, 6)
    expected, actual = model(x)[0]["y"], traced(x)[0]["y"]
    actual.sum().backward()
    gradients = [f"{float(p.grad.abs().sum()):.3g}" for p in model.parameters()]
    return str(traced.graph), str(traced), bool((expected == actual).all()), gradients


def change_a_graph(torch: Any) -> Any:
    """Insert, replace and erase nodes, and interpret and transform the result."""
    fx: Any = importlib.import_module(f"{torch.__name__}.fx")
    traced = fx.symbolic_trace(lambda x: torch.relu(x + 1).sum(dim=0))
    graph = traced.graph
    for node in graph.nodes:
        if node.target is torch.relu:
            with graph.inserting_after(node):
                new = graph.call_function(torch.add, (node, 1), {"alpha": 2})
            node.replace_all_uses_with(new, delete_user_cb=lambda user, new=new: user is not new)
    graph.lint()
    traced.recompile()
    texts = [traced.code]

    class Doubled(fx.Transformer):
        def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
            if target is torch.add:
                return super().call_function(torch.mul, (args[0], 2), {})
            return super().call_function(target, args, kwargs)

    texts.append(Doubled(traced).transform().code)
    fx.replace_pattern(traced, lambda x: torch.relu(x), lambda x: torch.tanh(x) - 3)
    texts.append(traced.code)
    return texts, fx.Interpreter(traced).run(torch.ones(2)).tolist()


def trace_functions(torch: Any) -> Any:
    """Texts of many kinds of calls."""
    fx = importlib.import_module(f"{torch.__name__}.fx")
    F = torch.nn.functional

    def stars(x: torch.Tensor, y, *args, **names):  # type: ignore[no-untyped-def]
        return torch.add(x, y, alpha=2).relu_() + args[0] + names["a"]

    def operators(x):  # type: ignore[no-untyped-def]
        return 1 - x, 2**x, x > 1, ~x, abs(x), x & 1, x[0, None, ..., 1:2], x.T, x.shape[0] // 2

    def functional(x):  # type: ignore[no-untyped-def]
        w = torch.ones(2, 2)
        return w + x, F.linear(x, w), F.gelu(x), torch.linalg.norm(x), torch.fft.fft(x), F.sigmoid(x), math.sqrt(x)

    texts = [fx.symbolic_trace(f).code for f in (stars, operators, functional)]
    texts.append(fx.symbolic_trace(lambda x, y=3, z=None: (x + y, z), concrete_args={"z": None}).code)
    graph = fx.Graph()
    x, w = graph.placeholder("x"), graph.get_attr("w")
    graph.output(graph.call_function(operator.mul, (x, w)))
    texts.append(str(fx.GraphModule({"w": torch.ones(2)}, graph, "Scaled")))
    return texts


PROGRAMS = [trace_a_model, change_a_graph, trace_functions]
