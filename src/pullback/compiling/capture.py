"""What is known of a recorded call: its program, the tensors that it reads and writes, and what its result is made of."""

from __future__ import annotations

from typing import Any

from pullback.compiling.new_tensors import NewTensors
from pullback.compiling.numbers import Condition, Sizes
from pullback.compiling.program import JointProgram, Number, Program, Value
from pullback.compiling.recorder import Stop
from pullback.compiling.surroundings import Surroundings
from pullback.graph.node import Node


class Input:
    """A tensor that the program reads or writes: an argument, or one that was found in the surroundings."""

    __slots__ = (
        "around", "before", "grad_before", "grad_form", "grad_of", "had_hooks", "place", "requires_grad", "spot", "tensor",
        "value", "version",
    )  # fmt: skip

    def __init__(self, tensor: Any, place: int | None) -> None:
        self.tensor = tensor
        self.place = place
        """Which leaf of the arguments it is; None for one of the surroundings."""
        self.around: Any = None
        """The tensor, where it is an argument and was found in the surroundings too."""
        self.spot: Any = None
        """Where in the surroundings it stands, if another may replace it. See Note [Replaced tensors]."""
        self.before = tensor._array
        self.grad_of: Input | None = None
        """The input whose `.grad` it is: another tensor in each call."""
        self.value: Any = None
        self.version = version_of(tensor)
        self.grad_before = tensor._grad
        self.grad_form = form_of_grad(tensor)
        self.requires_grad = tensor._requires_grad
        self.had_hooks = hooks_of(tensor) is not None

    def copied(self, value: Any) -> Input:
        """The same input of another program; without the tensor, where that is another one in each call."""
        new: Input = Input.__new__(Input)
        for name in Input.__slots__:
            setattr(new, name, getattr(self, name))
        new.value, new.before, new.grad_before = value, None, None
        if self.place is not None or self.grad_of is not None:
            new.tensor = None
        return new


class Output:
    """A leaf of the result: a new tensor (`index` among the outputs), an input itself, or a plain value."""

    __slots__ = ("expression", "index", "input", "is_number", "path", "requires_grad", "same_as", "value", "window")

    def __init__(self) -> None:
        self.index: int | None = None
        self.input: int | None = None
        self.is_number = False
        """Whether it is the value of a new tensor, as `.item()` gives it."""
        self.requires_grad = False
        self.expression: Any = None
        """Of a number that is computed from arguments."""
        self.value: Any = None
        self.same_as: int | None = None
        """The earlier leaf that this one is too."""
        self.window: Any = None
        """Of a view of an input: its sizes, strides and offset, in elements, and how it is detached."""
        self.path: list[tuple[type[Node], dict[str, Any]]] = []
        """Of such a view with a history: the nodes from the input to it, and what they hold of sizes and dims."""

    def copied(self) -> Output:
        """The same leaf of another result."""
        new = Output()
        for name in Output.__slots__:
            setattr(new, name, getattr(self, name))
        return new


class Grad:
    """What becomes of the `.grad` of an input: None, or a new tensor (`index` among the outputs)."""

    __slots__ = ("index", "input")

    def __init__(self, input: int, index: int | None) -> None:
        self.input = input
        self.index = index


class Capture:
    """A recorded call. `stops` say why it cannot be run as a program, if it cannot."""

    def __init__(self) -> None:
        self.stops: list[Stop] = []
        self.breaks: list[tuple[int, int]] = []
        """Where the function's text stopped it. See Note [Segments]."""
        self.spots: list[tuple[int, int] | None] = []
        """For each kernel that was called, where in that text the function was, if that was wanted."""
        self.has_effects = False
        """Whether something outside of the function was changed."""
        self.result: Any = None
        self.inputs: list[Input] = []
        self.outputs: list[Output] = []
        self.structure: Any = None
        self.grads: list[Grad] = []
        self.versions: list[tuple[int, int]] = []
        """Inputs that were written to, and how often."""
        self.program = Program([])
        self.shown = 0
        """How many outputs of the program are leaves of the result or `.grad`s; gradients of inputs follow."""
        self.gradient_values: list[Value] = []
        """The gradients that come in, one for each differentiable output."""
        self.differentiable: list[int] = []
        """Places, among `inputs`, of those that get gradients."""
        self.cut_off: list[tuple[int, str, Any]] = []
        """Arguments that require grad and get none: their places among the leaves, and by what, at which line."""
        self.reads_grads = False
        """Whether some code that ran asks for a `.grad`."""
        self.scalars: list[tuple[Number | Value, Any]] = []
        """Numbers, or arrays without dimensions, that follow the tensors among the inputs, with their expressions."""
        self.conditions: list[Condition] = []
        self.free: frozenset[int] = frozenset()
        """The places of numbers, among the leaves of the arguments, that were followed."""
        self.reads_numbers = False
        """Whether Python may have used the value of a number that was to be an input."""
        self.state: Any = None
        """That of the random stream before the call."""
        self.is_freed = False
        """Whether the graph of the results was used up inside of the function."""
        self.sizes: Sizes | None = None
        """What the user's code learned of sizes, if that was followed."""
        self.surroundings: Surroundings | None = None
        self.identities: list[tuple[int, Any]] = []
        """Tensors among the arguments, by their places: which of the surroundings they are, None for none of these."""
        self.recorder: Any = None
        self.new_tensors: NewTensors | None = None
        """The tensors that were made meanwhile, some of which outlive the recording."""

    def array_of(self, value: Value) -> Any:
        """The array that held a value when the call was recorded; None if it was written over."""
        if value.constant is not None:
            return value.constant
        for given in self.inputs:
            if given.value is value:
                return None if any(given.value is v for v in self._written()) else given.before
        return self.recorder.computed(value)

    def _written(self) -> list[Any]:
        return [self.program.inputs[place] for place, _ in self.program.writes]

    def release_traced(self) -> None:
        """Give tensors that outlive the recording plain arrays."""
        if self.new_tensors is not None:
            self.new_tensors.release_traced()

    def release(self) -> None:
        """Forget what was computed."""
        self.recorder = None
        for given in self.inputs:
            if given.place is not None or given.grad_of is not None:
                given.tensor = None
            given.before = given.grad_before = None

    def joint(self) -> JointProgram:
        """Forward and backward in one."""
        return JointProgram(self.program, len(self.gradient_values), len(self.differentiable))


def version_of(tensor: Any) -> int:
    """The version of a tensor; 0 for one made in inference mode, which has none."""
    return 0 if tensor.is_inference() else int(tensor._version)


def hooks_of(tensor: Any) -> Any:
    """The hooks of a tensor, and those that run after accumulation; None if it has neither."""
    extra = tensor._extra
    if extra is None or not (extra.hooks or extra.post_accumulate_hooks):
        return None
    return extra.hooks, extra.post_accumulate_hooks


def form_of_grad(tensor: Any) -> Any:
    """The shape, dtype and strides of a tensor's `.grad`; None if it has none."""
    grad = tensor._grad
    return None if grad is None else (grad._array.shape, grad._array.dtype, grad._array.strides)
