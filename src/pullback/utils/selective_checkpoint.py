"""Selective checkpointing: a policy decides, operation by operation, what is kept and what is computed again."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from pullback.backend.array_module import may_share_memory
from pullback.modes.interception import pop_interceptor, push_interceptor
from pullback.modes.saved_tensor_hooks import current_hooks, pop_hooks, push_hooks
from pullback.tensor.tensor import Tensor, new_tensor
from pullback.utils._pytree import tree_leaves, tree_map

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
    """What an operation returned, and what each tensor that it saved was: the place of an argument or of a result among
    all of them, or, for another one, the tensor itself."""

    def __init__(self, result: Any, saved: list[tuple[str, Any]]) -> None:
        self.result = result
        self.saved = saved
        self.versions = [value._version for value in tree_leaves(result) if isinstance(value, Tensor)]

    def check_unchanged(self) -> None:
        """Refuse results that were modified in place since they were kept."""
        if self.versions != [value._version for value in tree_leaves(self.result) if isinstance(value, Tensor)]:
            raise RuntimeError(
                "Tensor cached during selective activation checkpoint has been mutated: a result that the policy keeps was "
                "modified in place. Keep the result of that operation instead, or pass allow_cache_entry_mutation=True."
            )


class _Cache:
    """The kept results of the original run, per operation in the order they were made."""

    def __init__(self) -> None:
        self.results: dict[Any, list[_Kept | None]] = defaultdict(list)
        self.read: dict[Any, int] = defaultdict(int)


class _Mode:
    """An interceptor for the length of a `with` block."""

    def __init__(
        self, policy: Callable[..., Any], cache: _Cache, is_recompute: bool, *, allows_mutation: bool = False
    ) -> None:
        self.allows_mutation = allows_mutation
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
            if found is None:
                return NotImplemented
            if not self.allows_mutation:
                found.check_unchanged()
            return _give_back(found, args)
        result, saved = _run_and_watch(function, args, kwargs)
        self.cache.results[function].append(_describe(function, result, saved, args))
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


def _describe(function: Any, result: Any, saved: list[Any], args: tuple[Any, ...]) -> _Kept | None:
    """What to keep of a run; None if the operation must run again.

    That is so where its result lies in the memory of an argument (then there is nothing to compute), where it only makes
    memory that something else fills, and where it draws random numbers, because what comes after it must find the
    generator where it was.
    """
    from pullback.func.batching_rules.random import source_of_draw  # lazy: only policies need to know

    given, results = tree_leaves(args), tree_leaves(result)
    arrays = [a._array for a in given if isinstance(a, Tensor)]
    made = [r._array for r in results if isinstance(r, Tensor)]
    name = getattr(function, "__name__", "")
    if source_of_draw(function) or name.endswith("_like") or any(may_share_memory(a, r) for a in arrays for r in made):
        return None
    places: list[tuple[str, Any]] = []
    for array in saved:
        if any(array is r for r in made):
            places.append(("result", _place(array, results)))
        elif any(array is a for a in arrays):
            places.append(("argument", _place(array, given)))
        elif any(may_share_memory(array, a) for a in arrays):
            return None
        else:
            places.append(("other", new_tensor(array)))
    return _Kept(tree_map(lambda value: value.detach() if isinstance(value, Tensor) else value, result), places)


def _place(array: Any, values: list[Any]) -> int:
    return next(i for i, value in enumerate(values) if isinstance(value, Tensor) and value._array is array)


def _give_back(kept: _Kept, args: tuple[Any, ...]) -> Any:
    """The kept result without running the operation: what it would save is handed to the recomputation's hooks.

    The recomputed graph is thrown away, so results only have to require grad where the operation's would.
    """
    hooks = current_hooks()
    given, results = tree_leaves(args), tree_leaves(kept.result)
    if hooks is not None:
        for kind, place in kept.saved:
            tensor = place if kind == "other" else (results if kind == "result" else given)[place]
            hooks[0](tensor.detach())
    recorded = any(isinstance(a, Tensor) and a.requires_grad for a in given)

    def fresh(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        result = value.detach()
        if recorded and (result.is_floating_point() or result.is_complex()):
            result.requires_grad_()
        return result

    return tree_map(fresh, kept.result)


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
    return _Mode(policy, cache, False), _Mode(policy, cache, True, allows_mutation=allow_cache_entry_mutation)
