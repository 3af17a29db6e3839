"""Modules as pairs of a function and its state: functorch's older forms of `functional_call`."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from pullback.func.functional_call import functional_call, stack_module_state
from pullback.modes.user_warnings import warn_user
from pullback.tensor.tensor import Tensor


class FunctionalModuleWithBuffers:
    """A module without state: call it with its parameters, its buffers and the arguments."""

    def __init__(self, model: Any) -> None:
        self.stateless_model = copy.deepcopy(model)
        self.param_names = [name for name, _ in model.named_parameters()]
        self.buffer_names = [name for name, _ in model.named_buffers()]

    def __call__(self, params: Sequence[Tensor], buffers: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
        state = dict(zip((*self.param_names, *self.buffer_names), (*params, *buffers), strict=True))
        return functional_call(self.stateless_model, state, args, kwargs)


class FunctionalModule(FunctionalModuleWithBuffers):
    """A module without state: call it with its parameters and the arguments."""

    def __call__(self, params: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
        return super().__call__(params, (), *args, **kwargs)


def _parameters(model: Any, disable_autograd_tracking: bool) -> tuple[Tensor, ...]:
    return tuple(
        [p.detach().requires_grad_(p.requires_grad and not disable_autograd_tracking) for p in model.parameters()]
    )


def make_functional(model: Any, disable_autograd_tracking: bool = False) -> tuple[FunctionalModule, tuple[Tensor, ...]]:
    """A function of parameters and arguments, and the parameters.

    >>> import pullback, warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     function, params = make_functional(pullback.nn.Linear(2, 1))
    >>> function(params, pullback.ones(2)).shape
    pullback.Size([1])
    """
    _warn("make_functional", "functional_call")
    if list(model.buffers()):
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use make_functional_with_buffers(model) instead."
        )
    return FunctionalModule(model), _parameters(model, disable_autograd_tracking)


def make_functional_with_buffers(
    model: Any, disable_autograd_tracking: bool = False
) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """A function of parameters, buffers and arguments, the parameters and the buffers."""
    _warn("make_functional_with_buffers", "functional_call")
    buffers = tuple([b.detach().clone() for b in model.buffers()])
    return FunctionalModuleWithBuffers(model), _parameters(model, disable_autograd_tracking), buffers


def combine_state_for_ensemble(
    models: Any,
) -> tuple[FunctionalModuleWithBuffers, tuple[Tensor, ...], tuple[Tensor, ...]]:
    """The first model as a function, and the parameters and buffers of all of them, stacked."""
    _warn("combine_state_for_ensemble", "stack_module_state")
    params, buffers = stack_module_state(models)
    return FunctionalModuleWithBuffers(models[0]), tuple(params.values()), tuple(buffers.values())


def _warn(name: str, instead: str) -> None:
    warn_user(
        f"We've integrated functorch into PyTorch. `functorch.{name}` is deprecated: use `torch.func.{instead}` instead.",
        FutureWarning,
    )
