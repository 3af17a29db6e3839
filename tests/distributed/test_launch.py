"""Starting ranks, and how they end when one fails: nobody hangs, and the failing rank is named."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from pullback.distributed import launch as launcher
from pullback.distributed.environment import Placement, find_master, find_placement
from pullback.distributed.launch import Launch, _explain, _forward
from pullback.distributed.run import main as torchrun
from tests.distributed.running import PATIENCE, environment, free_port, launch, launch_text, mpich_alone, needs_mpi

BEGIN = """
import os, sys, time, signal, datetime
import torch
import torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
values = torch.ones(3)
dist.all_reduce(values)

def wait_for(path):
    while not os.path.exists(path):
        time.sleep(0.01)
"""


@needs_mpi
def test_ranks_run_a_torch_program_with_torchruns_variables(tmp_path: Path) -> None:
    done = launch_text(
        BEGIN + "print(torch.__name__, values.tolist(), *(os.environ[name] for name in "
        "('RANK', 'LOCAL_RANK', 'WORLD_SIZE', 'LOCAL_WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT')), sys.argv[0][-10:])",
        tmp_path,
    )
    assert sorted(done.stdout.splitlines()) == [
        f"torch [2.0, 2.0, 2.0] {rank} {rank} 2 2 localhost 29500 program.py" for rank in range(2)
    ]
    assert done.returncode == 0
    assert done.stderr.count("the backend 'gloo' means MPI") == 1


@needs_mpi
def test_torchruns_command_line_and_an_mpiexec_that_is_already_there(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text("import os, sys; print(os.environ['RANK'], os.environ['MASTER_PORT'], sys.argv[1:])")
    arguments = ["--standalone", "--nnodes=1", "--nproc_per_node=2", "--master-port", "1234", str(script), "--lr", "1"]
    done = subprocess.run(
        [sys.executable, "-m", "pullback.distributed.run", *arguments], capture_output=True, text=True, check=False,
        env=environment(),
    )  # fmt: skip
    assert sorted(done.stdout.splitlines()) == ["0 1234 ['--lr', '1']", "1 1234 ['--lr', '1']"]
    inside = [str(Path(sys.executable).parent / "mpiexec"), "-n", "2", sys.executable, "-m", "pullback", "launch"]
    done = subprocess.run([*inside, str(script)], capture_output=True, text=True, check=False, env=environment())
    assert sorted(done.stdout.splitlines()) == ["0 29500 []", "1 29500 []"]


@needs_mpi
def test_output_is_labelled_by_rank_on_request(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text("print('first', 'line'); print('second')")
    done = launch("--label", "-n", "2", str(script))
    assert sorted(done.stdout.splitlines()) == [
        "[rank0] first line", "[rank0] second", "[rank1] first line", "[rank1] second",
    ]  # fmt: skip


@needs_mpi
@pytest.mark.parametrize(
    ("failure", "status", "said"),
    [
        ("raise ValueError('broken')", 1, "[rank1]: ValueError: broken"),
        ("sys.exit(7)", 7, "rank 1 failed with exit status 7"),
        ("os._exit(9)", 9, "rank 1 ended with exit status 9; all ranks were ended"),
        # mpiexec ends the others by the same signal, and may report one of these.
        ("os.kill(os.getpid(), signal.SIGKILL)", 137, " was killed by signal 9 (SIGKILL); all ranks were ended"),
        ("sys.exit(0)", 1, "Connection closed by peer: all_reduce (number 2 of group '0') cannot complete, since rank 1"),
        ("time.sleep(200)", 1, "Timed out waiting 1000ms for all_reduce (number 2 of group '0') to complete on rank 0; "
                              "still missing: rank 1 (it has entered all_reduce, number 1, so far)"),
    ],
)  # fmt: skip
def test_a_rank_that_fails_ends_all(failure: str, status: int, said: str, tmp_path: Path) -> None:
    patience = "dist.group.WORLD.set_timeout(datetime.timedelta(seconds=1))" if "sleep" in failure else ""
    text = f"{BEGIN}\nif rank == 1:\n    {failure}\n{patience}\ndist.all_reduce(values)\ntime.sleep(200)\n"
    done = launch_text(text, tmp_path)
    assert done.returncode == status
    assert said in done.stderr
    assert "BAD TERMINATION" not in done.stdout + done.stderr


@needs_mpi
@mpich_alone
def test_a_rank_that_leaves_without_a_word_is_not_taken_for_success(tmp_path: Path) -> None:
    done = launch_text(
        f"{BEGIN}\nif rank == 1:\n    os._exit(0)\ndist.all_reduce(values)\nprint('rank 0 is done')", tmp_path
    )
    assert done.returncode == 1
    assert "is done" not in done.stdout
    # mpiexec ends rank 0 at once, but rank 0 may be the first to notice.
    assert "ended by os._exit or its like; all ranks were ended" in done.stderr or "Connection closed" in done.stderr


@needs_mpi
def test_the_first_failing_ranks_traceback_comes_first(tmp_path: Path) -> None:
    late = "if rank == 0: wait_for(os.environ['PULLBACK_LAUNCH_REPORTS'] + '/rank1.txt')\n"
    text = BEGIN + late + "raise RuntimeError(f'rank {rank} failed')"
    done = launch_text(text, tmp_path)
    lines = [line for line in done.stderr.splitlines() if "Traceback" in line or "failed with" in line]
    assert lines[0] == "[rank1]: Traceback (most recent call last):"
    assert lines[-1] == "pullback: rank 1 failed with exit status 1; all ranks were ended"


@needs_mpi
@mpich_alone
def test_a_monitored_barrier_names_who_is_late_and_programs_may_go_on(tmp_path: Path) -> None:
    text = f"""{BEGIN}
noticed = {str(tmp_path / "noticed")!r}
if rank == 1:
    wait_for(noticed)
    time.sleep(0.5)
    print("rank 1 goes on")
else:
    try:
        dist.monitored_barrier(timeout=datetime.timedelta(seconds=0.5))
    except RuntimeError as error:
        print(error)
    open(noticed, "w").close()
"""
    done = launch_text(text, tmp_path)
    assert "[Rank 0]: Rank 1 failed to pass monitoredBarrier in 500 ms" in done.stdout
    assert "rank 1 goes on" in done.stdout
    assert done.returncode == 0


@needs_mpi
@mpich_alone
@pytest.mark.parametrize("from_terminal", [False, True])
def test_an_interrupt_ends_all_and_leaves_nothing_behind(from_terminal: bool, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(BEGIN + "print(os.getpid(), flush=True)\ntime.sleep(200)")
    command = [sys.executable, "-m", "pullback", "launch", "-n", "2", str(script)]
    process = subprocess.Popen(
        command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    ranks = [int(process.stdout.readline()) for _ in range(2)]
    shared = {found for rank in ranks for found in re.findall(r"/dev/shm/.*", Path(f"/proc/{rank}/maps").read_text())}
    (os.killpg if from_terminal else os.kill)(process.pid, signal.SIGINT)
    said = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 130
    assert "KeyboardInterrupt" in said
    while any(Path(f"/proc/{rank}").exists() for rank in ranks):
        time.sleep(0.01)
    assert shared
    assert not [name for name in shared if not name.endswith(" (deleted)")]


@needs_mpi
def test_a_failed_start_is_tried_again(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text("import os, sys; sys.exit(os.environ['TORCHELASTIC_RESTART_COUNT'] == '0')")
    arguments = ["--nproc-per-node=1", "--max-restarts=2", str(script)]
    done = subprocess.run(
        [sys.executable, "-m", "pullback.distributed.run", *arguments], capture_output=True, text=True, check=False,
        env=environment(),
    )  # fmt: skip
    assert done.returncode == 0
    assert done.stderr.count("starting again") == 1


def test_other_launchers_are_recognised() -> None:
    open_mpi = {"OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "1",
                "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}  # fmt: skip
    assert find_placement(open_mpi) == Placement(3, 4, 1, 2)
    slurm = {"SLURM_PROCID": "2", "SLURM_NTASKS": "4", "SLURM_LOCALID": "0", "SLURM_TASKS_PER_NODE": "2(x2)"}
    assert find_placement({**slurm, "SLURM_STEP_ID": "0"}) == Placement(2, 4, 0, 2)
    assert find_placement({**slurm, "SLURM_STEP_ID": "batch"}) is None
    assert find_placement({}) is None


def test_hosts_are_passed_on() -> None:
    command = Launch(["train.py"], 4, hosts="a,b").arguments("srun")
    assert command[:7] == ["srun", "-n", "4", "--kill-on-bad-exit=1", "--disable-status", "--nodelist", "a,b"]
    assert command[-1] == "train.py"


@pytest.mark.parametrize(
    ("library", "hosts", "hostfile"),
    [
        ("HYDRA build details:", ["-hosts", "a,b"], ["-f", "hosts"]),
        ("mpiexec (Open MPI) 5.0.11", ["--host", "a,b"], ["--hostfile", "hosts"]),
    ],
)
def test_hosts_and_files_of_hosts_are_passed_on_to_mpiexec(
    library: str, hosts: list[str], hostfile: list[str], tmp_path: Path
) -> None:
    mpiexec = tmp_path / "mpiexec"
    mpiexec.write_text(f"#!/bin/sh\necho '{library}'\n")
    mpiexec.chmod(0o755)
    for given, options in ((Launch(["x"], 4, hosts="a,b"), hosts), (Launch(["x"], 4, hostfile="hosts"), hostfile)):
        arguments = given.arguments(str(mpiexec))
        assert arguments[1:3] == ["-n", "4"]
        assert arguments[arguments.index(options[0]) + 1] == options[1]


def forwarded(text: str, size: int, folder: Path, *, tagged: bool) -> tuple[str, str]:
    """What users see, and what is kept for the launcher, of a text that comes in pieces."""
    reading, writing = os.pipe()
    with open(reading, "rb") as source, open(folder / "shown", "w+") as target:
        said: list[bytes] = []
        thread = threading.Thread(target=_forward, args=(source, target, said, tagged))
        thread.start()
        for start in range(0, len(text), size):
            os.write(writing, text[start : start + size].encode())
            time.sleep(0.001)
        os.close(writing)
        thread.join()
    return (folder / "shown").read_text(), b"".join(said).decode()


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_what_open_mpi_adds_is_taken_out_however_it_comes(size: int, tmp_path: Path) -> None:
    rule = 74 * "-"
    end = "prterun noticed that process rank 1 with PID 37 on node here exited on\nsignal 9 (Killed)."
    text = f"[1,0]<stdout>: first\n[1,1]<stdout>: [1, 2]\n[a] b\n{rule}\n{end}\n{rule}\n"
    shown, said = forwarded(text, size, tmp_path, tagged=True)
    assert shown == "[rank0] first\n[rank1] [1, 2]\n[a] b\n"
    (tmp_path / "process37").write_text("1")
    assert _explain(tmp_path, 1, said) == 137


SLURM_22 = """\
first
srun: error: vm: task 1: {how}
srun: launch/slurm: _step_signal: Terminating StepId=16.0
{label}slurmstepd-vm: error: *** STEP 16.0 ON vm CANCELLED AT 2026-01-01T00:00:00 ***
srun: error: vm: tasks 0,2: Terminated
srun: Force Terminated StepId=16.0
srun: sending Ctrl-C to StepId=16.0
srun: forcing job termination
srun alone"""
"""What srun of Slurm 22.05 wrote when one of three tasks ended so, under --kill-on-bad-exit; its status was 143."""


@pytest.mark.parametrize("size", [1, 3, 7, 33, 1000])
@pytest.mark.parametrize("label", ["", "0: "])
@pytest.mark.parametrize(
    ("how", "status", "message"),
    [
        ("Killed", 137, "rank 1 was killed by signal 9 (SIGKILL)"),
        ("Segmentation fault (core dumped)", 139, "rank 1 was killed by signal 11 (SIGSEGV)"),
        ("Exited with exit code 7", 7, "rank 1 failed with exit status 7"),
    ],
)
def test_what_srun_adds_is_taken_out_however_it_comes(
    how: str, status: int, message: str, label: str, size: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown, said = forwarded(SLURM_22.format(how=how, label=label), size, tmp_path, tagged=False)
    assert shown == "first\nsrun alone"
    assert _explain(tmp_path, 143, said) == status
    assert message in capsys.readouterr().err


MPICH_4 = """\
[mpiexec@vm] Exit codes: [vm] {codes}

===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   PID 11 RUNNING AT vm
=   EXIT CODE: 9
===================================================================================
YOUR APPLICATION TERMINATED WITH THE EXIT STRING: {how}
"""


@pytest.mark.parametrize(
    ("codes", "how", "ended", "status", "message"),
    [
        ("9,11,9", "Segmentation fault (signal 11)", [], 139, "rank 1 was killed by signal 11"),
        ("9,9,9", "Killed (signal 9)", [2], 137, "rank 2 was killed by signal 9"),
        ("9,9,9", "Killed (signal 9)", [1, 2], 137, "rank 0, or one that ended with it, was killed by signal 9"),
    ],
)
def test_the_rank_that_was_killed_first_is_named_where_it_is_known(
    codes: str,
    how: str,
    ended: list[int],
    status: int,
    message: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "process11").write_text("0")
    assert _explain(tmp_path, status - 128, MPICH_4.format(codes=codes, how=how), ended) == status
    assert message in capsys.readouterr().err


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="no Linux")
def test_who_ends_first_without_a_word_is_seen(tmp_path: Path) -> None:
    ranks = [subprocess.Popen([sys.executable, "-c", "import time; time.sleep(200)"]) for _ in range(3)]
    try:
        for rank, process in enumerate(ranks):
            (tmp_path / f"process{process.pid}").write_text(str(rank))
        with launcher.Ends(tmp_path) as ends:
            wait_until(lambda: len(ends._descriptors) == 3)
            (tmp_path / f"process{ranks[0].pid}").rename(tmp_path / "ended")  # as a rank that ends in order does
            ranks[0].kill()
            wait_until(lambda: len(ends._descriptors) == 2)
            ranks[2].kill()
            wait_until(lambda: bool(ends.first))
            ranks[1].kill()
    finally:
        for process in ranks:
            process.kill()
            process.wait()
    assert ends.first == [2]


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_several_machines_need_their_names() -> None:
    with pytest.raises(SystemExit, match="--nnodes=2 needs to know the machines"):
        torchrun(["--nnodes=2", "--node-rank=0", "train.py"])


@needs_mpi
def test_a_program_written_for_torchrun_runs(tmp_path: Path) -> None:
    done = launch_text(
        "import torch.distributed as dist\n"
        "from torch.distributed.elastic.multiprocessing.errors import record\n"
        "@record\n"
        "def main():\n"
        "    dist.init_process_group(dist.Backend.GLOO)\n"
        "    print(dist.get_rank(), dist.get_backend(), dist.is_torchelastic_launched())\n"
        "    dist.destroy_process_group()\n"
        "main()\n",
        tmp_path,
    )
    assert sorted(done.stdout.splitlines()) == ["0 gloo True", "1 gloo True"]


def slurm(folder: Path, mpi: str) -> dict[str, str]:
    """The variables inside of a job of Slurm's, with a stand-in for srun on the path."""
    srun = folder / "srun"
    srun.write_text(f"#!{sys.executable}\nfrom tests.distributed.stand_in_srun import main\nraise SystemExit(main())\n")
    srun.chmod(0o755)
    port = free_port()
    job = next(
        str(number)
        for number in range(12000)
        if find_master({"SLURM_STEP_NODELIST": "here", "SLURM_JOB_ID": str(number)}) == ("here", port)
    )
    return {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "SLURM_JOB_ID": job, "STAND_IN_MPI": mpi}


@needs_mpi
@mpich_alone
@pytest.mark.parametrize("mpi", ["hydra", "none"])
def test_ranks_of_a_slurm_job_find_each_other(mpi: str, tmp_path: Path) -> None:
    program = BEGIN + "print(rank, values.tolist(), os.environ['LOCAL_RANK'], os.environ['SLURM_PROCID'])"
    done = launch_text(program, tmp_path, 2, **slurm(tmp_path, mpi))
    assert sorted(done.stdout.splitlines()) == [f"{rank} [2.0, 2.0, 2.0] {rank} {rank}" for rank in range(2)], (
        done.stderr
    )
    assert done.returncode == 0


def test_a_slurm_job_says_how_many_ranks_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    monkeypatch.setenv("SLURM_NTASKS", "6")
    monkeypatch.setattr(launcher, "launch", lambda given: given.ranks)
    assert launcher.main(["train.py"]) == 6
    assert launcher.main(["-n", "2", "train.py"]) == 2


@needs_mpi
@mpich_alone
def test_a_rank_of_a_slurm_job_that_is_killed_ends_all(tmp_path: Path) -> None:
    failure = "if rank == 1: os.kill(os.getpid(), signal.SIGKILL)\ntime.sleep(200)"
    done = launch_text(BEGIN + failure, tmp_path, 2, **slurm(tmp_path, "none"))
    assert "rank 1 was killed by signal 9 (SIGKILL)" in done.stderr
    assert done.returncode == 137


@needs_mpi
def test_a_world_that_mpi_does_not_know_is_refused(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text("import torch.distributed as dist; dist.init_process_group('mpi')")
    done = subprocess.run(
        [sys.executable, "-m", "pullback", "run", str(script)], capture_output=True, text=True, check=False, timeout=PATIENCE,
        env=environment(OMPI_COMM_WORLD_RANK="1", OMPI_COMM_WORLD_SIZE="2"),
    )  # fmt: skip
    assert "the world has 2, but MPI knows 1" in done.stderr
    assert done.returncode == 1


@pytest.mark.parametrize("ended", [[], [1, 0], [1]])
def test_the_rank_that_ended_by_a_status_of_its_own_is_named(
    ended: list[int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "process11").write_text("1")
    # MPICH lists what the system says of ended processes: 9 is a signal, 9 * 256 is an exit status.
    assert _explain(tmp_path, 9, "[mpiexec@vm] Exit codes: [vm] 9,2304\n", ended) == 9
    assert "rank 1 ended with exit status 9" in capsys.readouterr().err


def test_what_mpiexec_refuses_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refusal = f"{74 * '-'}\nprterun has detected an attempt to run as root.\n{74 * '-'}\n"
    assert _explain(tmp_path, 1, refusal) == 1
    assert "no rank was started; mpiexec says" in (said := capsys.readouterr().err)
    assert "attempt to run as root" in said
    (tmp_path / "process17").write_text("0")
    assert _explain(tmp_path, 1, refusal) == 1
    assert "a rank ended with exit status 1" in capsys.readouterr().err


@pytest.mark.parametrize(("reaction", "end"), [("SIG_DFL", signal.SIGTERM), ("SIG_IGN", signal.SIGKILL)])
def test_an_mpiexec_that_does_not_notice_a_failing_rank_is_ended(
    reaction: str, end: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launcher, "PATIENCE", 0.1)
    program = f"import signal, time; signal.signal(15, signal.{reaction}); print(flush=True); time.sleep(200)"
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    (tmp_path / "first").write_text("")
    assert launcher._wait(process, tmp_path / "first") == -end
    process.stdout.close()


def test_what_cannot_be_started_is_said_in_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="there is no file of hosts"):
        launcher.launch(Launch(["program.py"], hostfile=str(tmp_path / "nowhere")))
    with pytest.raises(SystemExit, match="2"):
        launcher.main(["-n", "0", "program.py"])
    assert "-n must be 1 at least, not 0" in capsys.readouterr().err


@needs_mpi
def test_torchrun_is_found_under_its_name_as_a_module(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text("import os; print(os.environ['RANK'])")
    done = subprocess.run(
        [sys.executable, "-m", "pullback", "run", "-m", "torch.distributed.run", "--nproc-per-node=2", str(script)],
        capture_output=True, text=True, check=False, env=environment(),
    )  # fmt: skip
    assert sorted(done.stdout.split()) == ["0", "1"], done.stderr
