"""Modules as functions of their parameters."""

from __future__ import annotations

from typing import Any

import pytest

import pullback
from pullback.func import functional_call, grad, replace_all_batch_norm_modules_, stack_module_state, vmap

nn: Any = pullback.nn


def test_the_module_gets_its_own_parameters_back() -> None:
    layer = nn.Linear(2, 1, bias=False)
    before = layer.weight
    assert functional_call(layer, {"weight": pullback.ones(1, 2)}, pullback.ones(2)).item() == 2.0
    assert layer.weight is before
    with pytest.raises(RuntimeError):
        functional_call(layer, {"weight": pullback.ones(1, 5)}, pullback.ones(2))
    assert layer.weight is before


def test_parameters_of_submodules_and_several_dictionaries() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    parameters, buffers = dict(model.named_parameters()), dict(model.named_buffers())
    output = functional_call(model, (parameters, buffers), (pullback.rand(3, 2),))
    assert output.shape == (3, 2)
    with pytest.raises(ValueError, match="appeared in multiple dictionaries"):
        functional_call(model, (parameters, parameters), (pullback.rand(3, 2),))
    with pytest.raises(ValueError, match="Expected parameter_and_buffer_dicts to be a dict"):
        functional_call(model, 3, (pullback.rand(3, 2),))


def test_strict_names_what_is_missing_and_unexpected() -> None:
    with pytest.raises(RuntimeError, match="Missing key"):
        functional_call(nn.Linear(2, 1), {"weight": pullback.ones(1, 2)}, pullback.ones(2), strict=True)
    with pytest.raises(RuntimeError, match="Unexpected key"):
        functional_call(nn.Linear(2, 1), {"other": pullback.ones(1, 2)}, pullback.ones(2), strict=True)


def test_tied_weights_are_replaced_together() -> None:
    class Tied(pullback.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = nn.Parameter(pullback.ones(1))
            self.b = self.a

        def forward(self, x: Any) -> Any:
            return x * self.a + self.b

    assert functional_call(Tied(), {"a": pullback.full((1,), 2.0)}, pullback.ones(1)).item() == 4.0
    alone = functional_call(Tied(), {"a": pullback.full((1,), 2.0)}, pullback.ones(1), tie_weights=False)
    assert alone.item() == 3.0


def test_what_forward_writes_to_a_buffer_is_given_back() -> None:
    norm = nn.BatchNorm1d(2)
    buffers = {k: v.clone() for k, v in norm.named_buffers()}
    functional_call(norm, (dict(norm.named_parameters()), buffers), (pullback.rand(4, 2),))
    assert norm.num_batches_tracked.item() == 0


def test_gradients_for_each_sample_of_a_model() -> None:
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
    parameters = {k: v.detach() for k, v in model.named_parameters()}

    def loss(p: Any, x: Any) -> Any:
        return functional_call(model, p, (x,)).pow(2).sum()

    x = pullback.rand(5, 3)
    gradients = vmap(grad(loss), in_dims=(None, 0))(parameters, x)
    for name in parameters:
        expected = pullback.stack([grad(loss)(parameters, a)[name] for a in x])
        pullback.testing.assert_close(gradients[name], expected)


def test_an_ensemble_is_one_call() -> None:
    models = [nn.Linear(2, 3) for _ in range(4)]
    parameters, buffers = stack_module_state(models)
    assert parameters["weight"].is_leaf
    assert parameters["weight"].requires_grad
    x = pullback.rand(2)
    outputs = vmap(lambda p, b: functional_call(models[0], (p, b), (x,)))(parameters, buffers)
    pullback.testing.assert_close(outputs, pullback.stack([m(x) for m in models]))


def test_models_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(RuntimeError, match="Expected at least one model"):
        stack_module_state([])
    with pytest.raises(RuntimeError, match="same class"):
        stack_module_state([nn.Linear(1, 1), nn.Identity()])
    with pytest.raises(RuntimeError, match="same training/eval mode"):
        stack_module_state([nn.Linear(1, 1), nn.Linear(1, 1).eval()])


def test_batch_norm_needs_statistics_for_each_example() -> None:
    model = nn.Sequential(nn.BatchNorm1d(2))
    with pytest.raises(RuntimeError, match="running_mean or running_var, which will be updated in place"):
        vmap(model)(pullback.rand(3, 4, 2))
    replace_all_batch_norm_modules_(model)
    assert vmap(model)(pullback.rand(3, 4, 2)).shape == (3, 4, 2)


def test_older_forms_of_functional_modules() -> None:
    from pullback.func import combine_state_for_ensemble, make_functional, make_functional_with_buffers

    layer, norm, x = nn.Linear(2, 2), nn.BatchNorm1d(2), pullback.rand(3, 2)
    with pytest.warns(FutureWarning, match="functional_call"):
        function, params = make_functional(layer)
    assert pullback.equal(function(params, x), layer(x))
    with pytest.warns(FutureWarning):
        batched, params, buffers = make_functional_with_buffers(norm.eval())
    assert pullback.equal(batched(params, buffers, x), norm(x))
    with pytest.warns(FutureWarning), pytest.raises(RuntimeError, match="`model` has buffers"):
        make_functional(norm)
    with pytest.warns(FutureWarning):
        one, params, buffers = combine_state_for_ensemble([layer, layer])
    assert vmap(one, in_dims=(0, 0, None))(params, buffers, x).shape == (2, 3, 2)
