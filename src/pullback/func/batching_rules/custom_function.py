"""autograd.Function under vmap: the user's own rule, or one made by running forward and backward batched."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

from pullback import functions
from pullback.autograd.function import Function
from pullback.func.batching_rules.table import Rule, physical_of
from pullback.func.vmap_level import VmapLevel
from pullback.kernels.broadcasting import is_expandable_to
from pullback.tensor.dims import wrap_dim
from pullback.tensor.tensor import Tensor
from pullback.utils._pytree import _broadcast_to_and_flatten as broadcast_to_and_flatten
from pullback.utils._pytree import tree_flatten, tree_map, tree_unflatten


class VmapInfo(NamedTuple):
    """What a Function's `vmap` is told."""

    batch_size: int
    randomness: str


def rule_of(call: Any) -> Rule | None:
    """The rule of a custom Function; None for anything else."""
    function = getattr(call, "function", None)
    if not (isinstance(function, type) and issubclass(function, Function)):
        return None
    return _apply_function


def _apply_function(level: VmapLevel, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    cls: type[Function] = call.function  # type: ignore[attr-defined]  # what rule_of found
    has_own = cls.vmap is not Function.vmap
    if any(isinstance(value, Tensor) for value in kwargs.values()):
        raise NotImplementedError(
            "Run vmap on autograd.Function with kwarg-only Tensor args. Please do not pass kwarg-only Tensors to "
            f"autograd.Function. {cls.__name__} got {', '.join(kwargs)}: in_dims says nothing about keywords, so its vmap "
            "staticmethod could not know which are batched. Pass tensors by position."
        )
    if cls.generate_vmap_rule and has_own:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an overridden vmap "
            "staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid "
            "ambiguity."
        )
    if not cls.generate_vmap_rule and not has_own:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please override and implement the "
            "vmap staticmethod or set generate_vmap_rule=True."
        )
    if has_own:
        return _users_rule(level, cls, args, kwargs)
    return _generated_rule(level, cls, args, kwargs)


def _users_rule(level: VmapLevel, cls: type[Function], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the `vmap` staticmethod with whole batches, the examples where they are."""
    in_dims = tree_map(lambda value: value._dim if level.owns(value) else None, args)
    whole = tree_map(lambda value: value._value if level.owns(value) else value, args)
    info = VmapInfo(level.batch_size, level.randomness)
    answer = cls.vmap(info, in_dims, *whole, **kwargs)
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise RuntimeError(
            "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure compatible "
            f"with the output. Got a {type(answer)} instead: let {cls.__name__}.vmap return (output, out_dims)."
        )
    output, out_dims = answer
    flat, spec = tree_flatten(output)
    dims = broadcast_to_and_flatten(out_dims, spec)
    if dims is None:
        raise RuntimeError(
            "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) tuple. Expected "
            f"out_dims={out_dims} to be compatible with the structure of `output`: {cls.__name__}.vmap must return one "
            "dimension, or None, for every output."
        )
    wrapped = [
        value
        if dim is None or not isinstance(value, Tensor)
        else level.wrap_at(value, wrap_dim(dim, value._array.ndim))
        for value, dim in zip(flat, dims, strict=True)
    ]
    return tree_unflatten(wrapped, spec)


class _BatchedContext:
    """The ctx that a Function's own code sees under a generated rule: what it saves is kept as whole batches.

    Generated rules nest, so each marks what it keeps on the one real ctx with a key of its own.
    """

    def __init__(self, ctx: Any, level: VmapLevel, key: str, outputs: tuple[Any, ...] = ()) -> None:
        self.__dict__.update(_ctx=ctx, _level=level, _key=key, _outputs=outputs)

    def keep(self, name: str, value: Any) -> None:
        """Remember something about the batches under this rule's key."""
        setattr(self._ctx, f"{self._key}_{name}", value)

    def kept(self, name: str) -> Any:
        """What `keep` remembered; None without it."""
        return getattr(self._ctx, f"{self._key}_{name}", None)

    def save_for_backward(self, *tensors: Any) -> None:
        """Keep tensors for backward."""
        self.keep("saved", [self._level.owns(t) for t in tensors])
        self._ctx.save_for_backward(*[physical_of(self._level, t) for t in tensors])

    def save_for_forward(self, *tensors: Any) -> None:
        """Keep tensors for jvp."""
        self.keep("saved", [self._level.owns(t) for t in tensors])
        self._ctx.save_for_forward(*[physical_of(self._level, t) for t in tensors])

    def mark_non_differentiable(self, *tensors: Any) -> None:
        """Outputs that no gradient flows to."""
        self.keep("constant", [any(o is t for t in tensors) for o in self._outputs])

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """What was saved, batched again."""
        pairs = zip(self._ctx.saved_tensors, self.kept("saved") or (), strict=True)
        return tuple([self._level.wrap(t) if batched else t for t, batched in pairs])

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._ctx, name)
        return self._level.wrap(value) if isinstance(value, Tensor) and self.kept(f"batched_{name}") else value

    def __setattr__(self, name: str, value: Any) -> None:
        if self._level.owns(value):
            self.keep(f"batched_{name}", True)
        setattr(self._ctx, name, physical_of(self._level, value))


_next_key = itertools.count(1).__next__


def _generated_rule(level: VmapLevel, cls: type[Function], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run the Function's forward on batched tensors inside of another Function, whose backward does the same."""
    from pullback.autograd.function import _as_positional

    if kwargs:
        args = _as_positional(cls, args, kwargs)
    batched_inputs = [level.owns(a) for a in args]
    shape: dict[str, Any] = {}
    generated = _make_function(cls, level, batched_inputs, shape)
    outputs = generated.apply(*[physical_of(level, a) for a in args])
    many = isinstance(outputs, tuple)
    flat = outputs if many else (outputs,)
    wrapped = tuple([level.wrap(o) if b else o for o, b in zip(flat, shape["outputs"], strict=True)])
    return wrapped if many else wrapped[0]


def _make_function(
    cls: type[Function], level: VmapLevel, batched_inputs: list[bool], shape: dict[str, Any]
) -> type[Function]:
    """The Function on whole batches that a generated rule applies."""

    key = f"_rule_{_next_key()}"

    def fresh() -> VmapLevel:
        return VmapLevel(level.batch_size, level.randomness)

    def wrap(here: VmapLevel, values: Any, flags: list[bool]) -> tuple[Any, ...]:
        return tuple([
            here.wrap(v) if flag and isinstance(v, Tensor) else v for v, flag in zip(values, flags, strict=True)
        ])  # fmt: skip

    class Generated(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(*inputs: Any) -> Any:
            here = fresh()
            with here.running():
                output = cls.forward(*wrap(here, inputs, batched_inputs))
            flat = output if isinstance(output, tuple) else (output,)
            shape["outputs"] = [here.owns(o) for o in flat]
            unwrapped = tuple([physical_of(here, o) for o in flat])
            return unwrapped if isinstance(output, tuple) else unwrapped[0]

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
            here = fresh()
            flat = output if isinstance(output, tuple) else (output,)
            outputs = wrap(here, flat, shape["outputs"])
            given = wrap(here, inputs, batched_inputs)
            view = _BatchedContext(ctx, here, key, outputs)
            view.keep("sizes", [tuple(x.shape) if isinstance(x, Tensor) else None for x in given])
            with here.running():
                cls.setup_context(view, given, outputs if isinstance(output, tuple) else outputs[0])
            constant = view.kept("constant") or [False] * len(flat)
            ctx.mark_non_differentiable(*[o for o, c in zip(flat, constant, strict=True) if c])

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            here = fresh()
            view = _BatchedContext(ctx, here, key)
            with here.running():
                results = cls._backward_function()(view, *wrap(here, grads, shape["outputs"]))
                flat = results if isinstance(results, tuple) else (results,)
                reduced = [_sum_to(g, size) for g, size in zip(flat, view.kept("sizes"), strict=False)]
            return tuple([_fit(here, g, flag) for g, flag in zip(reduced, batched_inputs, strict=False)])

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            here = fresh()
            with here.running():
                results = cls.jvp(_BatchedContext(ctx, here, key), *wrap(here, tangents, batched_inputs))
            flat = results if isinstance(results, tuple) else (results,)
            unwrapped = tuple([_fit(here, t, flag) for t, flag in zip(flat, shape["outputs"], strict=True)])
            return unwrapped if isinstance(results, tuple) else unwrapped[0]

    Generated.__name__ = f"Vmapped{cls.__name__}"
    return Generated


def _sum_to(grad: Any, size: Any) -> Any:
    """The gradient of an input that was broadcast."""
    if not isinstance(grad, Tensor) or size is None or grad._array.shape == size:
        return grad
    return functions.sum_to_size(grad, size) if is_expandable_to(size, grad._array.shape) else grad


def _fit(level: VmapLevel, value: Any, batched: bool) -> Any:
    """A gradient for a batch is a batch; for a tensor that all examples share it is the sum over them."""
    if not isinstance(value, Tensor):
        return value
    if batched:
        return level.to_physical(value)
    return functions.sum(value._physical, 0) if level.owns(value) else value
