"""The entry points into which faults are planted: for each, a call and the tensors that it touches."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pullback as torch
from pullback import nn
from pullback.autograd import forward_ad
from pullback.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap
from pullback.overrides import TorchFunctionMode
from pullback.utils._python_dispatch import TorchDispatchMode
from pullback.utils.checkpoint import checkpoint

Made = tuple[Callable[[], Any], dict[str, Any]]
SCENARIOS: dict[str, Callable[[], Made]] = {}
"""By name: makes the call, which may be made again after a fault, and the tensors to be looked at afterwards."""


def scenario(make: Callable[[], Made]) -> Callable[[], Made]:
    """Note a scenario under its name."""
    SCENARIOS[make.__name__] = make
    return make


def _leaves() -> tuple[Any, Any]:
    return torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([3.0, 4.0], requires_grad=True)


@scenario
def forward() -> Made:
    x, w = _leaves()
    return lambda: (x * w).sin().sum(), {"x": x, "w": w}


@scenario
def backward() -> Made:
    x, w = _leaves()
    y = ((x * w).sin() + x.exp()).sum()
    return lambda: y.backward(retain_graph=True), {"x": x, "w": w, "y": y}


@scenario
def backward_freeing() -> Made:
    x, w = _leaves()
    return lambda: ((x * w).sin() + x).sum().backward(), {"x": x, "w": w}


@scenario
def backward_with_create_graph() -> Made:
    x, w = _leaves()
    y = ((x * w).sin() * x).sum()

    def run() -> None:
        (slope,) = torch.autograd.grad(y, x, create_graph=True)
        torch.autograd.grad(slope.sum(), w, retain_graph=True)

    return run, {"x": x, "w": w, "y": y}


@scenario
def grad_of_inputs() -> Made:
    x, w = _leaves()
    y = (x * w).tanh()
    return lambda: torch.autograd.grad(y, (x, w), torch.ones(2), retain_graph=True), {"x": x, "w": w, "y": y}


@scenario
def backward_with_hooks() -> Made:
    x, w = _leaves()
    y = x * w
    y.register_hook(lambda g: g * 2)
    y.retain_grad()
    assert y.grad_fn is not None
    y.grad_fn.register_hook(lambda inputs, outputs: None)
    y.grad_fn.register_prehook(lambda outputs: None)
    x.register_post_accumulate_grad_hook(lambda t: None)
    z = y.sum()
    return lambda: z.backward(retain_graph=True), {"x": x, "w": w}


@scenario
def saved_tensors_hooks() -> Made:
    x, w = _leaves()

    def run() -> None:
        with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
            y = (x * w).exp().sum()
        y.backward()

    return run, {"x": x, "w": w}


@scenario
def custom_function() -> Made:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * 2 + x * 0

    x, _ = _leaves()
    return lambda: Double.apply(x).sum().backward(), {"x": x}


@scenario
def checkpointed() -> Made:
    x, w = _leaves()
    return lambda: checkpoint(lambda a: (a * w).sin(), x, use_reentrant=False).sum().backward(), {"x": x, "w": w}


@scenario
def checkpointed_reentrant() -> Made:
    x, w = _leaves()
    return lambda: checkpoint(lambda a: (a * w).sin(), x, use_reentrant=True).sum().backward(), {"x": x, "w": w}


@scenario
def function_vmap() -> Made:
    rows = torch.arange(6.0).view(3, 2)
    return lambda: vmap(lambda row: (row * 2).sum())(rows), {"rows": rows}


@scenario
def function_grad() -> Made:
    x, _ = _leaves()
    return lambda: grad(lambda a: (a * a).sum())(x), {"x": x}


@scenario
def function_vjp() -> Made:
    x, _ = _leaves()
    return lambda: vjp(lambda a: a.sin(), x)[1](torch.ones(2)), {"x": x}


@scenario
def function_jvp() -> Made:
    x, _ = _leaves()
    return lambda: jvp(lambda a: a.sin() * a, (x,), (torch.ones(2),)), {"x": x}


@scenario
def function_jacobians() -> Made:
    x, _ = _leaves()
    return lambda: (jacrev(lambda a: a.sin())(x), jacfwd(lambda a: a.sin())(x)), {"x": x}


@scenario
def function_hessian() -> Made:
    x, _ = _leaves()
    return lambda: hessian(lambda a: (a**3).sum())(x), {"x": x}


@scenario
def function_linearize() -> Made:
    x, _ = _leaves()
    return lambda: linearize(lambda a: a.sin(), x)[1](torch.ones(2)), {"x": x}


@scenario
def functional_jacobian() -> Made:
    x, _ = _leaves()
    return lambda: torch.autograd.functional.jacobian(lambda a: a.exp(), x), {"x": x}


@scenario
def forward_mode() -> Made:
    x, w = _leaves()

    def run() -> None:
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(x, torch.ones(2))
            forward_ad.unpack_dual((dual * w).sin())

    return run, {"x": x, "w": w}


@scenario
def in_place_on_a_view() -> Made:
    x, w = _leaves()

    def run() -> None:
        y = x * 1
        y[0].mul_(w[1])
        y.sum().backward()

    return run, {"x": x, "w": w}


@scenario
def in_place_on_a_leaf() -> Made:
    x, _ = _leaves()

    def run() -> None:
        with torch.no_grad():
            x.add_(1).mul_(1)

    return run, {"x": x}


def _step_of(make: Callable[[Any], Any]) -> Made:
    x, _ = _leaves()
    x.grad = torch.ones(2)
    return make([x]).step, {"x": x}


@scenario
def sgd_step() -> Made:
    return _step_of(lambda parameters: torch.optim.SGD(parameters, lr=0.1))


@scenario
def adam_step() -> Made:
    return _step_of(lambda parameters: torch.optim.Adam(parameters, lr=0.1))


@scenario
def lbfgs_step() -> Made:
    x, _ = _leaves()
    optimizer = torch.optim.LBFGS([x], max_iter=2)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (x * x).sum()
        loss.backward()
        return loss

    return lambda: optimizer.step(closure), {}


@scenario
def load_state_dict() -> Made:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(1, 2), nn.BatchNorm1d(2))
    state = {name: torch.full_like(tensor, 7) for name, tensor in model.state_dict().items()}
    return lambda: model.load_state_dict(state), dict(model.named_parameters())


@scenario
def optimizer_load_state_dict() -> Made:
    x, _ = _leaves()
    optimizer = torch.optim.Adam([x])
    x.grad = torch.ones(2)
    optimizer.step()
    state = optimizer.state_dict()
    return lambda: optimizer.load_state_dict(state), {"x": x}


@scenario
def module_with_hooks() -> Made:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    model.register_forward_hook(lambda module, inputs, output: None)
    model.register_forward_pre_hook(lambda module, inputs: None)
    model.register_full_backward_hook(lambda module, inputs, outputs: None)
    x = torch.ones(1, 2, requires_grad=True)
    return lambda: model(x).sum().backward(), {"x": x, **dict(model.named_parameters())}


@scenario
def functional_calls() -> Made:
    torch.manual_seed(0)
    model = nn.Linear(2, 2)
    weights = {name: torch.zeros_like(value) for name, value in model.named_parameters()}
    return lambda: functional_call(model, weights, (torch.ones(2),)), dict(model.named_parameters())


@scenario
def modes() -> Made:
    x, _ = _leaves()

    def run() -> None:
        with torch.no_grad(), torch.enable_grad():
            x * 2
        with torch.inference_mode():
            x * 2
        with torch.set_grad_enabled(False):
            x * 2

    return run, {"x": x}


@scenario
def autocast() -> Made:
    x, _ = _leaves()

    def run() -> None:
        with torch.autocast("cpu", torch.bfloat16):
            x.view(1, 2) @ x.view(2, 1)

    return run, {"x": x}


@scenario
def anomaly_mode() -> Made:
    x, _ = _leaves()

    def run() -> None:
        with torch.autograd.detect_anomaly(check_nan=True):
            (x * 2).sum().backward()

    return run, {"x": x}


@scenario
def function_mode() -> Made:
    class Mode(TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return function(*args, **(kwargs or {}))

    x, _ = _leaves()

    def run() -> None:
        with Mode():
            torch.sin(x) + 1

    return run, {"x": x}


@scenario
def dispatch_mode() -> Made:
    class Mode(TorchDispatchMode):
        def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return function(*args, **(kwargs or {}))

    x, _ = _leaves()

    def run() -> None:
        with Mode():
            torch.sin(x).sum().backward()

    return run, {"x": x}


@scenario
def default_device() -> Made:
    def run() -> None:
        with torch.device("meta"):
            torch.ones(2) + 1

    return run, {}


@scenario
def gradient_check() -> Made:
    x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)
    return lambda: torch.autograd.gradcheck(lambda a: a.sin(), x), {"x": x}


@scenario
def files() -> Made:
    x, _ = _leaves()

    def run() -> None:
        file = io.BytesIO()
        torch.save({"x": x}, file)
        file.seek(0)
        torch.load(file)

    return run, {"x": x}


@scenario
def clipping() -> Made:
    x, w = _leaves()
    x.grad, w.grad = torch.ones(2), torch.ones(2)
    return lambda: nn.utils.clip_grad_norm_([x, w], 1e6), {"x": x, "w": w}


@scenario
def random_numbers() -> Made:
    def run() -> None:
        with torch.random.fork_rng():
            torch.manual_seed(3)
            torch.randn(3)

    return run, {}
