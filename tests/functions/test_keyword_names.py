"""The keyword names that PyTorch's functions take: its own, and NumPy's `axis` and `keepdims`."""

from __future__ import annotations

from typing import Any

import pytest

import pullback
from pullback import linalg, special

X = pullback.tensor([[2.0, 1.0], [1.0, 3.0]])

ALONG = (
    "argsort sort kthvalue median mode nanmedian topk chunk stack unbind tensor_split cummax cummin cumprod cumsum diff "
    "softmax log_softmax logsumexp nanmean nansum quantile squeeze unsqueeze aminmax take_along_dim repeat_interleave"
).split()
MORE: dict[str, tuple[Any, ...]] = {
    "kthvalue": (1,), "topk": (1,), "chunk": (2,), "tensor_split": (2,), "quantile": (0.5,), "repeat_interleave": (2,),
    "take_along_dim": (pullback.tensor([[0], [1]]),),
}  # fmt: skip


def _flat(result: Any) -> list[Any]:
    return [r.tolist() for r in (result if isinstance(result, (tuple, list)) else (result,))]


@pytest.mark.parametrize("name", ALONG)
def test_axis_means_dim(name: str) -> None:
    function, more = getattr(pullback, name), MORE.get(name, ())
    first = [X, X] if name == "stack" else X

    assert _flat(function(first, *more, axis=1)) == _flat(function(first, *more, dim=1))


@pytest.mark.parametrize("name", ["softmax", "cumsum", "unsqueeze", "logsumexp"])
def test_a_dimension_is_still_required(name: str) -> None:
    with pytest.raises(TypeError, match=r"missing 1 required positional arguments: \"dim\""):
        getattr(pullback, name)(X)


def test_keepdims_means_keepdim() -> None:
    assert pullback.nansum(X, axis=0, keepdims=True).tolist() == [[3.0, 4.0]]
    assert pullback.median(X, axis=0, keepdims=True).values.shape == (1, 2)
    assert linalg.norm(X, axis=0, keepdims=True).shape == (1, 2)


def test_linear_algebra_calls_its_matrix_input() -> None:
    assert linalg.cholesky(input=X).tolist() == linalg.cholesky(X).tolist()
    assert linalg.norm(input=X).item() == linalg.norm(X).item()
    assert linalg.lstsq(input=X, b=X).solution.shape == (2, 2)
    assert linalg.solve_triangular(input=X.triu(), B=X, upper=True).shape == (2, 2)


def test_other_names() -> None:
    assert special.airy_ai(x=X).tolist() == special.airy_ai(X).tolist()
    assert [part.shape for part in pullback.hsplit(X, sections=2)] == [(2, 1), (2, 1)]
    assert [part.shape for part in pullback.vsplit(X, indices=(1,))] == [(1, 2), (1, 2)]
    assert pullback.isin(elements=X, test_element=1.0).tolist() == [[False, True], [True, False]]
    assert pullback.result_type(tensor=X, other=1j) is pullback.complex64
    assert pullback.nn.functional.one_hot(input=pullback.tensor([1])).tolist() == [[0, 1]]
    assert pullback.histogram(X).hist.shape == (100,)
