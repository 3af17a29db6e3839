"""Group 12: memory."""

from __future__ import annotations

from typing import Any


def _checkpoint(torch: Any) -> Any:
    from importlib import import_module

    return import_module(f"{torch.__name__}.utils.checkpoint")


def row_158_checkpoint(torch: Any, say: Any) -> None:
    checkpoint = _checkpoint(torch).checkpoint
    x = torch.tensor([0.3, 0.7], requires_grad=True)
    with say.warned("the use_reentrant parameter should be passed explicitly"):
        y = checkpoint(lambda x: (x.sin() * x).exp(), x)
    y.sum().backward()
    say(x.grad)
    with say.warned("None of the inputs have requires_grad=True. Gradients will be None"):
        checkpoint(lambda x: x * 2, torch.ones(1), use_reentrant=True)
    y = checkpoint(lambda x: x * 2, x, use_reentrant=True)
    with say.catch("incompatible with .grad() or passing an `inputs` parameter"):
        torch.autograd.grad(y.sum(), x)


def row_159_non_reentrant(torch: Any, say: Any) -> None:
    checkpoint = _checkpoint(torch).checkpoint
    runs: list[int] = []

    def region(x: Any, scale: float = 1.0) -> Any:
        y = (x.sin() * scale).exp()
        runs.append(len(runs))
        return y

    x = torch.tensor([0.3, 0.7], requires_grad=True)
    y = checkpoint(region, x, scale=2.0, use_reentrant=False)
    say(y.grad_fn.name())
    y.sum().backward()
    say(x.grad, len(runs))
    x.grad = None
    nested = checkpoint(lambda x: checkpoint(region, x * 2, use_reentrant=False), x, use_reentrant=False)
    nested.sum().backward()
    say(x.grad)
    say(torch.autograd.grad(checkpoint(region, x, use_reentrant=False).sum(), x))


def row_160_determinism(torch: Any, say: Any) -> None:
    module = _checkpoint(torch)
    x = torch.ones(20, requires_grad=True)
    torch.manual_seed(1)
    y = module.checkpoint(lambda x: torch.nn.functional.dropout(x * x, 0.5), x, use_reentrant=False)
    y.sum().backward()
    say(torch.equal((x.grad != 0), (y != 0)))
    calls = [0]

    def changes(x: Any) -> Any:
        calls[0] += 1
        return x.exp().sin() if calls[0] == 1 else x.exp()

    with say.catch("A different number of tensors was saved during the original forward and recomputation."):
        module.checkpoint(changes, x, use_reentrant=False).sum().backward()
    calls[0] = 0

    def reshapes(x: Any) -> Any:
        calls[0] += 1
        return x.exp().sum() if calls[0] == 1 else x[:2].exp().sum()

    with say.catch("have different metadata than during the forward pass"):
        module.checkpoint(reshapes, x, use_reentrant=False).backward()


def row_163_sequential(torch: Any, say: Any) -> None:
    module = _checkpoint(torch)
    x = torch.tensor([0.5], requires_grad=True)
    functions = [torch.sin, torch.exp, torch.tanh, torch.cos]
    y = module.checkpoint_sequential(functions, 2, x, use_reentrant=False)
    y.backward()
    say(y, x.grad)


def row_165_optimizer_in_backward(torch: Any, say: Any) -> None:
    parameters = [torch.ones(2, requires_grad=True) for _ in range(3)]
    optimizers = {p: torch.optim.SGD([p], lr=0.1) for p in parameters}

    def step(p: Any) -> None:
        optimizers[p].step()
        p.grad = None

    for p in parameters:
        p.register_post_accumulate_grad_hook(step)
    (parameters[0] * parameters[1] * parameters[2]).sum().backward()
    say([p.grad for p in parameters], parameters[0])


def row_161_debug(torch: Any, say: Any) -> None:
    module = _checkpoint(torch)
    calls = [0]

    def changes(x: Any) -> Any:
        calls[0] += 1
        return x.exp().sin() if calls[0] == 1 else x.exp()

    x = torch.ones(2, requires_grad=True)
    try:
        module.checkpoint(changes, x, use_reentrant=False, debug=True).sum().backward()
    except RuntimeError as error:
        say(type(error).__name__, "exp" in str(error), "sin" in str(error))


def row_162_selective(torch: Any, say: Any) -> None:
    module = _checkpoint(torch)
    say([policy.name for policy in module.CheckpointPolicy][:4])
    x = torch.tensor([[0.3, 0.7]], requires_grad=True)

    def policy(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
        return module.CheckpointPolicy.PREFER_RECOMPUTE

    def contexts() -> Any:
        return module.create_selective_checkpoint_contexts(policy)

    module.checkpoint(lambda x: (x @ x.t()).exp(), x, use_reentrant=False, context_fn=contexts).sum().backward()
    say(x.grad)


def row_166_offload(torch: Any, say: Any) -> None:
    x = torch.tensor([3.0], requires_grad=True)
    with torch.autograd.graph.save_on_cpu(pin_memory=False):
        y = x.exp() * x
    y.backward()
    say(x.grad)
