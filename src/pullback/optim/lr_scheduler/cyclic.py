"""Schedules of rates and momenta together, stepped after each batch."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from typing import Any

from pullback.optim.lr_scheduler.scheduler import LRScheduler, per_group, plain_copy, update_value
from pullback.optim.optimizer import Optimizer


def uses_beta1(optimizer: Optimizer) -> bool:
    """Whether momentum is the first of `betas`; raises if there is none at all."""
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
    return "betas" in optimizer.defaults


def set_momentum(group: dict[str, Any], momentum: float, by_beta1: bool) -> None:
    """Set the momentum of a group."""
    if by_beta1:
        group["betas"] = (momentum, *group["betas"][1:])
    else:
        group["momentum"] = momentum


class CyclicLR(LRScheduler):
    """Rates that go up and down between two bounds, with amplitudes that may shrink.

    From `base_lr` to `max_lr` in `step_size_up` batches and back in `step_size_down`, again and again; `mode`
    "triangular2" halves each height, "exp_range" multiplies it by gamma ** batch.

    >>> import pullback
    >>> optimizer = pullback.optim.SGD([pullback.ones(1, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> scheduler = pullback.optim.lr_scheduler.CyclicLR(optimizer, base_lr=0.25, max_lr=1.0, step_size_up=2)
    >>> rates = [(scheduler.get_last_lr()[0], optimizer.step(), scheduler.step())[0] for _ in range(4)]
    >>> [round(rate, 4) for rate in rates]
    [0.25, 0.625, 1.0, 0.625]
    """

    def __init__(
        self, optimizer: Optimizer, base_lr: Any, max_lr: Any, step_size_up: int = 2000,
        step_size_down: int | None = None, mode: str = "triangular", gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None, scale_mode: str = "cycle", cycle_momentum: bool = True,
        base_momentum: Any = 0.8, max_momentum: Any = 0.9, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        base_lrs = per_group(optimizer, "base_lr", base_lr)
        if last_epoch == -1:
            for lr, group in zip(base_lrs, optimizer.param_groups, strict=True):
                update_value(group, "lr", lr)
        self.max_lrs = per_group(optimizer, "max_lr", max_lr)
        up = float(step_size_up)
        down = float(step_size_down) if step_size_down is not None else up
        self.total_size = up + down
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        if scale_fn is None:
            self._scale_fn_ref: Callable[[float], float] = getattr(self, f"_{mode}_scale_fn")
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = uses_beta1(optimizer)
            self.base_momentums = per_group(optimizer, "base_momentum", base_momentum)
            self.max_momentums = per_group(optimizer, "max_momentum", max_momentum)
            if last_epoch == -1:
                for momentum, group in zip(self.max_momentums, optimizer.param_groups, strict=True):
                    set_momentum(group, momentum, self.use_beta1)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """The amplitude of a cycle or iteration."""
        function = self._scale_fn_ref if self._scale_fn_custom is None else self._scale_fn_custom
        return function(x)

    @staticmethod
    def _triangular_scale_fn(x: float) -> float:
        return 1.0

    @staticmethod
    def _triangular2_scale_fn(x: float) -> float:
        return 1 / (2.0 ** (x - 1))

    def _exp_range_scale_fn(self, x: float) -> float:
        return self.gamma**x

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        amplitude = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        lrs = [
            base + (largest - base) * height * amplitude
            for base, largest in zip(self.base_lrs, self.max_lrs, strict=True)
        ]
        if self.cycle_momentum:
            bounds = zip(self.base_momentums, self.max_momentums, self.optimizer.param_groups, strict=True)
            for base, largest, group in bounds:
                set_momentum(group, largest - (largest - base) * height * amplitude, self.use_beta1)
        return lrs

    def state_dict(self) -> dict[str, Any]:
        state = super().state_dict()
        state.pop("_scale_fn_ref", None)
        function = state.pop("_scale_fn_custom")
        plain = function is None or isinstance(function, types.FunctionType)
        state["_scale_fn_custom"] = None if plain else dict(function.__dict__)
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        function = state_dict.get("_scale_fn_custom")
        super().load_state_dict({key: value for key, value in state_dict.items() if key != "_scale_fn_custom"})
        if function is not None and self._scale_fn_custom is not None:
            self._scale_fn_custom.__dict__.update(function)


class OneCycleLR(LRScheduler):
    """One cycle: up to `max_lr`, then down to almost nothing.

    From max_lr / div_factor to `max_lr` in the first `pct_start` of the steps, then down to the first /
    final_div_factor, along a cosine or a line; momentum goes the other way. Call `step()` after each batch.

    >>> import pullback
    >>> optimizer = pullback.optim.SGD([pullback.ones(1, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> scheduler = pullback.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=4)
    >>> rates = [(scheduler.get_last_lr()[0], optimizer.step(), scheduler.step())[0] for _ in range(4)]
    >>> [round(rate, 4) for rate in rates]
    [0.04, 0.8117, 0.2831, 0.0]
    """

    def __init__(
        self, optimizer: Optimizer, max_lr: Any, total_steps: int | None = None, epochs: int | None = None,
        steps_per_epoch: int | None = None, pct_start: float = 0.3, anneal_strategy: str = "cos",
        cycle_momentum: bool = True, base_momentum: Any = 0.85, max_momentum: Any = 0.95, div_factor: float = 25.0,
        final_div_factor: float = 1e4, three_phase: bool = False, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        self.total_steps = _count_steps(total_steps, epochs, steps_per_epoch)
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        self._schedule_phases = _phases(self.total_steps, pct_start, three_phase)
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_func_type = anneal_strategy
        max_lrs = per_group(optimizer, "max_lr", max_lr)
        if last_epoch == -1:
            for group, largest in zip(optimizer.param_groups, max_lrs, strict=True):
                group["initial_lr"] = largest / div_factor
                group["max_lr"] = largest
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = uses_beta1(optimizer)
            if last_epoch == -1:
                largest_momenta = per_group(optimizer, "max_momentum", max_momentum)
                base_momenta = per_group(optimizer, "base_momentum", base_momentum)
                for largest, base, group in zip(largest_momenta, base_momenta, optimizer.param_groups, strict=True):
                    set_momentum(group, largest, self.use_beta1)
                    group["max_momentum"] = largest
                    group["base_momentum"] = base
        super().__init__(optimizer, last_epoch)

    def _anneal(self, start: Any, end: Any, share: float) -> Any:
        if self._anneal_func_type == "linear":
            return (end - start) * share + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        if self.last_epoch > self.total_steps:
            raise ValueError(
                f"Tried to step {self.last_epoch} times. The specified number of total steps is {self.total_steps}"
            )
        start = 0.0
        for phase in self._schedule_phases:
            end = phase["end_step"]
            if self.last_epoch <= end or phase is self._schedule_phases[-1]:
                break
            start = end
        share = (self.last_epoch - start) / (end - start)
        lrs = []
        for group in self.optimizer.param_groups:
            lrs.append(plain_copy(self._anneal(group[phase["start_lr"]], group[phase["end_lr"]], share)))
            if self.cycle_momentum:
                momentum = self._anneal(group[phase["start_momentum"]], group[phase["end_momentum"]], share)
                set_momentum(group, momentum, self.use_beta1)
        return lrs


def _count_steps(total_steps: int | None, epochs: int | None, steps_per_epoch: int | None) -> int:
    if total_steps is not None:
        if total_steps <= 0 or not isinstance(total_steps, int):
            raise ValueError(f"Expected positive integer total_steps, but got {total_steps}")
        return total_steps
    if epochs is None or steps_per_epoch is None:
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    if not isinstance(epochs, int) or epochs <= 0:
        raise ValueError(f"Expected positive integer epochs, but got {epochs}")
    if not isinstance(steps_per_epoch, int) or steps_per_epoch <= 0:
        raise ValueError(f"Expected positive integer steps_per_epoch, but got {steps_per_epoch}")
    return epochs * steps_per_epoch


def _phases(total_steps: int, pct_start: float, three_phase: bool) -> list[dict[str, Any]]:
    """From which to which of a group's options each phase goes, and when it ends."""

    def phase(end_step: float, start: str, end: str, start_momentum: str, end_momentum: str) -> dict[str, Any]:
        return {
            "end_step": end_step, "start_lr": f"{start}_lr", "end_lr": f"{end}_lr",
            "start_momentum": f"{start_momentum}_momentum", "end_momentum": f"{end_momentum}_momentum",
        }  # fmt: skip

    first = phase(float(pct_start * total_steps) - 1, "initial", "max", "max", "base")
    if not three_phase:
        return [first, phase(total_steps - 1, "max", "min", "base", "max")]
    return [
        first,
        phase(float(2 * pct_start * total_steps) - 2, "max", "initial", "base", "max"),
        phase(total_steps - 1, "initial", "min", "max", "max"),
    ]
