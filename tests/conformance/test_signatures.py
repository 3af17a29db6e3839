"""Faults planted in signatures are caught: a missing keyword, another default, another dtype, a copy for a view."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch", reason="the conformance extra is not installed")
pytest.importorskip("expecttest", reason="PyTorch's operator database needs it")

import pullback

from .signatures import examine


def _without_axis(input: Any, dim: int, *, dtype: Any = None) -> Any:
    return pullback.cumsum(input, dim, dtype=dtype)


def _other_default(input: Any, diagonal: int = 1, *, out: Any = None) -> Any:
    return pullback.triu(input, diagonal, out=out)


def _wider(input: Any, dim: Any = None, keepdim: bool = False, **options: Any) -> Any:
    return pullback.logsumexp(input, dim, keepdim, **options).double()


def _copied(input: Any, dim0: int, dim1: int) -> Any:
    return pullback.transpose(input, dim0, dim1).clone()


def _refusing_tensors(input: Any, k: int, *arguments: Any, **options: Any) -> Any:
    if not isinstance(k, int):
        raise TypeError
    return pullback.kthvalue(input, k, *arguments, **options)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("path", "fault", "kind"),
    [
        ("torch.cumsum", _without_axis, "refuses"),
        ("torch.triu", _other_default, "differs"),
        ("torch.logsumexp", _wider, "differs"),
        ("torch.transpose", _copied, "differs"),
        ("torch.kthvalue", _refusing_tensors, "refuses"),
    ],
)
def test_a_fault_is_caught(path: str, fault: Any, kind: str) -> None:
    expected = {what for found, what, _ in examine(path)[1] if found == kind}
    actual = {what for found, what, _ in examine(path, fault)[1] if found == kind}
    assert actual - expected
