"""Random programs of conjugated and negated views, written to and read in any order, on PyTorch and on pullback."""

from __future__ import annotations

import random
from typing import Any

import pytest

import pullback

torch = pytest.importorskip("torch")

VIEWS = {
    "conj": lambda t: t.conj(), "neg": lambda t: t._neg_view(), "tail": lambda t: t[1:], "steps": lambda t: t[::2],
    "twice": lambda t: t.unsqueeze(0).expand(2, *t.shape)[1], "column": lambda t: t.reshape(-1, 1)[:, 0],
    "imag": lambda t: t.imag if t.is_complex() else t.detach(), "real": lambda t: t.real, "detach": lambda t: t.detach(),
    "as_strided": lambda t: t.as_strided((1,), (1,), t.storage_offset()),
}  # fmt: skip
WRITES = {
    "mul": lambda t: t.mul_(0.5), "add": lambda t: t.add_(1.5), "copy": lambda t: t.copy_(t.flip(0).clone()),
    "first": lambda t: t.__setitem__(slice(0, 1), 3), "sgn": lambda t: t.sgn_(), "own": lambda t: t.mul_(t.clone()).mul_(0.1),
}  # fmt: skip
RECORDED = [name for name in VIEWS if name != "detach"]


def run(module: Any, seed: int, recorded: bool) -> list[Any]:
    """Everything a random program shows, step by step."""
    choice = random.Random(seed)
    leaf = module.tensor([1 + 2j, 3 - 0.5j, 0.25j, -1 + 1j, 2 - 2j], dtype=module.complex128, requires_grad=recorded)
    tensors = [leaf * 1]
    shown: list[Any] = []
    for _ in range(12):
        tensor = choice.choice(tensors)
        names = RECORDED if recorded else list(VIEWS)
        if choice.random() < 0.6:
            name = choice.choice(names)
            if tensor.numel() > 0 and not (name == "imag" and recorded and not tensor.is_complex()):
                tensors.append(VIEWS[name](tensor))
        else:
            WRITES[choice.choice(list(WRITES))](tensor)
        shown.append(
            [
                (t.tolist(), t.is_conj(), t.is_neg(), t._version, t.stride() if t.numel() > 1 else (), t._is_view())
                for t in tensors
            ]
        )
    if recorded:
        total = sum((t * t).abs().sum() for t in tensors if t.numel())
        try:
            shown.append(module.autograd.grad(total, leaf)[0].tolist())
        except RuntimeError as error:
            shown.append("modified by an inplace operation" in str(error))
    return shown


def numbers(value: Any) -> Any:
    """Every number, in order; what else there is as it is."""
    if isinstance(value, (list, tuple)):
        return [number for item in value for number in numbers(item)]
    return [value]


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_programs_of_turned_views_show_what_they_show_on_pytorch(seed: int, recorded: bool) -> None:
    expected, actual = run(torch, seed, recorded), run(pullback, seed, recorded)
    assert numbers(actual) == pytest.approx(numbers(expected), rel=1e-6, nan_ok=True)
