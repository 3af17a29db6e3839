"""Group 16: interop and serialization."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import numpy


def row_185_numpy(torch: Any, say: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    with say.catch("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."):
        x.numpy()
    say(x.detach().numpy().tolist(), x.numpy(force=True).tolist())
    memory = torch.zeros(2)
    memory.numpy()[0] = 7
    say(memory)


def row_186_array_protocol(torch: Any, say: Any) -> None:
    x = torch.tensor([0.0, 1.0])
    say(type(numpy.sin(x)).__name__, numpy.asarray(x).tolist(), numpy.add(x, x).tolist())
    with say.catch("Can't call numpy() on Tensor that requires grad"):
        numpy.sin(x.requires_grad_())


def row_187_dlpack(torch: Any, say: Any) -> None:
    x = torch.arange(4.0)
    y = numpy.from_dlpack(x)
    say(y.tolist())
    z = torch.from_dlpack(numpy.arange(3))
    say(z)
    with say.catch("Can't export tensors that require gradient, use tensor.detach()"):
        torch.ones(1, requires_grad=True).__dlpack__()


def row_189_pickle(torch: Any, say: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    (x * 3).sum().backward()
    for tensor in (x, y):
        again = pickle.loads(pickle.dumps(tensor))
        say(again, again.requires_grad, again.is_leaf, again.grad)
    buffer = io.BytesIO()
    torch.save({"x": x, "list": [1, torch.zeros(1)]}, buffer)
    buffer.seek(0)
    loaded = torch.load(buffer)
    say(loaded["x"], loaded["x"].requires_grad, loaded["list"])


def row_190_deepcopy(torch: Any, say: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    (x * 3).sum().backward()
    again = copy.deepcopy(x)
    say(again, again.requires_grad, again.grad)
    with say.catch("Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol"):
        copy.deepcopy(x * 2)
    base = torch.zeros(4)
    first, second = copy.deepcopy([base, base[:2]])
    first.add_(1)
    say(second)


def row_192_state_dict(torch: Any, say: Any) -> None:
    module = torch.nn.Linear(2, 1)
    say(
        [v.requires_grad for v in module.state_dict().values()],
        [v.requires_grad for v in module.state_dict(keep_vars=True).values()],
    )


def row_191_processes(torch: Any, say: Any) -> None:
    x = torch.ones(2)
    say(x.share_memory_() is x, x.is_shared())
    from multiprocessing.reduction import ForkingPickler

    __import__(f"{torch.__name__}.multiprocessing")
    y = torch.ones(1, requires_grad=True) * 2
    with say.catch("Cowardly refusing to serialize non-leaf tensor which requires_grad"):
        ForkingPickler.dumps(y)
