"""A notebook in a kernel of its own shows what it is given as HTML. Needs nbclient and ipykernel: `make test-notebook`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ipykernel")
nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")

FIRST = """
import time
import pullback as torch
from pullback import nn
from pullback.utils.graph_picture import make_dot, read_graph
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
loss = model(torch.randn(5, 4)).square().mean()
with torch.activation_budget(100) as budget:
    second = model(torch.randn(5, 4)).square().mean()
second.backward()
with torch.profiler.profile(profile_memory=True) as prof:
    model(torch.randn(5, 4)).sum().backward()
with torch.grad_health() as health, torch.used_derivatives() as used:
    model(torch.randn(5, 4)).sum().backward()
with torch.watch_backward(model) as watch:
    model(torch.randn(5, 4)).sum().backward()
with torch.recorded_run() as one:
    model(torch.ones(5, 4)).sum().backward()
with torch.recorded_run() as other:
    model(torch.ones(5, 4) * 2).sum().backward()
x = torch.zeros(1, requires_grad=True)
root = x.sqrt().sum()
def slow(x):
    time.sleep(0.05)
    return (x * x).sum()
"""
SHOWN = [
    "torch.randn(3, 4)", "nn.Parameter(torch.ones(3))", "torch.eye(2).to_sparse()", "model", "loss", "loss.grad_fn",
    "torch.graph_page(loss, model)", "watch", "read_graph(loss, model)", "torch.saved_report(loss)", "budget",
    "budget.report()", "torch.summary(model, (5, 4))", "prof", "prof.key_averages()", "prof.by_line()", "prof.by_module()",
    "prof.by_operation()", "health", "torch.coverage()", "torch.program_coverage(used)", "torch.explain_grad(model, loss)",
    "torch.explain_grad(x.detach())", "torch.diagnose(root)", "torch.first_difference(one, other)",
]  # fmt: skip
LAST = "torch.autograd.gradcheck(slow, torch.randn(30, dtype=torch.float64, requires_grad=True))"


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """What each cell shows, by its text."""
    folder = tmp_path_factory.mktemp("notebook")
    path = os.pathsep.join([str(Path(__file__).parents[2] / "src"), os.environ.get("PYTHONPATH", "")])
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in (FIRST, *SHOWN, LAST)])
    client = nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}})
    client.execute(env={**os.environ, "PYTHONPATH": path, "IPYTHONDIR": str(folder)})
    return {cell.source: cell.outputs for cell in notebook.cells}


@pytest.mark.parametrize("text", SHOWN)
def test_it_is_shown_as_html_beside_its_text(cells: dict[str, list[Any]], text: str) -> None:
    data = cells[text][-1].data
    assert data["text/html"].startswith("<")
    assert data["text/plain"]


def test_long_work_shows_a_bar(cells: dict[str, list[Any]]) -> None:
    shown, result = cells[LAST]
    assert "finite differences" in str(shown)
    assert result.data["text/plain"] == "True"
