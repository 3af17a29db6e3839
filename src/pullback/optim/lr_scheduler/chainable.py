"""Schedules that compute the next rate from the present one."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from pullback.optim.lr_scheduler.scheduler import LRScheduler, functions_state
from pullback.optim.optimizer import Optimizer

LrFunction = Callable[[int], float]


class LambdaLR(LRScheduler):
    """The initial rate times a function of the epoch.

    `lr_lambda` is a function of the epoch, or one for each group. lr = base lr * lr_lambda(epoch).

    >>> import pullback
    >>> optimizer = pullback.optim.SGD([pullback.ones(1, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> scheduler = pullback.optim.lr_scheduler.LambdaLR(optimizer, lr_lambda=lambda epoch: 1 / (1 + epoch))
    >>> rates = [(scheduler.get_last_lr()[0], optimizer.step(), scheduler.step())[0] for _ in range(4)]
    >>> [round(rate, 4) for rate in rates]
    [1.0, 0.5, 0.3333, 0.25]
    """

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        self.optimizer = optimizer
        self.lr_lambdas = _functions(optimizer, lr_lambda)
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        state = {key: value for key, value in super().state_dict().items() if key != "lr_lambdas"}
        state["lr_lambdas"] = functions_state(self.lr_lambdas)
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        functions = state_dict["lr_lambdas"]
        self.__dict__.update({key: value for key, value in state_dict.items() if key != "lr_lambdas"})
        for own, saved in zip(self.lr_lambdas, functions, strict=True):
            if saved is not None:
                own.__dict__.update(saved)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        return [base * function(self.last_epoch) for function, base in zip(self.lr_lambdas, self.base_lrs, strict=True)]


class MultiplicativeLR(LambdaLR):
    """The present rate times a function of the epoch.

    `lr_lambda` is a function of the epoch, or one for each group. lr = the last lr * lr_lambda(epoch).

    >>> import pullback
    >>> optimizer = pullback.optim.SGD([pullback.ones(1, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> scheduler = pullback.optim.lr_scheduler.MultiplicativeLR(optimizer, lr_lambda=lambda epoch: 0.5)
    >>> rates = [(scheduler.get_last_lr()[0], optimizer.step(), scheduler.step())[0] for _ in range(4)]
    >>> [round(rate, 4) for rate in rates]
    [1.0, 0.5, 0.25, 0.125]
    """

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        if self._is_initial:
            return self._current_lrs()
        return [
            lr * function(self.last_epoch) for function, lr in zip(self.lr_lambdas, self._current_lrs(), strict=True)
        ]


def _functions(optimizer: Optimizer, lr_lambda: Any) -> list[LrFunction]:
    if not isinstance(lr_lambda, (list, tuple)):
        return [lr_lambda] * len(optimizer.param_groups)
    if len(lr_lambda) != len(optimizer.param_groups):
        raise ValueError(f"Expected {len(optimizer.param_groups)} lr_lambdas, but got {len(lr_lambda)}")
    return list(lr_lambda)


class StepLR(LRScheduler):
    """Multiply by `gamma` every `step_size` epochs.

    lr = base lr * gamma ** (epoch // step_size).

    >>> import pullback
    >>> optimizer = pullback.optim.SGD([pullback.ones(1, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> scheduler = pullback.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    >>> rates = [(scheduler.get_last_lr()[0], optimizer.step(), scheduler.step())[0] for _ in range(4)]
    >>> [round(rate, 4) for rate in rates]
    [1.0, 1.0, 0.5, 0.5]
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        if self.last_epoch == 0 or self.last_epoch % self.step_size != 0:
            return self._current_lrs()
        return [lr * self.gamma for lr in self._current_lrs()]

    def _get_closed_form_lr(self) -> list[Any]:
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """Multiply by `gamma` at given epochs.

    lr = base lr * gamma ** (the number of `milestones` passed).

    >>> import pullback
    >>> optimizer = pullback.optim.SGD([pullback.ones(1, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> scheduler = pullback.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[1, 3], gamma=0.5)
    >>> rates = [(scheduler.get_last_lr()[0], optimizer.step(), scheduler.step())[0] for _ in range(4)]
    >>> [round(rate, 4) for rate in rates]
    [1.0, 0.5, 0.5, 0.25]
    """

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        if self.last_epoch not in self.milestones:
            return self._current_lrs()
        return [lr * self.gamma ** self.milestones[self.last_epoch] for lr in self._current_lrs()]

    def _get_closed_form_lr(self) -> list[Any]:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base * self.gamma**passed for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """A fraction of the rate for the first `total_iters` epochs.

    lr = base lr * factor until `total_iters`, then the base lr.

    >>> import pullback
    >>> optimizer = pullback.optim.SGD([pullback.ones(1, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> scheduler = pullback.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=2)
    >>> rates = [(scheduler.get_last_lr()[0], optimizer.step(), scheduler.step())[0] for _ in range(4)]
    >>> [round(rate, 4) for rate in rates]
    [0.5, 0.5, 1.0, 1.0]
    """

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if factor > 1.0 or factor < 0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        if self.last_epoch == 0:
            return [lr * self.factor for lr in self._current_lrs()]
        if self.last_epoch != self.total_iters:
            return self._current_lrs()
        return [lr * (1.0 / self.factor) for lr in self._current_lrs()]

    def _get_closed_form_lr(self) -> list[Any]:
        over = self.last_epoch >= self.total_iters
        return [base * (self.factor + over * (1 - self.factor)) for base in self.base_lrs]


class LinearLR(LRScheduler):
    """A fraction of the rate that changes linearly over the first `total_iters` epochs.

    The factor goes from `start_factor` to `end_factor` in `total_iters` steps. lr = base lr * (start + (end - start) *
    min(epoch, total_iters) / total_iters).

    >>> import pullback
    >>> optimizer = pullback.optim.SGD([pullback.ones(1, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> scheduler = pullback.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.25, total_iters=3)
    >>> rates = [(scheduler.get_last_lr()[0], optimizer.step(), scheduler.step())[0] for _ in range(4)]
    >>> [round(rate, 4) for rate in rates]
    [0.25, 0.5, 0.75, 1.0]
    """

    def __init__(
        self, optimizer: Optimizer, start_factor: float = 1.0 / 3, end_factor: float = 1.0, total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:  # fmt: skip
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        if self.last_epoch == 0:
            return [lr * self.start_factor for lr in self._current_lrs()]
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._current_lrs()
        change = self.end_factor - self.start_factor
        present = self.total_iters * self.start_factor + (self.last_epoch - 1) * change
        return [lr * (1.0 + change / present) for lr in self._current_lrs()]

    def _get_closed_form_lr(self) -> list[Any]:
        done = min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * (self.start_factor + (self.end_factor - self.start_factor) * done) for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """Multiply by `gamma` every epoch.

    lr = base lr * gamma ** epoch.

    >>> import pullback
    >>> optimizer = pullback.optim.SGD([pullback.ones(1, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> scheduler = pullback.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> rates = [(scheduler.get_last_lr()[0], optimizer.step(), scheduler.step())[0] for _ in range(4)]
    >>> [round(rate, 4) for rate in rates]
    [1.0, 0.5, 0.25, 0.125]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        if self._is_initial:
            return self._current_lrs()
        return [lr * self.gamma for lr in self._current_lrs()]

    def _get_closed_form_lr(self) -> list[Any]:
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """Fall to zero as a power over `total_iters` epochs.

    lr = base lr * (1 - epoch / total_iters) ** power, zero from `total_iters` on.

    >>> import pullback
    >>> optimizer = pullback.optim.SGD([pullback.ones(1, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> scheduler = pullback.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=4)
    >>> rates = [(scheduler.get_last_lr()[0], optimizer.step(), scheduler.step())[0] for _ in range(4)]
    >>> [round(rate, 4) for rate in rates]
    [1.0, 0.75, 0.5, 0.25]
    """

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._current_lrs()
        left = 1.0 - self.last_epoch / self.total_iters
        before = 1.0 - (self.last_epoch - 1) / self.total_iters
        return [lr * (left / before) ** self.power for lr in self._current_lrs()]

    def _get_closed_form_lr(self) -> list[Any]:
        done = min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * (1.0 - done) ** self.power for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """Follow a cosine from the initial rate to `eta_min` over `T_max` epochs, and back.

    lr = eta_min + (base lr - eta_min) * (1 + cos(pi * epoch / T_max)) / 2.

    >>> import pullback
    >>> optimizer = pullback.optim.SGD([pullback.ones(1, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> scheduler = pullback.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
    >>> rates = [(scheduler.get_last_lr()[0], optimizer.step(), scheduler.step())[0] for _ in range(4)]
    >>> [round(rate, 4) for rate in rates]
    [1.0, 0.8536, 0.5, 0.1464]
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        if self._is_initial:
            return self._current_lrs()
        if self._step_count == 1 and self.last_epoch > 0:
            phase = math.cos(self.last_epoch * math.pi / self.T_max)
            return [self.eta_min + (base - self.eta_min) * (1 + phase) / 2 for base in self.base_lrs]
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            half = (1 - math.cos(math.pi / self.T_max)) / 2
            return [
                lr + (base - self.eta_min) * half for base, lr in zip(self.base_lrs, self._current_lrs(), strict=True)
            ]
        now = 1 + math.cos(math.pi * self.last_epoch / self.T_max)
        before = 1 + math.cos(math.pi * (self.last_epoch - 1) / self.T_max)
        return [now / before * (lr - self.eta_min) + self.eta_min for lr in self._current_lrs()]

    def _get_closed_form_lr(self) -> list[Any]:
        phase = math.cos(math.pi * self.last_epoch / self.T_max)
        return [self.eta_min + (base - self.eta_min) * (1 + phase) / 2 for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Follow a cosine from the initial rate to `eta_min`, again and again, each time `T_mult` times as long.

    As `CosineAnnealingLR` over T_i steps, then from the start with T_i * T_mult; the first T_i is `T_0`.

    >>> import pullback
    >>> optimizer = pullback.optim.SGD([pullback.ones(1, requires_grad=True)], lr=1.0, momentum=0.9)
    >>> scheduler = pullback.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
    >>> rates = [(scheduler.get_last_lr()[0], optimizer.step(), scheduler.step())[0] for _ in range(4)]
    >>> [round(rate, 4) for rate in rates]
    [1.0, 0.5, 1.0, 0.5]
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: Any = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        phase = math.cos(math.pi * self.T_cur / self.T_i)
        return [self.eta_min + (base - self.eta_min) * (1 + phase) / 2 for base in self.base_lrs]

    def step(self, epoch: Any = None) -> None:
        """Set the rates for the next epoch, or for any point of time, in fractions of an epoch too."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur = self.T_cur + 1
            if self.T_cur >= self.T_i:
                self.T_cur = self.T_cur % self.T_i
                self.T_i = self.T_i * self.T_mult
        else:
            self._jump(epoch)
        self.last_epoch = math.floor(epoch) - 1
        self._update_lr()

    def _jump(self, epoch: Any) -> None:
        if epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        if epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_i, self.T_cur = self.T_0, epoch % self.T_0
        else:
            round_number = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**round_number - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**round_number
