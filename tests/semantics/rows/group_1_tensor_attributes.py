"""Group 1: tensor and graph attributes."""

from __future__ import annotations

from typing import Any


def row_001_requires_grad(torch: Any, say: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    say((x + 1).requires_grad, torch.ones(2).mul(2).requires_grad)
    with torch.no_grad():
        say((x * 2).requires_grad)
    with say.catch("you can only change requires_grad flags of leaf variables."):
        y.requires_grad = False
    with say.catch("Only Tensors of floating point and complex dtype can require gradients"):
        torch.ones(2, dtype=torch.int64, requires_grad=True)
    with say.catch("only Tensors of floating point dtype can require gradients"):
        torch.ones(2, dtype=torch.int64).requires_grad_()


def row_002_requires_grad_in_place(torch: Any, say: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    y = (x * 3).sum()
    say(x.requires_grad_(False) is x)
    y.backward()
    say(x.grad is None)


def row_003_factories_ignore_grad_mode(torch: Any, say: Any) -> None:
    with torch.no_grad():
        x = torch.zeros(2, requires_grad=True)
    say(x.requires_grad, x.is_leaf)


def row_004_is_leaf(torch: Any, say: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    say(
        x.is_leaf,
        (x * 2).is_leaf,
        torch.ones(2).mul(2).is_leaf,
        x.to(torch.float64).is_leaf,
        x.to(torch.float32).is_leaf,
    )


def row_005_grad(torch: Any, say: Any) -> None:
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    say(x.grad)
    with say.warned("The .grad attribute of a Tensor that is not a leaf Tensor is being accessed"):
        say(y.grad)
    with say.catch("assigned grad expected to be a Tensor or None but got grad of type"):
        x.grad = 3
    with say.catch("attempting to assign a gradient of size '[2]' to a tensor of size '[3]'"):
        x.grad = torch.ones(2)
    with say.catch("attempting to assign a gradient with dtype"):
        x.grad = torch.ones(3, dtype=torch.float64)
    with say.catch("can't assign Variable as its own grad"):
        x.grad = x
    x.grad = torch.ones(3)
    del x.grad
    say(x.grad)


def row_006_grad_dtype(torch: Any, say: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    say(x.grad_dtype)
    x.grad_dtype = None
    say(x.grad_dtype)
    with say.catch("grad_dtype can only be accessed on leaf tensors."):
        _ = (x * 2).grad_dtype


def row_007_grad_fn(torch: Any, say: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    say(x.grad_fn, (x * 2).grad_fn.name(), repr(x * 2), repr(x))
    base = x * 1
    view = base[:1]
    say(view.grad_fn.name())
    base.add_(1)
    say(view.grad_fn.name(), view._version)
    with torch.no_grad():
        hidden = base.view(-1)
    base.mul_(2)
    say(repr(hidden))


def row_008_node_names(torch: Any, say: Any) -> None:
    x = torch.ones(2, 2, requires_grad=True)
    y = torch.ones(2, 2, requires_grad=True)
    results = {
        "pow scalar": x**2, "pow tensor": x**y, "pow of scalar": 2**x, "rsub": 2 - x, "rdiv": 2 / x, "max": x.max(),
        "max dim": x.max(0)[0], "to": x.double(), "norm": x.norm(), "sum dim": x.sum(0), "mean": x.mean(),
        "mm": x @ y, "t": x.t(), "view": x.view(4), "reshape": x.reshape(4), "getitem": x[0], "slice": x[:, :1],
        "none": x[None], "index": x[torch.tensor([0])], "cat": torch.cat([x, y]), "stack": torch.stack([x, y]),
        "relu": x.relu(), "softmax": x.softmax(0), "log_softmax": x.log_softmax(0), "clone": x.clone(),
        "exp": x.exp(), "abs": x.abs(), "clamp": x.clamp(min=0), "where": torch.where(x > 0, x, y), "neg": -x,
        "unbind": x.unbind()[0], "split": x.split(1)[0], "chunk": x.chunk(2)[0], "squeeze": x.squeeze(),
        "unsqueeze": x.unsqueeze(0), "permute": x.permute(1, 0), "expand": x.expand(2, 2, 2), "std": x.std(),
        "var": x.var(), "prod": x.prod(), "cumsum": x.cumsum(0), "floor": x.floor(), "sort": x.sort()[0],
        "contiguous": x.t().contiguous(), "repeat": x.repeat(2, 2), "tril": x.tril(), "logsumexp": x.logsumexp(0),
        "linear": torch.nn.functional.linear(x, y), "linear bias": torch.nn.functional.linear(x, y, x[0]),
    }  # fmt: skip
    for name, result in results.items():
        say(name, result.grad_fn.name())


def row_009_output_nr(torch: Any, say: Any) -> None:
    x = torch.ones(3, requires_grad=True)
    say([part.output_nr for part in x.unbind()])


def row_010_version(torch: Any, say: Any) -> None:
    x = torch.zeros(4)
    view, alias = x[:2], x.detach()
    x.add_(1)
    view.mul_(2)
    alias.zero_()
    say(x._version, view._version, alias._version)
    with torch.inference_mode():
        y = torch.zeros(2)
    with say.catch("Inference tensors do not track version counter."):
        _ = y._version


def row_011_base(torch: Any, say: Any) -> None:
    x = torch.zeros(4, 4)
    say(x[0]._base is x, x[0][1:]._base is x, x._base, x[0]._is_view(), x.detach()._is_view())


def row_012_retain_grad(torch: Any, say: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    y.retain_grad()
    y.retain_grad()
    say(y.retains_grad)
    y.sum().backward()
    say(y.grad, x.grad)
    x.retain_grad()
    say(x.retains_grad)
    with say.catch("can't retain_grad on Tensor that has requires_grad=False"):
        torch.ones(1).retain_grad()
    z = torch.ones(2, requires_grad=True) * 1
    z.retain_grad()
    z.mul_(3)
    z.sum().backward()
    say(z.grad)


def row_013_detach(torch: Any, say: Any) -> None:
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    z = y.detach()
    z.add_(1)
    say(y._version, z.requires_grad)
    with say.catch("Can't detach views in-place. Use detach() instead"):
        (x * 1)[:2].detach_()
    a = x * 2
    b = a * a
    a.detach_()
    say(a.requires_grad, a.is_leaf)
    with say.catch("Trying to use a saved tensor that has been detached in-place"):
        b.sum().backward()


def row_014_data(torch: Any, say: Any) -> None:
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    y.data.zero_()
    say(y._version)
    y.sum().backward()
    say(x.grad)
    x.data = torch.ones(2)
    say(x.shape)
    with say.catch("data set to a tensor that requires gradients must be floating point or complex dtype"):
        x.data = torch.ones(2, dtype=torch.int64)
    with say.catch("Variable data has to be a tensor, but got int"):
        x.data = 3


def row_015_clone(torch: Any, say: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    y = x.clone()
    say(y.grad_fn.name())
    (y * 3).sum().backward()
    say(x.grad)


def row_016_numbers(torch: Any, say: Any) -> None:
    x = torch.tensor(2.5, requires_grad=True)
    with say.warned("Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior."):
        say(float(x))
    say(x.item(), bool(x))
    with say.catch("Boolean value of Tensor with more than one value is ambiguous"):
        bool(torch.ones(2))


def row_017_is_inference(torch: Any, say: Any) -> None:
    with torch.inference_mode():
        x = torch.ones(1)
        y = x + 1
    say(x.is_inference(), y.is_inference(), torch.ones(1).is_inference())


def row_018_copy_construction(torch: Any, say: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    with say.warned("To copy construct from a tensor"):
        y = torch.tensor(x)
    say(y.requires_grad, torch.asarray(x).requires_grad)


def row_019_variable(torch: Any, say: Any) -> None:
    from importlib import import_module

    variable = import_module(f"{torch.__name__}.autograd").Variable
    x = variable(torch.ones(2), requires_grad=True)
    say(isinstance(x, torch.Tensor), isinstance(x, variable), x.requires_grad)
