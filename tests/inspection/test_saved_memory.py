"""The ledger of saved memory tells what is really held."""

from __future__ import annotations

import gc
import json
import tracemalloc
from typing import Any

import pytest

import pullback
from pullback import nn
from pullback.autograd.graph import record_source_lines, saved_tensors_hooks
from pullback.backend.array_module import storage_of
from pullback.inspection.saved_memory import saved_report
from pullback.utils.checkpoint import checkpoint


def small_network() -> Any:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(8 * 16 * 16, 64), nn.GELU(), nn.Dropout(0.3), nn.Linear(64, 10),
    )  # fmt: skip


def test_activations_are_what_tracemalloc_counts() -> None:
    model, x = small_network(), pullback.randn(16, 3, 32, 32)
    target = pullback.zeros(16, dtype=pullback.int64)
    nn.functional.cross_entropy(model(x), target)  # whatever is made once is made
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        loss = nn.functional.cross_entropy(model(x), target)
        gc.collect()
        held = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    facts = saved_report(loss).facts
    made = facts["activation_bytes"] - x._array.nbytes - target._array.nbytes  # these were there before
    assert 0 <= held - made < 0.03 * made  # nodes and tensors themselves are small beside


def test_shared_memory_counts_once() -> None:
    x = pullback.ones(256, requires_grad=True)
    y = x.exp()
    report = saved_report(y * y)
    assert [row["bytes"] for row in report.rows] == [1024, 0, 0]
    assert report.rows[2]["shared_with"] == "MulBackward0#0.input"
    assert report.facts["total_bytes"] == 1024


def test_a_small_view_holds_the_memory_it_lies_in() -> None:
    x = pullback.ones(2, requires_grad=True)
    part = pullback.ones(1000)[:2]
    assert saved_report(x * part).facts["total_bytes"] == 4000


def test_memory_of_leaves_is_told_apart() -> None:
    weight, x = pullback.ones(4, 4, requires_grad=True), pullback.ones(4, 4, requires_grad=True).exp()
    report = saved_report(x @ weight)
    assert [row["of_leaf"] for row in report.rows if row["operation"] == "MmBackward0"] == [False, True]
    assert report.facts["total_bytes"] - report.facts["activation_bytes"] == 64


def test_what_was_released_is_not_held() -> None:
    loss = pullback.ones(4, requires_grad=True).exp().sum()
    loss.backward()
    assert saved_report(loss).facts["total_bytes"] == 0


def test_custom_functions_and_packed_values_are_counted() -> None:
    class Square(pullback.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            ctx.helper = pullback.ones(100)
            return x * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return 2 * grad * ctx.saved_tensors[0]

    x = pullback.ones(10, requires_grad=True)
    assert saved_report(Square.apply(x)).facts["total_bytes"] == 40 + 400
    with pullback.autograd.graph.saved_tensors_hooks(lambda t: (t.clone(),), lambda packed: packed[0]):
        y = x.exp()
    assert saved_report(y).facts["activation_bytes"] == 40


def test_what_compiled_functions_keep_is_counted() -> None:
    model, x = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 8)), pullback.randn(32, 64)
    compiled = pullback.compile(model)
    for _ in range(4):
        y = compiled(x)
    node = y._edge[0]
    assert node.name() == "CompiledFunctionBackward"
    owners = {id(storage_of(array)): storage_of(array).nbytes for array in node.kept}
    assert saved_report(y).facts["total_bytes"] == sum(owners.values()) > 32 * 64 * 4


def test_fused_nodes_are_read_without_expanding_them() -> None:
    loss = nn.Linear(3, 4)(pullback.ones(2, 3, requires_grad=True))
    saved_report(loss)
    assert loss._edge[0].extra is None or loss._edge[0].extra.outer is None


def test_rows_name_the_line() -> None:
    x = pullback.ones(3, requires_grad=True)
    with record_source_lines():
        y = x.exp()
    line = test_rows_name_the_line.__code__.co_firstlineno + 3
    assert saved_report(y).rows[0]["line"] == f"{__file__}:{line}"


def test_a_report_is_text_html_and_plain_data() -> None:
    report = saved_report(pullback.ones(300, requires_grad=True).exp())
    assert "ExpBackward0" in str(report)
    assert "1.2 KiB" in str(report)
    assert "<td>ExpBackward0</td>" in report._repr_html_()
    assert json.loads(json.dumps(report.to_dict()))["facts"]["total_bytes"] == 1200


def test_arrays_that_a_hook_packed_are_counted() -> None:
    with saved_tensors_hooks(lambda tensor: (1, [tensor.numpy(force=True)]), lambda packed: pullback.tensor(packed[1])):
        loss = pullback.ones(10, requires_grad=True).exp().sum()
    assert saved_report(loss).facts["activation_bytes"] == 40


@pytest.mark.parametrize("reentrant", [False, True])
def test_inputs_of_checkpoints_are_held(reentrant: bool) -> None:
    x = pullback.ones(100, requires_grad=True)
    inner = checkpoint(lambda h: h.exp() * 2, x, use_reentrant=reentrant, preserve_rng_state=False)
    loss = checkpoint(lambda h: h.sin().exp(), inner, use_reentrant=reentrant, preserve_rng_state=False).sum()
    facts = saved_report(loss).facts
    assert (facts["total_bytes"], facts["activation_bytes"]) == (800, 400)


def test_inputs_of_a_checkpoint_count_in_its_first_row_alone() -> None:
    x = pullback.ones(100, requires_grad=True)
    loss = checkpoint(lambda h: h.exp().sin(), x.sin(), use_reentrant=False, preserve_rng_state=False).sum()
    rows = {row["operation"]: row for row in saved_report(loss).rows}
    assert [rows[f"{name}Backward0"]["bytes"] for name in ("Sin", "Exp")] == [400, 0]


def test_what_recomputation_needs_is_held() -> None:
    x = pullback.ones(100, requires_grad=True)
    with pullback.activation_budget(0):
        data = pullback.ones(100)
        loss = (x * 2 + data).sin().sum()
    del data
    report = saved_report(loss)
    assert report.facts["activation_bytes"] == 400  # the data: sin's input is computed from it
    assert report.facts["total_bytes"] == 800


def test_rows_of_compiled_functions_name_operations() -> None:
    x, weight = pullback.ones(8, 8), pullback.ones(8, 8, requires_grad=True)
    compiled = pullback.compile(lambda x: (x @ weight).exp().sum())
    for _ in range(3):
        loss = compiled(x)
    rows = {row["saved"]: row["bytes"] for row in saved_report(loss).rows}
    assert rows == {"result of exp": 256, "input": 256}
