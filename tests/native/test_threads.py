"""How many threads there are: what `set_num_threads` governs, and what is left of them after a fork."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

import pullback
from pullback import native


def run_program(program: str, **variables: str) -> str:
    """What a program of its own process prints."""
    environment = os.environ | variables
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, env=environment, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_the_default_is_what_the_environment_says() -> None:
    program = "import pullback; print(pullback.get_num_threads())"
    assert run_program(program, OMP_NUM_THREADS="3") == "3"
    assert run_program(program, OMP_NUM_THREADS="2,1") == "2"
    if hasattr(os, "sched_getaffinity"):
        assert run_program(program, OMP_NUM_THREADS="") == str(len(os.sched_getaffinity(0)))


def test_setting_the_number() -> None:
    before = pullback.get_num_threads()
    try:
        pullback.set_num_threads(3)
        assert pullback.get_num_threads() == native.get_num_threads() == 3
        with pytest.raises(RuntimeError, match="positive integer"):
            pullback.set_num_threads(0)
    finally:
        pullback.set_num_threads(before)


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are counted in Linux's /proc")
@pytest.mark.skipif(native.extension is None, reason="the compiled kernels are not built")
def test_one_thread_means_that_none_is_started() -> None:
    program = """
        import os, pullback
        pullback.set_num_threads(%d)
        x = pullback.rand(1000, 1000)
        before = len(os.listdir("/proc/self/task"))
        y = pullback.softmax(x @ x, 1)
        print(len(os.listdir("/proc/self/task")) - before)
    """
    assert run_program(program % 1) == "0"
    assert int(run_program(program % 3, OPENBLAS_NUM_THREADS="1")) >= 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_threads_survive_a_fork() -> None:
    program = """
        import os, pullback
        pullback.set_num_threads(4)
        x = pullback.rand(600, 600)
        expected = x @ x
        child = os.fork()
        if child == 0:
            good = bool((x @ x == expected).all()) and bool((pullback.exp(x) > 0).all())
            grandchild = os.fork()
            if grandchild == 0:
                os._exit(0 if bool((x @ x == expected).all()) else 1)
            os._exit(0 if good and os.waitpid(grandchild, 0)[1] == 0 else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert (x @ x == expected).all()
        print("good")
    """
    assert run_program(program) == "good"
