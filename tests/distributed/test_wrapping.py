"""Policies that choose parts of a model, and wrappers that compute activations again: PyTorch's choices, names and text."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

import pullback
from pullback import nn
from pullback.distributed.algorithms._checkpoint.checkpoint_wrapper import (
    CheckpointImpl,
    CheckpointWrapper,
    apply_activation_checkpointing,
    checkpoint_wrapper,
    offload_wrapper,
)
from pullback.distributed.fsdp import wrap


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.b = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 4))
        self.runs = 0

    def forward(self, x: Any, scale: float = 1.0) -> Any:
        self.runs += 1
        return x + self.b(self.a(x).tanh()) * scale


def model() -> nn.Module:
    return nn.Sequential(Block(), Block(), nn.ModuleList([nn.Linear(4, 4)]))


def wrapped_parts(module: nn.Module) -> list[str]:
    return [name for name, part in module.named_modules() if isinstance(part, CheckpointWrapper)]


POLICIES: dict[str, tuple[Any, list[str]]] = {
    "classes": (partial(wrap.transformer_auto_wrap_policy, transformer_layer_cls={Block}), ["0", "1"]),
    "modules": (wrap.ModuleWrapPolicy([nn.Linear]), ["0.a", "0.b.0", "0.b.2", "1.a", "1.b.0", "1.b.2", "2.0"]),
    "size": (partial(wrap.size_based_auto_wrap_policy, min_num_params=30), ["0.b.0", "0.b.2", "1.b.0", "1.b.2"]),
    "larger": (partial(wrap.size_based_auto_wrap_policy, min_num_params=50), ["0.b", "1.b"]),
    "function": (
        partial(wrap.lambda_auto_wrap_policy, lambda_fn=lambda m: isinstance(m, nn.Tanh)),
        ["0.b.1", "1.b.1"],
    ),
}


@pytest.mark.parametrize("name", POLICIES)
def test_policies_choose_the_parts_that_pytorch_wraps(name: str) -> None:
    policy, expected = POLICIES[name]
    wrapped = model()
    apply_activation_checkpointing(wrapped, auto_wrap_policy=policy)
    assert wrapped_parts(wrapped) == expected
    assert list(wrapped.state_dict()) == list(model().state_dict())
    wrapped.load_state_dict(model().state_dict())


def test_a_function_chooses_parts() -> None:
    wrapped = model()
    apply_activation_checkpointing(wrapped, check_fn=lambda part: isinstance(part, Block))
    assert wrapped_parts(wrapped) == ["0", "1"]
    assert next(name for name, _ in wrapped.named_parameters()) == "0._checkpoint_wrapped_module.a.weight"


@pytest.mark.parametrize("way", list(CheckpointImpl))
def test_gradients_are_those_of_the_module_which_runs_twice(way: CheckpointImpl) -> None:
    plain, inner = Block(), Block()
    wrapped: Any = checkpoint_wrapper(inner, checkpoint_impl=way)
    wrapped.load_state_dict(plain.state_dict())
    x = pullback.linspace(-1, 1, 8).reshape(2, 4).requires_grad_()
    y = x.detach().clone().requires_grad_()
    plain(x, scale=2.0).sum().backward()
    wrapped(y, scale=2.0).sum().backward()
    assert x.grad.tolist() == y.grad.tolist()
    assert plain.a.weight.grad.tolist() == wrapped.a.weight.grad.tolist()
    assert inner.runs == 2


def test_a_wrapper_looks_like_its_module() -> None:
    wrapped: Any = checkpoint_wrapper(nn.Sequential(nn.Linear(1, 1)), preserve_rng_state=False)
    assert repr(wrapped[0]) == "Linear(in_features=1, out_features=1, bias=True)"
    assert [name for name, _ in wrapped.named_parameters(prefix="p")] == ["p.0.weight", "p.0.bias"]
    assert list(wrapped.state_dict(prefix="q.")) == ["q.0.weight", "q.0.bias"]
    with pytest.raises(AttributeError, match="'Sequential' object has no attribute 'nothing'"):
        _ = wrapped.nothing


def test_what_is_saved_may_lie_in_main_memory() -> None:
    layer: Any = offload_wrapper(nn.Linear(1, 1))
    layer(pullback.full((1, 1), 3.0)).sum().backward()
    assert layer.weight.grad.tolist() == [[3.0]]


def test_wrap_takes_the_options_of_its_block() -> None:
    layer = nn.Linear(1, 1)
    with wrap.enable_wrap(wrapper_cls=CheckpointWrapper, checkpoint_impl=CheckpointImpl.REENTRANT):
        outer: Any = wrap.wrap(layer)
        other: Any = wrap.wrap(layer, checkpoint_impl=CheckpointImpl.NO_REENTRANT)
    assert outer.checkpoint_impl is CheckpointImpl.REENTRANT
    assert other.checkpoint_impl is CheckpointImpl.NO_REENTRANT
    assert wrap.wrap(layer) is layer


def test_a_custom_policy_gives_options_of_the_wrapper() -> None:
    def choose(part: nn.Module) -> bool | dict[str, Any]:
        return {"checkpoint_impl": CheckpointImpl.REENTRANT} if isinstance(part, nn.Tanh) else isinstance(part, Block)

    wrapped: Any = model()
    apply_activation_checkpointing(wrapped, auto_wrap_policy=wrap.CustomPolicy(choose))
    assert wrapped[0].checkpoint_impl is CheckpointImpl.NO_REENTRANT
    assert wrapped[0].b[1].checkpoint_impl is CheckpointImpl.REENTRANT
    with pytest.raises(ValueError, match="should return False/True or a kwarg dict, but it returned 1"):
        apply_activation_checkpointing(model(), auto_wrap_policy=wrap.CustomPolicy(lambda part: 1))  # type: ignore[return-value, arg-type]
