"""Group 5: grad modes."""

from __future__ import annotations

import threading
from typing import Any


def row_067_no_grad(torch: Any, say: Any) -> None:
    x = torch.ones(2, requires_grad=True)

    @torch.no_grad()
    def called() -> Any:
        return (x * 2).requires_grad

    @torch.no_grad
    def bare() -> Any:
        return (x * 2).requires_grad

    @torch.no_grad()
    def generate() -> Any:
        yield torch.is_grad_enabled()
        yield torch.is_grad_enabled()

    say(called(), bare())
    states = []
    for state in generate():
        states.append((state, torch.is_grad_enabled()))
    say(states)
    with torch.no_grad():
        view = x.view(-1)
        say(view.requires_grad, view.is_leaf, view.grad_fn)
        seen: list[bool] = []
        thread = threading.Thread(target=lambda: seen.append(torch.is_grad_enabled()))
        thread.start()
        thread.join()
        say(seen)


def row_068_enable_grad(torch: Any, say: Any) -> None:
    with torch.no_grad(), torch.enable_grad():
        say(torch.is_grad_enabled())
    with torch.inference_mode(), torch.enable_grad():
        say(torch.is_grad_enabled())


def row_069_set_grad_enabled(torch: Any, say: Any) -> None:
    torch.set_grad_enabled(False)
    say(torch.is_grad_enabled())
    torch.set_grad_enabled(True)
    with torch.set_grad_enabled(False):
        say(torch.is_grad_enabled())
    say(torch.is_grad_enabled())

    @torch.set_grad_enabled(False)
    def off() -> Any:
        return torch.is_grad_enabled()

    say(torch.is_grad_enabled(), off(), torch.is_grad_enabled())


def row_070_inference_mode(torch: Any, say: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    normal = torch.zeros(2)
    with torch.inference_mode():
        y = torch.ones(2)
        normal.add_(1)
        with torch.inference_mode(False):
            say((x * 2).requires_grad, torch.is_inference_mode_enabled())
    say(normal._version, y.requires_grad)
    with say.catch("Inference tensors cannot be saved for backward."):
        x * y
    with say.catch("Inplace update to inference tensor outside InferenceMode is not allowed."):
        y.add_(1)
    with say.catch("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."):
        y.requires_grad_()


def row_071_queries(torch: Any, say: Any) -> None:
    say(torch.is_grad_enabled(), torch.is_inference_mode_enabled())
    with torch.inference_mode():
        say(torch.is_grad_enabled(), torch.is_inference_mode_enabled())


def row_072_mode_inside(torch: Any, say: Any) -> None:
    seen: list[Any] = []

    class Look(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            seen.append(("forward", torch.is_grad_enabled()))
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            seen.append(("backward", torch.is_grad_enabled()))
            return grad * 2

    x = torch.ones(1, requires_grad=True)
    y = Look.apply(x)
    y.register_hook(lambda g: seen.append(("hook", torch.is_grad_enabled())))
    torch.autograd.grad(y, x, retain_graph=True)
    torch.autograd.grad(y, x, create_graph=True)
    say(seen, torch.is_grad_enabled())
    y = x * 2
    y.register_hook(lambda g: 1 / 0)
    with say.catch("division by zero"):
        y.backward()
    say(torch.is_grad_enabled())


def row_074_threads(torch: Any, say: Any) -> None:
    seen: list[bool] = []
    torch.set_grad_enabled(False)
    thread = threading.Thread(target=lambda: seen.append(torch.is_grad_enabled()))
    thread.start()
    thread.join()
    torch.set_grad_enabled(True)
    say(seen)


def row_075_multithreading(torch: Any, say: Any) -> None:
    x = torch.ones(1, requires_grad=True)
    with torch.autograd.set_multithreading_enabled(False):
        (x * 2).backward()
    say(x.grad)
