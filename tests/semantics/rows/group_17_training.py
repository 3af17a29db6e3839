"""Group 17: training-loop essentials."""

from __future__ import annotations

from typing import Any


def row_193_modules(torch: Any, say: Any) -> None:
    module = torch.nn.Linear(2, 1)
    say(module.weight.is_leaf, isinstance(module.weight, torch.nn.Parameter))
    with say.catch("cannot assign 'torch.FloatTensor' as parameter 'weight' (torch.nn.Parameter or None expected)"):
        module.weight = torch.ones(1, 2)


def row_194_optimizers(torch: Any, say: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    with say.catch("can't optimize a non-leaf Tensor"):
        torch.optim.SGD([x * 2], lr=0.1)
    with say.catch("optimizer got an empty parameter list"):
        torch.optim.SGD([], lr=0.1)
    with say.catch("params argument given to the optimizer should be an iterable"):
        torch.optim.SGD(x, lr=0.1)
    with say.catch("Invalid learning rate: -1"):
        torch.optim.SGD([x], lr=-1)
    for name in ("SGD", "Adam", "AdamW", "RMSprop", "Adagrad"):
        p = torch.tensor([1.0, 2.0], requires_grad=True)
        optimizer = getattr(torch.optim, name)([p], lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            (p * p).sum().backward()
            optimizer.step()
        say(name, p, p._version > 0)


def row_195_zero_grad(torch: Any, say: Any) -> None:
    p = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([p], lr=0.1)
    p.sum().backward()
    optimizer.zero_grad()
    say(p.grad)
    p.sum().backward()
    optimizer.zero_grad(set_to_none=False)
    say(p.grad)


def row_196_clipping(torch: Any, say: Any) -> None:
    p = torch.ones(2, requires_grad=True)
    (p * torch.tensor([3.0, 4.0])).sum().backward()
    say(torch.nn.utils.clip_grad_norm_([p], 1.0), p.grad)
    p.grad = torch.tensor([3.0, -4.0])
    torch.nn.utils.clip_grad_value_([p], 2.0)
    say(p.grad, torch.nn.utils.clip_grad_norm_([torch.ones(1, requires_grad=True)], 1.0))


def row_198_modes(torch: Any, say: Any) -> None:
    torch.manual_seed(0)
    layer = torch.nn.Dropout(0.5)
    say(layer(torch.ones(6)))
    layer.eval()
    say(layer(torch.ones(6)))
    norm = torch.nn.BatchNorm1d(2)
    say(norm(torch.tensor([[1.0, 2.0], [3.0, 6.0]])), norm.running_mean, norm.running_var)


def row_200_parameter_vectors(torch: Any, say: Any) -> None:
    parameters = [torch.ones(2, requires_grad=True), torch.zeros(1, requires_grad=True)]
    vector = torch.nn.utils.parameters_to_vector(parameters)
    say(vector, vector.grad_fn.name())
    torch.nn.utils.vector_to_parameters(torch.arange(3.0), parameters)
    say(parameters)


def row_197_differentiable_step(torch: Any, say: Any) -> None:
    w = torch.tensor([1.0], requires_grad=True)
    rate = torch.tensor(0.1, requires_grad=True)
    p = w * 1
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1, differentiable=True)
    say(optimizer.defaults["differentiable"], rate.requires_grad, p.requires_grad)


def row_199_step_hooks(torch: Any, say: Any) -> None:
    p = torch.ones(1, requires_grad=True)
    optimizer = torch.optim.SGD([p], lr=0.1)
    order: list[str] = []
    optimizer.register_step_pre_hook(lambda o, a, k: order.append("pre"))
    handle = optimizer.register_step_post_hook(lambda o, a, k: order.append("post"))
    p.sum().backward()
    optimizer.step()
    handle.remove()
    optimizer.step()
    say(order, p)
