"""The step that all elementwise optimizers share.

# Note [One step, two roads]
An optimizer's arithmetic is one text, a kernel that works in place on arrays (kernels/optimizer_steps.py). With
`differentiable=True` the same text runs on Tensors and is recorded (optim/recorded_steps.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from pullback import creation, functions
from pullback.autograd.grad_mode import enable_grad, no_grad
from pullback.backend.dtype import float32, float64, get_default_dtype
from pullback.graph.history import bump_version
from pullback.modes.guards import guarded
from pullback.optim.optimizer import Optimizer
from pullback.optim.recorded_steps import Cell, run_recorded
from pullback.tensor.tensor import Tensor

Group = dict[str, Any]
State = dict[str, Any]
Row = list[Any]
"""The arrays of a parameter, its gradient and its state."""
Entry = tuple[Any, Any, State]
"""A parameter, its gradient, its state."""


class GroupwiseOptimizer(Optimizer):
    """An optimizer whose step updates one group after the other."""

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the parameters once; `closure` evaluates the loss anew."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        with no_grad():
            for group in self.param_groups:
                self._update_group(group)
        return loss

    def _update_group(self, group: Group) -> None:
        for param in group["params"]:
            if param._grad is not None:
                self._update_param(param, param._grad, group)

    def _update_param(self, param: Any, grad: Any, group: Group) -> None:
        raise NotImplementedError


class ElementwiseOptimizer(GroupwiseOptimizer):
    """An optimizer whose update is the same for each element. See Note [One step, two roads]."""

    takes_sparse_gradients = False
    """Whether a sparse gradient means the same as the dense one with zeros."""
    later_options: ClassVar[Mapping[str, Any]] = {
        "foreach": None, "maximize": False, "differentiable": False, "capturable": False,
    }  # fmt: skip
    """Options that state dicts of old versions lack, with their defaults."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        set_defaults(self, **self.later_options)

    def prepare(self, state: State, param: Any, group: Group) -> Any:
        """Make the state at the first step, count the step, and return what the parameters of one call have in common."""
        if not state:
            state["step"] = new_count()
            for name in self.state_names(group):
                state[name] = zeros_like(param)
        return count_step(state)

    def state_names(self, group: Group) -> Sequence[str]:
        """The names of the state tensors that the kernel reads and writes, in its order."""
        return ()

    def arrange(self, group: Group, rows: list[Row]) -> list[Row]:
        """Rows of a parameter, its gradient and its state, as the kernel takes them."""
        return rows

    def in_place_step(self, group: Group, key: Any) -> partial[None]:
        """The kernel that works on rows of arrays, its numbers given. `key` is what `prepare` returned."""
        raise NotImplementedError

    def finish(self, state: State, group: Group, key: Any) -> None:
        """Update state that is one number per parameter, after the kernel."""

    def _update_group(self, group: Group) -> None:
        keeps_state = bool(self.state_names(group))
        entries = [
            (param, param._grad, self.state[param] if keeps_state else {})
            for param in group["params"]
            if param._grad is not None
        ]
        for _, grad, _ in entries:
            if type(grad) is not Tensor and grad.is_sparse:
                self.check_sparse(group)
        self.update(group, entries)

    def check_sparse(self, group: Group) -> None:
        """Refuse a sparse gradient where zeros would change the state."""
        if not self.takes_sparse_gradients:
            raise sparse_gradient(next(c.__name__ for c in type(self).__mro__ if "in_place_step" in c.__dict__))

    def update(self, group: Group, entries: Sequence[Entry]) -> None:
        """Update parameters by their gradients and states, with the options of `group`."""
        batches: dict[Any, list[Entry]] = {}
        for entry in entries:
            param, _, state = entry
            key = self._prepared(state, param, group)
            batches.setdefault((key, param._array.dtype), []).append(entry)
        for (key, _), batch in batches.items():
            if group.get("differentiable"):
                self._update_tensors(group, key, batch)
            else:
                self._update_arrays(group, key, batch)
            for _, _, state in batch:
                self.finish(state, group, key)

    def _prepared(self, state: State, param: Any, group: Group) -> Any:
        """As `prepare`; a new state is there as a whole or not at all."""
        if state:
            return self.prepare(state, param, group)
        try:
            return self.prepare(state, param, group)
        except BaseException:
            state.clear()
            raise

    def _update_arrays(self, group: Group, key: Any, batch: list[Entry]) -> None:
        names = self.state_names(group)
        rows = [[param._array, grad._array, *[state[name]._array for name in names]] for param, grad, state in batch]
        dtype = rows[0][0].dtype
        for row in rows:
            if row[1].dtype != dtype:
                row[1] = row[1].astype(dtype)
        if dtype.kind == "c":
            real = rows[0][0].real.dtype
            rows = [[_as_contiguous(array).view(real) for array in row] for row in rows]
        step = self.in_place_step(group, key)
        try:
            step(self.arrange(group, rows))
        finally:  # a step that was interrupted has written as well
            _count_writes(batch)

    def _update_tensors(self, group: Group, key: Any, batch: list[Entry]) -> None:
        """Update on Tensors and record it: gradients flow through the step."""
        names = self.state_names(group)
        with enable_grad():
            step = self.in_place_step(group, key)
            for param, grad, state in batch:
                is_complex = param.dtype.is_complex
                columns = [param, grad, *[state[name] for name in names]]
                row = [Cell(functions.view_as_real(column) if is_complex else column) for column in columns]
                run_recorded(step.func, *self.arrange(group, [row]), **step.keywords)
                results = [functions.view_as_complex(cell.value) if is_complex else cell.value for cell in row]
                param.copy_(results[0])
                for name, result in zip(names, results[2:], strict=True):
                    state[name] = result


def sparse_gradient(name: str) -> RuntimeError:
    """An optimizer that moves all elements got a sparse gradient."""
    instead = ", please consider SparseAdam instead" if name == "Adam" else ""
    return RuntimeError(f"{name} does not support sparse gradients{instead}")


@guarded
def _count_writes(batch: list[Entry]) -> None:
    for param, _, _ in batch:
        bump_version(param)


def _as_contiguous(array: Any) -> Any:
    """An array whose complex numbers can be seen as pairs; raises for a parameter whose memory does not allow it."""
    return array if array.ndim and array.strides[-1] == array.itemsize else array.reshape(-1)


def new_count() -> Any:
    """The step count of a new state: a tensor, as PyTorch has it."""
    return new_number(0.0)


def new_number(value: float) -> Any:
    """A state that is one number per parameter."""
    return creation.tensor(float(value), dtype=float64 if get_default_dtype() is float64 else float32)


def count_step(state: State) -> float:
    """Count a step in the state and return how many there were."""
    step = state["step"]
    if not isinstance(step, Tensor):
        # State dicts of old versions hold plain numbers.
        step = state["step"] = new_number(step)
    step._array += 1
    return float(step._array.item())


def zeros_like(param: Any) -> Any:
    """Zeros in the memory layout of a parameter."""
    return creation.zeros_like(param.detach())


def number(value: Any, group: Group) -> Any:
    """An option as a number, also where it is a tensor; that tensor where the step is recorded."""
    return float(value._array.item()) if isinstance(value, Tensor) and not group.get("differentiable") else value


def update_functionally(
    optimizer: type[ElementwiseOptimizer], options: Group, params: Any, grads: Any, **states: Sequence[Any]
) -> list[State]:
    """Do one step of an optimizer on lists: what its functional form does. Returns the states, which may be new."""
    if not all(isinstance(step, Tensor) for step in states.get("step", ())):
        raise RuntimeError("API has changed, `state_steps` argument must contain a list of singleton tensors")
    entries = [
        (param, grad, {name: column[i] for name, column in states.items() if i < len(column) and column[i] is not None})
        for i, (param, grad) in enumerate(zip(params, grads, strict=True))
    ]
    with no_grad():
        optimizer.__new__(optimizer).update(options, entries)
    return [state for _, _, state in entries]


def kept_weight(group: Group) -> tuple[Any, Any]:
    """What decoupled weight decay leaves of a parameter, and the weight decay that is added to the gradient."""
    weight_decay = group["weight_decay"]
    return (
        (1 - number(group["lr"], group) * weight_decay, 0.0) if group["decoupled_weight_decay"] else (1.0, weight_decay)
    )


def set_defaults(optimizer: Optimizer, **defaults: Any) -> None:
    """Give options that old state dicts lack their defaults."""
    for group in optimizer.param_groups:
        for name, default in defaults.items():
            group.setdefault(name, default)
