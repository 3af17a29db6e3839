"""Group 11: checking and debugging."""

from __future__ import annotations

import warnings
from typing import Any


def row_146_anomaly_mode(torch: Any, say: Any) -> None:
    with say.warned("Anomaly Detection has been enabled. This mode will increase the runtime"):
        torch.autograd.detect_anomaly()
    with torch.autograd.set_detect_anomaly(True):
        x = torch.tensor([0.0], requires_grad=True)
        y = x.sqrt() * 0
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with say.catch("Function 'SqrtBackward0' returned nan values in its 0th output."):
                y.backward()
        text = "\n".join(str(w.message) for w in caught)
        say("Error detected in SqrtBackward0" in text, "Traceback of forward call that caused the error" in text)
        say("x.sqrt() * 0" in text)
    y = torch.tensor([0.0], requires_grad=True).sqrt()
    with torch.autograd.set_detect_anomaly(True):
        y.backward()
    x = torch.tensor([0.0], requires_grad=True)
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        (x.sqrt() * 0).backward()
    say(x.grad)


def row_147_anomaly_and_in_place(torch: Any, say: Any) -> None:
    with torch.autograd.set_detect_anomaly(True):
        x = torch.ones(2, requires_grad=True)
        y = x.exp()
        y.add_(1)
        with say.catch("Good luck!"):
            y.sum().backward()


def row_148_gradcheck(torch: Any, say: Any) -> None:
    gradcheck = torch.autograd.gradcheck
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    say(gradcheck(lambda x: x.sin(), x))

    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 3

    with say.catch("Jacobian mismatch for output 0 with respect to input 0"):
        gradcheck(Wrong.apply, x)
    say(gradcheck(Wrong.apply, x, raise_exception=False))
    with say.warned("not a double precision"):
        gradcheck(lambda x: x * 2, torch.ones(1, requires_grad=True), atol=1e-1, eps=1e-2)
    with say.catch("at least one input tensor to require gradient"):
        gradcheck(lambda x: x, torch.ones(1, dtype=torch.float64))
    with say.catch("has a dimension with stride 0"):
        gradcheck(lambda x: x.sum(), torch.ones(1, dtype=torch.float64).expand(3).requires_grad_())
    with say.catch("Numerical gradient for function expected to be zero"):
        gradcheck(lambda x: x.detach() * 2, x)
    calls = [0]

    class Random(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            calls[0] += 1
            return grad * (2 + 1e-6 * calls[0])

    with say.catch("Backward is not reentrant"):
        gradcheck(Random.apply, x)


def row_149_gradcheck_options(torch: Any, say: Any) -> None:
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    say(torch.autograd.gradcheck(lambda x: x.exp(), x, fast_mode=True, check_forward_ad=True))
    say(
        torch.autograd.gradcheck(
            lambda x: (x * x).sum(), x, check_undefined_grad=True, nondet_tol=1e-8, check_grad_dtypes=True
        )
    )


def row_150_gradgradcheck(torch: Any, say: Any) -> None:
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    say(
        torch.autograd.gradgradcheck(lambda x: x**3, x),
        torch.autograd.gradgradcheck(lambda x: x.tanh(), x, check_fwd_over_rev=True),
    )


def row_155_not_implemented(torch: Any, say: Any) -> None:
    a = torch.tensor([1.0], requires_grad=True)
    y = torch.igamma(a, torch.tensor([2.0]))
    say(y.requires_grad)
    with say.catch("the derivative for 'igamma: input' is not implemented."):
        y.backward()


def row_156_subgradients(torch: Any, say: Any) -> None:
    zero = [0.0]
    cases = {
        "relu": lambda x: x.relu(), "abs": lambda x: x.abs(), "clamp": lambda x: x.clamp(min=0), "sqrt": lambda x: x.sqrt(),
        "norm": lambda x: x.norm(), "round": lambda x: x.round(), "floor": lambda x: x.floor(), "sign": lambda x: x.sign(),
        "leaky_relu": lambda x: torch.nn.functional.leaky_relu(x), "relu6": lambda x: torch.nn.functional.relu6(x),
        "elu": lambda x: torch.nn.functional.elu(x), "hardtanh": lambda x: torch.nn.functional.hardtanh(x - 1),
        "softshrink": lambda x: torch.nn.functional.softshrink(x + 0.5), "clamp max": lambda x: x.clamp(max=0),
        "pow": lambda x: x**0.5, "pow 0": lambda x: x**0, "pow 1": lambda x: x**1, "sgn": lambda x: x.sgn(),
        "hardswish": lambda x: torch.nn.functional.hardswish(x + 3), "atan2": lambda x: torch.atan2(x, x),
        "prod": lambda x: (x * torch.ones(2)).prod(), "std": lambda x: (x * torch.ones(3)).std(),
    }  # fmt: skip
    for name, case in cases.items():
        x = torch.tensor(zero, requires_grad=True)
        case(x).sum().backward()
        say(name, x.grad)
    x = torch.tensor([1.0, 3.0, 3.0], requires_grad=True)
    for name, f in {
        "max": lambda x: x.max(), "amax": lambda x: x.amax(), "max dim": lambda x: x.max(0)[0], "median": lambda x: x.median(),
        "min": lambda x: (-x).min(), "cummax": lambda x: x.cummax(0)[0].sum(), "sort": lambda x: (x.sort()[0] * torch.tensor([1.0, 2.0, 4.0])).sum(),
        "topk": lambda x: x.topk(1)[0].sum(), "kthvalue": lambda x: x.kthvalue(2)[0], "mode": lambda x: x.mode()[0],
    }.items():  # fmt: skip
        x.grad = None
        f(x).backward()
        say(name, x.grad)
    a = torch.tensor([2.0], requires_grad=True)
    b = torch.tensor([2.0], requires_grad=True)
    for f in (torch.maximum, torch.minimum, torch.fmax, torch.fmin):
        a.grad = b.grad = None
        f(a, b).backward()
        say(a.grad, b.grad)


def row_157_assert_close(torch: Any, say: Any) -> None:
    torch.testing.assert_close(torch.ones(2), torch.ones(2))
    with say.catch("Tensor-likes are not close!"):
        torch.testing.assert_close(torch.ones(2), torch.zeros(2))


def row_154_profiler(torch: Any, say: Any) -> None:
    profiler = torch.autograd.profiler
    x = torch.ones(4, 4, requires_grad=True)
    with profiler.profile() as prof:
        with profiler.record_function("mine"):
            y = (x * x).sum()
        y.backward()
    names = [event.name for event in prof.function_events]
    for name in ("mine", "aten::mul", "autograd::engine::evaluate_function: MulBackward0", "MulBackward0"):
        say(name, name in names)
    by_name = {event.name: event for event in reversed(prof.function_events)}
    forward, backward = by_name["aten::mul"], by_name["autograd::engine::evaluate_function: MulBackward0"]
    say(forward.sequence_nr == backward.sequence_nr, by_name["mine"].cpu_time_total > 0)
    say("Self CPU" in prof.key_averages().table(sort_by="self_cpu_time_total"))


def row_151_deprecated_jacobians(torch: Any, say: Any) -> None:
    from importlib import import_module

    module = import_module(f"{torch.__name__}.autograd.gradcheck")
    say(hasattr(module, "get_numerical_jacobian"), hasattr(module, "get_analytical_jacobian"))


def row_153_logging(torch: Any, say: Any) -> None:
    from importlib import import_module

    logs = import_module(f"{torch.__name__}._logging")
    say(hasattr(logs, "set_logs"))
