"""Coverage of derivatives: measured, of a program, and insisted on in the forward."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import pullback
from pullback.autograd.function import once_differentiable
from pullback.generated.registry import OPERATIONS
from pullback.inspection import coverage as coverage_module
from pullback.inspection.coverage import checked, coverage, measured, program_coverage
from pullback.inspection.derivative_use import rule_branches, used_derivatives
from pullback.inspection.rule_digests import rule_digest
from pullback.inspection.strict_derivatives import strict_derivatives
from pullback.utils.checkpoint import checkpoint


def test_measurements_are_of_the_rules_as_they_are() -> None:
    stale = [name for name, entry in measured().items() if entry["rule"] != rule_digest(name)]
    assert stale == [], "run `python -m tests.derivatives.measure`"


def test_the_gradients_of_all_rules_and_branches_were_checked() -> None:
    # Operations that other tests declared in this process are not the package's.
    rows = [row for row in coverage().rows if not OPERATIONS[row["operation"]].family.startswith("declared_")]
    own = {n for n, o in OPERATIONS.items() if not o.family.startswith("declared_")}
    assert [row["operation"] for row in rows if row["inputs"] and not row["gradient"]] == []
    assert [row["operation"] for row in rows if row["unchecked"]] == []
    assert {row["operation"] for row in rows} == {n for n in own if OPERATIONS[n].kind != "non_differentiable"}


def test_what_was_measured_of_another_rule_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "float64" in checked("mul")["gradient"]
    monkeypatch.setattr(coverage_module, "rule_digest", lambda name: "other")
    assert checked("mul") == {}


def test_branches_of_rules_are_told_apart() -> None:
    x = pullback.ones(3, requires_grad=True)
    with used_derivatives() as used:
        pullback.add(x, x, alpha=2).sum().backward()
    assert set(used.operations["add"].branches) == {"not alpha == 1"}
    with used:
        pullback.add(x, x).sum().backward()
    assert set(used.operations["add"].branches) == set(rule_branches("add"))


def test_a_branch_of_a_line_that_nobody_wants_is_not_used() -> None:
    x = pullback.ones(3, requires_grad=True)
    with used_derivatives() as used:
        pullback.add(x, pullback.ones(3), alpha=2).sum().backward()
    assert used.operations["add"].branches == {}
    assert set(used.operations["add"].inputs) == {"input"}


def test_calls_without_gradients_are_counted_apart() -> None:
    x = pullback.ones(3, requires_grad=True)
    with used_derivatives() as used:
        x.exp().detach()
        x.sin().sum().backward()
    rows = {row["operation"]: row for row in program_coverage(used).rows}
    assert (rows["exp"]["calls"], rows["exp"]["passes"]) == (1, 0)
    assert (rows["sin"]["passes"], rows["sin"]["dtypes"]) == (1, ["float32"])
    assert rows["sin"]["unchecked"] == []


def test_what_is_not_checked_at_a_dtype_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = {**measured()["add"], "gradient": ["float64"], "branches": {"not alpha == 1": ["float64"]}}
    monkeypatch.setattr(coverage_module, "measured", lambda: {"add": entry})
    x = pullback.ones(3, requires_grad=True)
    with used_derivatives() as used:
        pullback.add(x, x, alpha=2).sum().backward()
    row = next(row for row in program_coverage(used).rows if row["operation"] == "add")
    assert row["unchecked"] == ["float32", "not alpha == 1 (float32)"]


def test_the_command_tells_what_a_script_used(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import sys, torch\n"
        "x = torch.ones(3, requires_grad=True)\n"
        "torch.add(x, x, alpha=3).exp().sum().backward()\n"
        "print('argument', sys.argv[1])\n"
    )
    command = [sys.executable, "-m", "pullback", "coverage", str(script), "7"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.startswith("argument 7")
    assert "not alpha == 1" in printed
    file = tmp_path / "coverage.json"
    command[4:4] = ["--json", str(file)]
    subprocess.run(command, capture_output=True, check=True)
    data = json.loads(file.read_text())
    assert {row["operation"] for row in data["rows"]} == {"add", "exp", "sum_all"}


def test_a_script_that_fails_is_reported_too(tmp_path: Path) -> None:
    script = tmp_path / "fails.py"
    script.write_text("import torch\ntorch.ones(3, requires_grad=True).exp()\nraise ValueError('no')\n")
    result = subprocess.run([sys.executable, "-m", "pullback", "coverage", str(script)], capture_output=True, text=True)
    assert result.returncode == 1
    assert "ValueError: no" in result.stderr
    assert "exp" in result.stdout


class Once(pullback.autograd.Function):
    """Once differentiable, without forward mode."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return 2 * x

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Any) -> Any:
        return 2 * grad


def test_a_missing_gradient_raises_in_the_forward() -> None:
    x = pullback.ones(3, requires_grad=True)
    pullback.special.zeta(x, pullback.ones(3))  # which raises in backward only
    with strict_derivatives():
        with pytest.raises(NotImplementedError, match=r"derivative for .*zeta.* is not implemented"):
            pullback.special.zeta(x, pullback.ones(3))
        pullback.special.zeta(pullback.full((3,), 2.0), x)  # that of the other input exists
        pullback.special.zeta(x.detach(), pullback.ones(3))
    pullback.special.zeta(x, pullback.ones(3))


def test_the_order_decides() -> None:
    x = pullback.ones(3, requires_grad=True)
    with strict_derivatives():
        Once.apply(x)
    with strict_derivatives(order=2):
        x.exp()
        with pytest.raises(NotImplementedError, match="Once"):
            Once.apply(x)
        Once.apply(x.detach())
    log_probs = pullback.randn(5, 2, 4).log_softmax(2).requires_grad_()
    arguments = (log_probs, pullback.tensor([[1, 2], [1, 3]]), pullback.tensor([5, 5]), pullback.tensor([2, 2]))
    with strict_derivatives():
        pullback.nn.functional.ctc_loss(*arguments)
    with strict_derivatives(order=2), pytest.raises(NotImplementedError, match="ctc_loss"):
        pullback.nn.functional.ctc_loss(*arguments)


def test_forward_mode_is_insisted_on_where_asked_for() -> None:
    x = pullback.ones(3, requires_grad=True)
    with strict_derivatives(forward_mode=True), pytest.raises(NotImplementedError, match="Once") as caught:
        Once.apply(x)
    assert "no jvp" in "".join(caught.value.__notes__)
    with pytest.raises(ValueError, match="order of at least 1"):
        strict_derivatives(0)


def test_a_reentrant_checkpoint_has_no_second_derivative() -> None:
    x = pullback.ones(3, requires_grad=True)
    with strict_derivatives():
        checkpoint(pullback.sin, x, use_reentrant=True)
    with strict_derivatives(order=2):
        checkpoint(pullback.sin, x, use_reentrant=False)
        with pytest.raises(NotImplementedError, match="CheckpointFunction") as caught:
            checkpoint(pullback.sin, x, use_reentrant=True)
    assert "use_reentrant=False" in caught.value.__notes__[0]


def test_the_command_sees_threads_that_the_program_starts(tmp_path: Path) -> None:
    script, file = tmp_path / "script.py", tmp_path / "report.json"
    script.write_text(
        "import threading\nimport torch\nw = torch.ones(3, requires_grad=True)\n"
        "def work():\n    (w.sinh() * w).sum().backward()\n"
        "thread = threading.Thread(target=work)\nthread.start()\nthread.join()\nw.cosh()\n"
    )
    subprocess.run([sys.executable, "-m", "pullback", "coverage", "--json", str(file), str(script)], check=True)
    used = {row["operation"]: row["passes"] for row in json.loads(file.read_text())["rows"]}
    assert used == {"sinh": 1, "mul": 1, "sum_all": 1, "cosh": 0}
