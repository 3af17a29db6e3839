"""Starts a program on several processes: `pullback launch` and `python -m pullback.distributed.run`.

MPI's own `mpiexec` (or Slurm's `srun`) does the work: it starts the ranks here or on other machines, and ends all of them
when one fails. This file chooses it, passes torchrun's variables on, and says in plain words which rank failed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TextIO

from pullback.distributed.environment import find_placement
from pullback.distributed.worker import REPORTS
from pullback.distributed.worker import main as run_as_rank

__all__ = ["Launch", "is_open_mpi", "launch", "main"]

BANNER = re.compile(
    rb"\n?=+\n=   BAD TERMINATION.*?debugging suggestions\n|^-{74}\n(?:prterun|mpirun|mpiexec) .*?\n-{74}\n|"
    rb"^(Abort\(\d+\) on node|\[proxy:|\[mpiexec@|srun: (?:error|Job step|launch/|Force Terminated|sending Ctrl-C|"
    rb"forcing job termination)|"
    rb"(?:\d+: )?slurmstepd[^ :]*: error: \*\*\* )[^\n]*\n",
    re.DOTALL | re.MULTILINE,
)
"""What mpiexec and srun add when a rank fails; the launcher says it better."""

RULES = (83 * b"=" + b"\n=   BAD TERMINATION", 74 * b"-" + b"\nprterun ")
"""How the mpiexec of MPICH, and that of Open MPI, begin to say so."""

OPENINGS = (b"Abort(", b"[proxy:", b"[mpiexec@", b"srun: ", b"slurmstepd")
"""How single lines that they print begin."""

LABEL = re.compile(rb"^\d+(?:: ?|$)")
"""How srun says which rank a line comes from, on request; of its own ones only some have that."""

SLURM_ENDING = re.compile(
    r"srun: error: \S+ task(?P<s>s?) (?P<ranks>[\d,\-]+): (?:Exited with exit code (?P<code>\d+)|(?P<signal>[^\n(]*))"
)
"""How srun says that tasks ended, the first of them first."""

EXIT_CODES = re.compile(r"Exit codes: \[[^\]\n]*\] ([\d,]+)$", re.MULTILINE)
"""How the mpiexec of MPICH says it of the ranks of one machine: what the system says of an ended process (os.wait)."""

PATIENCE = 5.0
"""Seconds that mpiexec has to end all ranks once one has failed; it then is asked to, and after as long again ended."""

TAG = re.compile(rb"^\[\d+,(\d+)\]<std(?:out|err)>: ?", re.MULTILINE)
"""Open MPI's way of saying which rank a line comes from."""


HEARING = 0.5
"""Seconds that mpiexec has to say that it was interrupted too."""


@dataclass
class Launch:
    """What is to be started, where, and how."""

    command: list[str]
    ranks: int = 1
    hosts: str | None = None
    hostfile: str | None = None
    label: bool = False
    restarts: int = 0
    variables: dict[str, str] = field(default_factory=dict)

    def arguments(self, launcher: str) -> list[str]:
        """The command line for `mpiexec` or `srun`."""
        worker = [sys.executable, "-m", "pullback.distributed.worker", *self.command]
        if Path(launcher).name == "srun":
            # An interrupt goes to the ranks at once; otherwise srun asks for a second one.
            options = ["-n", str(self.ranks), "--kill-on-bad-exit=1", "--disable-status"]
            options += ["--nodelist", self.hosts] if self.hosts else []
            options += ["--label"] if self.label else []
            return [launcher, *options, *worker]
        options = ["-n", str(self.ranks)]
        if is_open_mpi(launcher):
            options += ["--oversubscribe"]
            options += ["--host", self.hosts] if self.hosts else []
            options += ["--hostfile", self.hostfile] if self.hostfile else []
            options += ["--tag-output"] if self.label else []
            options += [part for name in self.variables for part in ("-x", name)]
        else:
            options += ["-hosts", self.hosts] if self.hosts else []
            options += ["-f", self.hostfile] if self.hostfile else []
            options += ["-prepend-pattern", "[rank%r] "] if self.label else []
            options += ["-print-all-exitcodes"]
        return [launcher, *options, *worker]


def is_open_mpi(launcher: str) -> bool:
    """Whether an mpiexec is Open MPI's, which has options of its own."""
    answer = subprocess.run([launcher, "--version"], capture_output=True, text=True, check=False).stdout
    return "Open MPI" in answer or "OpenRTE" in answer


def find_launcher() -> str:
    """`srun` inside of a Slurm job, else the mpiexec of this Python's environment, else that of the path."""
    if "SLURM_JOB_ID" in os.environ and shutil.which("srun"):
        return "srun"
    beside = Path(sys.executable).parent / "mpiexec"
    found = str(beside) if beside.exists() else shutil.which("mpiexec")
    if found is None:
        raise SystemExit(
            "pullback: there is no mpiexec. Install it with: pip install 'pullback[mpi]', which brings mpi4py and mpich."
        )
    return found


def launch(given: Launch) -> int:
    """Start the ranks, wait for them, and return the exit status of the first that failed."""
    if find_placement() is not None:
        # Started by mpiexec or srun already: this process is one of the ranks.
        return run_as_rank(given.command)
    status = 0
    for attempt in range(given.restarts + 1):
        os.environ["TORCHELASTIC_RESTART_COUNT"] = str(attempt)
        status = _launch_once(given)
        if status in (0, 130):
            break
        if attempt < given.restarts:
            print(f"pullback: starting again, {attempt + 1} of {given.restarts}", file=sys.stderr)
    return status


def _launch_once(given: Launch) -> int:
    with tempfile.TemporaryDirectory(prefix="pullback-launch-") as folder:
        variables = {
            "MASTER_ADDR": _master(given), "MASTER_PORT": _port(), "TORCHELASTIC_RUN_ID": "none",
            "OMP_NUM_THREADS": "1" if given.ranks > 1 else os.environ.get("OMP_NUM_THREADS", ""),
            "TORCHELASTIC_MAX_RESTARTS": str(given.restarts), REPORTS: folder,
        }  # fmt: skip
        environment = {**{name: value for name, value in variables.items() if value}, **os.environ, REPORTS: folder}
        environment.update(given.variables)
        command = given.arguments(find_launcher())
        sys.stdout.flush()
        said: list[bytes] = []
        with _passing_on_interrupts(said) as interrupts:
            process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            interrupts.reach(process)
            forwarders = [
                threading.Thread(target=_forward, args=(source, target, said, "--tag-output" in command), daemon=True)
                for source, target in ((process.stdout, sys.stdout), (process.stderr, sys.stderr))
            ]
            for each in forwarders:
                each.start()
            with Ends(Path(folder)) as ends:
                status = _wait(process, Path(folder, "first"))
        for each in forwarders:
            each.join(5)
        if interrupts.came and status:  # not every mpiexec says so
            status = -signal.SIGINT
        return _explain(Path(folder), status, b"".join(said).decode(errors="replace"), ends.first)


def _wait(process: subprocess.Popen[bytes], report: Path) -> int:
    """The exit status of mpiexec, which is ended where it has not noticed for long that a rank failed and said so."""
    deadline, end = None, process.terminate
    while True:
        try:
            return process.wait(0.5)
        except subprocess.TimeoutExpired:
            if deadline is None:
                deadline = time.monotonic() + PATIENCE if report.exists() else None
            elif time.monotonic() > deadline:
                end()
                deadline, end = time.monotonic() + PATIENCE, process.kill


class Ends:
    """Sees which rank of this machine is the first to end without having said so (worker.py): it was killed.

    mpiexec ends the others by SIGKILL, too, and does not tell which was the first. `first` holds several where others were
    ending as well by the time that this thread ran, and none where this is not Linux.
    """

    def __init__(self, folder: Path) -> None:
        self.first: list[int] = []
        self._folder = folder
        self._descriptors: dict[int, Path] = {}
        self._known: set[Path] = set()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Ends:
        if hasattr(os, "pidfd_open"):
            self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._is_over.set()
        if self._thread.is_alive():
            self._thread.join()

    def _watch(self) -> None:
        poll = select.poll()
        while not self.first and not self._is_over.is_set():
            for note in set(self._folder.glob("process*")) - self._known:
                self._known.add(note)
                try:
                    descriptor = os.pidfd_open(_process_of(note))
                except OSError:  # it has ended already
                    continue
                self._descriptors[descriptor] = note
                poll.register(descriptor, select.POLLIN)
            for descriptor, _ in poll.poll(50):
                poll.unregister(descriptor)
                os.close(descriptor)
                note = self._descriptors.pop(descriptor)
                if note.exists():  # a rank that ends in order takes its note away
                    self.first.append(int(note.read_text()))
        if self.first:
            self.first += [
                int(note.read_text()) for note in self._descriptors.values() if _is_ending(_process_of(note))
            ]
        for descriptor in self._descriptors:
            os.close(descriptor)


def _process_of(note: Path) -> int:
    return int(note.name.removeprefix("process"))


def _is_ending(process: int) -> bool:
    """Whether a process was killed and is not gone yet: of a large one that takes a while."""
    try:
        for thread in Path(f"/proc/{process}/task").iterdir():
            flags = int(thread.joinpath("stat").read_text().rpartition(")")[2].split()[6])
            pending = re.search(r"^SigPnd:\s*(\w+)$", thread.joinpath("status").read_text(), re.MULTILINE)
            if flags & 4 or (pending is not None and int(pending[1], 16) >> (signal.SIGKILL - 1) & 1):  # 4: it exits
                return True
    except (OSError, ValueError, IndexError):
        return True
    return False


def _master(given: Launch) -> str:
    """The machine of rank 0."""
    first = re.split(r"[,:]", given.hosts)[0] if given.hosts else ""
    if given.hostfile:
        if not Path(given.hostfile).is_file():
            raise SystemExit(f"pullback: there is no file of hosts {given.hostfile}")
        lines = [line for line in Path(given.hostfile).read_text().splitlines() if line.strip() and line[0] != "#"]
        first = re.split(r"[\s:]", lines[0])[0] if lines else ""
    # Under Slurm the ranks find it themselves, by the machines of their step.
    return first or ("" if "SLURM_JOB_ID" in os.environ else "localhost")


def _port() -> str:
    """torchrun's port; under Slurm, where it is used and jobs share machines, `find_master` chooses another per job."""
    return "" if "SLURM_JOB_ID" in os.environ else "29500"


def _forward(source: IO[bytes], target: TextIO, said: list[bytes], tagged: bool) -> None:
    """Pass the ranks' output on as it comes, and keep apart what mpiexec says about how they ended.

    `tagged` output comes from Open MPI, whose tags are replaced by `[rank0]` and the like.
    """
    held = b""
    while chunk := os.read(source.fileno(), 1 << 16):
        text = held + chunk
        said += [match.group() for match in BANNER.finditer(text)]
        text = BANNER.sub(b"", text)
        end = min(_begun(text), text.rfind(b"\n") + 1 if tagged else len(text))
        held = text[end:]
        os.write(target.fileno(), _labelled(text[:end]) if tagged else text[:end])
    os.write(target.fileno(), _labelled(held) if tagged else held)


def _labelled(text: bytes) -> bytes:
    return TAG.sub(rb"[rank\1] ", text)


def _begun(text: bytes) -> int:
    """Where a banner or a line of the launcher's begins whose end is still to come; it comes in pieces."""
    for start in range(max(0, len(text) - 2000), len(text)):
        rest = text[start:]
        if text[start - 1 : start] in (b"", b"\n") and any(r.startswith(rest) or rest.startswith(r) for r in RULES):
            return start
    line = text.rfind(b"\n") + 1
    rest = LABEL.sub(b"", text[line:])
    is_theirs = text[line:] and any(opening.startswith(rest) or rest.startswith(opening) for opening in OPENINGS)
    return line if is_theirs else len(text)


class _Interrupts:
    """Sends the user's interrupts on to mpiexec, unless it has them from the terminal, and also one that comes early.

    A terminal interrupts mpiexec as well, which passes that on and says so; a second one would make it kill the ranks in
    the middle of their tracebacks.
    """

    def __init__(self, said: list[bytes]) -> None:
        self.came = False
        self._said = said
        self._process: subprocess.Popen[bytes] | None = None

    def reach(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        if self.came:
            process.send_signal(signal.SIGINT)

    def __call__(self, *_: object) -> None:
        is_first, self.came = not self.came, True
        if self._process is not None:
            timer = threading.Timer(HEARING if is_first else 0.0, self._pass_on, (self._process,))
            timer.daemon = True
            timer.start()

    def _pass_on(self, process: subprocess.Popen[bytes]) -> None:
        if process.poll() is None and not any(b"Ctrl-C" in line for line in self._said):
            process.send_signal(signal.SIGINT)


@contextmanager
def _passing_on_interrupts(said: list[bytes]) -> Iterator[_Interrupts]:
    interrupts = _Interrupts(said)
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        yield interrupts
        return
    former = signal.signal(signal.SIGINT, interrupts)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, former)


def _explain(folder: Path, status: int, said: str, ended: Sequence[int] = ()) -> int:
    """Say which rank failed first, show what the others said after it, and return its exit status."""
    first = folder / "first"
    if first.exists():
        report = json.loads(first.read_text())
        for path in sorted(folder.glob("rank*.txt")):
            if path.stem != f"rank{report['rank']}" and path.read_text():
                mark = f"[{path.stem}]: "
                print("".join(mark + line + "\n" for line in path.read_text().splitlines()), end="", file=sys.stderr)
        if report["status"] != 130:
            print(f"pullback: rank {report['rank']} failed with exit status {report['status']}; all ranks were ended",
                  file=sys.stderr)  # fmt: skip
        return int(report["status"])
    if status == 0:
        return _find_the_silent(folder, ended)
    ending = SLURM_ENDING.search(said)
    if ending is not None and ending["code"]:
        which = f"rank{ending['s']} {ending['ranks']}"
        print(f"pullback: {which} failed with exit status {ending['code']}; all ranks were ended", file=sys.stderr)
        return int(ending["code"])
    number, which = _killed(folder, status, said, ended)
    if number == signal.SIGINT:
        return 130
    if number:
        print(f"pullback: {which} was killed by signal {number} ({signal.Signals(number).name}); all ranks were ended",
              file=sys.stderr)  # fmt: skip
        return 128 + number
    if said and not any(folder.iterdir()):
        print(f"pullback: no rank was started; mpiexec says:\n{said}", file=sys.stderr)
    else:
        who = [rank for rank, code in enumerate(_exit_codes(said)) if code == status] if len(ended) != 1 else ended
        which = f"rank {who[0]}" if len(who) == 1 else "a rank"
        print(f"pullback: {which} ended with exit status {status}; all ranks were ended", file=sys.stderr)
    return status


def _exit_codes(said: str) -> list[int]:
    """How the ranks of one machine ended, as far as mpiexec says: exit statuses, and signals as negative numbers."""
    listed = EXIT_CODES.search(said)
    return [os.waitstatus_to_exitcode(int(code)) for code in listed[1].split(",") if code] if listed else []


def _find_the_silent(folder: Path, ended: Sequence[int]) -> int:
    """Whether ranks left by `os._exit(0)` or its like: mpiexec takes that for success, and ends the others at once."""
    silent = sorted(int(note.read_text()) for note in folder.glob("process*"))
    if not silent:
        return 0
    who = f"rank {ended[0]}" if len(ended) == 1 else f"one of the ranks {', '.join(map(str, silent))}"
    print(f"pullback: {who} ended by os._exit or its like; all ranks were ended. A program ends by returning or by sys.exit",
          file=sys.stderr)  # fmt: skip
    return 1


def _killed(folder: Path, status: int, said: str, ended: Sequence[int]) -> tuple[int, str]:
    """The signal that ended a rank, 0 if none did, and which rank it was as far as it is known."""
    ending = SLURM_ENDING.search(said)
    if ending is not None:
        names = {signal.strsignal(each): int(each) for each in signal.valid_signals()}
        return names.get(ending["signal"].strip(), max(status - 128, 0)), f"rank{ending['s']} {ending['ranks']}"
    signals = {rank: -code for rank, code in enumerate(_exit_codes(said)) if code < 0}
    own = [rank for rank, number in signals.items() if number != signal.SIGKILL]  # mpiexec kills by that one alone
    first = list(ended) if len(ended) == 1 else own[:1]
    if first and first[0] in signals:
        return signals[first[0]], f"rank {first[0]}"
    killed = re.search(r"\(signal (\d+)\)|exited on\s+signal (\d+)", said)
    where = re.search(r"PID (\d+) (?:RUNNING AT|on node)", said)
    note = folder / f"process{where[1]}" if where else folder / "none"
    number = int(killed[1] or killed[2]) if killed else max(-status, 0)
    if not note.exists():
        return number, "a rank"
    # By SIGKILL mpiexec ends the others as well, and may report one of these.
    return number, f"rank {note.read_text()}" + (", or one that ended with it," if number == signal.SIGKILL else "")


def main(arguments: Sequence[str]) -> int:
    """Run `pullback launch -n 2 script.py args...`."""
    parser = argparse.ArgumentParser(
        prog="pullback launch", description="Run a PyTorch program on several processes, with 'torch' meaning pullback."
    )
    tasks = int(os.environ.get("SLURM_NTASKS", "1")) if "SLURM_JOB_ID" in os.environ else 1
    parser.add_argument("-n", "-np", type=int, default=tasks, metavar="N",
                        help="the number of processes; inside of a Slurm job its tasks, else 1")  # fmt: skip
    parser.add_argument("--hosts", help="machines to run on, separated by commas (host:processes gives a number)")
    parser.add_argument("--hostfile", help="a file with one machine a line")
    parser.add_argument("--label", action="store_true", help="begin every line of output with its rank")
    parser.add_argument("-m", dest="module", action="store_true", help="the program is a module, as in python -m")
    parser.add_argument("script", help="the program")
    parser.add_argument("args", nargs=argparse.REMAINDER, help="its arguments")
    given = parser.parse_args(list(arguments))
    if given.n < 1:
        parser.error(f"-n must be 1 at least, not {given.n}")
    program = ["-m"] * given.module + [given.script, *given.args]
    return launch(Launch(program, given.n, given.hosts, given.hostfile, given.label))
