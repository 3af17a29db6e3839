"""Group 7: saved tensors."""

from __future__ import annotations

import gc
import weakref
from typing import Any


def row_092_saved_tensors_hooks(torch: Any, say: Any) -> None:
    hooks = torch.autograd.graph.saved_tensors_hooks
    x = torch.tensor([2.0], requires_grad=True)
    log: list[str] = []

    def pack(t: Any) -> Any:
        log.append("pack")
        return t * 10

    def unpack(t: Any) -> Any:
        log.append("unpack")
        return t

    with hooks(pack, unpack):
        y = x * x
    y.backward()
    say(log, x.grad)
    with hooks(lambda t: 1, lambda t: 1):
        z = x.exp()
    with say.catch("Output of saved tensor unpack_hook expected to be a Tensor but got result of type int"):
        z.backward()
    with (
        say.catch("A saved tensor pack hook is modifying its input in place."),
        hooks(lambda t: t.mul_(2), lambda t: t),
    ):
        x * x
    with hooks(lambda t: ("outer", t), lambda p: p[1]), hooks(lambda t: ("inner", t), lambda p: p[1] * 0):
        w = x * x
    x.grad = None
    w.backward()
    say(x.grad)


def row_093_register_hooks(torch: Any, say: Any) -> None:
    x = torch.tensor([3.0], requires_grad=True)
    y = x * x
    saved = y.grad_fn._raw_saved_self
    saved.register_hooks(lambda t: t * 2, lambda t: t)
    with say.catch("Calling register_hooks on a saved tensor whose hooks have already been set."):
        saved.register_hooks(lambda t: t, lambda t: t)
    y.backward()
    say(x.grad)
    z = x * torch.ones(1)
    with say.catch("Calling register_hooks on a saved tensor with value None is forbidden"):
        z.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)


def row_094_save_on_cpu(torch: Any, say: Any) -> None:
    x = torch.tensor([3.0], requires_grad=True)
    with torch.autograd.graph.save_on_cpu():
        y = x * x
    y.backward()
    say(x.grad)


def row_095_disable_hooks(torch: Any, say: Any) -> None:
    graph = torch.autograd.graph
    with say.catch("not here"), graph.disable_saved_tensors_hooks("not here"):
        with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            pass


def row_096_allow_mutation(torch: Any, say: Any) -> None:
    graph = torch.autograd.graph
    x = torch.tensor([2.0], requires_grad=True)
    with graph.allow_mutation_on_saved_tensors():
        y = x.exp()
        z = y * y
        y.detach().zero_()
        z.backward()
    say(x.grad)
    with say.catch("allow_mutation_on_saved_tensors contexts cannot be nested"):
        with graph.allow_mutation_on_saved_tensors(), graph.allow_mutation_on_saved_tensors():
            pass
    with graph.allow_mutation_on_saved_tensors():
        w = x.exp()
    with say.catch("Trying to backward outside of the"):
        w.backward()


def row_097_release(torch: Any, say: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    z = y * y
    freed: list[bool] = []

    def look(grad: Any) -> None:
        try:
            _ = z.grad_fn._saved_self
            freed.append(False)
        except RuntimeError:
            freed.append(True)

    y.register_hook(look)
    z.sum().backward()
    say(freed)


def row_098_no_cycle(torch: Any, say: Any) -> None:
    class Exp(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            result = x.exp()
            ctx.save_for_backward(result)
            return result

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (result,) = ctx.saved_tensors
            return grad * result

    gc.disable()
    try:
        x = torch.ones(1, requires_grad=True)
        for make in (lambda: x.exp(), lambda: Exp.apply(x)):
            y = make()
            reference = weakref.ref(y)
            del y
            say(reference() is None)
    finally:
        gc.enable()
    y = Exp.apply(torch.zeros(1, requires_grad=True))
    y.backward()
    with say.catch("Trying to backward through the graph a second time"):
        y.backward()


def row_099_stream_options(torch: Any, say: Any) -> None:
    say(torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(True))
    say(torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(False))


def row_100_memory_budget(torch: Any, say: Any) -> None:
    with say.catch(""), torch.autograd.graph.region_activation_memory_budget(0.5):
        pass
