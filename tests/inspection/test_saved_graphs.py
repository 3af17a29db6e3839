"""A graph that was saved gives the same gradients in another process; no file runs code."""

from __future__ import annotations

import io
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import pullback
from pullback import nn
from pullback.autograd.graph import saved_tensors_hooks
from pullback.inspection import saved_graphs
from pullback.inspection.activation_budget import activation_budget
from pullback.inspection.fingerprints import grad_fingerprint
from pullback.inspection.rule_digests import rule_digest
from pullback.inspection.saved_graphs import load_graph, save_graph
from pullback.utils.checkpoint import checkpoint

F = nn.functional


class Block(nn.Module):
    """Views, in-place writes to views, indices, several results, a fused layer."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.join, self.out = nn.LayerNorm(16), nn.Linear(16, 48), nn.Linear(16, 16)
        self.table = nn.Parameter(pullback.randn(5, 16))

    def forward(self, x: Any) -> Any:
        queries, keys, values = self.join(self.norm(x)).chunk(3, -1)
        mixed = F.dropout((queries @ keys.transpose(-1, -2)).softmax(-1), 0.2) @ values
        x = x + self.out(mixed) + self.table[pullback.tensor([0, 2, 2, 4])]
        y = x * 1
        y[:, :2].mul_(self.table[0, :2])
        y[0] = y[1].exp()
        top, _ = pullback.cat([y, x.sin()], 0).topk(3, -1)
        return top.logsumexp(0).cumsum(0).std() + x.max() + (x.double() ** 2).mean().float()


def convolutions() -> Any:
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 5)
    )


def recorded(kind: str) -> tuple[Any, Any]:
    pullback.manual_seed(0)
    if kind == "block":
        model: Any = Block()
        return model, model(pullback.randn(4, 16))
    if kind == "recurrent":
        model = nn.LSTM(6, 7)
        return model, model(pullback.randn(5, 3, 6))[0].square().mean()
    if kind == "penalty":
        model = convolutions()
        first = F.mse_loss(model(pullback.randn(8, 3, 8, 8)), pullback.ones(8, 5))
        (slope,) = pullback.autograd.grad(first, model[0].weight, create_graph=True)
        return model, slope.square().sum()
    model = convolutions()
    return model, F.cross_entropy(model(pullback.randn(8, 3, 8, 8)), pullback.arange(8) % 5)


def written(loss: Any, leaves: Any = None) -> io.BytesIO:
    file = io.BytesIO()
    save_graph(loss, file, leaves)
    file.seek(0)
    return file


@pytest.mark.parametrize("kind", ["block", "convolutions", "recurrent", "penalty"])
def test_gradients_in_another_process_are_the_same_to_the_bit(kind: str, tmp_path: Path) -> None:
    model, loss = recorded(kind)
    path = tmp_path / "graph.pt"
    save_graph(loss, str(path), model)
    loss.backward()
    text = (
        "import sys, pullback\n"
        "graph = pullback.load_graph(sys.argv[1])\n"
        "graph.backward()\n"
        "print(graph.loss.item(), pullback.grad_fingerprint(graph.leaves))\n"
    )
    command = [sys.executable, "-c", text, str(path)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    leaves = {name: p for name, p in model.named_parameters() if p.grad is not None}
    order = load_graph(str(path)).leaves
    assert set(order) == set(leaves)
    assert printed == [str(loss.item()), grad_fingerprint({name: leaves[name] for name in order})]


def test_the_graph_itself_is_left_alone() -> None:
    _, loss = recorded("block")
    written(loss)
    loss.backward()


def test_second_derivatives_work_after_loading() -> None:
    x = pullback.tensor([0.3, 0.7], requires_grad=True)
    graph = load_graph(written((x.sin() * x.exp() / x).sum(), {"x": x}))
    leaf = graph.leaves["x"]
    (first,) = pullback.autograd.grad(graph.loss, leaf, create_graph=True)
    (second,) = pullback.autograd.grad(first.sum(), leaf)
    (expected,) = pullback.autograd.grad((x.sin() * x.exp() / x).sum(), x, create_graph=True)
    (expected,) = pullback.autograd.grad(expected.sum(), x)
    assert pullback.equal(second, expected)


def test_several_losses_share_their_leaves() -> None:
    x = pullback.ones(3, requires_grad=True)
    graph = load_graph(written([x.sum(), (2 * x).sum()]))
    assert len(graph.loss) == 2
    assert graph.backward()["leaf0"].tolist() == [3.0] * 3


def test_a_graph_runs_once() -> None:
    x = pullback.ones(3, requires_grad=True)
    graph = load_graph(written(x.exp().sum()))
    graph.backward()
    with pytest.raises(RuntimeError, match="second time"):
        graph.backward()


def test_what_is_code_cannot_be_saved() -> None:
    class Twice(pullback.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return 2 * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return 2 * grad

    x = pullback.ones(3, requires_grad=True)
    with pytest.raises(ValueError, match="TwiceBackward cannot be saved"):
        written(Twice.apply(x))
    y = x.exp()
    y.register_hook(print)
    with pytest.raises(ValueError, match="ExpBackward0 has hooks"):
        written(y.sum())
    x.register_hook(print)
    with pytest.raises(ValueError, match=r"leaf of shape .3. has hooks"):
        written(x.sin())


def _same_gradients(file: io.BytesIO, loss: Any, module: nn.Module) -> bool:
    loaded = load_graph(file).backward()
    loss.backward()
    return all(pullback.equal(loaded[name], parameter.grad) for name, parameter in module.named_parameters())


def test_a_graph_is_saved_while_a_page_about_it_is_made() -> None:
    layer, file = nn.Linear(3, 2), io.BytesIO()
    shared = layer(pullback.ones(4, 3)).exp().sum()

    class Saving(pullback.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            save_graph(shared, file, layer)  # the page's pass is running
            return grad

    page = pullback.graph_page(Saving.apply(shared), layer)
    assert page.data["notes"] == []
    file.seek(0)
    assert _same_gradients(file, shared, layer)


def test_a_thread_that_looks_at_a_graph_waits_until_it_is_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    layer, file, looked = nn.Linear(3, 2), io.BytesIO(), threading.Event()
    loss = layer(pullback.ones(4, 3)).exp().sum()

    def look() -> None:
        node = loss.grad_fn
        while node is not None and node.next_functions:  # a linear layer is expanded here
            node = node.next_functions[-1][0]
        looked.set()

    class Slow(saved_graphs._Writer):
        def nodes(self) -> Any:
            thread.start()
            assert not looked.wait(0.2)
            return super().nodes()

    thread = threading.Thread(target=look)
    monkeypatch.setattr(saved_graphs, "_Writer", Slow)
    save_graph(loss, file, layer)
    thread.join()
    file.seek(0)
    assert _same_gradients(file, loss, layer)


def test_released_and_modified_graphs_are_refused() -> None:
    x = pullback.ones(3, requires_grad=True)
    loss = x.exp().sum()
    loss.backward()
    with pytest.raises(RuntimeError, match="second time"):
        written(loss)
    y = x.exp()
    z = y.sum()
    y.detach().add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        written(z)
    with pytest.raises(ValueError, match="tensors that require grad"):
        written(pullback.ones(3))


def changed(file: io.BytesIO, change: Any) -> io.BytesIO:
    data = pullback.load(file)
    change(data)
    made = io.BytesIO()
    pullback.save(data, made)
    made.seek(0)
    return made


def test_another_version_is_refused() -> None:
    file = written(pullback.ones(3, requires_grad=True).exp())
    with pytest.raises(ValueError, match=r"saved by pullback 0\.0\.1, and this is pullback"):
        load_graph(changed(file, lambda data: data.update(version="0.0.1")))


def test_another_rule_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(pullback.ones(3, requires_grad=True).exp())
    digest = rule_digest
    monkeypatch.setattr(saved_graphs, "rule_digest", lambda name: "other" if name == "exp" else digest(name))
    with pytest.raises(ValueError, match="rule of 'exp' is not the one"):
        load_graph(file)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data["nodes"][0].update(edges=[[0, 0]]),
        lambda data: data["nodes"][0].update(edges=[[99, 0]]),
        lambda data: data["nodes"][0].update(edges=[[1, 5]]),
        lambda data: data["nodes"][0].update(kind="code"),
        lambda data: data["nodes"][0].update(saved={"__class__": 1}),
        lambda data: data["nodes"][0].update(saved={"result": ["call", "os.system", "true"]}),
        lambda data: data["rules"].update(eval="0" * 16),
        lambda data: data.update(format="other"),
    ],
)
def test_damaged_files_are_refused(change: Any) -> None:
    file = written(pullback.ones(3, requires_grad=True).exp())
    with pytest.raises(ValueError, match=r"damaged|does not hold|is not there"):
        load_graph(changed(file, change))


def test_no_code_runs_from_a_file(tmp_path: Path) -> None:
    class Harm:
        def __reduce__(self) -> Any:
            return (Path.touch, (tmp_path / "harmed",))

    file = io.BytesIO(pickle.dumps({"format": Harm()}))
    with pytest.raises(Exception, match=r"."):
        load_graph(file)
    assert not (tmp_path / "harmed").exists()


@pytest.mark.parametrize("block", ["budget", "hooks"])
def test_a_result_that_was_packed_is_saved_as_a_result(block: str) -> None:
    x = pullback.tensor([0.5, 2.0], requires_grad=True)
    packing = saved_tensors_hooks(lambda tensor: tensor.numpy(force=True), pullback.from_numpy)
    with activation_budget(0) if block == "budget" else packing:
        loss = (x.exp() * x.sin()).sum()
    (found,) = load_graph(written(loss)).backward().values()
    (expected,) = pullback.autograd.grad(loss, x)
    assert pullback.equal(found, expected)


def test_what_cannot_be_saved_is_refused_with_the_way_round() -> None:
    x = pullback.ones(3, requires_grad=True)
    with pytest.raises(ValueError, match=r"CheckpointFunctionBackward cannot .* use_reentrant=False"):
        save_graph(checkpoint(pullback.sin, x, use_reentrant=True).sum(), io.BytesIO())
    compiled = pullback.compile(lambda x: (x.sin() * x).sum())
    for _ in range(3):
        loss = compiled(x)
    with pytest.raises(ValueError, match="the function itself in the place of its compiled form"):
        save_graph(loss, io.BytesIO())
