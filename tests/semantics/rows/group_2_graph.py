"""Group 2: nodes and edges."""

from __future__ import annotations

import gc
import pickle
import weakref
from typing import Any


def row_020_node_type(torch: Any, say: Any) -> None:
    node_type = torch.autograd.graph.Node
    x = torch.ones(2, requires_grad=True)
    node = (x * 2).grad_fn
    say(isinstance(node, node_type), issubclass(type(node), node_type), node.name(), node.metadata)
    node.metadata["key"] = 1
    say(node.metadata)


def row_021_next_functions(torch: Any, say: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 2 + 3
    say([(n.name() if n else None, i) for n, i in y.grad_fn.next_functions])
    (mul, _), _ = y.grad_fn.next_functions
    say([(n.name() if n else None, i) for n, i in mul.next_functions])
    a, b = (x * 1).unbind()
    say([(n.name(), i) for n, i in (b * a).grad_fn.next_functions])


def row_022_accumulate_grad(torch: Any, say: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    y, z = x * 2, x * 3
    first = y.grad_fn.next_functions[0][0]
    second = z.grad_fn.next_functions[0][0]
    say(first is second, first.variable is x, first._sequence_nr() == 2**64 - 1, type(first).__name__)


def row_023_sequence_numbers(torch: Any, say: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    a = x * 2
    b = x * 3
    say(b.grad_fn._sequence_nr() > a.grad_fn._sequence_nr())
    order: list[str] = []
    a.register_hook(lambda g: order.append("a"))
    b.register_hook(lambda g: order.append("b"))
    (a + b).sum().backward()
    say(order)


def row_024_saved_values(torch: Any, say: Any) -> None:
    x = torch.tensor([2.0], requires_grad=True)
    y = torch.tensor([3.0], requires_grad=True)
    product = x * y
    say(product.grad_fn._saved_self is x, product.grad_fn._saved_other is y)
    power = x**2
    say(power.grad_fn._saved_exponent, power.grad_fn._saved_self is x)
    result = x.exp()
    saved = result.grad_fn._saved_result
    say(saved is result, saved.grad_fn is result.grad_fn, saved)
    result.backward()
    with say.catch(
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
        "been freed)"
    ):
        _ = result.grad_fn._saved_result


def row_025_calling_a_node(torch: Any, say: Any) -> None:
    x = torch.tensor([2.0], requires_grad=True)
    y = torch.tensor([3.0])
    say((x * y).grad_fn(torch.tensor([10.0])))
    say((x * 3).exp().grad_fn(torch.tensor([1.0])))


def row_026_input_metadata(torch: Any, say: Any) -> None:
    x = torch.ones(2, 3, requires_grad=True)
    (metadata,) = (x * 2).grad_fn._input_metadata
    say(tuple(metadata.shape), metadata.dtype, metadata.device)


def row_027_gradient_edge(torch: Any, say: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    edge = torch.autograd.graph.get_gradient_edge(y)
    say(edge.node is y.grad_fn, edge.output_nr)
    say(torch.autograd.grad((y * y).sum(), edge, retain_graph=True))
    say(torch.autograd.grad(edge, x, torch.ones(2), retain_graph=True))
    torch.autograd.backward(edge, torch.ones(2))
    say(x.grad)
    with say.catch("It is not possible to get the gradient edge for a Tensor that does not require gradients"):
        torch.autograd.graph.get_gradient_edge(torch.ones(1))


def row_028_increment_version(torch: Any, say: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    torch.autograd.graph.increment_version(y)
    say(y._version)
    with say.catch("has been modified by an inplace operation"):
        y.sum().backward()


def row_029_deep_graph(torch: Any, say: Any) -> None:
    x = torch.ones(1, requires_grad=True)
    y = x
    for _ in range(50_000):
        y = y + 1
    y.backward()
    say(x.grad)
    del y


def row_030_current_node(torch: Any, say: Any) -> None:
    x = torch.ones(1, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: say(torch._C._current_autograd_node().name()))
    y.backward()


def row_031_special_nodes(torch: Any, say: Any) -> None:
    once_differentiable = torch.autograd.function.once_differentiable

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        @once_differentiable
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2

    x = torch.ones(1, requires_grad=True)
    v = torch.ones(1, requires_grad=True)
    (g,) = torch.autograd.grad(Double.apply(x), x, v, create_graph=True)
    say(g.grad_fn.name())
    base = torch.ones(2, requires_grad=True) * 1
    base[0].mul_(2)
    say(base.grad_fn.name(), type(base.grad_fn).__name__)


def row_032_node_references(torch: Any, say: Any) -> None:
    node = (torch.ones(1, requires_grad=True) * 2).grad_fn
    with say.catch("cannot create weak reference to"):
        weakref.ref(node)
    with say.catch("cannot pickle 'MulBackward0' object"):
        pickle.dumps(node)


def row_164_graph_is_freed_by_reference_counts(torch: Any, say: Any) -> None:
    gc.disable()
    try:
        x = torch.ones(3, requires_grad=True)
        y = x.exp()
        reference = weakref.ref(y)
        z = (y * x).sum()
        del y
        say(reference() is None)
        del z
        say(reference() is None)
    finally:
        gc.enable()
