"""What a page in a browser does with pullback, with all refused that the runtime there (WebAssembly) does not have.

Run by `test_browser_runtime.py` on a copy of the package without anything compiled. The first part takes away threads,
processes, ctypes and the modules of Python that are not there; the rest is a user's program.
"""

from __future__ import annotations

import importlib.abc
import io
import os
import subprocess
import sys
import threading
from typing import Any

ABSENT = {
    "_ctypes", "_curses", "_lzma", "_multiprocessing", "_posixshmem", "_posixsubprocess", "_ssl", "ctypes", "curses", "grp",
    "lzma", "pwd", "readline", "resource", "sqlite3", "ssl", "termios", "tkinter",
}  # fmt: skip


class Absent(importlib.abc.MetaPathFinder):
    """Finds none of the modules that a browser's Python lacks."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> None:
        if fullname.partition(".")[0] in ABSENT:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


def refuse_processes(*args: Any, **options: Any) -> Any:
    raise OSError("emscripten does not support processes.")


def refuse_threads(thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def become_a_browser() -> None:
    """Take away what a browser's Python does not have."""
    sys.meta_path.insert(0, Absent())
    for name in ABSENT:
        sys.modules.pop(name, None)
    for name in ("execv", "fork", "forkpty", "posix_spawn", "system"):
        if hasattr(os, name):
            setattr(os, name, refuse_processes)
    setattr(subprocess.Popen, "__init__", refuse_processes)  # noqa: B010 (a type checker sees no method there)
    setattr(threading.Thread, "start", refuse_threads)  # noqa: B010
    setattr(sys, "platform", "emscripten")  # noqa: B010
    setattr(os, "cpu_count", lambda: 1)  # noqa: B010


def train() -> None:
    import pullback as torch
    from pullback.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    x, y = torch.randn(16, 1, 8, 8), torch.randint(0, 3, (16,))
    losses = []
    for _ in range(8):
        for images, labels in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    assert sum(losses[-4:]) < sum(losses[:4]) / 4, losses
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    model.load_state_dict(torch.load(file))


def _sum_of_cubes(values: Any) -> Any:
    return (values**3).sum()


def differentiate() -> None:
    import pullback as torch
    from pullback.func import grad, hessian, vmap
    from pullback.utils.graph_picture import graph_tree

    eye = torch.eye(4, dtype=torch.float64)
    a = torch.randn(4, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda a: torch.linalg.solve(a @ a.T + eye, a).sum(), a)
    slope: Any = grad(_sum_of_cubes)
    rows = vmap(slope)(torch.ones(2, 3))
    assert rows.tolist() == [[3.0] * 3] * 2
    assert hessian(_sum_of_cubes)(torch.ones(2)).tolist() == [[6.0, 0.0], [0.0, 6.0]]
    lstm = torch.nn.LSTM(3, 4)
    lstm(torch.randn(5, 2, 3))[0].sum().backward()
    assert lstm.weight_ih_l0.grad is not None
    assert "SumBackward0" in graph_tree((a * 2).sum())
    compiled = torch.compile(lambda v: (v.sin() * 2).sum())
    for _ in range(4):
        assert abs(compiled(torch.ones(3)).item() - 5.048826) < 1e-5


def say_what_is_not_there() -> None:
    import pullback as torch
    from pullback.utils.data import DataLoader, TensorDataset

    said = ""
    try:
        next(iter(DataLoader(TensorDataset(torch.ones(2)), num_workers=2)))
    except RuntimeError as error:
        said = str(error)
    assert "cannot start worker processes" in said
    assert "num_workers=0" in said
    torch.show_config()


if __name__ == "__main__":
    become_a_browser()
    train()
    differentiate()
    say_what_is_not_there()
    print("DONE")
