"""LBFGS: a quasi-Newton method that remembers its last steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback import creation, functions
from pullback.autograd.grad_mode import enable_grad, no_grad
from pullback.graph.history import bump_version
from pullback.kernels.joining import cat as join_arrays
from pullback.modes.switches import switches
from pullback.native import silent
from pullback.optim.line_search import Point, cubic_minimum, strong_wolfe
from pullback.optim.optimizer import Optimizer
from pullback.tensor.tensor import Tensor, new_tensor

__all__ = ["LBFGS"]


class LBFGS(Optimizer):
    """Minimise with an approximate inverse Hessian; `step` needs a closure and evaluates it several times.

    One group of `params`. A step evaluates the closure at most `max_eval` times in `max_iter` iterations, with the
    last `history_size` differences of gradients; it ends where the largest gradient is below `tolerance_grad` or the
    change below `tolerance_change`. `line_search_fn` is None (steps of `lr`) or "strong_wolfe".

    >>> import pullback
    >>> x = pullback.zeros(1, requires_grad=True)
    >>> optimizer = pullback.optim.LBFGS([x], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = ((x - 3) ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> _ = optimizer.step(closure)
    >>> x.detach()
    tensor([3.])
    """

    def __init__(
        self, params: Any, lr: Any = 1, max_iter: int = 20, max_eval: int | None = None, tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9, history_size: int = 100, line_search_fn: str | None = None,
    ) -> None:  # fmt: skip
        if not lr >= 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        defaults = {
            "lr": lr, "max_iter": max_iter, "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change, "history_size": history_size,
            "line_search_fn": line_search_fn,
        }  # fmt: skip
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._params = self.param_groups[0]["params"]

    def _gather_flat_grad(self) -> Any:
        """All gradients as one real vector."""
        grads = [creation.zeros_like(param) if param._grad is None else param._grad for param in self._params]
        if not switches.interceptors and all(grad._array.dtype == grads[0]._array.dtype for grad in grads):
            flat = [grad._array.reshape(-1) for grad in grads]
            if flat[0].dtype.kind == "f":
                return new_tensor(join_arrays(flat, 0))
        return functions.cat([_real(grad).reshape(-1) for grad in grads])

    @silent
    def _move(self, step_size: float, direction: Any) -> None:
        """Add a multiple of a flat direction to the parameters."""
        offset = 0
        if not switches.interceptors and all(p._array.dtype == direction._array.dtype for p in self._params):
            change = direction._array * step_size
            for param in self._params:
                array = param._array
                array += change[offset : offset + array.size].reshape(array.shape)
                offset += array.size
                bump_version(param)
            return
        for param in self._params:
            target = _real(param)
            count = target.numel()
            target.add_(direction[offset : offset + count].view_as(target), alpha=step_size)
            offset += count

    def _evaluate(self, closure: Callable[[], Any]) -> float:
        with enable_grad():
            return _number(closure())

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Take up to `max_iter` iterations; `closure` clears the gradients, computes the loss, and runs backward."""
        if closure is None:
            raise TypeError("LBFGS.step() missing 1 required positional argument: 'closure'")
        state = self.state[self._params[0]]
        before = {name: list(value) if isinstance(value, list) else value for name, value in state.items()}
        try:
            with no_grad():
                return self._minimize(closure)
        except BaseException:  # half of an iteration's history is of no use
            state.clear()
            state.update(before)
            raise

    def _minimize(self, closure: Callable[[], Any]) -> Any:
        group = self.param_groups[0]
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        with enable_grad():
            first_loss = closure()
        loss = _number(first_loss)
        evaluations = 1
        state["func_evals"] += 1
        grad = self._gather_flat_grad()
        if _largest(grad) <= group["tolerance_grad"]:
            return first_loss
        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            direction = self._direction(state, grad, group["history_size"])
            previous_loss = loss
            state["prev_flat_grad"], state["prev_loss"] = grad.clone(), loss
            lr = float(group["lr"])
            t = min(1.0, 1.0 / grad.abs().sum().item()) * lr if state["n_iter"] == 1 else lr
            slope = grad.dot(direction).item()
            state["d"], state["t"] = direction, t
            if slope > -group["tolerance_change"]:
                break
            evaluated = 0
            if group["line_search_fn"] is not None:
                if group["line_search_fn"] != "strong_wolfe":
                    raise RuntimeError("only 'strong_wolfe' is supported")
                point, evaluated = self._search(closure, Point(0.0, loss, grad, slope), direction, t)
                t, loss, grad = point.t, point.loss, point.grad
                self._move(t, direction)
            else:
                self._move(t, direction)
                if iteration != group["max_iter"]:
                    loss, evaluated = self._evaluate(closure), 1
                    grad = self._gather_flat_grad()
            state["t"] = t
            evaluations += evaluated
            state["func_evals"] += evaluated
            if (
                evaluations >= group["max_eval"]
                or _largest(grad) <= group["tolerance_grad"]
                or _largest(direction) * abs(t) <= group["tolerance_change"]
                or abs(loss - previous_loss) < group["tolerance_change"]
            ):
                break
        return first_loss

    def _search(self, closure: Callable[[], Any], start: Point, direction: Any, t: float) -> tuple[Point, int]:
        saved = [param.clone() for param in self._params]

        def evaluate(t: float) -> Point:
            self._move(t, direction)
            loss = self._evaluate(closure)
            grad = self._gather_flat_grad()
            for param, value in zip(self._params, saved, strict=True):
                param.copy_(value)
            return Point(t, loss, grad, grad.dot(direction).item())

        return strong_wolfe(evaluate, start, t, _largest(direction))

    def _direction(self, state: dict[str, Any], grad: Any, history_size: int) -> Any:
        """The negative gradient times the inverse Hessian that the last steps stand for."""
        if state["n_iter"] == 1:
            state["old_dirs"], state["old_stps"], state["ro"], state["H_diag"] = [], [], [], 1
            return -grad
        dirs, steps, ro = state["old_dirs"], state["old_stps"], state["ro"]
        change = grad - state["prev_flat_grad"]
        step = state["d"] * state["t"]
        curvature = change.dot(step)
        if curvature.item() > 1e-10:
            if len(dirs) == history_size:
                for memory in (dirs, steps, ro):
                    memory.pop(0)
            dirs.append(change)
            steps.append(step)
            ro.append(1.0 / curvature)
            state["H_diag"] = curvature / change.dot(change)
        if state.get("al") is None:
            state["al"] = [None] * history_size
        weights = state["al"]
        result = -grad
        for i in reversed(range(len(dirs))):
            weights[i] = steps[i].dot(result) * ro[i]
            result.add_(dirs[i], alpha=-weights[i].item())
        result = result.mul_(state["H_diag"])
        for i in range(len(dirs)):
            result.add_(steps[i], alpha=(weights[i] - dirs[i].dot(result) * ro[i]).item())
        return result


def _real(tensor: Any) -> Any:
    """A complex tensor as pairs of real numbers, on the same memory."""
    return functions.view_as_real(tensor) if tensor.dtype.is_complex else tensor


def _number(loss: Any) -> float:
    return float(loss.detach() if isinstance(loss, Tensor) else loss)


def _largest(vector: Any) -> float:
    return float(vector.abs().max().item())


def _cubic_interpolate(
    x1: Any, f1: Any, g1: Any, x2: Any, f2: Any, g2: Any, bounds: tuple[float, float] | None = None
) -> float:
    """The minimum of a cubic, in the form that libraries take from PyTorch."""
    first, second = (Point(float(x), float(f), None, float(g)) for x, f, g in ((x1, f1, g1), (x2, f2, g2)))
    return cubic_minimum(first, second, bounds)


def _strong_wolfe(
    obj_func: Callable[[Any, float, Any], tuple[Any, Any]], x: Any, t: Any, d: Any, f: Any, g: Any, gtd: Any,
    c1: float = 1e-4, c2: float = 0.9, tolerance_change: float = 1e-9, max_ls: int = 25,
) -> tuple[Any, Any, float, int]:  # fmt: skip
    """The line search, in the form that libraries take from PyTorch: loss, gradient, step length, evaluations."""

    def evaluate(length: float) -> Point:
        loss, grad = obj_func(x, length, d)
        return Point(length, float(loss), grad, float(grad.dot(d)))

    start = Point(0.0, float(f), g, float(gtd))
    found, evaluations = strong_wolfe(
        evaluate, start, float(t), float(d.abs().max()), decrease=c1, curvature=c2, tolerance_change=tolerance_change,
        max_iterations=max_ls,
    )  # fmt: skip
    return found.loss, found.grad, found.t, evaluations
