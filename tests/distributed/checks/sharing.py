"""Statistics, optimizer state and files that ranks share."""

from __future__ import annotations

import os
from typing import Any

import pytest

import pullback
from pullback import distributed as dist
from pullback import nn
from pullback.distributed.algorithms.ddp_comm_hooks import debugging_hooks, post_localSGD_hook
from pullback.distributed.algorithms.join import Join
from pullback.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from pullback.distributed.optim import PostLocalSGDOptimizer, ZeroRedundancyOptimizer
from pullback.nn.parallel import DistributedDataParallel
from tests.distributed.checks.data_parallel import assert_close, assert_same_on_all_ranks, network, run_pass

RANK = int(os.environ.get("RANK", 0))


def check_batch_normalisation_of_all_ranks_is_that_of_the_whole_batch() -> None:
    for shape in ((10, 3), (6, 3, 2, 2)):
        pullback.manual_seed(1)
        whole = (pullback.randn(shape) * 2 + 5).requires_grad_()
        weights = pullback.randn(shape)
        plain = nn.BatchNorm1d(3) if len(shape) == 2 else nn.BatchNorm2d(3)
        nn.init.normal_(plain.weight)
        synced = nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(plain))[0]
        expected = plain(whole)
        (expected * weights).sum().backward()
        rows = slice(0, 4) if RANK == 0 else slice(4, None)  # parts of different sizes
        part = whole.detach()[rows].clone().requires_grad_()
        other = nn.SyncBatchNorm(3)
        other.weight.data.copy_(plain.weight.data)
        result = other(part)
        (result * weights[rows]).sum().backward()
        assert type(synced) is nn.SyncBatchNorm
        assert_close([result, part.grad], [expected[rows], whole.grad[rows]], 1e-5)
        assert_close([other.running_mean, other.running_var], [plain.running_mean, plain.running_var], 1e-5)
        summed = other.weight.grad.clone()
        dist.all_reduce(summed)
        assert_close([summed], [plain.weight.grad], 1e-4)


def check_batch_normalisation_in_evaluation_does_not_communicate() -> None:
    layer = nn.SyncBatchNorm(2).eval()
    if RANK == 0:
        assert layer(pullback.ones(1, 2)).shape == (1, 2)


def train(optimizer: Any, module: Any, passes: int = 3) -> None:
    for _ in range(passes):
        optimizer.zero_grad()
        run_pass(module)
        optimizer.step()


def check_shared_optimizer_state_gives_the_same_parameters() -> None:
    plain, shared = DistributedDataParallel(network()), DistributedDataParallel(network())
    expected = pullback.optim.AdamW(plain.parameters(), lr=0.01)
    actual = ZeroRedundancyOptimizer(shared.parameters(), pullback.optim.AdamW, lr=0.01)
    schedules = [pullback.optim.lr_scheduler.StepLR(each, 1, 0.5) for each in (expected, actual)]
    for _ in range(3):
        train(expected, plain, 1)
        train(actual, shared, 1)
        for schedule in schedules:
            schedule.step()
    assert all(pullback.equal(a, b) for a, b in zip(plain.parameters(), shared.parameters(), strict=True))
    held = sum(len(actual.optim.state[each]) > 0 for each in shared.parameters() if each in actual.optim.state)
    assert 0 < held < len(list(shared.parameters()))
    assert_same_on_all_ranks(list(shared.parameters()))


def check_shared_optimizer_state_is_brought_together_and_loaded() -> None:
    module = DistributedDataParallel(network())
    optimizer = ZeroRedundancyOptimizer(
        [{"params": module.module[0].parameters()}, {"params": module.module[2:].parameters(), "lr": 0.1}],
        pullback.optim.Adam, lr=0.01,
    )  # fmt: skip
    train(optimizer, module)
    with pytest.raises(RuntimeError, match=r"Optimizer state has not been consolidated on this rank\. Please"):
        optimizer.state_dict()
    optimizer.consolidate_state_dict(to=0)
    boxes: list[Any] = [optimizer.state_dict() if RANK == 0 else None]
    dist.broadcast_object_list(boxes, src=0)
    assert sorted(boxes[0]["state"]) == list(range(6))
    assert [group["lr"] for group in boxes[0]["param_groups"]] == [0.01, 0.1]
    copied = DistributedDataParallel(network())
    copied.load_state_dict(module.state_dict())
    again = ZeroRedundancyOptimizer(
        [{"params": copied.module[0].parameters()}, {"params": copied.module[2:].parameters()}],
        pullback.optim.Adam,
        lr=1.0,
    )
    again.load_state_dict(boxes[0])
    train(optimizer, module)
    train(again, copied)
    assert all(pullback.equal(a, b) for a, b in zip(module.parameters(), copied.parameters(), strict=True))
    alone = network()  # one process, with the whole state
    alone.load_state_dict({name.removeprefix("module."): value for name, value in copied.state_dict().items()})
    plain = pullback.optim.Adam([{"params": alone[0].parameters()}, {"params": alone[2:].parameters()}], lr=1.0)
    plain.load_state_dict(boxes[0])
    assert plain.state[alone[0].weight]["exp_avg"].shape == (8, 3)


def check_shared_optimizers_take_uneven_inputs() -> None:
    module = DistributedDataParallel(network())
    optimizer = ZeroRedundancyOptimizer(module.parameters(), pullback.optim.SGD, lr=0.1)
    with Join([module, optimizer]):
        for _ in range(1 + 2 * RANK):
            optimizer.zero_grad()
            run_pass(module)
            optimizer.step()
    assert_same_on_all_ranks(list(module.parameters()))


def check_more_ranks_than_parameters() -> None:
    x = pullback.ones(2, requires_grad=True)
    optimizer = ZeroRedundancyOptimizer([x], pullback.optim.SGD, lr=0.5)
    x.grad = pullback.ones(2)
    optimizer.step()
    assert x.tolist() == [0.5, 0.5]


def check_parameters_are_averaged_every_so_many_steps() -> None:
    alone = dist.new_subgroups(group_size=1)[0]
    module = DistributedDataParallel(network())
    state = post_localSGD_hook.PostLocalSGDState(None, alone, start_localSGD_iter=1)
    module.register_comm_hook(state, post_localSGD_hook.post_localSGD_hook)
    optimizer = PostLocalSGDOptimizer(
        pullback.optim.SGD(module.parameters(), lr=0.1), PeriodicModelAverager(period=2, warmup_steps=1)
    )
    alike = []
    for _ in range(4):
        optimizer.zero_grad()
        run_pass(module)
        optimizer.step()
        both = [pullback.empty_like(module.module[0].weight) for _ in range(2)]
        dist.all_gather(both, module.module[0].weight.detach())
        alike.append(pullback.equal(*both))
    assert alike == [True, True, False, True]
    saved = optimizer.state_dict()
    assert saved["step"] == 4
    optimizer.averager.step = 0
    optimizer.load_state_dict(saved)
    assert optimizer.averager.step == 4


def check_a_hook_may_leave_every_rank_its_own_gradients() -> None:
    module, own = DistributedDataParallel(network()), network()
    module.register_comm_hook(None, debugging_hooks.noop_hook)
    for each in (module, own):
        run_pass(each)
    assert_close([p.grad for p in module.parameters()], [p.grad for p in own.parameters()])


def check_groups_name_every_rank_once() -> None:
    with pytest.raises(ValueError, match="ranks list must not contain duplicate entries, got"):
        dist.new_group([0, 0])
