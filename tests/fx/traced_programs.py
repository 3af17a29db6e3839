"""Functions that make_fx traces, with their examples; `python -m tests.fx.traced_programs` records what PyTorch makes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

RECORD = Path(__file__).with_name("traced_programs.txt")


def programs(torch: Any) -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Each function with the arguments that it is traced on."""
    ones = torch.ones
    layer = torch.nn.Linear(2, 2)
    outside = ones(2)

    def write(x: Any) -> Any:
        x.add_(1)
        return x

    def step(parameters: Any, x: Any) -> Any:
        parameters = [p.detach().requires_grad_() for p in parameters]
        gradients = torch.autograd.grad(((x @ parameters[0]) ** 2).sum(), parameters)
        return [p - 0.1 * g for p, g in zip(parameters, gradients, strict=True)]

    def backward(x: Any) -> Any:
        x = x.detach().requires_grad_()
        x.exp().sum().backward()
        return x.grad

    def with_default(x: Any, y: float = 2.0) -> Any:
        return x * y

    return {
        "two results": (lambda x, y: (x + y, {"a": x * 2}), (ones(2), ones(2))),
        "containers": (lambda d: d["a"] + d["b"][0], ({"a": ones(2), "b": [ones(2)]},)),
        "a number": (with_default, (ones(2), 3.0)),
        "any number of arguments": (lambda *xs: xs[0] + xs[1], (ones(2), ones(2))),
        "a tensor from outside": (lambda x: x + outside + outside, (ones(2),)),
        "a new tensor": (lambda x: x + torch.tensor(3.0), (ones(2),)),
        "several results of one call": (lambda x: x.split(2)[1] + x.unbind(0)[0], (ones(4, 2),)),
        "writing to a copy": (lambda x: x.clone().add_(1), (ones(2),)),
        "writing to an argument": (write, (ones(2),)),
        "parameters from outside": (lambda x: layer(x), (ones(3, 2),)),
        "a module": (layer, (ones(3, 2),)),
        "zeros": (lambda x: torch.zeros(2) + 1, (ones(2),)),
        "values that are not tensors": (lambda x: (x, 3, None), (ones(2),)),
        "under vmap": (torch.vmap(lambda x: x.sin()), (ones(2, 3),)),
        "func.grad": (torch.func.grad(lambda x: x.sin().sum()), (ones(2),)),
        "func.grad of what saves its result": (torch.func.grad(lambda x: x.tanh().sum()), (ones(2),)),
        "a training step": (step, ([ones(2, 2)], ones(3, 2))),
        "backward": (backward, (ones(2),)),
        "dtypes": (lambda x: x.sum(dtype=torch.float64).to(torch.float32), (ones(2),)),
        "indexing": (lambda x: x[0] + x[:, None].sum(), (ones(2, 2),)),
        "reductions": (lambda x: (x.any(), x.all(), x.var(), x.amax(0)), (ones(2, 2),)),
    }


def main() -> None:
    """Write PyTorch's graphs into the record."""
    import torch
    from torch.fx.experimental.proxy_tensor import make_fx

    parts = [
        f"## {name}\n{make_fx(function)(*args).code.strip()}\n" for name, (function, args) in programs(torch).items()
    ]
    RECORD.write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
