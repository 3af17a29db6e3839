"""The node of a custom Function: what its forward saved and marked, and the call of its backward with the checks."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pullback.backend.naming import display_namespace
from pullback.graph.edge import Edges
from pullback.graph.former_data import is_stale
from pullback.graph.history import gradient_edge
from pullback.graph.input_metadata import InputMetadata
from pullback.graph.node import Node
from pullback.graph.removable_handle import RemovableHandle
from pullback.graph.saved_tensor import PackedTensor, SavedOutput, saved_tensor_handle, stale
from pullback.graph.source_lines import freed
from pullback.modes.cuts import note_withheld
from pullback.modes.saved_tensor_hooks import current_hooks
from pullback.modes.user_warnings import warn_user
from pullback.tensor.tensor import Tensor, new_tensor


class FunctionCtx:
    """What `forward` and `setup_context` call on their `ctx`."""

    _materialize_non_diff_grads: bool = True
    _is_pure_view: bool = False
    to_save: tuple[Any, ...] | None = None
    saved_for_forward: tuple[Any, ...] | None = None
    dirty_tensors: tuple[Any, ...] = ()
    non_differentiable: tuple[Any, ...] = ()
    materialize_grads: bool = True
    needs_input_grad: tuple[bool, ...] = ()

    if TYPE_CHECKING:

        @property
        def saved_tensors(self) -> tuple[Any, ...]: ...

    def save_for_backward(self, *tensors: Any) -> None:
        """Save tensors (inputs, outputs or intermediates) for backward; they are checked for modification."""
        for index, tensor in enumerate(tensors):
            if tensor is not None and not isinstance(tensor, Tensor):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument {index} is of type {type(tensor).__name__}"
                )
        self.to_save = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """Save tensors for `jvp`."""
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, Tensor):
                raise TypeError(
                    "save_for_forward expects all arguments to be tensors; you should save non-tensors as attributes on ctx."
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Any) -> None:
        """Say which inputs forward modified in place; each must be returned."""
        _check_tensors(args, "mark_dirty can only accept variables")
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args: Any) -> None:
        """Say which outputs have no gradient."""
        _check_tensors(args, "mark_non_differentiable only accepts variable arguments")
        self.non_differentiable = args

    def mark_shared_storage(self, *pairs: Any) -> None:
        """Accepted for old programs; sharing is found by itself."""
        warn_user("`mark_shared_storage` is deprecated. Tensors with shared storages are automatically tracked. Note that "
                  "calls to `set_()` are not tracked", FutureWarning)  # fmt: skip

    def set_materialize_grads(self, value: bool) -> None:
        """Set whether backward gets zeros (the default) or None for outputs that nothing used."""
        if not isinstance(value, bool):
            raise TypeError(
                f"set_materialize_grads received an invalid combination of arguments - got ({type(value).__name__}), but "
                "expected (bool)"
            )
        self.materialize_grads = value


class _HookMixin:
    """How classes of PyTorch's keep a dict of hooks."""

    @staticmethod
    def _register_hook(backward_hooks: Any, hook: Any) -> Any:
        hooks = OrderedDict() if backward_hooks is None else backward_hooks
        handle = RemovableHandle(hooks)
        hooks[handle.id] = hook
        return hooks, handle


class _FunctionBase:
    """What Functions and the nodes of their calls have in common, for programs that ask with `isinstance`."""


_READ = (
    "_forward_cls",
    "_raw_saved_tensors",
    "apply",
    "apply_jvp",
    "needs_input_grad",
    "saved_tensors",
    "saved_variables",
)


class BackwardCFunction(Node, _FunctionBase, FunctionCtx, _HookMixin):
    """`ctx`, which is the node itself, as in PyTorch."""

    needs_tensors = True
    _forward_cls: ClassVar[Any] = None

    saved_for_jvp: tuple[Any, ...] | None = None
    is_tensor_input: tuple[bool, ...] = ()
    stored: list[tuple[Any, int]] | None = None
    accessed: bool = False
    withheld: frozenset[int] = frozenset()
    """The edges whose input needs a gradient for which backward returned None."""

    def __init__(self) -> None:
        """Make an empty one, as PyTorch allows."""

    def __call__(self, *grads: Any, **named: Any) -> Any:
        raise TypeError(f"'{type(self).__name__}' object is not callable: .apply(*grads) runs its backward")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *vars(self), *dir(FunctionCtx), *_READ})

    def __repr__(self) -> str:
        return f"<{display_namespace()}.autograd.function.{type(self).__name__} object at {hex(id(self))}>"

    # What backward reads.

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors given to save_for_backward."""
        if self.saved_for_jvp is not None:
            return self.saved_for_jvp
        if self.stored is None and self.to_save is not None and not self.released:
            return self.to_save if self.saved_for_forward is None else self.saved_for_forward
        if self.stored is None and self.saved_for_forward is not None:
            return self.saved_for_forward
        if self.released:
            if self.accessed and getattr(self._forward_cls, "clear_saved_tensors_on_access", False):
                raise RuntimeError(
                    "saved_tensors can only be accessed once when clear_saved_tensors_on_access=True is set on the "
                    "autograd.Function"
                )
            raise freed(self)
        result = tuple([self._unpack(value, version) for value, version in self.stored or ()])
        if getattr(self._forward_cls, "clear_saved_tensors_on_access", False):
            self.accessed, self.released, self.stored = True, True, None
        return result

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """The former name of saved_tensors."""

        warn_user("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning)
        return self.saved_tensors

    @property
    def _raw_saved_tensors(self) -> tuple[Any, ...]:
        if self.released:
            raise freed(self)
        return tuple([saved_tensor_handle(self, index) for index in range(len(self.stored or ()))])

    def _unpack(self, value: Any, version: int) -> Any:
        if value is None:
            return None
        if is_stale(value, version):
            raise stale(value, version, self)
        return value if isinstance(value, Tensor) else value.as_tensor(self)

    def store(self, outputs: Sequence[Any]) -> None:
        """Keep what forward saved: outputs without a cycle, everything through the active hooks."""
        hooks = current_hooks()
        self.stored = []
        # Taken off first: a pack hook may raise (a checkpoint stops early so), and an output leads back to this node.
        to_save, self.to_save = self.to_save, None
        for tensor in to_save or ():
            if tensor is None:
                self.stored.append((None, -1))
                continue
            value: Any = tensor
            position = None
            for place, output in enumerate(outputs):
                if output is tensor:
                    position = place
                    break
            if position is not None and tensor._requires_grad:
                value = SavedOutput(tensor, position)
                value.tangents = tensor._extra.tangents if tensor._extra is not None else None
            version = tensor._counter.value if tensor._counter is not None else 0
            if hooks is not None:
                edge = None if position is not None else gradient_edge(tensor)
                value = PackedTensor(tensor, *hooks, edge, position)
            self.stored.append((value, version))

    def release_saved_tensors(self) -> None:
        if self.stored:
            self.released = True
            self.stored = None

    # What the engine calls, and users who call a node by hand.

    def apply(self, *args: Any) -> Any:
        """Call the user's backward with `args` and return what it returns."""
        backward = self._forward_cls._backward_function()
        return backward(self, list(args)) if self._forward_cls.boxed_grads_call else backward(self, *args)

    def apply_jvp(self, *args: Any) -> Any:
        """Call the user's jvp with `args`."""
        return self._forward_cls.jvp(self, *args)

    def apply_differentiable(self, grads: Sequence[Any], edges: Edges) -> Sequence[Any]:
        """Call the user's backward and return one gradient per tensor input.

        A Function with `boxed_grads_call` gets the only list that holds the gradients: it may free them early.
        """
        function = self._forward_cls
        arguments = [self._materialized(g, i) for i, g in enumerate(grads)]
        backward = function._backward_function()
        if function.boxed_grads_call:
            if isinstance(grads, list):
                grads.clear()
            result = backward(self, arguments)
        else:
            result = backward(self, *arguments)
        return self._matched(result if isinstance(result, tuple) else (result,))

    def _materialized(self, grad: Any, index: int) -> Any:
        if grad is not None or not self.materialize_grads or index in self.not_materialized:
            return grad
        metadata = self.input_metadata(index)
        return None if metadata is None else new_tensor(metadata.zeros())

    def _matched(self, results: tuple[Any, ...]) -> list[Any]:
        """Check the number and the kinds of what backward returned; keep those of tensor inputs."""
        expected = len(self.is_tensor_input)
        if len(results) > expected and all(r is None for r in results[expected:]):
            results = results[:expected]
        if len(results) != expected:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected {expected}, "
                f"got {len(results)})"
            )
        kept: list[Any] = []
        for position, (result, is_tensor) in enumerate(zip(results, self.is_tensor_input, strict=True)):
            if is_tensor:
                if result is not None and not isinstance(result, Tensor):
                    raise RuntimeError(
                        f"function {self.name()} returned a gradient of wrong type at position {position + 1}: expected "
                        f"Variable or None (got {type(result).__name__})"
                    )
                if result is None and self.needs_input_grad[position]:
                    self.withheld |= {len(kept)}
                    note_withheld(self, len(kept))
                kept.append(result)
            elif result is not None:
                raise RuntimeError(
                    f"function {self.name()} returned a gradient different than None at position {position + 1}, but the "
                    "corresponding forward input was not a Variable"
                )
        return kept

    def describe_outputs(self, outputs: Sequence[Any]) -> None:
        """Remember shape and dtype of each output (None for what is not a tensor)."""
        self.output_count = max(len(outputs), 1)
        if not self._materialize_non_diff_grads:
            constant = self.non_differentiable
            self.not_materialized = frozenset(i for i, o in enumerate(outputs) if any(o is t for t in constant))
        self.metadata_by_output = [
            InputMetadata(o._array.shape, o._array.dtype, device=o.device) if isinstance(o, Tensor) else None
            for o in outputs
        ]

    def input_metadata(self, index: int) -> InputMetadata | None:
        return self.metadata_by_output[index]

    metadata_by_output: list[InputMetadata | None] = []
    not_materialized: frozenset[int] = frozenset()
    """The outputs without gradient for which backward is to get None, not zeros."""


def _check_tensors(values: Sequence[Any], message: str) -> None:
    for position, value in enumerate(values):
        if not isinstance(value, Tensor):
            raise RuntimeError(f"{message}, but argument {position} is of type {type(value).__name__}")
