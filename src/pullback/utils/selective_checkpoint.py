"""Selective checkpointing: a policy decides, operation by operation, what is kept and what is computed again."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from pullback.modes.interception import pop_interceptor, push_interceptor
from pullback.tensor.tensor import Tensor

SAC_IGNORED_OPS: set[Any] = set()
"""Operations that are never offered to a policy."""


class CheckpointPolicy(enum.Enum):
    """What to do with the result of an operation inside of a checkpointed region."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5

    @property
    def keeps(self) -> bool:
        """Whether the result is kept rather than computed again."""
        return self not in (CheckpointPolicy.MUST_RECOMPUTE, CheckpointPolicy.PREFER_RECOMPUTE)


class SelectiveCheckpointContext:
    """What a policy is told besides the operation: whether this is the recomputation."""

    def __init__(self, *, is_recompute: bool) -> None:
        self.is_recompute = is_recompute


class _Cache:
    """The kept results of the original run, per operation in the order they were made."""

    def __init__(self) -> None:
        self.results: dict[Any, list[Any]] = defaultdict(list)
        self.read: dict[Any, int] = defaultdict(int)


class _Mode:
    """An interceptor for the length of a `with` block."""

    def __init__(self, policy: Callable[..., Any], cache: _Cache, is_recompute: bool) -> None:
        self.policy = policy
        self.cache = cache
        self.context = SelectiveCheckpointContext(is_recompute=is_recompute)

    def __enter__(self) -> None:
        if self.context.is_recompute:
            self.cache.read.clear()
        push_interceptor(self.intercept)

    def __exit__(self, *exception: object) -> None:
        pop_interceptor()

    def intercept(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if function in SAC_IGNORED_OPS:
            return NotImplemented
        decision = self.policy(self.context, function, *args, **{k: v for k, v in kwargs.items() if v is not None})
        if isinstance(decision, bool):
            decision = CheckpointPolicy.MUST_SAVE if decision else CheckpointPolicy.PREFER_RECOMPUTE
        if not decision.keeps:
            return NotImplemented
        if self.context.is_recompute:
            kept = self.cache.results[function]
            position = self.cache.read[function]
            if position < len(kept):
                self.cache.read[function] = position + 1
                return _with_history(function, args, kwargs, kept[position])
            return NotImplemented
        result = function(*args, **kwargs)
        self.cache.results[function].append(_detached(result))
        return result


def _detached(result: Any) -> Any:
    if isinstance(result, Tensor):
        return result.detach()
    return tuple(_detached(r) for r in result) if isinstance(result, tuple) else result


def _with_history(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], kept: Any) -> Any:
    """The kept value in the place of a recomputed one: the operation records as before, on the value it already has."""
    result = function(*args, **kwargs)
    if isinstance(result, Tensor) and isinstance(kept, Tensor):
        result._array[...] = kept._array
    return result


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False
) -> tuple[Any, Any]:
    """The pair of contexts for `checkpoint(..., context_fn=...)` from a policy, or a list of operations to keep."""
    if isinstance(policy_fn_or_list, list):
        kept = list(policy_fn_or_list)

        def policy(context: Any, function: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
            return CheckpointPolicy.MUST_SAVE if function in kept else CheckpointPolicy.PREFER_RECOMPUTE

    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    cache = _Cache()
    return _Mode(policy, cache, False), _Mode(policy, cache, True)
