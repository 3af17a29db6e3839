"""Classes under the name that a PyTorch program prints, and their pickles."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import pullback as torch

PROGRAM = """
import pickle, torch
x, p = torch.ones(2), torch.nn.Parameter(torch.ones(1))
print(type(x), type(p), type(x.shape), type(x.dtype), torch.Tensor.__module__)
open({path!r}, "wb").write(pickle.dumps(x))
for value in (x, p, x.shape):
    assert type(pickle.loads(pickle.dumps(value))) is type(value)
"""
PRINTED = (
    "<class 'torch.Tensor'> <class 'torch.nn.parameter.Parameter'> <class 'torch.Size'> <class 'torch.dtype'> torch\n"
)


def test_classes_print_as_pytorchs_and_pickles_can_be_read_without_the_name(tmp_path: Path) -> None:
    script, pickled = tmp_path / "program.py", tmp_path / "tensor.pickle"
    script.write_text(PROGRAM.format(path=str(pickled)))
    command = [sys.executable, "-m", "pullback", "run", str(script)]
    assert subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout == PRINTED
    assert pickle.loads(pickled.read_bytes()).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (torch.iinfo(torch.int16), "iinfo(min=-32768, max=32767, dtype=int16)"),
        (torch.iinfo(torch.int64), "iinfo(min=-9.22337e+18, max=9.22337e+18, dtype=int64)"),
        (torch.zeros(0).untyped_storage(), " \n[pullback.storage.UntypedStorage(device=cpu) of size 0]"),
        (torch.export.Dim("b"), "Dim('b', min=0)"),
        (torch.export.Dim("b", min=2, max=9), "Dim('b', max=9)"),
        (torch.export.Dim.AUTO, "DimHint(AUTO)"),
    ],
)
def test_objects_print_as_pytorchs(value: object, expected: str) -> None:
    assert repr(value) == str(value) == expected
