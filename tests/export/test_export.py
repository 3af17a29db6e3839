"""torch.export: modules as graphs that run, train, are saved and loaded, and refuse what they were not exported for."""

from __future__ import annotations

import copy
import io
from typing import Any

import pytest

import pullback
from pullback import nn
from pullback.export import Dim, export, load, save


class Nested(nn.Module):
    """Takes and returns containers; has a buffer, a constant and an attribute that is a tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.norm, self.shift = nn.Linear(3, 2), nn.BatchNorm1d(2), pullback.ones(2)
        self.register_buffer("scale", pullback.full((2,), 2.0), persistent=False)

    def forward(self, x: Any, *, factor: float = 1.0, more: Any = None) -> Any:
        y = self.norm(self.layer(x)) * factor * self.scale + self.shift + pullback.tensor([1.0, 2.0])
        return {"out": y.relu(), "more": (more["a"] + 1, 7)}


def _x(*shape: int) -> Any:
    return pullback.linspace(-1, 1, int(pullback.tensor(shape).prod())).reshape(shape)


MODELS: dict[str, tuple[Any, tuple[Any, ...], dict[str, Any]]] = {
    "nested": (Nested(), (_x(4, 3),), {"factor": 2.0, "more": {"a": _x(2)}}),
    "mlp": (nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.Linear(4, 2)), (_x(5, 3),), {}),
    "convolution": (
        nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(18, 2)),
        (_x(2, 1, 8, 8),), {},
    ),
    "transformer": (nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True), (_x(2, 3, 4),), {}),
    "embedding": (nn.Sequential(nn.Embedding(5, 3), nn.LayerNorm(3)), (pullback.tensor([[0, 4], [2, 1]]),), {}),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_program_computes_what_the_module_does(name: str) -> None:
    model, args, kwargs = copy.deepcopy(MODELS[name])
    buffers = [buffer.clone() for buffer in model.buffers()]
    program = export(model, args, kwargs)
    pullback.testing.assert_close(list(model.buffers()), buffers)
    again = copy.deepcopy(model)
    expected = again(*args, **kwargs)
    actual = program.module()(*args, **kwargs)
    pullback.testing.assert_close(actual, expected)
    pullback.testing.assert_close(list(model.buffers()), list(again.buffers()))


@pytest.mark.parametrize("name", MODELS)
def test_saved_program_is_the_same_after_loading(name: str) -> None:
    model, args, kwargs = copy.deepcopy(MODELS[name])
    program = export(model.eval(), args, kwargs)
    file = io.BytesIO()
    save(program, file, extra_files={"note": "about it"})
    extra = {"note": ""}
    loaded = load(io.BytesIO(file.getvalue()), extra_files=extra)
    assert str(loaded) == str(program)
    assert extra == {"note": "about it"}
    assert list(loaded.state_dict) == list(program.state_dict)
    pullback.testing.assert_close(loaded.module()(*args, **kwargs), model(*args, **kwargs))


def test_program_can_be_trained() -> None:
    model, args, _ = copy.deepcopy(MODELS["mlp"])
    module = export(model, args).module()
    assert [name for name, _ in module.named_parameters()] == [name for name, _ in model.named_parameters()]
    (module(*args) ** 2).sum().backward()
    gradients = [parameter.grad for parameter in model.parameters()]
    model.zero_grad()
    (model(*args) ** 2).sum().backward()
    pullback.testing.assert_close([parameter.grad for parameter in model.parameters()], gradients)


def test_signature_tells_what_inputs_are() -> None:
    model, args, kwargs = copy.deepcopy(MODELS["nested"])
    program = export(model, args, kwargs)
    signature = program.graph_signature
    assert signature.parameters == ("layer.weight", "layer.bias", "norm.weight", "norm.bias")
    assert signature.non_persistent_buffers == ("scale",)
    assert signature.lifted_tensor_constants == ("shift", "lifted_tensor_0")
    assert signature.user_inputs == ("x", 2.0, "more_a")
    assert signature.user_outputs == ("relu", "add_2", 7)
    assert sorted(program.constants) == ["lifted_tensor_0", "scale", "shift"]
    assert "scale" not in program.state_dict
    assert [name for name, _ in program.named_buffers()] == list(signature.buffers)
    assert len(list(program.parameters())) == 4


def test_sizes_named_in_dynamic_shapes_may_change() -> None:
    model, args, _ = copy.deepcopy(MODELS["convolution"])
    program = export(model.eval(), args, dynamic_shapes={"input": {0: Dim("batch", min=1, max=8)}})
    x = _x(3, 1, 8, 8)
    pullback.testing.assert_close(program.module()(x), model(x))
    with pytest.raises(AssertionError, match=r"Guard failed: input_1.size\(\)\[0\] in \[1, 8\]: got 9"):
        program.module()(_x(9, 1, 8, 8))
    file = io.BytesIO()
    save(program, file)
    pullback.testing.assert_close(load(file).module()(x), model(x))


def test_size_that_the_module_fixes_is_refused() -> None:
    model, args, _ = copy.deepcopy(MODELS["mlp"])
    with pytest.raises(ValueError, match="Constraints violated: the size 3 cannot change"):
        export(model, args, dynamic_shapes=({1: Dim("width")},))


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"factor": 3.0}, r"Guard failed: factor == 2.0: got 3.0"),
        ({"x": _x(5, 3)}, r"Guard failed: x.size\(\)\[0\] == 4: got 5"),
    ],
)
def test_other_values_and_sizes_are_refused(kwargs: Any, message: str) -> None:
    model, args, given = copy.deepcopy(MODELS["nested"])
    module = export(model, args, given).module()
    with pytest.raises(AssertionError, match=message):
        module(**{"x": args[0], **given, **kwargs})


def test_module_that_depends_on_values_is_refused() -> None:
    class Branching(nn.Module):
        def forward(self, x: Any) -> Any:
            return x if x.sum() > 0 else -x

    with pytest.raises(RuntimeError, match="get value out of a tracing tensor"):
        export(Branching(), (pullback.ones(2),))


def test_decompositions_take_calls_apart() -> None:
    program = export(nn.Tanh(), (pullback.ones(2),))
    tanh = pullback.ops.aten.tanh.default
    made = program.run_decompositions({tanh: lambda x: (x.exp() - (-x).exp()) / (x.exp() + (-x).exp())})
    assert "aten.tanh" not in str(made)
    pullback.testing.assert_close(made.module()(pullback.ones(2)), pullback.ones(2).tanh())


def test_program_is_not_called_itself() -> None:
    program = export(nn.Tanh(), (pullback.ones(2),))
    with pytest.raises(RuntimeError, match="Unable to call ExportedProgram directly"):
        program(pullback.ones(2))


def test_only_modules_and_tuples_are_taken() -> None:
    function: Any = pullback.tanh
    with pytest.raises(ValueError, match=r"Expected `mod` to be an instance of `torch\.nn\.Module`"):
        export(function, (pullback.ones(2),))
    alone: Any = pullback.ones(2)
    with pytest.raises(TypeError, match="Expecting `args` to be a tuple of example positional inputs"):
        export(nn.Tanh(), alone)


def test_file_that_is_not_a_program_is_refused() -> None:
    with pytest.raises(RuntimeError, match="is not an exported program"):
        load(io.BytesIO(b"nothing"))
