"""Group 4: hooks."""

from __future__ import annotations

from typing import Any


def row_054_tensor_hook(torch: Any, say: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    order: list[str] = []
    y.register_hook(lambda g: order.append("tensor"))
    y.grad_fn.register_prehook(lambda g: order.append("pre"))
    x.register_hook(lambda g: g * 5)
    y.sum().backward()
    say(order, x.grad)
    with say.catch("cannot register a hook on a tensor that doesn't require gradient"):
        torch.ones(1).register_hook(lambda g: g)
    for result, phrase in [
        (3, "expected Variable, but hook returned 'int'"),
        (torch.ones(3), "has changed the size of value"),
        (
            torch.ones(2, dtype=torch.float64),
            "has changed the type of value (was torch.FloatTensor got torch.DoubleTensor)",
        ),
    ]:
        z = torch.ones(2, requires_grad=True)
        z.register_hook(lambda g, r=result: r)
        with say.catch(phrase):
            (z * 2).sum().backward()


def row_055_order_and_removal(torch: Any, say: Any) -> None:
    x = torch.ones(1, requires_grad=True)
    order: list[str] = []
    first = x.register_hook(lambda g: order.append("first"))
    x.register_hook(lambda g: order.append("second"))
    x.register_hook(lambda g: g + 1)
    x.register_hook(lambda g: g * 10)
    (x * 1).backward()
    say(order, x.grad)
    first.remove()
    first.remove()
    order.clear()
    with x.register_hook(lambda g: order.append("inside")):
        (x * 1).backward()
    (x * 1).backward()
    say(order)


def row_056_hooks_and_in_place(torch: Any, say: Any) -> None:
    x = torch.ones(1, requires_grad=True)
    y = x * 1
    seen: list[Any] = []
    y.register_hook(lambda g: seen.append(("before", g.item())))
    y.mul_(3)
    y.register_hook(lambda g: seen.append(("after", g.item())))
    (y * 2).backward()
    say(seen)


def row_057_post_accumulate(torch: Any, say: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    seen: list[Any] = []
    handle = x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.tolist()))
    (x * 2).sum().backward()
    torch.autograd.grad((x * 2).sum(), x)
    say(seen)
    handle.remove()
    (x * 2).sum().backward()
    say(len(seen))
    with say.catch("post accumulate grad hooks cannot be registered on non-leaf tensors"):
        (x * 2).register_post_accumulate_grad_hook(lambda p: None)

    def clear(p: Any) -> None:
        p.grad = None

    x.register_post_accumulate_grad_hook(clear)
    (x * 2).sum().backward()
    say(x.grad)


def row_058_node_hook(torch: Any, say: Any) -> None:
    x, y = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    z = x * y
    seen: list[Any] = []
    z.grad_fn.register_hook(lambda gi, go: seen.append((len(gi), len(go))))
    z.grad_fn.register_hook(lambda gi, go: (gi[0] * 7, gi[1]))
    z.backward()
    say(seen, x.grad, y.grad)
    z = x * y
    z.grad_fn.register_hook(lambda gi, go: (gi[0],))
    with say.catch("has returned an incorrect number of values (got 1, but expected 2)"):
        z.backward()


def row_059_node_prehook(torch: Any, say: Any) -> None:
    x = torch.ones(1, requires_grad=True)
    y = x * 2
    y.grad_fn.register_prehook(lambda go: (go[0] * 3,))
    y.backward()
    say(x.grad)


def row_060_accumulator_hooks(torch: Any, say: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    node = x.expand_as(x).grad_fn.next_functions[0][0]
    seen: list[Any] = []
    node.register_hook(lambda gi, go: seen.append(("post", gi, x.grad is not None)))
    node.register_prehook(lambda go: seen.append(("pre", x.grad is not None)))
    (x * 2).sum().backward()
    say(seen)


def row_061_multi_grad_hook(torch: Any, say: Any) -> None:
    register = torch.autograd.graph.register_multi_grad_hook
    a, b, c = (torch.ones(1, requires_grad=True) for _ in range(3))
    seen: list[Any] = []
    register((a, b, c), lambda grads: seen.append([g is None for g in grads]))
    (a * b).backward()
    (a * b * c).backward()
    say(seen)
    first: list[Any] = []
    register((a, b), lambda g: first.append(1), mode="any")
    (a * b).backward()
    say(len(first))
    with say.catch("Expects mode to be one of ('all', 'any')"):
        register((a,), lambda g: None, mode="none")


def row_062_hooks_under_grad(torch: Any, say: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    seen: list[str] = []
    x.register_hook(lambda g: g * 2)
    x.register_post_accumulate_grad_hook(lambda p: seen.append("post"))
    say(torch.autograd.grad((x * 3).sum(), x), seen)


def row_065_queue_callback(torch: Any, say: Any) -> None:
    from importlib import import_module

    variable = import_module(f"{torch.__name__}.autograd").Variable
    x = torch.ones(1, requires_grad=True)
    y = x * 2
    order: list[str] = []

    def hook(grad: Any) -> None:
        variable._execution_engine.queue_callback(lambda: order.append("end"))
        order.append("hook")

    y.register_hook(hook)
    x.register_hook(lambda g: order.append("leaf"))
    y.backward()
    say(order)
    with say.catch("Final callbacks can only be installed during backward pass."):
        variable._execution_engine.queue_callback(lambda: None)


def row_063_module_backward_hooks(torch: Any, say: Any) -> None:
    module = torch.nn.Linear(2, 1, bias=False)
    seen: list[Any] = []
    module.register_full_backward_hook(lambda m, gi, go: seen.append(("after", len(gi), tuple(go[0].shape))))
    module.register_full_backward_pre_hook(lambda m, go: seen.append(("before", len(go))))
    x = torch.ones(3, 2, requires_grad=True)
    y = module(x)
    y.sum().backward()
    say(seen)
    y = module(x)
    with say.catch("is a view and is being modified inplace"):
        y.mul_(2)
    module = torch.nn.Linear(2, 1, bias=False)
    module.register_full_backward_hook(lambda m, gi, go: (gi[0] * 10,))
    x.grad = None
    with torch.no_grad():
        module.weight.fill_(1.0)
    module(x).sum().backward()
    say(x.grad)


def row_064_module_forward_hooks(torch: Any, say: Any) -> None:
    module = torch.nn.Identity()
    order: list[str] = []
    module.register_forward_pre_hook(lambda m, args: order.append("pre"))
    handle = module.register_forward_hook(lambda m, args, out: out * 2)
    say(module(torch.ones(1)), order)
    handle.remove()
    say(module(torch.ones(1)))
    handle = torch.nn.modules.module.register_module_forward_hook(lambda m, a, o: order.append("global"))
    module(torch.ones(1))
    handle.remove()
    say(order)


def row_066_hooks_are_not_serialized(torch: Any, say: Any) -> None:
    import pickle

    x = torch.ones(1, requires_grad=True)
    x.register_hook(lambda g: g)
    with say.warned("will not be serialized"):
        pickle.dumps(x)


def row_55_order_of_leaves(torch: Any, say: Any) -> None:
    seen: list[Any] = []
    for count in range(1, 8):
        leaves = [torch.ones(1, requires_grad=True) for _ in range(count)]
        for number, leaf in enumerate(leaves):
            leaf.register_hook(lambda grad, number=number: seen.append(number))
        torch.cat(leaves).sum().backward()
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.LayerNorm(2))
    for name, parameter in model.named_parameters():
        parameter.register_post_accumulate_grad_hook(lambda p, name=name: seen.append(name))
    model(torch.ones(1, 2))[0].sum().backward()
    say(seen)


def row_54_hooks_of_nodes_with_whole_numbers(torch: Any, say: Any) -> None:
    x = torch.tensor([[1.0, 3.0], [2.0, 0.5]], requires_grad=True)
    for values in (x.max(1).values, x.sort(1).values, x.topk(1).values):
        values.grad_fn.register_prehook(lambda grads: say("before", grads))
        values.grad_fn.register_hook(lambda into, out: say("after", into, out))
        values.sum().backward()


def row_43_inputs_that_are_no_leaves(torch: Any, say: Any) -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * x
    y.grad_fn.register_hook(lambda into, out: say(into, out))
    y.exp().sum().backward(inputs=[y])
    say(y.retains_grad, y.grad, x.grad)
    with say.catch("Trying to backward through the graph a second time"):
        y.sum().backward()
    with say.catch("can't retain_grad on Tensor that has requires_grad=False"):
        (x * 2).sum().backward(inputs=[torch.ones(1)])
