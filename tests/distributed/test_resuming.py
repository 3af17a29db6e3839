"""States that two ranks saved, loaded by one process, and the other way round."""

from __future__ import annotations

from pathlib import Path

import pytest

import pullback
from pullback import nn
from tests.distributed.running import launch_text, needs_mpi

SETUP = """
import sys
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel
dist.init_process_group("mpi")
rank, size = dist.get_rank(), dist.get_world_size()

def make(kind):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))
    if kind == "ddp":
        model = DistributedDataParallel(model)
        return model, ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.1)
    fully_shard(model[0])
    model = fully_shard(model)
    return model, torch.optim.Adam(model.parameters(), lr=0.1)

def train(model, optimizer, passes):
    for number in range(passes):
        torch.manual_seed(number)
        x = torch.randn(12, 3)
        optimizer.zero_grad()
        (model(x[rank::size]) ** 2).mean().backward()
        optimizer.step()

def save(kind, model, optimizer, path):
    if kind == "ddp":
        optimizer.consolidate_state_dict(to=0)
        state = (model.state_dict(), optimizer.state_dict()) if rank == 0 else None
    elif kind == "folder":
        parts = get_state_dict(model, optimizer)
        dcp.save({"model": parts[0], "optimizer": parts[1]}, checkpoint_id=path + ".parts")
        if rank == 0:
            dcp_to_torch_save(path + ".parts", path + ".whole")
            state = [torch.load(path + ".whole")["model"]]
    else:
        state = get_state_dict(model, optimizer, options=StateDictOptions(full_state_dict=True))
    if rank == 0:
        torch.save(state, path)
    dist.barrier()

def load(kind, model, optimizer, path):
    if kind == "folder":
        parts = get_state_dict(model, optimizer)
        dcp.load({"model": parts[0], "optimizer": parts[1]}, checkpoint_id=path + ".parts")
        set_state_dict(model, optimizer, model_state_dict=parts[0], optim_state_dict=parts[1])
        return
    state = torch.load(path)
    if kind == "ddp":
        model.load_state_dict(state[0])
        optimizer.load_state_dict(state[1])
    else:
        options = StateDictOptions(full_state_dict=True)
        set_state_dict(model, optimizer, model_state_dict=state[0], optim_state_dict=state[1], options=options)
"""


def alone(passes: int) -> nn.Module:
    """What one process with all the data comes to."""
    pullback.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))
    optimizer = pullback.optim.Adam(model.parameters(), lr=0.1)
    for number in range(passes):
        pullback.manual_seed(number % 2)
        x = pullback.randn(12, 3)
        optimizer.zero_grad()
        (model(x) ** 2).mean().backward()
        optimizer.step()
    return model


@needs_mpi
@pytest.mark.parametrize("kinds", [["ddp"], ["sharded", "folder"]], ids=["ddp", "sharded and folder"])
def test_training_goes_on_with_another_number_of_ranks(kinds: list[str], tmp_path: Path) -> None:
    begin = (
        f"{SETUP}for kind in {kinds}:\n    model, optimizer = make(kind)\n    place = {str(tmp_path)!r} + '/' + kind\n"
    )
    end = "    train(model, optimizer, 2)\n    save(kind, model, optimizer, place)\n"
    saved = launch_text(begin + end, tmp_path)
    assert saved.returncode == 0, saved.stderr
    again = launch_text(f"{begin}    load(kind, model, optimizer, place)\n{end}", tmp_path, ranks=3)
    assert again.returncode == 0, again.stderr
    for kind in kinds:
        state = {name.removeprefix("module."): value for name, value in pullback.load(tmp_path / kind)[0].items()}
        plain = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))
        plain.load_state_dict(state)
        for actual, expected in zip(plain.parameters(), alone(4).parameters(), strict=True):
            assert pullback.allclose(actual, expected, atol=1e-5), kind
