"""LRScheduler: the base of all schedules, which set the learning rates of an optimizer's groups."""

from __future__ import annotations

import types
import weakref
from functools import partial, wraps
from typing import Any

from pullback.modes.user_warnings import warn_user
from pullback.optim.optimizer import Optimizer
from pullback.tensor.tensor import Tensor

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated: call `scheduler.step()` without "
    "it. An epoch that is given is reached by the closed form of the schedule, where it has one."
)


def update_value(group: dict[str, Any], key: str, value: Any) -> None:
    """Set an option of a group; one that is a tensor keeps its identity."""
    if isinstance(group[key], Tensor):
        group[key].fill_(value.item() if isinstance(value, Tensor) else value)
    else:
        group[key] = value


def plain_copy(value: Any) -> Any:
    """A copy of an option that later changes do not reach."""
    return value.clone() if isinstance(value, Tensor) else value


def per_group(optimizer: Optimizer, name: str, value: Any) -> list[Any]:
    """One value for each group; a single value for all."""
    if not isinstance(value, (list, tuple)):
        return [value] * len(optimizer.param_groups)
    if len(value) != len(optimizer.param_groups):
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, param_groups "
            f"has {len(optimizer.param_groups)}."
        )
    return list(value)


class LRScheduler:
    """Adjusts learning rates; subclasses say how in `get_lr`, from the present rates where they can be chained."""

    _get_lr_called_within_step: bool = False
    _is_initial: bool = False
    _last_lr: list[Any]

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        if last_epoch == -1:
            for group in optimizer.param_groups:
                group.setdefault("initial_lr", plain_copy(group["lr"]))
        else:
            for i, group in enumerate(optimizer.param_groups):
                if "initial_lr" not in group:
                    raise KeyError(
                        f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with "
                        "last_epoch >= 0: load the optimizer's state_dict before making the scheduler, or begin at "
                        "last_epoch=-1."
                    )
        self.base_lrs: list[Any] = [plain_copy(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        _watch_steps(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[Any]:
        """The rates that the last step set."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """The next rates, computed from the present ones."""
        raise NotImplementedError

    def _warn_outside_step(self) -> None:
        if not self._get_lr_called_within_step:
            warn_user("To get the last learning rate computed by the scheduler, please use `get_last_lr()`.")  # fmt: skip

    def _current_lrs(self) -> list[Any]:
        return [group["lr"] for group in self.optimizer.param_groups]

    def step(self, epoch: int | None = None) -> None:
        """Set the rates for the next epoch."""
        if self._step_count == 1:
            self._warn_of_order()
        self._step_count += 1
        if epoch is not None:
            warn_user(EPOCH_DEPRECATION_WARNING)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        self._get_lr_called_within_step = True
        try:
            if epoch is None:
                self.last_epoch += 1
                values = self.get_lr()
            else:
                self.last_epoch = epoch
                closed_form = getattr(self, "_get_closed_form_lr", None)
                values = closed_form() if closed_form is not None else self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        for group, lr in zip(self.optimizer.param_groups, values, strict=True):
            update_value(group, "lr", lr)
        self._last_lr = [plain_copy(lr) for lr in self._current_lrs()]

    def _warn_of_order(self) -> None:
        step = self.optimizer.step
        if not hasattr(step, "_wrapped_by_lr_sched"):
            warn_user(
                "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization: whether "
                "it runs before `lr_scheduler.step()`, as it should, is not known."
            )
        elif not getattr(self.optimizer, "_opt_called", False):
            warn_user(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`: the first rate of the schedule is never "
                "used. Call `optimizer.step()` first."
            )


def _watch_steps(optimizer: Any) -> None:
    """Make the optimizer note that it has stepped, so that a wrong order can be told."""
    if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        return
    reference = weakref.ref(optimizer)
    function = optimizer.step.__func__

    @wraps(function)
    def watched(*args: Any, **kwargs: Any) -> Any:
        alive: Any = reference()
        alive._opt_called = True
        return function.__get__(alive, type(alive))(*args, **kwargs)

    watched._wrapped_by_lr_sched = True  # type: ignore[attr-defined]  # the mark that is looked for
    optimizer.step = watched


def functions_state(functions: list[Any]) -> list[Any]:
    """What can be saved of functions: the attributes of callable objects, None for plain functions."""
    return [
        None if isinstance(function, (types.FunctionType, partial)) else dict(function.__dict__)
        for function in functions
    ]
