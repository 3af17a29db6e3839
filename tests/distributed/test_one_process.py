"""A process group of one process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import pullback
from pullback import distributed, nn
from pullback.distributed import algorithms
from pullback.distributed.algorithms import join
from pullback.distributed.algorithms.ddp_comm_hooks import powerSGD_hook
from pullback.distributed.device_mesh import init_device_mesh
from pullback.distributed.elastic.multiprocessing.errors import record
from pullback.distributed.fsdp import fully_shard
from pullback.pytorch.futures import Future


@pytest.fixture
def alone() -> Iterator[None]:
    distributed.init_process_group("gloo", rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


@pytest.mark.usefixtures("alone")
def test_one_process_is_the_whole_world() -> None:
    assert distributed.is_initialized()
    assert (distributed.get_rank(), distributed.get_world_size(), distributed.get_backend()) == (0, 1, "gloo")
    assert distributed.get_process_group_ranks(distributed.new_group([0])) == [0]


@pytest.mark.usefixtures("alone")
def test_collectives_give_back_what_one_process_has() -> None:
    values = pullback.tensor([1.0, 2.0])
    work = distributed.all_reduce(values, async_op=True)
    assert work is not None
    assert work.wait()
    gathered = [pullback.zeros(2)]
    distributed.all_gather(gathered, values)
    objects = [None]
    distributed.all_gather_object(objects, "epoch 3")
    assert values.tolist() == gathered[0].tolist() == [1.0, 2.0]
    assert objects == ["epoch 3"]


@pytest.mark.usefixtures("alone")
def test_a_second_group_of_all_is_refused() -> None:
    with pytest.raises(ValueError, match="trying to initialize the default process group twice"):
        distributed.init_process_group("gloo", rank=0, world_size=1)


@pytest.mark.usefixtures("alone")
def test_a_wrapped_module_trains() -> None:
    module = nn.parallel.DistributedDataParallel(nn.Linear(1, 1, bias=False))
    with module.no_sync():
        module(pullback.tensor([[3.0]])).sum().backward()
    assert module.module.weight.grad.tolist() == [[3.0]]


def test_collectives_need_a_group() -> None:
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        distributed.all_reduce(pullback.ones(1))


def test_other_processes_need_a_place_to_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    with pytest.raises(ValueError, match="environment variable MASTER_ADDR expected"):
        distributed.init_process_group("gloo", rank=0, world_size=2)


def test_a_first_rank_that_is_not_there_is_reported() -> None:
    with pytest.raises(distributed.DistNetworkError, match="rank 0 does not listen there"):
        distributed.init_process_group(
            "gloo", "tcp://127.0.0.1:1", rank=1, world_size=2, timeout=timedelta(milliseconds=100)
        )


def test_an_unknown_world_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(ValueError, match="environment variable RANK expected"):
        distributed.init_process_group("gloo")


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("kept", ["gradient", "view", "array", "nothing"])
def test_memory_of_gradients_is_used_again_only_where_nobody_holds_it(kept: str) -> None:
    model = nn.parallel.DistributedDataParallel(nn.Linear(3, 2))
    weight = model.module.weight
    for _ in range(2):  # buckets are made anew after the first pass
        model.zero_grad()
        model(pullback.ones(1, 3)).sum().backward()
    address = weight.grad.data_ptr()
    held = {"gradient": weight.grad, "view": weight.grad[0], "array": weight.grad.numpy(), "nothing": None}[kept]
    model.zero_grad()
    model(pullback.full((1, 3), 7.0)).sum().backward()
    assert (weight.grad.data_ptr() == address) == (kept == "nothing")
    assert held is None or pullback.as_tensor(held).max().item() == 1.0
    assert weight.grad.tolist() == [[7.0] * 3] * 2


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(
    ("rank", "squares", "firsts"),  # recorded from PyTorch
    [
        (1, [0.24, 2.0136, 6.6214, 9.0538], [0.0233, 0.3211, -0.4312, 1.6144]),
        (2, [0.2543, 2.0136, 6.4793, 9.0538], [0.0356, 0.3211, -0.4174, 1.6144]),
    ],
)
def test_power_sgd_begins_with_pytorchs_columns(rank: int, squares: list[float], firsts: list[float]) -> None:
    pullback.manual_seed(0)
    module: Any = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    module = nn.parallel.DistributedDataParallel(module)
    state = powerSGD_hook.PowerSGDState(
        None, matrix_approximation_rank=rank, start_powerSGD_iter=2, min_compression_rate=0.5
    )
    module.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    drawn = pullback.get_rng_state()
    for _ in range(4):
        module.zero_grad()
        module(pullback.arange(12.0).view(3, 4).sin()).square().sum().backward()
    found = [p.grad for p in module.parameters()]
    assert [g.square().sum().item() for g in found] == pytest.approx(squares, abs=2e-4)
    assert [g.flatten()[0].item() for g in found] == pytest.approx(firsts, abs=2e-4)
    assert pullback.equal(pullback.get_rng_state(), drawn)


@pytest.mark.usefixtures("alone")
def test_a_mesh_prints_as_pytorchs() -> None:
    mesh = init_device_mesh("cpu", (1, 1), mesh_dim_names=("data", "model"))
    assert repr(mesh) == "DeviceMesh((data=1, model=1), 'cpu', stride=((), ()))"
    assert repr(init_device_mesh("cpu", (1,))) == "DeviceMesh((1,), 'cpu', stride=((),))"
    assert distributed.get_backend_config() == "cpu:gloo,cuda:gloo"


def test_record_leaves_an_error_in_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "error.json"
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(place))

    @record
    def main(error: BaseException) -> None:
        raise error

    with pytest.raises(SystemExit):
        main(SystemExit(3))
    assert not place.exists()
    with pytest.raises(ValueError, match="bad"):
        main(ValueError("bad"))
    told = json.loads(place.read_text())["message"]
    assert told["message"] == "ValueError: bad"
    assert "in main" in told["extraInfo"]["py_callstack"]
    assert told["extraInfo"]["timestamp"].isdigit()


def test_uneven_inputs_are_had_where_programs_look() -> None:
    assert algorithms.Join is join.Join
    assert issubclass(algorithms.Joinable, join.Joinable)


@pytest.mark.usefixtures("alone")
def test_groups_of_ranks_that_do_not_exist_are_refused() -> None:
    with pytest.raises(ValueError, match="Rank 9 is out of range"):
        distributed.new_group([9])


@pytest.mark.usefixtures("alone")
def test_groups_that_are_none_are_refused() -> None:
    destroyed = distributed.new_group([0])
    distributed.destroy_process_group(destroyed)
    for call in (
        lambda: distributed.all_reduce(pullback.ones(1), group="x"),
        lambda: distributed.get_rank(destroyed),
        lambda: distributed.get_backend(destroyed),
        lambda: distributed.broadcast(pullback.ones(1), 0, group=destroyed),
    ):
        with pytest.raises(ValueError, match="is not initialized in the world group map"):
            call()
    for group in (destroyed, 3):
        with pytest.raises(ValueError, match="Invalid process group specified"):
            distributed.destroy_process_group(group)
    with pytest.raises(ValueError, match=r"The arg 'group_size' \(0\) must be positive"):
        distributed.new_subgroups(0)
    with pytest.raises(ValueError, match=r"Rank 0 has appeared in both subgroup \[0\] and \[0\]"):
        distributed.new_subgroups_by_enumeration([[0], [0]])
    with pytest.raises(TypeError, match=r"Expected timeout argument to be of type datetime.timedelta, got 5"):
        distributed.monitored_barrier(timeout=5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "error", "said"),
    [
        ({"store": distributed.HashStore()}, AssertionError, "world_size must be positive if using store"),
        (
            {"store": distributed.HashStore(), "world_size": 1},
            AssertionError,
            "rank must be non-negative if using store",
        ),
        ({"store": distributed.HashStore(), "init_method": "env://"}, AssertionError, "both init_method and store"),
        ({"init_method": "smoke://signals"}, RuntimeError, "No rendezvous handler for smoke://"),
        ({"init_method": "tcp://localhost:1"}, ValueError, "using tcp:// rendezvous: rank parameter missing"),
        ({"rank": 2, "world_size": 1}, ValueError, "rank 2 must be less than world_size, which is 1"),
    ],
)
def test_places_to_meet_that_are_none_are_refused(
    arguments: dict[str, Any], error: type[Exception], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(error, match=said):
        distributed.init_process_group("gloo", **arguments)


@pytest.mark.usefixtures("alone")
def test_modules_that_cannot_be_wrapped_are_refused() -> None:
    wrap = nn.parallel.DistributedDataParallel
    with pytest.raises(RuntimeError, match="Modules with uninitialized parameters can't be used"):
        wrap(nn.LazyLinear(2))
    with pytest.raises(ValueError, match="device_ids can only be None or contain a single element"):
        wrap(nn.Linear(1, 1), device_ids=[0, 1])
    with pytest.raises(ValueError, match="fully_shard does not support containers that do not implement forward"):
        fully_shard(nn.ModuleList([nn.Linear(1, 1)]))
    with pytest.raises(ValueError, match="it should be a factor of 1, not 3"):
        fully_shard(nn.Linear(1, 1), reshard_after_forward=3)


@pytest.mark.usefixtures("alone")
def test_communication_hooks_are_refused_where_their_signature_says_so() -> None:
    def hook(state: Any, bucket: Any) -> Any:
        return 3

    module = nn.parallel.DistributedDataParallel(nn.Linear(1, 1))
    hook.__annotations__ = {"bucket": int}
    with pytest.raises(ValueError, match=r"bucket annotation should be dist.GradBucket"):
        module.register_comm_hook(None, hook)
    hook.__annotations__ = {"bucket": distributed.GradBucket, "return": int}
    with pytest.raises(ValueError, match=r"return annotation should be torch.futures.Future"):
        module.register_comm_hook(None, hook)
    hook.__annotations__ = {"bucket": distributed.GradBucket, "return": Future[Any]}
    module.register_comm_hook(None, hook)
    with pytest.raises(RuntimeError, match=r"must return a torch.futures.Future object, but got int"):
        module(pullback.ones(1, 1)).sum().backward()


@pytest.mark.usefixtures("alone")
def test_a_mesh_is_made_of_a_group() -> None:
    world = distributed.new_group([0])
    mesh = distributed.DeviceMesh.from_group(world, "cpu", mesh_dim_names=["data"])
    assert (mesh.size(), mesh.get_group("data"), mesh.get_coordinate()) == (1, world, (0,))
    assert mesh.mesh.dtype is pullback.int32
    with pytest.raises(KeyError, match=r"Valid mesh_dim_names are \['data'\]"):
        mesh["model"]
    with pytest.raises(RuntimeError, match="should have same length"):
        init_device_mesh("cpu", (1,), mesh_dim_names=("a", "b"))
    with pytest.raises(RuntimeError, match="Each mesh_dim_name must be unique"):
        init_device_mesh("cpu", (1, 1), mesh_dim_names=("a", "a"))
