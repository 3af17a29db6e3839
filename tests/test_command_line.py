"""`pullback run` behaves as `python` does, with `torch` meaning pullback."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from pullback.pytorch.spawned_processes import _FORK_SERVER, _prepared

SOURCE = Path(__file__).parent.parent / "src"


def execute(folder: Path, *command: str, input: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    return subprocess.run(
        [sys.executable, *command],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        input=input,
    )


def run_script(folder: Path, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "script.py").write_text(text, encoding="utf-8")
    return execute(folder, "-m", "pullback", "run", "script.py", *arguments)


def test_torch_means_pullback(tmp_path: Path) -> None:
    process = run_script(tmp_path, "import torch, sys; print(torch is sys.modules['pullback'])")
    assert process.stdout == "True\n"


def test_script_sees_its_own_arguments(tmp_path: Path) -> None:
    process = run_script(tmp_path, "import sys; print(sys.argv)", "--epochs", "3", "-h")
    assert process.stdout == "['script.py', '--epochs', '3', '-h']\n"


def test_script_is_the_main_module(tmp_path: Path) -> None:
    text = "import sys\nx = 1\nprint(__name__, __file__, sys.modules['__main__'].x, __spec__)"
    assert run_script(tmp_path, text).stdout == f"__main__ {tmp_path / 'script.py'} 1 None\n"


def test_script_imports_from_its_own_folder(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "neighbour.py").write_text("value = 7", encoding="utf-8")
    (tmp_path / "inner" / "script.py").write_text("import neighbour; print(neighbour.value)", encoding="utf-8")
    assert execute(tmp_path, "-m", "pullback", "run", "inner/script.py").stdout == "7\n"


def test_object_of_the_script_can_be_pickled(tmp_path: Path) -> None:
    text = "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))) is A)"
    assert run_script(tmp_path, text).stdout == "True\n"


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("", 0),
        ("raise SystemExit(3)", 3),
        ("import sys; sys.exit('no')", 1),
        ("1 / 0", 1),
        ("raise KeyboardInterrupt", 130),
    ],
)
def test_exit_status_is_the_script_s(tmp_path: Path, text: str, status: int) -> None:
    assert run_script(tmp_path, text).returncode == status


@pytest.mark.parametrize("text", ["def f():\n    1 / 0\nf()\n", "x = (\n", "import no_such_module\n"])
def test_traceback_is_the_one_that_python_shows(tmp_path: Path, text: str) -> None:
    actual = run_script(tmp_path, text).stderr
    expected = execute(tmp_path, "script.py").stderr
    assert actual == expected


def test_script_finds_its_file_after_a_change_of_the_folder(tmp_path: Path) -> None:
    text = "import inspect, os\ndef f(): pass\nos.chdir('/')\nprint(open(__file__).read() == __loader__.get_data(__file__).decode())"
    assert run_script(tmp_path, text + "\nprint(inspect.getsource(f), end='')").stdout == "True\ndef f(): pass\n"


def test_missing_script_is_reported_as_by_python(tmp_path: Path) -> None:
    process = execute(tmp_path, "-m", "pullback", "run", "missing.py")
    assert process.returncode == 2
    assert process.stderr.startswith("pullback: can't open file '")
    assert process.stderr.endswith("missing.py': [Errno 2] No such file or directory\n")


def test_module_is_run_with_its_arguments(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import sys, torch; print(__name__, sys.argv[1:])", encoding="utf-8")
    process = execute(tmp_path, "-m", "pullback", "run", "-m", "program", "a")
    assert process.stdout == "__main__ ['a']\n"


@pytest.mark.parametrize("arguments", [[], ["walk"], ["run"], ["run", "--fast"]])
def test_wrong_command_shows_the_usage(tmp_path: Path, arguments: list[str]) -> None:
    process = execute(tmp_path, "-m", "pullback", *arguments)
    assert process.returncode == 2
    assert process.stderr.startswith("usage: pullback run script.py")


def test_version_is_shown(tmp_path: Path) -> None:
    assert execute(tmp_path, "-m", "pullback", "--version").stdout == "pullback 0.1.0\n"


def test_a_program_given_as_text_runs(tmp_path: Path) -> None:
    done = execute(
        tmp_path,
        "-m",
        "pullback",
        "run",
        "-c",
        "import sys, torch; print(torch.ones(2).sum().item(), sys.argv)",
        "one",
        "--two",
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "2.0 ['-c', 'one', '--two']\n", "")


def test_an_error_in_text_shows_its_line(tmp_path: Path) -> None:
    done = execute(tmp_path, "-m", "pullback", "run", "-c", "import torch\ntorch.ones(2) @ torch.ones(3)")
    assert done.returncode == 1
    assert done.stderr.startswith('Traceback (most recent call last):\n  File "<string>", line 2, in <module>\n')


def test_a_program_is_read_from_standard_input(tmp_path: Path) -> None:
    done = execute(
        tmp_path,
        "-m",
        "pullback",
        "run",
        "-",
        "one",
        input="import sys, torch; print(torch.ones(2).sum().item(), sys.argv)",
    )
    assert (done.returncode, done.stdout) == (0, "2.0 ['-', 'one']\n")


def test_a_folder_with_a_main_runs(tmp_path: Path) -> None:
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "part.py").write_text("value = 3.0")
    (tmp_path / "program" / "__main__.py").write_text("import torch, part; print(torch.tensor(part.value).item())")
    done = execute(tmp_path, "-m", "pullback", "run", "program")
    assert (done.returncode, done.stdout, done.stderr) == (0, "3.0\n", "")


def test_a_folder_without_a_main_is_reported_as_by_python(tmp_path: Path) -> None:
    done = execute(tmp_path, "-m", "pullback", "run", ".")
    assert (done.returncode, done.stderr) == (1, "pullback: can't find '__main__' module in '.'\n")


def test_a_zip_file_with_a_main_runs(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "program.zip", "w") as file:
        file.writestr("part.py", "value = 3.0")
        file.writestr(
            "__main__.py", "import sys, torch, part; print(torch.tensor(part.value).item(), sys.argv, __file__)"
        )
    done = execute(tmp_path, "-m", "pullback", "run", "program.zip", "a")
    place = tmp_path / "program.zip" / "__main__.py"
    assert (done.stdout, done.stderr) == (f"3.0 ['program.zip', 'a'] {place}\n", "")


def test_check_lists_what_a_program_uses_and_pullback_lacks(tmp_path: Path) -> None:
    (tmp_path / "uses.py").write_text(
        "import torch\nimport torch.nn.functional as F\nfrom torch import nn, classes\n\n"
        "x = F.relu(nn.Linear(2, 2)(torch.ones(2)))\ntorch.cuda.nvtx_missing.range_push('a')\n"
        "try:\n    from torch import nothing_of_the_kind\nexcept ImportError:\n    pass\n"
        "torch.Tensor.no_such_method(x)\n"
    )
    done = execute(tmp_path, "-m", "pullback", "check", "uses.py")
    assert done.returncode == 1
    assert done.stdout == (
        "uses.py:3: torch.classes is not in pullback\n"
        "uses.py:6: torch.cuda.nvtx_missing is not in pullback\n"
        "uses.py:11: torch.Tensor.no_such_method is not in pullback\n"
        "3 names are missing.\n"
    )


def test_check_is_content_with_a_program_that_can_run(tmp_path: Path) -> None:
    (tmp_path / "fine.py").write_text("import torch.optim as o\nimport torch\no.SGD([torch.ones(2)], lr=0.1)\n")
    done = execute(tmp_path, "-m", "pullback", "check", "fine.py")
    assert (done.returncode, done.stdout) == (0, "Everything that was found by name is there.\n")


def test_check_says_when_a_file_cannot_be_read(tmp_path: Path) -> None:
    done = execute(tmp_path, "-m", "pullback", "check", "nowhere.py")
    assert (done.returncode, "cannot read nowhere.py" in done.stderr) == (2, True)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no forkserver here")
def test_a_child_of_a_forkserver_imports_torch(tmp_path: Path) -> None:
    text = """
import multiprocessing, torch

def work(queue):
    import torch

    queue.put(float((torch.ones(2) * 2).sum()))

if __name__ == "__main__":
    context = multiprocessing.get_context("forkserver")
    queue = context.Queue()
    process = context.Process(target=work, args=(queue,))
    process.start()
    print(queue.get(timeout=300))
    process.join(60)
"""
    assert run_script(tmp_path, text).stdout == "4.0\n"


@pytest.mark.parametrize("beginning", ["", "import sys; "], ids=["Python 3.11", "Python 3.14"])
def test_a_server_that_forks_installs_pullback_first(beginning: str) -> None:
    text = f"{beginning}from multiprocessing.forkserver import main; main(3, 4, [])"
    made = _prepared(["python", "-c", text, "argument"], _FORK_SERVER)[2]
    assert "pullback.install_as_torch()" in made
    assert made.endswith(text)


def test_the_tracker_of_resources_is_started_as_it_is() -> None:
    command = ["python", "-c", "from multiprocessing.resource_tracker import main;main(3)"]
    assert _prepared(list(command), _FORK_SERVER) == command
