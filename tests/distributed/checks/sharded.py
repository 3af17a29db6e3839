"""Fully sharded training on two ranks."""

from __future__ import annotations

import gc
import os
import weakref
from types import MethodType
from typing import Any

import pytest

import pullback
from pullback import distributed as dist
from pullback import nn
from pullback.distributed.checkpoint.default_planner import box_of
from pullback.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict, set_model_state_dict
from pullback.distributed.fsdp import (
    FSDPModule,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    FullyShardedDataParallel,
    MixedPrecision,
    MixedPrecisionPolicy,
    ShardingStrategy,
    StateDictType,
    fully_shard,
    register_fsdp_forward_method,
)
from pullback.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler
from pullback.distributed.fsdp.wrap import ModuleWrapPolicy
from pullback.distributed.tensor import DTensor, Shard
from pullback.utils.checkpoint import checkpoint
from tests.distributed.checks.data_parallel import assert_close, data, expected_gradients, network, run_pass

RANK = int(os.environ.get("RANK", 0))


def sharded(**options: Any) -> Any:
    module = network()
    for layer in module:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, **options)
    return fully_shard(module, **options)


def whole(tensor: Any) -> Any:
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def check_every_rank_holds_its_rows() -> None:
    module = sharded()
    assert FSDPModule in type(module).__mro__
    assert type(module).__name__ == "FSDPSequential"
    weight = module[4].weight
    assert (list(weight.shape), list(weight.to_local().shape)) == ([2, 8], [1, 8])
    assert pullback.equal(weight.full_tensor(), network()[4].weight)
    assert isinstance(weight, nn.Parameter)
    assert [name for name, _ in module.named_parameters()] == [name for name, _ in network().named_parameters()]


def check_gradients_are_those_of_all_the_data() -> None:
    for options in ({}, {"reshard_after_forward": False}, {"reshard_after_forward": True}):
        module = sharded(**options)
        for _ in range(2):
            module.zero_grad()
            run_pass(module)
            assert_close([whole(p.grad) for p in module.parameters()], expected_gradients())
            assert all(isinstance(p.grad, DTensor) for p in module.parameters())


def check_rows_that_do_not_divide_evenly() -> None:
    pullback.manual_seed(3)
    plain = nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 1))
    pullback.manual_seed(3)
    module = fully_shard(nn.Sequential(nn.Linear(3, 5), nn.Linear(5, 1)))
    x = pullback.arange(6.0).reshape(2, 3)
    plain(x).sum().backward()
    module(x).sum().backward()
    assert_close([whole(p.grad) for p in module.parameters()], [p.grad for p in plain.parameters()], 1e-5)
    assert list(module[1].weight.to_local().shape) == ([1, 5] if RANK == 0 else [0, 5])


def _along_columns(parameter: Any) -> Any:
    return Shard(-1) if parameter.ndim > 1 and parameter.shape[1] % 2 == 0 else None


def check_parameters_may_be_divided_along_another_dimension() -> None:
    module = sharded(shard_placement_fn=_along_columns)
    weight = module[4].weight
    assert (weight.placements, list(weight.to_local().shape)) == ((Shard(1),), [2, 4])
    assert pullback.equal(weight.full_tensor(), network()[4].weight)
    run_pass(module)
    assert_close([whole(p.grad) for p in module.parameters()], expected_gradients())
    with pytest.raises(
        NotImplementedError, match=r"FSDP does not support uneven sharding on dim 1: .* \(world size: 2\)"
    ):
        fully_shard(nn.Linear(3, 2), shard_placement_fn=lambda parameter: Shard(parameter.ndim - 1))


def check_states_of_parts_along_another_dimension_are_loaded_whole() -> None:
    module = sharded(shard_placement_fn=_along_columns)
    whole_state = network().state_dict()
    with pullback.no_grad():
        for parameter in module.parameters():
            parameter.zero_()
    set_model_state_dict(module, whole_state, options=StateDictOptions(full_state_dict=True))
    full = get_model_state_dict(module, options=StateDictOptions(full_state_dict=True))
    assert_close([full[name] for name in whole_state], list(whole_state.values()))
    box = box_of(module[4].weight)
    assert (list(box.offsets), list(box.sizes)) == ([0, 4 * RANK], [2, 4])


def check_another_method_gathers_parameters_on_request() -> None:
    module = sharded()
    inner = module[4]
    inner.double = MethodType(lambda self, x: x @ self.weight.T * 2, inner)
    register_fsdp_forward_method(inner, "double")
    x = pullback.ones(1, 8)
    assert_close([inner.double(x)], [x @ network()[4].weight.T * 2])
    assert isinstance(inner.weight, DTensor) or inner._fsdp_group.is_whole
    with pytest.raises(ValueError, match="does not have a method missing"):
        register_fsdp_forward_method(inner, "missing")


def check_a_hook_sees_the_sums_of_gradients() -> None:
    module, seen = sharded(), list[int]()
    module[4].set_all_reduce_hook(lambda sums: seen.append(sums.numel()))
    run_pass(module)
    assert seen == [9]


def check_a_pass_that_failed_can_be_forgotten() -> None:
    module = fully_shard(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1)))
    x = pullback.ones(3, 2, requires_grad=True)

    def fail(grad: Any) -> None:
        raise ValueError("no gradient")

    x.register_hook(fail)
    module.set_requires_gradient_sync(False)
    with pytest.raises(ValueError, match="no gradient"):
        module(x).sum().backward()
    module.set_requires_gradient_sync(True)
    module.reset_iter_state()
    assert isinstance(module[0].weight, DTensor)
    module(x.detach()).sum().backward()
    assert module[1].bias.grad.full_tensor().tolist() == [3]


def check_training_is_that_of_one_process() -> None:
    for options in ({}, {"shard_placement_fn": _along_columns}):
        _train_beside_one_process(options)


def _train_beside_one_process(options: dict[str, Any]) -> None:
    plain, module = network(), sharded(**options)
    optimizers = [pullback.optim.AdamW(each.parameters(), lr=0.01) for each in (plain, module)]
    for _ in range(4):
        for optimizer in optimizers:
            optimizer.zero_grad()
        x, y = data()
        nn.functional.mse_loss(plain(x), y).backward()
        run_pass(module)
        norms = [nn.utils.clip_grad_norm_(each.parameters(), 0.1) for each in (plain, module)]
        assert_close([norms[1].full_tensor(), norms[1].to_local()], [norms[0], norms[0]])
        for optimizer in optimizers:
            optimizer.step()
    assert_close([whole(p) for p in module.parameters()], list(plain.parameters()), 1e-5)
    held = sum(value.numel() for state in optimizers[1].state.values() for value in state.values() if value.ndim)
    assert held <= sum(p.numel() for p in plain.parameters()) * 2 * 0.6


def check_whole_parameters_are_let_go_between_forward_and_backward() -> None:
    module = sharded(reshard_after_forward=True)
    seen: list[Any] = []
    inner = module[2]
    original: Any = nn.Linear.forward

    def watch(self: Any, x: Any) -> Any:
        seen.append(weakref.ref(self.weight._array))
        return original(self, x)

    nn.Linear.forward = watch  # type: ignore[assignment, method-assign]
    try:
        loss = module(data()[0]).sum()
    finally:
        nn.Linear.forward = original  # type: ignore[method-assign]
    gc.collect()
    assert len(seen) == 3
    assert all(reference() is None for reference in seen)
    assert isinstance(inner.weight, DTensor)
    loss.backward()
    assert isinstance(inner.weight, DTensor)


def check_gradients_may_add_up_before_they_are_reduced() -> None:
    module = sharded()
    module.set_requires_gradient_sync(False)
    run_pass(module)
    assert module[0].weight.grad is None
    module.set_requires_gradient_sync(True)
    run_pass(module)
    assert_close([whole(p.grad) for p in module.parameters()], [2 * grad for grad in expected_gradients()])
    run_pass(module)
    assert_close([whole(p.grad) for p in module.parameters()], [3 * grad for grad in expected_gradients()])


def check_short_floats_for_computing_and_exact_ones_for_keeping() -> None:
    module = sharded(mp_policy=MixedPrecisionPolicy(pullback.bfloat16, pullback.float32, pullback.float32))
    seen = []
    module[2].register_forward_hook(lambda m, args, out: seen.append(args[0].dtype))
    run_pass(module)
    assert module[0].weight.dtype is module[0].weight.grad.dtype is pullback.float32
    assert_close([whole(p.grad) for p in module.parameters()], expected_gradients(), 0.05)


def check_checkpointed_layers() -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = network()

        def forward(self, x: Any) -> Any:
            return checkpoint(self.inner, x, use_reentrant=False)

    module = Block()
    for layer in (module.inner[0], module.inner[2], module.inner[4]):
        fully_shard(layer)
    fully_shard(module)
    run_pass(module)
    assert_close([whole(p.grad) for p in module.parameters()], expected_gradients())


def check_frozen_and_shared_parameters() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)
            self.second.weight = self.first.weight
            self.frozen = nn.Linear(4, 4)
            self.frozen.requires_grad_(False)

        def forward(self, x: Any) -> Any:
            return self.second(self.frozen(self.first(x)))

    pullback.manual_seed(0)
    plain = Tied()
    pullback.manual_seed(0)
    module = fully_shard(Tied())
    x = pullback.arange(8.0).reshape(2, 4)
    plain(x).sum().backward()
    module(x).sum().backward()
    assert len(list(module.parameters())) == 3
    assert module.first.weight is module.second.weight
    assert_close([whole(module.first.weight.grad)], [plain.first.weight.grad], 1e-4)
    assert module.frozen.weight.grad is None


def check_evaluation_leaves_parts() -> None:
    module = sharded()
    with pullback.no_grad():
        result = module(data()[0])
    assert_close([result], [network()(data()[0])])
    assert isinstance(module[0].weight, DTensor)


def check_state_is_saved_in_parts_and_loaded() -> None:
    module, other = sharded(), sharded()
    with pullback.no_grad():
        for parameter in module.parameters():
            parameter.add_(1)
    state = module.state_dict()
    assert isinstance(state["0.weight"], DTensor)
    other.load_state_dict(state)
    assert_close([whole(p) for p in other.parameters()], [p + 1 for p in network().parameters()])


def check_modules_too_large_for_one_rank_begin_without_memory() -> None:
    with pullback.device("meta"):
        module = network()
    for layer in module:
        if isinstance(layer, nn.Linear):
            fully_shard(layer)
    fully_shard(module)
    module.to_empty(device="cpu")
    with pullback.no_grad():
        for parameter in module.parameters():
            parameter.fill_(0.5)
    run_pass(module)
    plain = network()
    with pullback.no_grad():
        for parameter in plain.parameters():
            parameter.fill_(0.5)
    x, y = data()
    nn.functional.mse_loss(plain(x), y).backward()
    assert_close([whole(p.grad) for p in module.parameters()], [p.grad for p in plain.parameters()])


def check_what_is_no_module_is_refused() -> None:
    with pytest.raises(TypeError, match="fully_shard expects a Module"):
        fully_shard(pullback.ones(1))
    with pytest.raises(AssertionError, match="can only be applied to a module once"):
        fully_shard(sharded())


def check_copies_along_one_dimension_of_a_mesh() -> None:
    mesh = dist.init_device_mesh("cpu", (2, 1), mesh_dim_names=("copies", "parts"))
    assert (mesh["copies"].size(), mesh["parts"].size(), mesh.get_coordinate()) == (2, 1, (RANK, 0))
    module = fully_shard(network(), mesh=mesh)
    run_pass(module)
    assert_close([whole(p.grad) for p in module.parameters()], expected_gradients())


def older(module: Any = None, **options: Any) -> Any:
    return FullyShardedDataParallel(module or network(), auto_wrap_policy=ModuleWrapPolicy({nn.Linear}), **options)


def check_the_older_class_reduces_the_gradients_of_all_the_data() -> None:
    for strategy in (ShardingStrategy.FULL_SHARD, ShardingStrategy.SHARD_GRAD_OP, ShardingStrategy.NO_SHARD):
        module = older(sharding_strategy=strategy)
        assert type(module.module[0]).__name__ == "FullyShardedDataParallel"
        for _ in range(2):
            module.zero_grad()
            run_pass(module)
            assert_close([whole(p.grad) for p in module.parameters()], expected_gradients())
        norm = module.clip_grad_norm_(0.5)
        assert_close([norm], [pullback.stack([g.norm() for g in expected_gradients()]).norm()])


def check_the_older_class_adds_gradients_up_before_it_reduces_them() -> None:
    module = older()
    with module.no_sync():
        run_pass(module)
        assert all(p.grad is None for p in module.parameters())
    run_pass(module)
    assert_close([whole(p.grad) for p in module.parameters()], [2 * grad for grad in expected_gradients()])


def check_the_older_class_begins_with_the_parameters_of_the_first_rank() -> None:
    module = network()
    with pullback.no_grad():
        for parameter in module.parameters():
            parameter += RANK
    state = older(module, sync_module_states=True).state_dict()
    assert list(state) == list(network().state_dict())
    assert_close(list(state.values()), list(network().state_dict().values()))


def check_states_of_the_older_class_are_whole_and_loaded() -> None:
    module = older()
    optimizer = pullback.optim.Adam(module.parameters(), lr=0.1)
    run_pass(module)
    optimizer.step()
    optimizer.zero_grad()
    state = module.state_dict()
    named = FullyShardedDataParallel.optim_state_dict(module, optimizer)
    assert list(named["state"]) == list(state)
    assert all(state[name].shape == each["exp_avg"].shape for name, each in named["state"].items())
    plain = network()
    plain.load_state_dict(state)
    again = older()
    other = pullback.optim.Adam(again.parameters(), lr=0.1)
    again.load_state_dict(state)
    other.load_state_dict(FullyShardedDataParallel.optim_state_dict_to_load(again, other, named))
    for each, its_optimizer in ((module, optimizer), (again, other)):
        run_pass(each)
        its_optimizer.step()
    assert_close(list(again.state_dict().values()), list(module.state_dict().values()))
    with FullyShardedDataParallel.state_dict_type(
        module,
        StateDictType.FULL_STATE_DICT,
        FullStateDictConfig(rank0_only=True),
        FullOptimStateDictConfig(rank0_only=True),
    ):
        assert (
            bool(module.state_dict())
            == bool(FullyShardedDataParallel.optim_state_dict(module, optimizer))
            == (RANK == 0)
        )
    with FullyShardedDataParallel.state_dict_type(module, StateDictType.SHARDED_STATE_DICT):
        parts = module.state_dict()
        assert all(isinstance(value, DTensor) for value in parts.values())
        again.load_state_dict(parts)
    assert list(get_model_state_dict(module, options=StateDictOptions(full_state_dict=True))) == list(state)


def check_parameters_of_the_older_class_are_whole_in_a_block_and_may_be_written() -> None:
    module = older()
    with FullyShardedDataParallel.summon_full_params(module), pullback.no_grad():
        assert [name for name, _ in module.named_parameters()] == [name for name, _ in network().named_parameters()]
        assert_close(list(module.parameters()), list(network().parameters()))
        for parameter in module.parameters():
            parameter *= 2
    assert_close([whole(p) for p in module.parameters()], [2 * p for p in network().parameters()])
    module.apply(lambda part: nn.init.zeros_(part.weight) if isinstance(part, nn.Linear) else None)
    assert all(not whole(p).any() for name, p in module.named_parameters() if name.endswith("weight"))


def check_the_older_class_computes_in_short_floats() -> None:
    module = older(mixed_precision=MixedPrecision(param_dtype=pullback.bfloat16, reduce_dtype=pullback.float32))
    assert module(data()[0]).dtype is pullback.bfloat16
    assert {p.dtype for p in module.parameters()} == {pullback.float32}


def check_whole_states_in_main_memory_are_for_the_first_rank() -> None:
    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    assert bool(get_model_state_dict(sharded(), options=options)) == (RANK == 0)


def check_a_step_is_left_out_on_all_ranks_if_one_has_infinite_gradients() -> None:
    module: Any = nn.Linear(1, 2, bias=False)
    with pullback.no_grad():
        module.weight.fill_(1.0)
    module = FullyShardedDataParallel(module)
    optimizer = pullback.optim.SGD(module.parameters(), lr=1.0)
    scaler = ShardedGradScaler("cpu", init_scale=4.0)
    scaler.scale((module(pullback.ones(1, 1)) * pullback.tensor([1.0, float("inf")])).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert whole(module.module.weight).tolist() == [[1.0], [1.0]]
    assert scaler.get_scale() == 2.0
