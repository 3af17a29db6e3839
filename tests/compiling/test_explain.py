"""explain and check: what a program consists of, and whether it is right."""

from __future__ import annotations

import copy
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import pullback
from pullback import nn
from pullback.compiling import explaining
from pullback.compiling.program import replay
from tests.compiling.comparison import CALLS, skipped, weights


def test_explain_tells_kernels_and_what_is_kept() -> None:
    text = str(pullback.compiler.explain(lambda x: x.sin().exp().sum())(weights(2)))
    assert "One program" in text
    assert "trigonometric.sin" in text
    assert "Kept for backward" in text


def test_explain_tells_what_keeps_a_function_eager() -> None:
    def choose(x: Any) -> Any:
        return x if x.sum() > 0 else -x

    explanation = pullback.compiler.explain(choose)(pullback.ones(2))
    assert explanation.graph_break_count == 1
    assert "decides a branch" in str(explanation)
    assert "test_explain.py" in str(explanation)


class _Tags(HTMLParser):
    """The tags that are open, and all attributes that lead to somewhere else."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.links += [value for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_page_of_a_program_has_kernels_with_text_and_time(tmp_path: Path) -> None:
    explanation = pullback.compiler.explain(lambda x: (x.sin().exp() @ x).cumsum(0).sum())(weights(3, 3))
    assert [listed.title for listed in explanation.kernels] == ["Forward", "Backward"]
    kernels = [kernel for listed in explanation.kernels for kernel in listed.kernels]
    assert all(kernel.seconds >= 0 for kernel in kernels)
    assert any(kernel.title == "kernel scans.cumsum" for kernel in kernels)
    text = explanation.save(tmp_path / "new" / "page.html").read_text(encoding="utf-8")
    assert "exp_of(" in text
    assert "i0 &lt; 9; " in text
    assert "&lt;lambda&gt;" in text
    assert "float32 [3, 3], 36 bytes" in text
    tags = _Tags(text)
    assert not tags.open
    assert not tags.links


def test_page_of_a_function_in_pieces_has_lines_reasons_and_kernels() -> None:
    def choose(x: Any) -> Any:
        y = x.exp()
        if y.sum() < 3:
            y = y - 1
        return y.log()

    compiled = pullback.compile(choose)
    for _ in range(CALLS + 2):
        compiled(pullback.ones(2))
    text = pullback.compiler.explain(compiled)(pullback.ones(2)).to_html()
    assert "the value of a tensor decides a branch" in text
    assert "if y.sum() &lt; 3:" in text
    assert "exp_of(" in text
    assert "not measured" not in text
    assert "Recorded for" in text
    assert not _Tags(text).open


def test_page_names_steps_of_optimizers() -> None:
    layer = nn.Linear(2, 2)
    optimizer = pullback.optim.Adam(layer.parameters())

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = layer(x).square().sum()
        loss.backward()
        optimizer.step()
        return loss.item()

    step(pullback.ones(2))
    text = pullback.compiler.explain(step)(pullback.ones(2)).to_html()
    assert "optimizer.update of 2 parameters" in text


def test_explain_has_the_effects_of_one_call() -> None:
    layers = [nn.Sequential(nn.BatchNorm1d(3), nn.Dropout(0.5)) for _ in range(2)]
    drawn = []
    for layer, run in zip(layers, (lambda f: f, pullback.compiler.explain), strict=True):
        pullback.manual_seed(0)
        run(layer)(weights(4, 3))
        drawn.append(pullback.rand(2))
    assert pullback.equal(*drawn)
    assert pullback.equal(layers[0][0].running_mean, layers[1][0].running_mean)
    assert layers[1][0].num_batches_tracked == 1


def test_kernels_are_told_without_times_where_there_is_no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explaining, "build", replay)
    explanation = pullback.compiler.explain(lambda x: x.exp().sin())(pullback.ones(2))
    ((_, kernels),) = explanation.kernels
    assert [kernel.seconds for kernel in kernels] == [None, None]
    assert "not measured" in explanation.to_html()


def test_check_passes_where_a_program_is_right() -> None:
    layer = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5), nn.BatchNorm1d(3))
    twin = copy.deepcopy(layer)
    compiled = pullback.compile(lambda x: layer(x).exp(), check=True)
    for call in range(CALLS):
        pullback.manual_seed(call)
        actual, after = compiled(weights(4, 3, seed=call)), pullback.rand(1)
        pullback.manual_seed(call)
        expected = twin(weights(4, 3, seed=call)).exp()
        assert pullback.equal(actual, expected)
        assert pullback.equal(after, pullback.rand(1))
    assert pullback.equal(layer[2].running_var, twin[2].running_var)
    assert skipped(compiled) == 2


def test_check_names_the_first_operation_that_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    from pullback.compiling import compiled_function
    from pullback.compiling.program import Program, Runner, replay

    def build_wrongly(program: Program) -> Runner:
        for call in program.calls:
            if call.kernel == "trigonometric.cos":
                call.function = lambda x: x * 2
        return replay(program)

    def function(x: Any) -> Any:
        y = x.sin()
        y = y.cos()
        return y.exp()

    compiled = pullback.compile(function, check=True)
    monkeypatch.setattr(compiled_function, "build", build_wrongly)
    compiled(pullback.ones(2))
    compiled(pullback.ones(2))
    with pytest.raises(RuntimeError, match=r"in trigonometric.cos at .*y = y.cos\(\)"):
        compiled(pullback.ones(2))
