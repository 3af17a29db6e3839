"""Modules that wrap others so that activations are computed again, or lie in main memory, until backward.

The names of parameters are those of the module without its wrapper.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from enum import Enum, auto
from functools import partial
from typing import Any

from pullback.autograd.graph import save_on_cpu
from pullback.distributed.fsdp.wrap import lambda_auto_wrap_policy, wrap_parts
from pullback.nn.modules.module import Module
from pullback.utils.checkpoint import checkpoint

__all__ = [
    "ActivationWrapper", "CheckpointImpl", "CheckpointWrapper", "OffloadWrapper", "apply_activation_checkpointing",
    "checkpoint_wrapper", "offload_wrapper",
]  # fmt: skip

_CHECKPOINT_WRAPPED_MODULE = "_checkpoint_wrapped_module"
_CHECKPOINT_PREFIX = _CHECKPOINT_WRAPPED_MODULE + "."


class CheckpointImpl(Enum):
    """Which of the two ways `torch.utils.checkpoint` goes."""

    REENTRANT = auto()
    NO_REENTRANT = auto()


class ActivationWrapper(Module):
    """A module around another one, which its attributes, items and names of parameters are those of."""

    def __init__(self, mod: Module) -> None:
        super().__init__()
        self._checkpoint_wrapped_module = mod
        self._register_state_dict_hook(_without_prefix)
        self._register_load_state_dict_pre_hook(_with_prefix, with_module=True)

    @abstractmethod
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the module."""
        raise ValueError("Subclasses should implement forward().")

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self._checkpoint_wrapped_module, name)

    def __getitem__(self, key: int) -> Any:
        return self._checkpoint_wrapped_module.__getitem__(key)

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        """The parameters, by their names without the wrapper."""
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield name.replace(_CHECKPOINT_PREFIX, ""), parameter


def _without_prefix(module: Any, state: dict[str, Any], prefix: str, *rest: Any) -> None:
    start = f"{prefix}{_CHECKPOINT_PREFIX}"
    for key in [key for key in state if key.startswith(start)]:
        state[prefix + key[len(start) :]] = state.pop(key)


def _with_prefix(module: Any, state: dict[str, Any], prefix: str, *rest: Any) -> None:
    for key in [key for key in state if key.startswith(prefix) and not key.startswith(prefix + _CHECKPOINT_PREFIX)]:
        state[f"{prefix}{_CHECKPOINT_PREFIX}{key[len(prefix) :]}"] = state.pop(key)


class OffloadWrapper(ActivationWrapper):
    """What forward saves lies in main memory until backward."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the module; what it saves is kept in main memory."""
        with save_on_cpu(pin_memory=True):
            return self._checkpoint_wrapped_module(*args, **kwargs)


class CheckpointWrapper(ActivationWrapper):
    """The module runs again in backward, so that forward saves its inputs alone."""

    def __init__(
        self, mod: Module, checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
        checkpoint_fn: Callable[..., Any] | None = None, **checkpoint_fn_kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        if checkpoint_fn is None:
            checkpoint_fn = partial(checkpoint, use_reentrant=checkpoint_impl is CheckpointImpl.REENTRANT)
        self.checkpoint_fn = partial(checkpoint_fn, **checkpoint_fn_kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the module, and again in backward."""
        if self.checkpoint_impl is not CheckpointImpl.REENTRANT or not kwargs:
            return self.checkpoint_fn(self._checkpoint_wrapped_module, *args, **kwargs)
        names, count = list(kwargs), len(args)  # the older way takes positions alone

        def run(*given: Any) -> Any:
            return self._checkpoint_wrapped_module(*given[:count], **dict(zip(names, given[count:], strict=True)))

        return self.checkpoint_fn(run, *args, *kwargs.values())


def checkpoint_wrapper(
    module: Module, checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
    checkpoint_fn: Callable[..., Any] | None = None, **checkpoint_fn_kwargs: Any,
) -> Module:  # fmt: skip
    """Let a module compute its activations again in backward.

    >>> import pullback
    >>> layer = checkpoint_wrapper(pullback.nn.Linear(2, 1))
    >>> [name for name, _ in layer.named_parameters()], list(layer.state_dict())
    (['weight', 'bias'], ['weight', 'bias'])
    """
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def offload_wrapper(module: Module) -> Module:
    """Let what a module saves for backward lie in main memory."""
    return OffloadWrapper(module)


def apply_activation_checkpointing(
    model: Module, checkpoint_wrapper_fn: Callable[..., Module] = checkpoint_wrapper,
    check_fn: Callable[[Module], bool] = lambda _: True,
    auto_wrap_policy: Callable[[Module, bool, int], bool] | None = None,
) -> None:  # fmt: skip
    """Put wrappers around those parts of a model that `check_fn` or a policy chooses."""
    policy = auto_wrap_policy or partial(lambda_auto_wrap_policy, lambda_fn=check_fn)
    wrap_parts(model, policy, checkpoint_wrapper_fn, only_children=True)
