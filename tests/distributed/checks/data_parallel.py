"""DistributedDataParallel on two ranks."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import pytest

import pullback
from pullback import distributed as dist
from pullback import nn
from pullback.distributed.algorithms.ddp_comm_hooks import (
    DDPCommHookType,
    default_hooks,
    powerSGD_hook,
    register_ddp_comm_hook,
)
from pullback.distributed.algorithms.join import Join
from pullback.nn.parallel import DistributedDataParallel
from pullback.utils.checkpoint import checkpoint

RANK = int(os.environ.get("RANK", 0))


def network(seed: int = 0) -> Any:
    pullback.manual_seed(seed)
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2))


def data(rows: int = 8) -> tuple[Any, Any]:
    pullback.manual_seed(7)
    return pullback.randn(rows, 3), pullback.randn(rows, 2)


def gradients(module: Any) -> list[Any]:
    return [parameter.grad.clone() for parameter in module.parameters()]


def expected_gradients() -> list[Any]:
    """Those of one process that has all the data."""
    whole = network()
    x, y = data()
    nn.functional.mse_loss(whole(x), y).backward()
    return gradients(whole)


def run_pass(module: Any) -> None:
    x, y = data()
    nn.functional.mse_loss(module(x[RANK::2]), y[RANK::2]).backward()


def assert_close(actual: list[Any], expected: list[Any], tolerance: float = 1e-6) -> None:
    for a, b in zip(actual, expected, strict=True):
        assert pullback.allclose(a, b, atol=tolerance), (a, b)


class Branches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.never = nn.Linear(2, 2), nn.Linear(2, 2), nn.Linear(2, 2)

    def forward(self, x: Any, both: bool = False) -> Any:
        return self.second(self.first(x)) if both else self.first(x)


def check_gradients_are_those_of_all_the_data() -> None:
    for options in (
        {}, {"gradient_as_bucket_view": True}, {"bucket_cap_mb": 0.0001}, {"find_unused_parameters": True},
        {"static_graph": True}, {"static_graph": True, "bucket_cap_mb": 0.0001, "gradient_as_bucket_view": True},
    ):  # fmt: skip
        module = DistributedDataParallel(network(), **options)
        for _ in range(3):
            module.zero_grad()
            run_pass(module)
            assert_close(gradients(module), expected_gradients())


def check_ranks_begin_with_the_parameters_of_rank_0() -> None:
    module = DistributedDataParallel(network(seed=RANK))
    expected = network(seed=0)
    assert all(pullback.equal(a, b) for a, b in zip(module.module.parameters(), expected.parameters(), strict=True))


def check_buckets_are_sent_while_backward_runs() -> None:
    module = DistributedDataParallel(network(), bucket_cap_mb=0.0001)
    assert len(module.reducer.buckets) > 2
    sent_before_the_end = []
    first = module.module[0].weight
    first.register_hook(lambda grad: sent_before_the_end.append(module.reducer._next))
    run_pass(module)
    assert sent_before_the_end[0] >= 2


def check_buckets_follow_the_order_of_gradients_after_the_first_pass() -> None:
    class Reversed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.last, self.first = nn.Linear(2, 2), nn.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            return self.last(self.first(x))

    module = DistributedDataParallel(Reversed(), bucket_cap_mb=0.000001)
    before = [bucket.indices for bucket in module.reducer.buckets]
    module(pullback.ones(1, 2)).sum().backward()
    module(pullback.ones(1, 2)).sum().backward()
    after = [bucket.indices for bucket in module.reducer.buckets]
    assert before == [[3], [2], [1], [0]]
    assert sorted(after[:2]) == [[0], [1]]


def check_gradients_can_be_views_of_buckets() -> None:
    module = DistributedDataParallel(network(), gradient_as_bucket_view=True)
    run_pass(module)
    module.zero_grad()
    run_pass(module)  # in the buckets made anew
    grad = module.module[0].weight.grad
    assert grad._is_view()
    memory = grad.data_ptr()
    module.zero_grad(set_to_none=False)
    run_pass(module)
    assert module.module[0].weight.grad.data_ptr() == memory
    assert_close(gradients(module), expected_gradients())


def check_gradients_of_the_last_pass_are_not_written_to() -> None:
    module = DistributedDataParallel(network())
    run_pass(module)
    kept = module.module[0].weight.grad
    values = kept.clone()
    module.zero_grad()
    (3 * module(data()[0])).sum().backward()
    assert pullback.equal(kept, values)


def check_without_synchronisation_gradients_add_up() -> None:
    module = DistributedDataParallel(nn.Linear(1, 1, bias=False))
    x = pullback.full((1, 1), float(RANK + 1))
    with module.no_sync():
        module(x).sum().backward()
    assert module.module.weight.grad.tolist() == [[RANK + 1.0]]
    module(x).sum().backward()
    assert module.module.weight.grad.tolist() == [[3.0]]


def check_unused_parameters_are_found() -> None:
    module = DistributedDataParallel(Branches(), find_unused_parameters=True)
    for _ in range(2):
        module.zero_grad()
        module(pullback.ones(1, 2) * (RANK + 1), both=RANK == 1).sum().backward()
        assert module.module.second.bias.grad.tolist() == [0.5, 0.5]  # only rank 1 used it
        assert module.module.never.weight.grad is None


def check_gradients_add_up_where_some_ranks_leave_parameters_out() -> None:
    for options in ({}, {"gradient_as_bucket_view": True}):
        module = DistributedDataParallel(Branches(), find_unused_parameters=True, **options)
        for expected in (0.5, 1.0):  # rank 0 still has the average of the first pass when rank 1 has that and 1 more
            module(pullback.ones(1, 2), both=RANK == 1).sum().backward()
            assert module.module.second.bias.grad.tolist() == [expected, expected]
        output = module(pullback.ones(1, 2), both=RANK == 1)
        module.zero_grad()
        output.sum().backward()
        assert module.module.second.bias.grad.tolist() == [0.5, 0.5]


class Answers(nn.Module):
    """Two answers, as a tuple or in a dataclass."""

    def __init__(self, packed: bool = False) -> None:
        super().__init__()
        pullback.manual_seed(0)
        self.first, self.second, self.packed = nn.Linear(2, 2), nn.Linear(2, 2), packed

    def forward(self, x: Any) -> Any:
        answers = self.first(x), self.second(x)
        return Pair(*answers) if self.packed else answers


@dataclass
class Pair:
    first: Any
    second: Any


def check_answers_that_the_loss_leaves_out() -> None:
    module = DistributedDataParallel(Answers(), find_unused_parameters=True)
    for _ in range(2):
        module.zero_grad()
        module(pullback.ones(1, 2))[0].sum().backward()  # the second answer has no gradient on any rank
        assert module.module.first.bias.grad.tolist() == [1.0, 1.0]
        assert module.module.second.bias.grad is None
    module.zero_grad()
    module(pullback.ones(1, 2))[RANK].sum().backward()
    assert module.module.first.bias.grad.tolist() == module.module.second.bias.grad.tolist() == [0.5, 0.5]


def check_answers_in_a_dataclass() -> None:
    module = DistributedDataParallel(Answers(packed=True), find_unused_parameters=True)
    for _ in range(2):
        module.zero_grad()
        answer = module(pullback.full((1, 2), RANK + 1.0))
        (answer.first.sum() + answer.second.sum()).backward()
        assert module.module.first.weight.grad.tolist() == module.module.second.weight.grad.tolist() == [[1.5] * 2] * 2


def check_answers_without_parameters_and_answers_that_are_written_to() -> None:
    class Same(Branches):
        def forward(self, x: Any, both: bool = False) -> Any:
            return super().forward(x) if both else x

    module = DistributedDataParallel(Same(), find_unused_parameters=True)
    x = pullback.ones(1, 2, requires_grad=True)
    for _ in range(2):
        module.zero_grad()
        module(x, both=RANK == 0).sum().backward()  # rank 1 has nothing to add
        assert module.module.first.bias.grad.tolist() == [0.5, 0.5]
    output = module(x, both=True)
    output.mul_(2.0).sum().backward()
    assert module.module.first.bias.grad.tolist() == [2.5, 2.5]
    assert type(output.grad_fn.next_functions[0][0]).__name__ == "_DDPSinkBackward"


def check_a_static_graph_that_changes_is_refused() -> None:
    module = DistributedDataParallel(Branches(), static_graph=True)
    module(pullback.ones(1, 2)).sum().backward()
    with pytest.raises(RuntimeError, match="Your training graph has changed in this iteration"):
        module(pullback.ones(1, 2), both=True).sum().backward()


def check_hooks_have_names() -> None:
    for kind in (DDPCommHookType.POWER_SGD, DDPCommHookType.BATCHED_POWER_SGD_RANK2, DDPCommHookType.ALLREDUCE):
        module = DistributedDataParallel(network())
        register_ddp_comm_hook(kind, module, dist.group.WORLD)
        run_pass(module)  # PowerSGD begins as a plain mean
        assert_close(gradients(module), expected_gradients())


def check_unused_parameters_without_the_option_are_refused() -> None:
    module = DistributedDataParallel(Branches())
    module(pullback.ones(1, 2)).sum().backward()
    with pytest.raises(
        RuntimeError, match=r"Expected to have finished reduction.*did not receive grad for rank .: 2 3 4 5"
    ):
        module(pullback.ones(1, 2))


def check_a_static_graph_with_unused_and_repeated_parameters() -> None:
    class Repeated(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.unused = nn.Linear(2, 2), nn.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            for _ in range(2):
                x = checkpoint(self.used, x, use_reentrant=True)
            return x

    pullback.manual_seed(0)
    module = DistributedDataParallel(Repeated(), static_graph=True)
    for _ in range(3):
        module.zero_grad()
        x = pullback.full((1, 2), float(RANK + 1), requires_grad=True)
        module(x).sum().backward()
        pullback.manual_seed(0)
        alone = Repeated()
        for rank in range(2):
            (alone(pullback.full((1, 2), rank + 1.0, requires_grad=True)).sum() / 2).backward()
        assert_close([module.module.used.weight.grad], [alone.used.weight.grad])
        assert module.module.unused.weight.grad is None


def check_checkpointed_modules() -> None:
    class Checkpointed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = network()

        def forward(self, x: Any) -> Any:
            return checkpoint(self.inner, x, use_reentrant=False)

    module = DistributedDataParallel(Checkpointed())
    run_pass(module)
    assert_close(gradients(module), expected_gradients())


def check_compiled_modules_inside_and_outside() -> None:
    inside = DistributedDataParallel(pullback.compile(network()))
    outside = pullback.compile(DistributedDataParallel(network()))
    for module in (inside, outside):
        for _ in range(2):
            module.zero_grad()
            run_pass(module)
            assert_close(gradients(module), expected_gradients())


def check_frozen_parameters_stay_out() -> None:
    inner = network()
    inner[0].weight.requires_grad_(False)
    module = DistributedDataParallel(inner)
    run_pass(module)
    assert inner[0].weight.grad is None
    assert_close([inner[2].weight.grad], [expected_gradients()[2]])


def check_modules_without_parameters_are_refused() -> None:
    with pytest.raises(
        RuntimeError, match="DistributedDataParallel is not needed when a module doesn't have any parameter"
    ):
        DistributedDataParallel(nn.ReLU())


def check_modules_that_differ_are_refused_on_every_rank() -> None:
    with pytest.raises(
        RuntimeError, match=r"DDP expects same model across all ranks.*\[1, 2\] on rank 0.*\[2, 2\] on rank 1"
    ):
        DistributedDataParallel(nn.Linear(2, 1 + RANK))
    with pytest.raises(RuntimeError, match="Rank 0 has 2 params, while rank 1 has inconsistent 1 params"):
        DistributedDataParallel(nn.Linear(2, 1, bias=RANK == 0))


def check_buffers_are_those_of_rank_0() -> None:
    module = DistributedDataParallel(nn.BatchNorm1d(2))
    for _ in range(2):
        module(pullback.randn(4, 2) + RANK).sum().backward()
    both = pullback.zeros(2, 2)
    dist.all_gather_into_tensor(both, module.module.running_mean)
    assert not pullback.equal(both[0], both[1])  # each rank has counted its own last batch
    with pullback.no_grad():
        module.eval()
        module.require_forward_param_sync = True
        module(pullback.randn(4, 2))
    dist.all_gather_into_tensor(both, module.module.running_mean)
    assert pullback.equal(both[0], both[1])


def check_checkpoints_have_the_prefix() -> None:
    module = DistributedDataParallel(network())
    assert next(iter(module.state_dict())) == "module.0.weight"
    other = DistributedDataParallel(network(seed=5))
    other.load_state_dict(module.state_dict())
    assert pullback.equal(other.module[0].weight, module.module[0].weight)


def check_hooks_may_compress() -> None:
    for hook, tolerance in (
        (default_hooks.allreduce_hook, 1e-6), (default_hooks.fp16_compress_hook, 1e-3),
        (default_hooks.bf16_compress_hook, 1e-2), (default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook), 1e-3),
    ):  # fmt: skip
        for options in ({}, {"gradient_as_bucket_view": True}):
            module = DistributedDataParallel(network(), **options)
            module.register_comm_hook(None, hook)
            run_pass(module)
            assert_close(gradients(module), expected_gradients(), tolerance)
            assert gradients(module)[0].dtype is pullback.float32
    builtin = DistributedDataParallel(network())
    builtin._register_builtin_comm_hook(dist.BuiltinCommHookType.FP16_COMPRESS)
    run_pass(builtin)
    assert_close(gradients(builtin), expected_gradients(), 1e-3)
    with pytest.raises(RuntimeError, match="can only be called once"):
        builtin.register_comm_hook(None, default_hooks.allreduce_hook)


def check_powersgd_learns_and_keeps_what_it_left_out() -> None:
    for hook in (powerSGD_hook.powerSGD_hook, powerSGD_hook.batched_powerSGD_hook):
        module = DistributedDataParallel(network())
        state = powerSGD_hook.PowerSGDState(
            None, matrix_approximation_rank=1, start_powerSGD_iter=2, min_compression_rate=1
        )
        module.register_comm_hook(state, hook)
        total = [pullback.zeros_like(parameter) for parameter in module.parameters()]
        passes = 60
        for _ in range(passes):
            module.zero_grad()
            run_pass(module)
            for sum_, parameter in zip(total, module.parameters(), strict=True):
                sum_ += parameter.grad
        # What a pass leaves out is added to the next, so the mean over passes is the gradient itself.
        assert_close([each / passes for each in total], expected_gradients(), 0.02)
        assert state.compression_stats()[0] > 1
        assert_same_on_all_ranks(gradients(module))


def assert_same_on_all_ranks(tensors: list[Any]) -> None:
    for tensor in tensors:
        every = [pullback.zeros_like(tensor) for _ in range(dist.get_world_size())]
        dist.all_gather(every, tensor)
        assert all(pullback.equal(each, every[0]) for each in every)


def check_uneven_inputs() -> None:
    for options in ({}, {"bucket_cap_mb": 0.0001}, {"find_unused_parameters": True}):
        module = DistributedDataParallel(nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)), **options)
        optimizer = pullback.optim.SGD(module.parameters(), lr=0.1)
        passes = 0
        with module.join():
            for _ in range(2 + 3 * RANK):
                optimizer.zero_grad()
                module(pullback.randn(4, 3)).sum().backward()
                optimizer.step()
                passes += 1
        assert passes == 2 + 3 * RANK
        assert_same_on_all_ranks([*module.parameters(), module.module[1].running_mean])


def check_uneven_inputs_divide_by_who_is_there() -> None:
    for divides_by_all, expected in ((True, 0.5), (False, 1.0)):
        module = DistributedDataParallel(nn.Linear(1, 1, bias=False))
        with module.join(divide_by_initial_world_size=divides_by_all):
            for _ in range(1 + RANK):
                module.zero_grad()
                module(pullback.ones(1, 1)).sum().backward()
        if RANK == 1:
            assert module.module.weight.grad.tolist() == [[expected]]


def check_uneven_inputs_can_be_an_error_for_all() -> None:
    module = DistributedDataParallel(nn.Linear(1, 1))

    def train() -> None:
        with Join([module], throw_on_early_termination=True):
            for _ in range(1 + RANK):
                module(pullback.ones(1, 1)).sum().backward()

    said = "Detected at least one rank that exhausted inputs" if RANK else "Rank 0 exhausted all inputs"
    with pytest.raises(RuntimeError, match=said):
        train()


def check_ranks_stay_alike_bit_by_bit_and_so_do_runs() -> None:
    finals = []
    for _ in range(2):
        module = DistributedDataParallel(network())
        optimizer = pullback.optim.AdamW(module.parameters(), lr=0.01)
        for _ in range(5):
            optimizer.zero_grad()
            run_pass(module)
            nn.utils.clip_grad_norm_(module.parameters(), 0.1)
            optimizer.step()
        finals.append([parameter.detach() for parameter in module.parameters()])
        assert_same_on_all_ranks(finals[-1])
    assert all(pullback.equal(a, b) for a, b in zip(*finals, strict=True))


def check_outputs_may_be_structures_and_evaluation_needs_no_backward() -> None:
    class Several(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(1, 1)

        def forward(self, x: Any) -> Any:
            return {"loss": self.layer(x).sum(), "extra": [x, None]}

    for options in ({"find_unused_parameters": True}, {"static_graph": True}):
        module = DistributedDataParallel(Several(), **options)
        module(pullback.ones(1, 1))
        with pullback.no_grad():
            module(pullback.ones(1, 1))
        module(pullback.ones(1, 1))["loss"].backward()
        assert module.module.layer.bias.grad.tolist() == [1.0]


def check_samplers_know_the_group() -> None:
    sampler = pullback.utils.data.DistributedSampler(range(5), shuffle=False)
    assert list(sampler) == ([0, 2, 4] if RANK == 0 else [1, 3, 0])


def _rows(first: int) -> Any:
    return pullback.tensor([first, first + 1, 5])


def check_sparse_gradients_are_averaged() -> None:
    pullback.manual_seed(0)
    module = nn.Sequential(nn.Embedding(6, 2, sparse=True), nn.Linear(2, 1))
    parallel = DistributedDataParallel(module)
    expected = pullback.zeros(6, 2)
    for row in [0, 1, 5, 1, 2, 5]:
        expected[row] += module[1].weight.detach()[0] / 2
    for _ in range(2):  # the second pass has its buckets in another order
        parallel.zero_grad()
        parallel(_rows(RANK)).sum().backward()
        grad = module[0].weight.grad
        assert grad.is_sparse
        assert grad.is_coalesced()
        assert grad.indices().tolist() == [[0, 1, 2, 5]]
        assert_close([grad.to_dense()], [expected])
    parallel(_rows(RANK)).sum().backward()  # added to what is there
    assert_close([module[0].weight.grad.to_dense()], [2 * expected])


def check_tables_that_some_ranks_do_not_use() -> None:
    class Tables(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Embedding(4, 2, sparse=True), nn.Embedding(4, 2, sparse=True)
            self.never = nn.Embedding(4, 2, sparse=True)

        def forward(self, rows: Any) -> Any:
            return self.first(rows).sum() + (self.second(rows).sum() if RANK == 1 else 0)

    module = Tables()
    parallel = DistributedDataParallel(module, find_unused_parameters=True)
    parallel(pullback.tensor([RANK])).backward()
    assert module.first.weight.grad.to_dense().tolist() == [[0.5, 0.5], [0.5, 0.5], [0, 0], [0, 0]]
    assert module.second.weight.grad.to_dense().tolist() == [[0, 0], [0.5, 0.5], [0, 0], [0, 0]]
    assert module.never.weight.grad is None


def check_uneven_inputs_with_sparse_gradients() -> None:
    module = nn.Embedding(4, 2, sparse=True)
    parallel = DistributedDataParallel(module)
    with parallel.join():
        for row in range(RANK + 1):
            parallel.zero_grad()
            parallel(pullback.tensor([row])).sum().backward()
    if RANK == 1:
        assert module.weight.grad.to_dense().tolist() == [[0, 0], [0.5, 0.5], [0, 0], [0, 0]]
