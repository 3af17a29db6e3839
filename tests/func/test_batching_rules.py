"""Every sample of the derivatives' tests under vmap, compared with a loop over the examples."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback
from pullback.func import hessian, jvp, vmap
from pullback.nn import functional as F
from tests.cases import each_case, named
from tests.derivatives.sampling import Sample
from tests.func.batches import as_tensor, assert_same, batch_of, check_gradients, check_values, tensors_of

_FOLDER = Path(__file__).parents[1] / "derivatives"
SAMPLES: list[Sample] = []
for _path in sorted(_FOLDER.glob("samples_*.py")):
    SAMPLES += importlib.import_module(f"tests.derivatives.{_path.stem}").SAMPLES

# Positions in the storage mean the first example's memory to each of the examples of a loop.
_OTHER_MEANING = ("as_strided",)
pytestmark = pytest.mark.filterwarnings("ignore:There is a performance drop")


def _samples(samples: list[Sample]) -> Any:
    return each_case(named("sample", samples, lambda sample: sample.name), per_test=20)


all_samples = _samples(SAMPLES)


def _skip_storage(sample: Sample) -> None:
    if sample.name in _OTHER_MEANING:
        pytest.skip("positions in the storage have another meaning")


@all_samples
def test_vmap_gives_what_a_loop_gives(sample: Sample) -> None:
    _skip_storage(sample)
    inputs = [as_tensor(batch_of(a)) for a in sample.arrays()]
    check_values(sample.call, inputs, [0] * len(inputs))


@all_samples
def test_the_mapped_dimension_may_be_the_last(sample: Sample) -> None:
    _skip_storage(sample)
    inputs = [as_tensor(np.moveaxis(batch_of(a), 0, -1)) for a in sample.arrays()]
    check_values(sample.call, inputs, [x.dim() - 1 for x in inputs])


@all_samples
def test_vmap_of_the_gradient_gives_gradients_of_examples(sample: Sample) -> None:
    _skip_storage(sample)
    inputs = [as_tensor(batch_of(a)) for a in sample.arrays()]
    check_gradients(sample.call, inputs, [0] * len(inputs))


@_samples([s for s in SAMPLES if len(s.inputs) > 1])
def test_inputs_that_all_examples_share(sample: Sample) -> None:
    arrays = sample.arrays()
    in_dims = [0] + [None] * (len(arrays) - 1)
    inputs = [as_tensor(a if dim is None else batch_of(a)) for a, dim in zip(arrays, in_dims, strict=True)]
    check_values(sample.call, inputs, in_dims)
    check_gradients(sample.call, inputs, in_dims)


@all_samples
def test_batched_cotangents_give_what_single_ones_give(sample: Sample) -> None:
    inputs = [as_tensor(a) for a in sample.arrays()]
    wanted = [x.requires_grad_() for x in inputs if x.is_floating_point() or x.is_complex()]
    outputs = [o for o in tensors_of(sample.call(*inputs)) if o.requires_grad]
    rng = np.random.default_rng(1)
    vectors = [as_tensor(rng.normal(size=(2, *o.shape)).astype(o.detach().numpy().dtype)) for o in outputs]
    actual = pullback.autograd.grad(
        outputs, wanted, vectors, is_grads_batched=True, retain_graph=True, allow_unused=True
    )
    for position in range(2):
        single = [v[position] for v in vectors]
        expected = pullback.autograd.grad(outputs, wanted, single, retain_graph=True, allow_unused=True)
        for a, e in zip(actual, expected, strict=True):
            assert (a is None) == (e is None)
            if a is not None:
                assert_same(a[position], e)


@_samples([s for s in SAMPLES if s.forward])
def test_batched_tangents_give_what_single_ones_give(sample: Sample) -> None:
    inputs = [as_tensor(a) for a in sample.arrays()]
    numbers = [i for i, x in enumerate(inputs) if x.is_floating_point() or x.is_complex()]

    def along(*tangents: Any) -> Any:
        def call(*values: Any) -> Any:
            given = list(inputs)
            for number, value in zip(numbers, values, strict=True):
                given[number] = value
            outputs = tensors_of(sample.call(*given))
            return tuple(o for o in outputs if o.is_floating_point() or o.is_complex())

        return jvp(call, tuple(inputs[n] for n in numbers), tangents)[1]

    rng = np.random.default_rng(2)
    tangents = [as_tensor(rng.normal(size=(2, *inputs[n].shape)).astype(inputs[n].numpy().dtype)) for n in numbers]
    actual = vmap(along)(*tangents)
    for position in range(2):
        for a, e in zip(actual, along(*[t[position] for t in tangents]), strict=True):
            assert_same(a[position], e)


@all_samples
def test_vmap_of_vmap(sample: Sample) -> None:
    _skip_storage(sample)
    inputs = [as_tensor(np.stack([batch_of(a), batch_of(a) * 1.001])) for a in map(np.asarray, sample.arrays())
              if a.dtype.kind in "fc"]  # fmt: skip
    if len(inputs) != len(sample.inputs):
        pytest.skip("positions cannot be scaled")
    outputs = vmap(vmap(lambda *xs: tensors_of(sample.call(*xs))))(*inputs)
    for i in range(2):
        for j in range(3):
            expected = tensors_of(sample.call(*[x[i][j] for x in inputs]))
            for actual, e in zip(outputs, expected, strict=True):
                assert_same(actual[i][j], e)


@pytest.mark.parametrize("var", [pullback.tensor([1.0, 2.0]), 2.0])
@pytest.mark.filterwarnings("error")
def test_gaussian_nll_loss_runs_on_the_batch(var: Any) -> None:
    inputs = pullback.tensor([[0.5, 1.0], [2.0, -1.0]])
    target = pullback.zeros(2)
    actual = vmap(lambda x: F.gaussian_nll_loss(x, target, var))(inputs)
    expected = pullback.stack([F.gaussian_nll_loss(x, target, var) for x in inputs])
    assert pullback.allclose(actual, expected)


@pytest.mark.filterwarnings("error")
def test_the_hessian_of_gaussian_nll_loss_in_its_variance_needs_no_loop() -> None:
    zero = pullback.zeros(2)
    found = hessian(lambda v: F.gaussian_nll_loss(zero, zero, v))(pullback.tensor([1.0, 2.0]))
    assert found.tolist() == [[-0.25, 0.0], [0.0, -0.0625]]


def test_a_negative_variance_in_one_example_is_refused() -> None:
    zero = pullback.zeros(2)
    with pytest.raises(ValueError, match="var has negative entry"):
        vmap(lambda v: F.gaussian_nll_loss(zero, zero, v))(pullback.tensor([[1.0, 2.0], [1.0, -1.0]]))
