"""The tangents of a custom Function's outputs: the call of the user's jvp, and the checks of what it returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.backend.dtype import is_float_or_complex
from pullback.graph.custom_function_node import BackwardCFunction
from pullback.graph.tangents import levels_of, set_tangent, tangent_at, without_tangents, zeros_like_input
from pullback.modes.switches import switched
from pullback.tensor.tensor import Tensor


class OutputKind:
    """How an output of forward came to be, which says what its tangent has to be."""

    def __init__(self, ctx: BackwardCFunction, output: Any, inputs: Sequence[Any]) -> None:
        self.input = next((i for i, x in enumerate(inputs) if x is output), None)
        """The position of the input that was returned as it is, or modified in place."""
        self.is_dirty = any(output is t for t in ctx.dirty_tensors)
        self.is_view = isinstance(output, Tensor) and not self.is_dirty and self._sees_input(output, inputs)
        self.is_differentiable = (
            isinstance(output, Tensor)
            and is_float_or_complex(output._array.dtype)
            and all(output is not t for t in ctx.non_differentiable)
        )

    def _sees_input(self, output: Tensor, inputs: Sequence[Any]) -> bool:
        if self.input is not None:
            return True
        base = output._base
        return base is not None and any(base is x or base is x._base for x in inputs if isinstance(x, Tensor))


def carry_tangents(
    ctx: BackwardCFunction, args: Sequence[Any], outputs: Sequence[Any], kinds: Sequence[OutputKind], saved: Any
) -> None:
    """Call the user's jvp at every level that an input has a tangent at."""
    for level in sorted({level for a in args if isinstance(a, Tensor) for level in levels_of(a)}):
        tangents = [_input_tangent(ctx, a, level) if isinstance(a, Tensor) else None for a in args]
        versions = [_version(t) for t in tangents]
        with switched("dual_level", level - 1):
            ctx.saved_for_jvp = tuple([without_tangents(t, level) for t in saved or ()])
            try:
                returned = ctx._forward_cls.jvp(ctx, *tangents)
            finally:
                ctx.saved_for_jvp = None
        computed = returned if isinstance(returned, tuple) else (returned,)
        if len(computed) != len(outputs):
            raise RuntimeError(
                "Function's jvp returned an invalid number of forward gradients (expected "
                f"{len(outputs)} but got {len(computed)})"
            )
        for position, (output, tangent, kind) in enumerate(zip(outputs, computed, kinds, strict=True)):
            _check(position, output, tangent, kind, tangents, versions)
            if isinstance(output, Tensor) and tangent is not None:
                set_tangent(output, level, tangent)


def _input_tangent(ctx: BackwardCFunction, input: Tensor, level: int) -> Any:
    """The tangent that `jvp` is given for an input: zeros where it has none, unless the Function wants to know."""
    tangent = tangent_at(input, level)
    if tangent is not None or not ctx.materialize_grads or not is_float_or_complex(input._array.dtype):
        return tangent
    return zeros_like_input(input)


def _version(tangent: Any) -> int:
    return 0 if tangent is None or tangent._counter is None else tangent._counter.value


def _check(
    position: int, output: Any, tangent: Any, kind: OutputKind, given: Sequence[Any], versions: Sequence[int]
) -> None:
    """Refuse a tangent that is none, that nothing can carry, or whose memory does not follow that of the output."""
    if tangent is not None and not isinstance(tangent, Tensor):
        raise RuntimeError(f"expected Variable or None (got {type(tangent).__name__}) for grad output {position}.")
    if not kind.is_differentiable:
        if tangent is not None:
            raise RuntimeError(
                f"Function's jvp returned a gradient at position {position}, but  the corresponding forward output is not a "
                "differentiable Tensor.You should return None at that position instead."
            )
        return
    if kind.is_dirty and kind.input is not None and given[kind.input] is not None:
        _check_modified(tangent, given[kind.input], versions[kind.input])
    elif kind.is_view and tangent is not None:
        _check_view(tangent, given)
    if tangent is not None and tangent._array.shape != output._array.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(output.shape)} while the given forward gradient is of size "
            f"{list(tangent.shape)}."
        )


def _check_modified(tangent: Any, given: Any, version: int) -> None:
    if _version(given) == version:
        raise RuntimeError(
            "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is modifying an "
            "input inplace, then the jvp function must modify the corresponding gradient inplace."
        )
    if tangent is not given:
        raise RuntimeError(
            "An inplace custom Function is not returning the forward mode gradients as-is. If the forward is modifying an "
            "input inplace, then the jvp function must modify the gradient inplace and return it as-is."
        )


def _check_view(tangent: Any, given: Sequence[Any]) -> None:
    if not tangent._is_view() or any(tangent is g for g in given):
        raise RuntimeError(
            "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view. "
            "Return the same view of the tangent, for an input as-is tangent.view_as(tangent)."
        )
    base = tangent._bottom._base
    sources = [g._bottom for g in given if g is not None]
    if not any(base is g or base is g._base for g in sources):
        raise RuntimeError(
            "A custom Function is returning a view but the jvp is not returning a view of the given grad input."
        )
