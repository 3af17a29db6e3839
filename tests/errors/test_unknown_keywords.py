"""A keyword that a function does not know is refused, also by functions that take some keywords by other roads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pullback

torch: Any = pullback  # without the signatures that a type checker knows: wrong calls are what is tested
X: Any = pullback.ones(2, 2)

CALLS: dict[str, Callable[[], Any]] = {
    "sparse_coo_tensor": lambda: torch.sparse_coo_tensor([[0]], [1.0], (2,), dmi=1),
    "sparse_csr_tensor": lambda: torch.sparse_csr_tensor([0, 1], [0], [1.0], (1, 1), dmi=1),
    "Tensor": lambda: torch.Tensor([1], dmi=1),
    "FloatTensor": lambda: torch.FloatTensor([1], dtype=torch.float32),
    "new": lambda: X.new(2, dmi=1),
    "random_": lambda: X.clone().random_(3, dmi=1),
    "repeat": lambda: X.repeat(2, 2, dmi=1),
    "repeat twice": lambda: X.repeat(2, 2, repeats=(2, 2)),
    "tile": lambda: X.tile(2, dims=(2,)),
    "to": lambda: X.to(dtype=torch.float64, dmi=1),
    "to_dense": lambda: X.to_sparse().to_dense(dmi=1),
    "to_sparse": lambda: X.to_sparse(dmi=1),
    "uniform_": lambda: X.clone().uniform_(0, 1, dmi=1),
    "view_copy": lambda: torch.view_copy(X, (4,), dmi=1),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_an_unknown_or_second_keyword_is_refused(call: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match=r"dmi|dims|repeats|dtype"):
        call()
