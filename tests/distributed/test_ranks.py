"""The checks, each a test of its own, of what several ranks do. All checks of a row below run in one start."""

from __future__ import annotations

import pytest

from tests.distributed.running import names_of, needs_mpi, run_checks

MODULES = {
    2: [
        "collectives", "messages", "objects", "differentiable", "data_parallel", "sharing", "sharded", "devices",
        "checkpointing", "copies", "dtensor_operations", "tensor_parallel", "placements", "group_methods",
    ],
    3: ["three_ranks"],
}  # fmt: skip

CASES = [(ranks, name) for ranks, modules in MODULES.items() for name in names_of(modules)]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[int, dict[str, str]]:
    return {ranks: run_checks(modules, ranks, tmp_path_factory.mktemp("ranks")) for ranks, modules in MODULES.items()}


@needs_mpi
@pytest.mark.parametrize(("ranks", "name"), CASES, ids=[f"{name} on {ranks}" for ranks, name in CASES])
def test_on_all_ranks(ranks: int, name: str, outcomes: dict[int, dict[str, str]]) -> None:
    assert outcomes[ranks][name] == ""
