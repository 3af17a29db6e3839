"""Tensors sent to other processes share their memory with them, and nothing is left when the last user has gone."""

from __future__ import annotations

import gc
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import pullback
import pullback.multiprocessing as mp
from pullback.backend.shared_memory import mapping_of


def change(inbox: Any, outbox: Any, shared: Any) -> None:
    first = inbox.get()
    whole, part = inbox.get()
    parameter = inbox.get()
    first.add_(1)
    shared.mul_(3)
    whole[0] = 100
    with pullback.no_grad():
        parameter.add_(5)
    outbox.put((float(part[0]), first.is_shared(), type(parameter).__name__, parameter.requires_grad))
    outbox.put(pullback.arange(3.0))
    inbox.get()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_what_another_process_writes_is_seen_here(method: str) -> None:
    context = mp.get_context(method)
    inbox, outbox = context.Queue(), context.Queue()
    first, whole = pullback.zeros(3), pullback.arange(4.0)
    parameter, shared = pullback.nn.Parameter(pullback.zeros(2)), pullback.ones(2).share_memory_()
    process = context.Process(target=change, args=(inbox, outbox, shared))
    process.start()
    for value in (first, (whole, whole[:2]), parameter):
        inbox.put(value)
    assert outbox.get(timeout=300) == (100.0, True, "Parameter", True)
    received = outbox.get(timeout=300)
    inbox.put(None)
    process.join(60)
    assert received.tolist() == [0.0, 1.0, 2.0]
    assert [t.tolist() for t in (first, whole, parameter, shared)] == [
        [1.0] * 3,
        [100.0, 1.0, 2.0, 3.0],
        [5.0] * 2,
        [3.0] * 2,
    ]


def add_own_number(index: int, shared: Any) -> None:
    if index == 2:
        raise ValueError("the third process fails")
    shared[index] = index + 1


def test_processes_are_spawned_together() -> None:
    shared = pullback.zeros(2).share_memory_()
    assert mp.spawn(add_own_number, (shared,), nprocs=2) is None
    assert shared.tolist() == [1.0, 2.0]
    with pytest.raises(mp.ProcessRaisedException, match="Process 2 terminated with the following error") as raised:
        mp.start_processes(add_own_number, (shared,), nprocs=3, start_method="fork")
    assert "the third process fails" in str(raised.value)


def test_a_spawned_process_of_a_pytorch_program_runs_on_pullback(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        "import torch\n"
        "import torch.multiprocessing as mp\n"
        "def work(shared):\n"
        "    with torch.no_grad():\n"
        "        shared.add_(len(torch.derivative_coverage()) > 0)\n"
        "if __name__ == '__main__':\n"
        "    shared = torch.zeros(1).share_memory_()\n"
        "    process = mp.get_context('spawn').Process(target=work, args=(shared,))\n"
        "    process.start(); process.join(); print(shared)\n"
    )
    command = [sys.executable, "-m", "pullback", "run", str(script)]
    assert subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout == "tensor([1.])\n"


def test_a_module_is_trained_by_another_process() -> None:
    model = pullback.nn.Linear(2, 1)
    pullback.nn.init.zeros_(model.weight)
    model.share_memory()

    def train() -> None:
        optimizer = pullback.optim.SGD(model.parameters(), lr=1.0)
        model(pullback.ones(1, 2)).sum().backward()
        optimizer.step()

    process = multiprocessing.get_context("fork").Process(target=train)
    process.start()
    process.join(60)
    assert model.weight.tolist() == [[-1.0, -1.0]]


def test_base_and_views_move_to_shared_memory_together() -> None:
    base = pullback.arange(4.0)
    view = base[1:]
    assert not base.is_shared()
    assert view.share_memory_() is view
    view[0] = 9
    assert (base.tolist(), base.is_shared(), view.is_shared()) == ([0.0, 9.0, 2.0, 3.0], True, True)
    assert base.untyped_storage().is_shared()
    assert not pullback.ones(1).untyped_storage().is_shared()


def test_a_conjugated_view_stays_one() -> None:
    base = pullback.tensor([1 + 2j])
    view = base.conj().share_memory_()
    view.mul_(2)
    assert (view.is_conj(), view.tolist(), base.tolist()) == (True, [2 - 4j], [2 + 4j])


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="descriptors are counted in /proc")
def test_memory_goes_with_its_last_user() -> None:
    gc.collect()
    before = len(os.listdir("/proc/self/fd"))
    tensor = pullback.ones(5).share_memory_()
    assert len(os.listdir("/proc/self/fd")) > before
    assert mapping_of(tensor[2:]._array) is not None
    del tensor
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_history_does_not_cross_processes() -> None:
    from multiprocessing.reduction import ForkingPickler

    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor"):
        ForkingPickler.dumps(pullback.ones(1, requires_grad=True) * 2)
