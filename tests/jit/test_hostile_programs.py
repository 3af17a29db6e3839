"""A saved program is data: whatever its file holds, loading and running it calls functions that compute and nothing else."""

from __future__ import annotations

import io
from typing import Any

import pytest

import pullback
from pullback import jit, serialization

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
NOTHING: tuple[Any, Any] = ({"tuple": []}, {"dict": []})
X = ["placeholder", "x", "x", *NOTHING]


def _file(*nodes: list[Any], **changes: Any) -> io.BytesIO:
    result = ["output", "output", "output", {"tuple": [{"node": nodes[-1][1]}]}, {"dict": []}]
    content = {
        "format": "pullback.jit 1", "name": "f", "kinds": {}, "training": False, "parameters": {}, "buffers": {},
        "nodes": [*nodes, result],
    }  # fmt: skip
    file = io.BytesIO()
    serialization.save(content | changes, file)
    file.seek(0)
    return file


def _call(function: str, *arguments: Any, **keywords: Any) -> list[Any]:
    encoded = {"tuple": list(arguments)}, {"dict": [[name, value] for name, value in keywords.items()]}
    return ["call_function", "y", function, *encoded]


def test_a_program_made_by_hand_runs() -> None:
    program = jit.load(_file(X, _call("_operator.add", {"node": "x"}, 2)))

    assert program(pullback.ones(1)).item() == 3


@pytest.mark.parametrize(
    "nodes",
    [
        [["placeholder", "x", "x=print()", *NOTHING]],
        [["placeholder", "x", "x, y=print()", *NOTHING]],
        [["placeholder", "x", "lambda", *NOTHING]],
        [X, _call("torch.sin", **{"input=print(), other": 1})],
        [X, ["get_attr", "y", 'a") or print("', *NOTHING]],
        [X, _call("_operator.add", {"node": "x"}, {"dict": [[{"tuple": []}, 1]], "more": 1})],
        [X, _call("_operator.add", {"node": "x"}, {"unknown": 1})],
        [X, _call("_operator.add", {"node": "x"}, pullback.float32)],
    ],
)
def test_what_could_become_code_is_refused(nodes: list[Any]) -> None:
    with pytest.raises(RuntimeError, match="the program in the file is damaged"):
        jit.load(_file(*nodes, parameters={"a": pullback.ones(1)}))


@pytest.mark.parametrize(
    "function",
    [
        "_operator.call", "_operator.attrgetter", "_operator.methodcaller", "builtins.object.__getattribute__", "builtins.eval",
        "builtins.object.__setattr__", "torch.Tensor.__init__", "torch.Tensor.__reduce_ex__", "torch.Tensor._memory",
        "torch.from_file", "torch.load", "torch.backend.dtype.set_default_dtype", "torch.Tensor.register_hook",
    ],
)  # fmt: skip
def test_a_function_that_does_more_than_compute_is_refused(function: str) -> None:
    with pytest.raises(RuntimeError, match="which a saved program may not call"):
        jit.load(_file(X, _call(function, {"node": "x"})))


@pytest.mark.parametrize("method", ["_memory", "__init__", "register_hook", "nothing"])
def test_a_method_that_does_more_than_compute_is_refused(method: str) -> None:
    with pytest.raises(RuntimeError, match="which a saved program may not call"):
        jit.load(_file(X, ["call_method", "y", method, {"tuple": [{"node": "x"}]}, {"dict": []}]))


def test_parts_that_occur_twice_are_refused() -> None:
    part: list[Any] = [1]
    for _ in range(40):
        part = [part, part]

    with pytest.raises(RuntimeError, match="occurs twice"):
        jit.load(_file(X, _call("_operator.add", {"node": "x"}, part)))


@pytest.mark.parametrize("name", ["a b", "a.", "", "a-b", 'a"'])
def test_a_tensor_of_a_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(RuntimeError, match="is not a name"):
        jit.load(_file(X, parameters={name: pullback.ones(1)}))
