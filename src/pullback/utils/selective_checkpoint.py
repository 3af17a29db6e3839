"""Selective checkpointing: a policy decides, operation by operation, what is kept and what is computed again."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from pullback.modes.interception import pop_interceptor, push_interceptor
from pullback.modes.saved_tensor_hooks import current_hooks, pop_hooks, push_hooks
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


class _Kept:
    """The result of an operation, and what each tensor that it saved was: the place of an argument, or the result."""

    def __init__(self, result: Any, saved: list[int | None]) -> None:
        self.result = result
        self.saved = saved


class _Cache:
    """The kept results of the original run, per operation in the order they were made."""

    def __init__(self) -> None:
        self.results: dict[Any, list[_Kept | None]] = defaultdict(list)
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
            self.cache.read[function] = position + 1
            found = kept[position] if position < len(kept) else None
            return NotImplemented if found is None else _give_back(found, args)
        result, saved = _run_and_watch(function, args, kwargs)
        self.cache.results[function].append(_describe(result, saved, args))
        return result


def _run_and_watch(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, list[Any]]:
    """Run the operation and note the memory of each tensor that it saves, in order."""
    hooks = current_hooks()
    saved: list[Any] = []
    if hooks is None:
        return function(*args, **kwargs), saved
    pack, unpack = hooks

    def note(tensor: Any) -> Any:
        saved.append(tensor._array)
        return pack(tensor)

    push_hooks(note, unpack)
    try:
        return function(*args, **kwargs), saved
    finally:
        pop_hooks()


def _describe(result: Any, saved: list[Any], args: tuple[Any, ...]) -> _Kept | None:
    """What to keep of a run; None if the operation saved something that is neither an argument nor its one result."""
    if not isinstance(result, Tensor):
        return None
    places: list[int | None] = []
    for array in saved:
        if array is result._array:
            places.append(None)
            continue
        place = next((i for i, a in enumerate(args) if isinstance(a, Tensor) and a._array is array), None)
        if place is None:
            return None
        places.append(place)
    return _Kept(result.detach(), places)


def _give_back(kept: _Kept, args: tuple[Any, ...]) -> Tensor:
    """The kept result without running the operation: what it would save is handed to the recomputation's hooks.

    The recomputed graph is thrown away, so the result only has to require grad where the operation's would.
    """
    hooks = current_hooks()
    if hooks is not None:
        for place in kept.saved:
            hooks[0]((kept.result if place is None else args[place]).detach())
    result = kept.result.detach()
    if any(isinstance(a, Tensor) and a.requires_grad for a in args) and result.is_floating_point():
        result.requires_grad_()
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
