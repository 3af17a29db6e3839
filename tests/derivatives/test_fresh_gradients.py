"""Lines that the generator calls fresh return arrays that share no memory with what came in. See Note [Owned gradients]."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback
from tests.cases import each_case, named
from tests.derivatives.sampling import Sample
from tests.derivatives.test_derivatives import SAMPLES


def nodes_below(root: Any) -> list[Any]:
    found, waiting = [], [root]
    while waiting:
        node = waiting.pop()
        if node is None or node in found:
            continue
        found.append(node)
        waiting += [following for following, _ in node.next_functions]
    return found


@each_case(named("sample", SAMPLES, lambda sample: sample.name))
def test_a_fresh_gradient_shares_no_memory_with_the_one_before(sample: Sample) -> None:
    inputs = [pullback.tensor(array, requires_grad=True) for array in sample.arrays()]
    results = sample.call(*inputs)
    for result in results if isinstance(results, (tuple, list)) else [results]:
        node = getattr(result, "grad_fn", None)
        if node is None or len(nodes_below(node)) > 3 or node.output_count != 1 or not any(node.fresh):
            continue
        start = np.ones(result.shape, result.detach().numpy().dtype)
        made = node.apply([start], node.next_edges)
        held = [start, *[tensor.detach().numpy() for tensor in inputs], result.detach().numpy()]
        for array, is_fresh in zip(made, node.fresh, strict=True):
            if is_fresh and isinstance(array, np.ndarray):
                assert not any(np.shares_memory(array, other) for other in held)


@pytest.mark.parametrize("shape", [(), (1,), (3, 1)], ids=str)
@pytest.mark.parametrize("name", ["cumsum", "cumprod", "flip", "softmax", "amax", "logcumsumexp"])
def test_gradients_that_a_pass_is_given_are_not_written_to(name: str, shape: tuple[int, ...]) -> None:
    x = pullback.full(shape, 2.0, requires_grad=True)
    if name == "flip" and not shape:
        return
    first, second = getattr(x, name)(-1), x * 3
    given = [pullback.ones_like(first), pullback.ones_like(second)]
    for results, grads in (([first, second], given), ([second, first], given[::-1])):
        pullback.autograd.grad(results, x, grads, retain_graph=True)
        assert all(bool((grad == 1).all()) for grad in given)
