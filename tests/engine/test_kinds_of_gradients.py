"""Gradients of another device or layout than their tensor's are refused, wherever they come from."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest

import pullback
import pullback.func
import pullback.nn
from pullback import Tensor, autograd

META = pullback.ones(3, device="meta")


@pytest.fixture
def leaf() -> Tensor:
    return pullback.ones(3, requires_grad=True)


def test_gradient_of_another_device_is_refused(leaf: Tensor) -> None:
    with pytest.raises(RuntimeError, match="invalid gradient at index 0 - expected device cpu but got meta"):
        (leaf * 1).backward(META)


def test_gradient_of_another_device_is_not_assigned(leaf: Tensor) -> None:
    with pytest.raises(RuntimeError, match="attempting to assign a gradient with device type 'meta'"):
        leaf.grad = META


@pytest.mark.parametrize("data", [META, pullback.ones(3).to_sparse()])
def test_data_of_another_kind_is_refused(leaf: Tensor, data: Tensor) -> None:
    with pytest.raises(RuntimeError, match="`variable` and `tensor` have incompatible tensor type"):
        leaf.data = data


@pytest.mark.parametrize("replace", [lambda g: META, lambda g: g.to_sparse(), lambda g: g.double()])
def test_hook_that_changes_the_kind_of_a_gradient_is_refused(leaf: Tensor, replace: Callable[[Any], Any]) -> None:
    result = leaf * 2
    result.register_hook(replace)
    with pytest.raises(RuntimeError, match="has changed the type of value"):
        result.sum().backward()


def test_gradient_of_another_device_from_a_function_is_refused(leaf: Tensor) -> None:
    class Elsewhere(autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return META

    with pytest.raises(
        RuntimeError, match="returned an invalid gradient at index 0 - expected device cpu but got meta"
    ):
        Elsewhere.apply(leaf).sum().backward()


def test_list_is_not_several_gradients(leaf: Tensor) -> None:
    class Listed(autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, y: Any) -> Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return [grads[0], None]

    with pytest.raises(RuntimeError, match=r"returned an incorrect number of gradients \(expected 2, got 1\)"):
        Listed.apply(leaf, 1).sum().backward()


def test_gradients_of_a_dict_of_inputs_have_its_keys(leaf: Tensor) -> None:
    other = pullback.ones(3, requires_grad=True)
    loss = (leaf * other * 2).sum()
    found = autograd.grad(loss, {"leaf": leaf, "other": other}, retain_graph=True)
    assert {name: grad.tolist() for name, grad in found.items()} == {"leaf": [2.0] * 3, "other": [2.0] * 3}
    autograd.backward(loss, inputs={"other": other})
    assert leaf.grad is None
    assert other.grad is not None


@pytest.mark.parametrize("function", [autograd.grad, autograd.backward])
def test_other_mappings_and_things_are_refused_as_inputs(leaf: Tensor, function: Callable[..., Any]) -> None:
    loss = leaf.sum()
    with pytest.raises(TypeError, match="must be a dict, not OrderedDict"):
        function(loss, inputs=OrderedDict(leaf=leaf))
    with pytest.raises(RuntimeError, match="all inputs have to be Tensors or GradientEdges, but got str"):
        function(loss, inputs="x")
    with pytest.raises(RuntimeError, match="cannot be empty"):
        function(loss, inputs={})


@pytest.mark.parametrize("root", [[1], {"loss": pullback.ones(1, requires_grad=True)}])
def test_roots_that_are_not_tensors_are_refused(leaf: Tensor, root: Any) -> None:
    with pytest.raises(AssertionError, match=r"Expected output to be a torch\.Tensor"):
        autograd.backward(root)


@pytest.mark.parametrize("wanted", ["float32", 3])
def test_grad_dtype_is_a_dtype(leaf: Tensor, wanted: Any) -> None:
    with pytest.raises(RuntimeError, match=r"grad_dtype must be a torch\.dtype or None, but got"):
        leaf.grad_dtype = wanted


def test_requires_grad_of_integers_is_refused_by_assignment_and_method() -> None:
    whole = pullback.ones(2, dtype=pullback.int64)
    with pytest.raises(RuntimeError, match="only Tensors of floating point and complex dtype can require gradients"):
        whole.requires_grad = True
    with pytest.raises(RuntimeError, match="only Tensors of floating point dtype can require gradients"):
        whole.requires_grad_()


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_sparse_bags_have_gradients_of_their_rows_alone(mode: str) -> None:
    grads = []
    for sparse in (False, True):
        weight = pullback.ones(4, 2, requires_grad=True)
        indices, offsets = pullback.tensor([0, 1, 1]), pullback.tensor([0, 2])
        bags = pullback.nn.functional.embedding_bag(indices, weight, offsets, mode=mode, sparse=sparse, padding_idx=0)
        bags.sum().backward()
        assert weight.grad is not None
        grads.append(weight.grad)
    assert not grads[0].is_sparse
    assert grads[1].is_sparse
    assert grads[1]._indices().tolist() == [[1, 1]]
    assert grads[1].to_dense().equal(grads[0])


def test_sparse_gradients_are_not_scaled_by_frequency() -> None:
    weight = pullback.ones(4, 2, requires_grad=True)
    rows = pullback.nn.functional.embedding(pullback.tensor([1]), weight, scale_grad_by_freq=True, sparse=True)
    with pytest.raises(RuntimeError, match="scale_grad_by_freq not supported with sparse gradients"):
        rows.sum().backward()


def test_sparse_tensor_names_its_type() -> None:
    assert pullback.ones(2).to_sparse().type() == "pullback.sparse.FloatTensor"
    assert META.type() == "pullback.meta.FloatTensor"


def test_tangent_is_not_lost_in_a_sparse_tensor() -> None:
    forward_ad = autograd.forward_ad
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(pullback.ones(2), pullback.ones(2))
        with pytest.raises(NotImplementedError, match="Trying to use forward AD with _to_sparse"):
            dual.to_sparse()


@pytest.mark.parametrize("p", [2.0, 3.0])
def test_tangent_of_the_distance_of_equal_points_is_zero(p: float) -> None:
    points = pullback.tensor([[1.0, 2.0], [3.0, 4.0]])
    _, tangent = pullback.func.jvp(lambda x: pullback.cdist(x, points, p), (points,), (pullback.ones(2, 2),))
    assert tangent.diagonal().tolist() == [0.0, 0.0]
    assert tangent[1, 0] > 0


def test_parameter_is_not_made_of_an_inference_tensor() -> None:
    with pullback.inference_mode():
        made = pullback.ones(2)
    with pytest.raises(RuntimeError, match="Setting requires_grad=True on inference tensor outside InferenceMode"):
        pullback.nn.Parameter(made)


def test_switches_take_bools_alone() -> None:
    with pytest.raises(TypeError, match=r"'enabled' \(position 1\) must be bool, not int"):
        pullback.set_grad_enabled(1)  # type: ignore[arg-type]  # what the test is about
    assert pullback.is_grad_enabled()


def test_variable_takes_what_old_programs_gave_it() -> None:
    assert autograd.Variable().shape == (0,)
    assert autograd.Variable(pullback.ones(1), requires_grad=True, name="x").requires_grad
