"""torch.fx: tracing, graphs and the code that is made of them."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import pullback
from pullback import fx
from pullback.fx.passes.shape_prop import ShapeProp
from pullback.fx.proxy import TraceError
from tests.fx.programs import change_a_graph, trace_a_model, trace_functions


def test_a_traced_model_computes_the_same() -> None:
    graph, text, same, _ = trace_a_model(pullback)
    assert same
    assert "%blocks_0_scale : [num_users=1] = get_attr[target=blocks.0.scale]" in graph
    assert 'stem_0 = getattr(self.stem, "0")(x);  x = None' in text
    assert "dropout = torch.nn.functional.dropout(fc, p = 0.0, training = True, inplace = False);  fc = None" in text


def test_graphs_can_be_changed() -> None:
    texts, values = change_a_graph(pullback)
    assert "add_1 = torch.add(relu, 1, alpha = 2);  relu = None" in texts[0]
    assert "mul = torch.mul(relu, 2);  relu = None" in texts[1]
    assert "tanh = torch.tanh(add);  add = None" in texts[2]
    assert values == pytest.approx(2 * (0.9640276 - 3 + 2), abs=1e-6)


def test_calls_are_shown_as_they_were_written() -> None:
    stars, operators, functional, concrete, made = trace_functions(pullback)
    assert "def forward(self, x : _torch_Tensor_, y, *args, **names):" in stars
    assert "abs_1 = _operator_abs(x)" in operators
    assert "add = _tensor_constant0.add(x)" in functional
    assert "linear = torch._C._nn.linear(x, _tensor_constant0_1)" in functional
    assert "z has been specialized to have value None but got another value" in concrete
    assert made.startswith("Scaled()\n")


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (lambda x: x if x.sum() > 0 else -x, "symbolically traced variables cannot be used as inputs to control flow"),
        (lambda x: [i for i in x], "Proxy object cannot be iterated"),  # noqa: C416
    ],
)
def test_what_a_graph_cannot_hold_is_refused(program: Any, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        fx.symbolic_trace(program)


def test_len_must_be_wrapped() -> None:
    with pytest.raises(RuntimeError, match="'len' is not supported in symbolic tracing by default"):
        fx.symbolic_trace(lambda x: len(x))


def test_copies_and_pickles_run() -> None:
    model = fx.symbolic_trace(pullback.nn.Sequential(pullback.nn.Linear(2, 3), pullback.nn.Tanh()))
    x = pullback.ones(1, 2)
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert other.code == model.code
        assert other(x).tolist() == model(x).tolist()


def test_a_tracer_decides_on_leaves() -> None:
    class Through(fx.Tracer):
        def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
            return False

    layer = pullback.nn.Linear(2, 2)
    code = fx.GraphModule(layer, Through().trace(layer)).code
    assert "linear = torch._C._nn.linear(input_1, weight, bias)" in code


def test_shapes_are_found_by_running() -> None:
    model = fx.symbolic_trace(pullback.nn.Sequential(pullback.nn.Linear(2, 3)))
    ShapeProp(model).propagate(pullback.ones(5, 2))
    assert [tuple(n.meta["tensor_meta"].shape) for n in model.graph.nodes] == [(5, 2), (5, 3), (5, 3)]


def test_lint_finds_foreign_nodes() -> None:
    graph, other = fx.Graph(), fx.Graph()
    other.call_function(pullback.add, (graph.placeholder("a"), 1))
    with pytest.raises(RuntimeError, match="does not belong to this Graph"):
        other.lint()


def test_a_used_node_is_not_erased() -> None:
    graph = fx.symbolic_trace(lambda x: x + 1).graph
    with pytest.raises(RuntimeError, match="Tried to erase Node x but it still had 1 users"):
        graph.erase_node(next(iter(graph.nodes)))


def test_a_graph_is_printed_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    fx.symbolic_trace(lambda x: x).graph.print_tabular()
    assert capsys.readouterr().out.splitlines() == [
        "opcode       name    target    args    kwargs",
        "-----------  ------  --------  ------  --------",
        "placeholder  x       x         ()      {}",
        "output       output  output    (x,)    {}",
    ]


def test_a_graph_module_of_ones_own_is_built_from_another_modules_attributes() -> None:
    from pullback.fx.graph_module import _CodeOnlyModule, _copy_attr

    class Own(fx.GraphModule):
        def __init__(self, root: Any, graph: fx.Graph) -> None:
            super(fx.GraphModule, self).__init__()
            for node in graph.nodes:
                if node.op == "call_module":
                    _copy_attr(root, self, str(node.target))
            self.graph = graph

    model = pullback.nn.Sequential(pullback.nn.Sequential(pullback.nn.Linear(2, 1)), pullback.nn.ReLU())
    graph = fx.symbolic_trace(model).graph
    own = Own(_CodeOnlyModule(dict(model.__dict__)), graph)
    x = pullback.ones(1, 2)
    assert own(x).tolist() == model(x).tolist()
    assert next(own.parameters()) is next(model.parameters())
