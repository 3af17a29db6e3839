"""The functional forms of the optimizers do what the classes do, and steps in place do what the rules say."""

from __future__ import annotations

from typing import Any

import pytest

import pullback
from pullback.optim import _functional

ADAM_STATE = {"exp_avgs": "exp_avg", "exp_avg_sqs": "exp_avg_sq", "state_steps": "step"}
FORMS: dict[str, tuple[str, dict[str, str], dict[str, Any], dict[str, Any]]] = {
    "sgd": (
        "SGD", {"momentum_buffer_list": "momentum_buffer"},
        {"lr": 0.1, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.01, "nesterov": False, "maximize": True}, {},
    ),
    "adam": (
        "Adam", {**ADAM_STATE, "max_exp_avg_sqs": "max_exp_avg_sq"},
        {"lr": 0.1, "eps": 1e-8, "weight_decay": 0.01, "amsgrad": True, "maximize": False},
        {"beta1": 0.9, "beta2": 0.99},
    ),
    "adamw": (
        "AdamW", {**ADAM_STATE, "max_exp_avg_sqs": "max_exp_avg_sq"},
        {"lr": 0.1, "eps": 1e-8, "weight_decay": 0.01, "amsgrad": True, "maximize": False},
        {"beta1": 0.9, "beta2": 0.99},
    ),
    "nadam": (
        "NAdam", {**ADAM_STATE, "mu_products": "mu_product"},
        {"lr": 0.1, "eps": 1e-8, "weight_decay": 0.01, "momentum_decay": 4e-3}, {"beta1": 0.9, "beta2": 0.99},
    ),
    "radam": (
        "RAdam", ADAM_STATE, {"lr": 0.1, "eps": 1e-8, "weight_decay": 0.01}, {"beta1": 0.9, "beta2": 0.99},
    ),
    "adamax": (
        "Adamax", {"exp_avgs": "exp_avg", "exp_infs": "exp_inf", "state_steps": "step"},
        {"lr": 0.1, "eps": 1e-8, "weight_decay": 0.01}, {"beta1": 0.9, "beta2": 0.99},
    ),
    "adadelta": (
        "Adadelta", {"square_avgs": "square_avg", "acc_deltas": "acc_delta", "state_steps": "step"},
        {"lr": 0.5, "rho": 0.9, "eps": 1e-6, "weight_decay": 0.01, "maximize": False}, {},
    ),
    "adagrad": (
        "Adagrad", {"state_sums": "sum", "state_steps": "step"},
        {"lr": 0.5, "lr_decay": 0.1, "eps": 1e-6, "weight_decay": 0.01, "maximize": False}, {},
    ),
    "rmsprop": (
        "RMSprop",
        {"square_avgs": "square_avg", "grad_avgs": "grad_avg", "momentum_buffer_list": "momentum_buffer", "state_steps": "step"},
        {"lr": 0.1, "alpha": 0.9, "eps": 1e-6, "weight_decay": 0.01, "momentum": 0.9, "centered": True}, {},
    ),
    "asgd": (
        "ASGD", {"axs": "ax", "mus": "mu", "etas": "eta", "state_steps": "step"},
        {"lr": 0.1, "lambd": 1e-2, "t0": 1.0, "alpha": 0.75, "weight_decay": 0.01}, {},
    ),
    "rprop": (
        "Rprop", {"prevs": "prev", "step_sizes": "step_size", "state_steps": "step"}, {"lr": 0.1},
        {"etaminus": 0.5, "etaplus": 1.2, "step_size_min": 1e-6, "step_size_max": 50},
    ),
}  # fmt: skip
"""Per functional form: its class, its lists and the state's names for them, the shared options, the form's own."""


def _gradients() -> list[Any]:
    generator = pullback.Generator().manual_seed(1)
    return [pullback.randn(3, 2, dtype=pullback.float64, generator=generator) for _ in range(4)]


@pytest.mark.parametrize("name", FORMS)
def test_functional_form_does_the_step_of_its_class(name: str) -> None:
    class_name, lists, options, own = FORMS[name]
    gradients = _gradients()
    param = pullback.ones(3, 2, dtype=pullback.float64, requires_grad=True)
    shared = {key: value for key, value in options.items() if name != "asgd" or key != "lr"} | {"lr": options["lr"]}
    betas = {"betas": (own["beta1"], own["beta2"])} if "beta1" in own else {}
    optimizer = getattr(pullback.optim, class_name)([param], **shared, **betas)
    param.grad = gradients[0]
    optimizer.step()
    copy = param.detach().clone()
    state = {name: value.clone() for name, value in optimizer.state[param].items()}
    columns = {list_name: [state[state_name]] for list_name, state_name in lists.items()}
    options = {key: value for key, value in options.items() if name != "rprop" or key != "lr"}
    for gradient in gradients[1:]:
        param.grad = gradient
        optimizer.step()
        gradient_name = "d_p_list" if name == "sgd" else "grads"
        getattr(_functional, name)(params=[copy], **{gradient_name: [gradient]}, **columns, **options, **own)
    assert copy.tolist() == param.tolist()


def test_sgd_puts_new_momentum_buffers_into_its_list() -> None:
    buffers: list[Any] = [None]
    param, grad = pullback.ones(2), pullback.tensor([1.0, 2.0])
    options: Any = {
        "weight_decay": 0.0,
        "momentum": 0.9,
        "lr": 0.1,
        "dampening": 0.0,
        "nesterov": False,
        "maximize": False,
    }
    _functional.sgd([param], [grad], buffers, **options)
    assert buffers[0].tolist() == [1.0, 2.0]
    assert param.tolist() == pytest.approx([0.9, 0.8])


def test_functional_adam_wants_tensors_as_step_counts() -> None:
    param = pullback.ones(2)
    options: Any = {
        "amsgrad": False,
        "beta1": 0.9,
        "beta2": 0.99,
        "lr": 0.1,
        "weight_decay": 0.0,
        "eps": 1e-8,
        "maximize": False,
    }
    with pytest.raises(RuntimeError, match="`state_steps` argument must contain a list of singleton tensors"):
        _functional.adam([param], [param], [param], [param], [], [1], **options)  # type: ignore[list-item]  # on purpose


IN_PLACE: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "weight_decay": 0.1, "maximize": True}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.5}),
    ("Adam", {"lr": 0.1, "weight_decay": 0.1, "maximize": True}),
    ("AdamW", {"lr": 0.1, "amsgrad": True}),
    ("RMSprop", {"lr": 0.1}),
    ("RMSprop", {"lr": 0.1, "centered": True}),
    ("RMSprop", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1}),
    ("RMSprop", {"lr": 0.1, "momentum": 0.9, "centered": True}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.1}),
    ("Adadelta", {"lr": 0.5, "weight_decay": 0.1, "maximize": True}),
    ("ASGD", {"lr": 0.1, "t0": 1.0, "weight_decay": 0.1}),
]


@pytest.mark.parametrize("shape", [(3,), (150, 130), (0,)])
@pytest.mark.parametrize(("name", "options"), IN_PLACE)
def test_step_in_place_is_the_rule(name: str, options: dict[str, Any], shape: tuple[int, ...]) -> None:
    generator = pullback.Generator().manual_seed(2)
    start = pullback.randn(shape, dtype=pullback.float64, generator=generator)
    # One is transposed in memory, one has gaps: steps must reach their elements too.
    plain = start.clone().requires_grad_()
    turned = start.t().clone().t().requires_grad_() if start.dim() == 2 else start.clone().requires_grad_()
    spread = pullback.stack([start, start], -1)[..., 0].detach().requires_grad_()
    recorded = start.clone()
    in_place = getattr(pullback.optim, name)([plain, turned, spread], **options)
    rule = getattr(pullback.optim, name)([recorded], differentiable=True, **options)
    for _ in range(3):
        gradient = pullback.randn(shape, dtype=pullback.float64, generator=generator)
        plain.grad = turned.grad = spread.grad = recorded.grad = gradient
        in_place.step()
        with pullback.no_grad():
            rule.step()
    for param in (plain, turned, spread):
        pullback.testing.assert_close(param.detach(), recorded.detach(), rtol=1e-12, atol=1e-12)
