"""PyTorch's names around compile: modules that are compiled, settings, errors, counters, backends by name."""

from __future__ import annotations

import copy
import inspect
import logging
import pickle
from typing import Any

import pytest

import pullback
from pullback import nn
from pullback.compiling.compiled_function import Limits
from pullback.pytorch import _dynamo as dynamo
from pullback.pytorch import _inductor, _logging
from pullback.pytorch._higher_order_ops import associative_scan, scan, while_loop
from pullback.pytorch._higher_order_ops import map as map_over

settings: Any = dynamo.config


def branch(x: Any) -> Any:
    if x.sum() > 0:
        return x + 1
    return x - 1


def test_code_hears_the_same_whether_it_is_recorded_or_runs_as_it_is() -> None:
    heard = []

    def ask(x: Any) -> Any:
        heard.append(pullback.compiler.is_compiling())
        return branch(x)

    compiled = pullback.compile(ask)
    for _ in range(6):
        compiled(pullback.ones(2))
    assert heard == [True] * 6
    assert not pullback.compiler.is_compiling()


def test_second_derivatives_take_the_way_that_was_recorded() -> None:
    def ask(x: Any) -> Any:
        return x**3 if pullback.compiler.is_compiling() else x

    compiled = pullback.compile(ask)
    for _ in range(4):
        x = pullback.tensor(2.0, requires_grad=True)
        (first,) = pullback.autograd.grad(compiled(x), x, create_graph=True)
        (second,) = pullback.autograd.grad(first, x)
        assert (first.item(), second.item()) == (12.0, 12.0)


def test_disabled_function_inside_of_a_compiled_one_is_outside() -> None:
    asked = pullback.compiler.disable(pullback.compiler.is_compiling)
    assert pullback.compile(lambda x: (x + 1, asked()))(pullback.ones(1))[1] is False


def test_export_is_exporting() -> None:
    class Ask(nn.Module):
        def forward(self, x: Any) -> Any:
            return x + 1 if pullback.compiler.is_exporting() else x

    program = pullback.export.export(Ask(), (pullback.zeros(1),))
    assert program.module()(pullback.zeros(1)).tolist() == [1.0]
    assert not pullback.compiler.is_exporting()


def test_method_that_is_compiled_in_its_class_is_a_method() -> None:
    class Scale:
        factor = 3

        @pullback.compile
        def apply(self, x: Any) -> Any:
            return x * self.factor

    scale = Scale()
    assert inspect.ismethod(scale.apply)
    assert scale.apply.__name__ == "apply"
    assert [scale.apply(pullback.ones(1)).item() for _ in range(4)] == [3.0] * 4


def test_module_that_was_compiled_in_place_is_pickled() -> None:
    model = nn.Linear(2, 1)
    model.compile()
    expected = [model(pullback.ones(1, 2)) for _ in range(3)][-1]
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        pullback.testing.assert_close(again(pullback.ones(1, 2)), expected)
        assert again.forward.__self__ is again if inspect.ismethod(again.forward) else True


@pytest.mark.parametrize("wrap", [pullback.compiler.disable, lambda m: pullback.compile(m, backend="eager")])
def test_module_that_is_not_compiled_is_wrapped_like_one_that_is(wrap: Any) -> None:
    layer = nn.Linear(2, 1)
    parent = nn.Sequential(wrap(layer))
    assert list(parent.state_dict()) == ["0._orig_mod.weight", "0._orig_mod.bias"]
    pullback.testing.assert_close(parent(pullback.ones(1, 2)), layer(pullback.ones(1, 2)))
    pullback.testing.assert_close(copy.deepcopy(parent)(pullback.ones(1, 2)), layer(pullback.ones(1, 2)))


def test_eager_backend_refuses_breaks_where_one_graph_is_asked_for() -> None:
    with pytest.raises(dynamo.exc.Unsupported, match="decides a branch"):
        pullback.compile(branch, backend="eager", fullgraph=True)(pullback.ones(2))
    assert pullback.compile(lambda x: x + 1, backend="eager", fullgraph=True)(pullback.ones(1)).tolist() == [2.0]


def test_errors_have_the_family_of_pytorchs() -> None:
    with pytest.raises(dynamo.exc.InvalidBackend, match="Invalid backend: 'nonsense'"):
        pullback.compile(branch, backend="nonsense")

    def fail(graph: Any, examples: Any) -> Any:
        raise KeyError("no")

    with pytest.raises(dynamo.exc.BackendCompilerFailed) as caught:
        pullback.compile(lambda x: x + 1, backend=fail)(pullback.ones(1))
    assert isinstance(caught.value.inner_exception, KeyError)
    assert isinstance(caught.value, dynamo.exc.TorchDynamoException)


def test_breaks_raise_inside_of_error_on_graph_break() -> None:
    compiled = pullback.compile(branch)
    with dynamo.error_on_graph_break(True), pytest.raises(dynamo.exc.Unsupported, match="decides a branch"):
        compiled(pullback.ones(2))
    assert compiled(pullback.ones(2)).tolist() == [2.0, 2.0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nonsense": True}, "Unexpected optimization option nonsense"),
        ({"max_autotune": "yes"}, "Unexpected type of attr max_autotune, got str should be bool"),
    ],
)
def test_options_that_pytorch_refuses_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(RuntimeError, match=message):
        pullback.compile(branch, options=options)
    pullback.compile(branch, options={"triton.cudagraphs": True, "max-autotune": True})


def test_settings_are_kept_and_names_that_pytorch_lacks_are_refused() -> None:
    config: Any = _inductor.config
    with config.patch({"triton.cudagraphs": True}, max_autotune=True):
        assert (config.triton.cudagraphs, config.max_autotune) == (True, True)
        config.triton.cudagraphs = False
    assert (config.triton.cudagraphs, config.max_autotune) == (False, False)
    with pytest.raises(AttributeError, match=r"torch._inductor.config.triton.nonsense does not exist"):
        config.triton.nonsense = 1
    with pytest.raises(AttributeError, match=r"torch._dynamo.config.nonsense does not exist"):
        settings.nonsense = 1
    assert not hasattr(settings, "nonsense")


def test_older_name_of_a_setting_is_the_same_setting() -> None:
    @settings.patch("cache_size_limit", 20)
    def read() -> tuple[int, int]:
        return settings.recompile_limit, Limits.wanted

    assert read() == (20, 20)
    assert settings.cache_size_limit == settings.recompile_limit == 8


def test_more_kinds_of_arguments_are_recorded_where_a_setting_says_so() -> None:
    compiled = pullback.compile(lambda x, name: x + len(name), dynamic=False)
    with settings.patch(recompile_limit=40):
        for length in range(20):
            compiled(pullback.ones(1), "a" * length)
    assert len(compiled.kinds) == 20


def test_counters_tell_of_programs_and_breaks() -> None:
    counters = dynamo.utils.counters
    counters.clear()
    straight, broken = pullback.compile(lambda x: x.sin() + 1), pullback.compile(branch)
    for _ in range(3):
        straight(pullback.ones(2))
    assert counters["stats"]["unique_graphs"] == 1
    assert counters["stats"]["calls_captured"] == 2
    assert "unique_graphs, 1" in dynamo.utils.compile_times()
    broken(pullback.ones(2))
    assert counters["graph_break"] == {"the value of a tensor decides a branch": 1}


def test_logs_tell_of_breaks_and_recompilations(caplog: pytest.LogCaptureFixture) -> None:
    _logging.set_logs(graph_breaks=True, recompiles=True)
    try:
        compiled = pullback.compile(branch)
        compiled(pullback.ones(2))
        compiled(pullback.ones(3))
    finally:
        _logging.set_logs()
    assert "Graph break in branch: the value of a tensor decides a branch, at" in caplog.text
    assert "Recompiling branch: it was called with arguments of kind 2" in caplog.text
    assert not logging.getLogger("pullback.compile.recompiles").isEnabledFor(logging.DEBUG)


def test_counting_backend_counts_graphs_and_operations() -> None:
    counter = dynamo.testing.CompileCounter()
    compiled = pullback.compile(lambda x: x.sin() * 2 + 1, backend=counter)
    for _ in range(3):
        compiled(pullback.ones(2))
    assert (counter.frame_count, counter.op_count) == (1, 3)
    assert dynamo.testing.same(compiled(pullback.zeros(2)), pullback.ones(2))
    assert not dynamo.testing.same(compiled(pullback.zeros(2)), pullback.zeros(2))
    assert dynamo.testing.rand_strided((2, 3), (1, 2)).stride() == (1, 2)


def test_explanation_has_graphs() -> None:
    explanation = dynamo.explain(branch)(pullback.ones(2))
    assert (explanation.graph_count, len(explanation.graphs), explanation.graph_break_count) == (2, 2, 1)
    explanation = dynamo.explain(lambda x: x.sin() + 1, pullback.ones(2))
    assert [str(target) for target in explanation.ops_per_graph[0]] == ["aten.sin.default", "aten.add.Tensor"]
    assert len(explanation.out_guards) == 1


def test_run_makes_no_program() -> None:
    compiled = pullback.compile(lambda x: x + 1)
    assert dynamo.run(compiled)(pullback.ones(1)).tolist() == [2.0]
    assert not compiled.kinds


def test_default_backend_is_that_of_calls_that_name_none() -> None:
    seen = []

    def keep(graph: Any, examples: Any) -> Any:
        seen.append(graph)
        return graph.forward

    pullback.compiler.set_default_backend(keep)
    try:
        pullback.compile(lambda x: x + 1)(pullback.ones(1))
    finally:
        pullback.compiler.set_default_backend(None)
    assert len(seen) == 1
    assert pullback.compiler.get_default_backend() == "inductor"


def test_loops_as_functions() -> None:
    assert while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (0, pullback.ones(1)))[1].tolist() == [8.0]
    xs = pullback.arange(6.0).reshape(3, 2)
    carry, outputs = scan(lambda c, x: (c + x, c * x), pullback.zeros(2), xs, reverse=True)
    assert (carry.tolist(), outputs.tolist()) == ([6.0, 9.0], [[0.0, 8.0], [8.0, 15.0], [0.0, 0.0]])
    carry, outputs = scan(lambda c, x: (c + x, c * x), pullback.zeros(3), xs, dim=1)
    assert (carry.tolist(), outputs.tolist()) == ([1.0, 5.0, 9.0], [[0.0, 0.0, 0.0], [0.0, 6.0, 20.0]])
    assert associative_scan(pullback.add, xs, 0).tolist() == [[0.0, 1.0], [2.0, 4.0], [6.0, 9.0]]
    assert associative_scan(pullback.add, xs, 1, reverse=True).tolist() == [[1.0, 1.0], [5.0, 3.0], [9.0, 5.0]]
    assert map_over(lambda x, y: x + y, xs, pullback.ones(2)).tolist() == (xs + 1).tolist()
