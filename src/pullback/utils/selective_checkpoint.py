"""Selective checkpointing: a policy decides, operation by operation, what is kept and what is computed again."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from pullback.tensor.tensor import Tensor
from pullback.utils._python_dispatch import TorchDispatchMode
from pullback.utils._pytree import tree_map

SAC_IGNORED_OPS: set[Any] = set()
"""Operators that are never offered to a policy; detaching is one of them."""


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
    """A tensor that an operation returned, and the version that it had."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor.detach()
        self.version = self.tensor._version

    def give_back(self, *, allows_mutation: bool) -> Tensor:
        """The tensor again, unless it was modified in place since."""
        if self.tensor._version != self.version and not allows_mutation:
            raise RuntimeError(
                "Tensor cached during selective activation checkpoint has been mutated: a result that the policy keeps was "
                "modified in place. Keep the result of that operation instead, or pass allow_cache_entry_mutation=True."
            )
        return self.tensor.detach()


_TAKEN = object()
_Storage = dict[Any, dict[int, Any]]
"""Per operator, the kept results by the number of the call; `_TAKEN` once the recomputation took them."""


class _CachingMode(TorchDispatchMode):
    """Asks the policy during the original run and keeps what it wants kept."""

    keeps_results = True

    def __init__(self, policy: Callable[..., Any], storage: _Storage) -> None:
        super().__init__()
        self.policy, self.storage = policy, storage
        self.calls: dict[Any, int] = defaultdict(int)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if _is_ignored(func):
            return func(*args, **kwargs)
        number = self.calls[func]
        self.calls[func] = number + 1
        decision = self.policy(SelectiveCheckpointContext(is_recompute=False), func, *args, **kwargs)
        result = func(*args, **kwargs)
        kept = self.storage.setdefault(func, {})
        if decision.keeps if isinstance(decision, CheckpointPolicy) else bool(decision):
            kept[number] = tree_map(lambda value: _Kept(value) if isinstance(value, Tensor) else value, result)
        return result


class _CachedMode(TorchDispatchMode):
    """Gives the kept results back during the recomputation, and lets everything else run."""

    keeps_results = True

    def __init__(self, storage: _Storage, *, allows_mutation: bool) -> None:
        super().__init__()
        self.storage, self.allows_mutation = storage, allows_mutation
        self.calls: dict[Any, int] = defaultdict(int)

    def __enter__(self) -> Any:
        self.calls.clear()
        return super().__enter__()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if _is_ignored(func):
            return func(*args, **kwargs)
        kept = self.storage.get(func)
        if kept is None:
            raise RuntimeError(
                f"{func} encountered during backward but not found in storage. This can happen if the operations in the "
                "checkpointed region are nondeterministic or depend on global state that changed between forward and "
                "backward."
            )
        number = self.calls[func]
        self.calls[func] = number + 1
        if number not in kept:
            return func(*args, **kwargs)
        found, kept[number] = kept[number], _TAKEN
        if found is _TAKEN:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any region computed under "
                "selective activation checkpoint: what the policy kept is given up when it is used."
            )

        def give_back(value: Any) -> Any:
            return value.give_back(allows_mutation=self.allows_mutation) if isinstance(value, _Kept) else value

        return tree_map(give_back, found)


def _is_ignored(func: Any) -> bool:
    return str(func) == "aten.detach.default" or func in SAC_IGNORED_OPS


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False
) -> tuple[Any, Any]:
    """The pair of contexts for `checkpoint(..., context_fn=...)` from a policy, or a list of operators to keep.

    >>> import functools
    >>> import pullback
    >>> from pullback.utils.checkpoint import checkpoint
    >>> keep_products = functools.partial(create_selective_checkpoint_contexts, [pullback.ops.aten.mm.default])
    >>> x = pullback.ones(2, 2, requires_grad=True)
    >>> y = checkpoint(lambda x: (x @ x).exp().sum(), x, use_reentrant=False, context_fn=keep_products)
    >>> y.backward()
    >>> x.grad
    tensor([[29.5562, 29.5562],
            [29.5562, 29.5562]])
    """
    if isinstance(policy_fn_or_list, list):
        for operator in policy_fn_or_list:
            _check_overload(operator)
        kept = frozenset(policy_fn_or_list)

        def policy(context: Any, function: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
            return CheckpointPolicy.MUST_SAVE if function in kept else CheckpointPolicy.PREFER_RECOMPUTE

    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    storage: _Storage = {}
    return _CachingMode(policy, storage), _CachedMode(storage, allows_mutation=allow_cache_entry_mutation)


def _check_overload(operator: Any) -> None:
    from pullback.dispatch.overloads import OpOverload, OpOverloadPacket  # lazy: operators are above this layer

    if isinstance(operator, OpOverload):
        return
    remedy = ""
    if isinstance(operator, OpOverloadPacket):
        remedy = f"Name one of its overloads, such as torch.ops.{operator}.{operator.overloads()[0]}."
    raise ValueError(
        f"Expected op in `op_list` to be an OpOverload but got: {operator} of type {type(operator)}. {remedy}"
    )
