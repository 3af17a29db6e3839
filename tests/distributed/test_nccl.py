"""NCCL on two ranks with a GPU each: tests/devices/stand_in stands in for CuPy, and MPI for NCCL."""

from __future__ import annotations

import os

import pytest

from tests.devices.emulator.launching import COMPILER
from tests.distributed.running import ROOT, launch, needs_mpi

PATH = os.pathsep.join([str(ROOT / "tests" / "devices" / "stand_in"), str(ROOT / "src"), str(ROOT)])

pytestmark = [needs_mpi, pytest.mark.skipif(COMPILER is None, reason="there is no g++ to compile CUDA's text with")]


def test_collectives_and_training_go_through_nccl() -> None:
    done = launch("-n", "2", "-m", "tests.devices.stand_in.nccl_program", PYTHONPATH=PATH)
    assert "DONE 0" in done.stdout, done.stderr[-4000:]
    assert "DONE 1" in done.stdout, done.stderr[-4000:]


def test_two_ranks_with_one_gpu_are_told_what_nccl_refuses() -> None:
    done = launch("-n", "2", "-m", "tests.devices.stand_in.nccl_program", "--share", PYTHONPATH=PATH)
    assert done.returncode
    assert "invalid usage: two ranks have the same GPU" in done.stderr, done.stderr[-4000:]
