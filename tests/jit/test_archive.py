"""Saved programs are data: what a file names is looked up among public functions, and nothing else is called."""

from __future__ import annotations

import io
from typing import Any

import pytest

import pullback
from pullback.pytorch.jit import archive

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")


def saved_content(program: Any) -> dict[str, Any]:
    file = io.BytesIO()
    archive.save(program, file)
    file.seek(0)
    content: dict[str, Any] = pullback.load(file)
    return content


def load_content(content: Any) -> Any:
    file = io.BytesIO()
    pullback.save(content, file)
    file.seek(0)
    return archive.load(file)


@pytest.mark.parametrize("name", ["os.system", "builtins.eval", "torch.load", "torch.hub.load", "torch._C._nn.nothing"])
def test_a_function_that_is_not_public_is_refused(name: str) -> None:
    content = saved_content(pullback.jit.trace(lambda x: x.sin(), pullback.ones(1)))
    content["nodes"][1] = ["call_function", "sin", name, {"tuple": [{"node": "x"}]}, {"dict": []}]
    with pytest.raises(RuntimeError, match="may not call"):
        load_content(content)


def test_a_private_method_is_refused() -> None:
    content = saved_content(pullback.jit.trace(lambda x: x.sin(), pullback.ones(1)))
    content["nodes"][1][2] = "__reduce__"
    with pytest.raises(RuntimeError, match="may not call"):
        load_content(content)


def test_a_private_attribute_is_refused_when_it_is_read() -> None:
    content = saved_content(pullback.jit.trace(lambda x: x.T, pullback.ones(1, 2)))
    node = next(node for node in content["nodes"] if node[2] == "builtins.getattr")
    node[3]["tuple"][1] = "__class__"
    with pytest.raises(RuntimeError, match="may not read"):
        load_content(content)(pullback.ones(1, 2))


@pytest.mark.parametrize("content", [[1, 2], {"format": "something else"}])
def test_a_file_without_a_program_is_refused(content: Any) -> None:
    with pytest.raises(RuntimeError, match="not a program that pullback saved"):
        load_content(content)


def test_arguments_of_every_kind_come_back() -> None:
    def program(x: Any) -> Any:
        y = x[..., 1:3].to(pullback.float64)
        return pullback.cat([y, y], dim=0).sum(dim=(0, 1), keepdim=True), {"a": x}

    x = pullback.arange(8.0).reshape(2, 4)
    loaded = load_content(saved_content(pullback.jit.trace(program, x)))
    first, second = loaded(x)
    assert pullback.equal(first, program(x)[0])
    assert first.dtype is pullback.float64
    assert pullback.equal(second["a"], x)


def test_saving_what_was_neither_scripted_nor_traced_is_refused() -> None:
    with pytest.raises(RuntimeError, match="scripted or traced"):
        archive.save(pullback.nn.Linear(1, 1), io.BytesIO())


def test_a_scripted_program_that_is_not_a_graph_cannot_be_saved() -> None:
    def program(x: Any) -> Any:
        return x if x.sum() > 0 else -x

    with pytest.raises(RuntimeError, match="cannot be written as a graph"):
        archive.save(pullback.jit.script(program), io.BytesIO())
