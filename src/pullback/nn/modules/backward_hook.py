"""Full backward hooks of a Module: identity Functions around its inputs and outputs, whose nodes carry the hooks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pullback.autograd.function import Function
from pullback.modes.user_warnings import warn_user
from pullback.tensor.tensor import Tensor

_GRAD_INPUT = "Backward hook returned an invalid number of grad_input"
_GRAD_OUTPUT = "Backward pre hook returned an invalid number of grad_output"


class BackwardHookFunction(Function):
    """The identity, as one node for several tensors."""

    @staticmethod
    def forward(ctx: Any, *args: Tensor) -> tuple[Tensor, ...]:
        ctx.mark_non_differentiable(*[arg for arg in args if not arg.requires_grad])
        return args

    @staticmethod
    def backward(ctx: Any, *args: Any) -> tuple[Any, ...]:
        return args


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


class BackwardHook:
    """One call of a module with full backward (pre-)hooks.

    `grad_outputs` is set when backward reaches the module's outputs and read when it reaches its inputs. Arguments
    that are not tensors have None for their gradients.
    """

    def __init__(
        self, module: Any, user_hooks: Sequence[Callable[..., Any]], user_pre_hooks: Sequence[Callable[..., Any]]
    ) -> None:
        self.module = module
        self.user_hooks = user_hooks
        self.user_pre_hooks = user_pre_hooks
        self.acting_hook: Callable[..., Any] | None = None
        """The user's hook that replaced a gradient last, which is what messages name."""
        self.grad_outputs: tuple[Any, ...] | None = None
        self.n_inputs = -1
        self.n_outputs = -1
        self.input_tensors_index: list[int] | None = None
        self.output_tensors_index: list[int] | None = None

    def setup_input_hook(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the arguments to call the module with, watched."""
        wrapped, self.input_tensors_index = self._watch(args, "register_hook", self._at_inputs)
        self.n_inputs = len(args)
        return wrapped

    def setup_output_hook(self, result: Any) -> Any:
        """Return the module's result, watched."""
        is_tuple = isinstance(result, tuple)
        outputs = _as_tuple(result)
        wrapped, self.output_tensors_index = self._watch(outputs, "register_prehook", self._at_outputs)
        self.n_outputs = len(outputs)
        return wrapped if is_tuple else wrapped[0]

    def _watch(
        self, args: tuple[Any, ...], register: str, hook: Callable[..., Any]
    ) -> tuple[tuple[Any, ...], list[int] | None]:
        """Pass the tensors among `args` through one identity node and register a hook on it."""
        positions = [i for i, arg in enumerate(args) if isinstance(arg, Tensor)]
        if not any(args[i].requires_grad for i in positions) or not _records():
            return args, None
        results = _as_tuple(BackwardHookFunction.apply(*[args[i] for i in positions]))
        nodes = [result.grad_fn for result in results if result.grad_fn is not None]
        if not nodes:
            raise RuntimeError("Error while setting up backward hooks: no tensor among the arguments has a node.")
        getattr(nodes[0], register)(hook)
        replaced = list(args)
        for position, result in zip(positions, results, strict=True):
            replaced[position] = result
        return tuple(replaced), positions

    @staticmethod
    def _spread(positions: Iterable[int], values: Iterable[Any], size: int) -> tuple[Any, ...]:
        spread: list[Any] = [None] * size
        for position, value in zip(positions, values, strict=True):
            spread[position] = value
        return tuple(spread)

    def _gathered(self, values: Any, positions: Sequence[int], expected: int, which: str) -> tuple[Any, ...]:
        """What a hook returned, reduced to the tensors' gradients."""
        values = _as_tuple(values)
        if len(values) != expected:
            raise RuntimeError(f"{which}, got {len(values)}, but expected {expected}")
        return tuple(values[position] for position in positions)

    def _at_inputs(self, grad_input: tuple[Any, ...], _: Any) -> Any:
        if self.grad_outputs is None:
            # The gradient reached the input without passing through the output.
            return None
        positions = self.input_tensors_index or []
        current = self._spread(positions, grad_input, self.n_inputs)
        for user_hook in self.user_hooks:
            replaced = user_hook(self.module, current, self.grad_outputs)
            if replaced is not None:
                self.acting_hook = user_hook
                gathered = self._gathered(replaced, positions, self.n_inputs, _GRAD_INPUT)
                current = self._spread(positions, gathered, self.n_inputs)
        self.grad_outputs = None
        return tuple(current[position] for position in positions)

    def _at_outputs(self, grad_output: tuple[Any, ...]) -> Any:
        positions = self.output_tensors_index or []
        current = self._spread(positions, grad_output, self.n_outputs)
        for user_pre_hook in self.user_pre_hooks:
            replaced = user_pre_hook(self.module, current)
            if replaced is not None:
                self.acting_hook = user_pre_hook
                gathered = self._gathered(replaced, positions, self.n_outputs, _GRAD_OUTPUT)
                current = self._spread(positions, gathered, self.n_outputs)
        self.grad_outputs = current
        if self.input_tensors_index is None:
            self._call_without_grad_inputs(current)
        return tuple(current[position] for position in positions)

    def _call_without_grad_inputs(self, grad_outputs: tuple[Any, ...]) -> None:
        nothing = (None,) * self.n_inputs
        if self.user_hooks:
            warn_user(
                "Full backward hook is firing when gradients are computed with respect to module outputs since no inputs "
                "require gradients: it gets None for them."
            )
        for user_hook in self.user_hooks:
            returned = user_hook(self.module, nothing, grad_outputs)
            if returned is not None and not all(value is None for value in _as_tuple(returned)):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or None for "
                    f"all gradients: {type(self.module).__name__} has no gradient to replace."
                )
        self.grad_outputs = None


def _records() -> bool:
    from pullback.modes.grad_mode import is_grad_enabled

    return is_grad_enabled()
