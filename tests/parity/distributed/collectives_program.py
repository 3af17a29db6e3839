"""Collectives and their errors on two ranks; run with PyTorch over gloo and with pullback. Rank 0 prints what it has."""

import json
import os
from typing import Any

import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
found: dict[str, Any] = {}


def note(name: Any, action: Any) -> Any:
    try:
        value = action()
    except Exception as error:
        value = f"{type(error).__mro__[-4 if isinstance(error, RuntimeError) else 0].__name__}: {str(error)[:40]}"
    found[name] = value


def reduced(dtype: Any, op: Any) -> Any:
    values = torch.tensor([rank, 1, rank + 1]).to(dtype)
    dist.all_reduce(values, op=getattr(dist.ReduceOp, op))
    return str(values)


for dtype in ("bool", "uint8", "int8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64"):
    for op in ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR"):
        note(f"all_reduce {dtype} {op}", lambda dtype=dtype, op=op: reduced(getattr(torch, dtype), op))


def turned() -> Any:  # dense memory in another order; PyTorch over gloo mixes up tensors with gaps
    values = torch.arange(6.0).reshape(2, 3).t()
    dist.all_reduce(values)
    return values.tolist(), values.stride()


def handled() -> Any:
    values = torch.ones(2)
    work = dist.all_reduce(values, async_op=True)
    return work.wait(), work.is_completed(), work.is_success(), [t.tolist() for t in work.get_future().wait()]


def gathered() -> Any:
    parts = [torch.zeros(2), torch.zeros(2)]
    dist.all_gather(parts, torch.full((2,), float(rank)))
    return [part.tolist() for part in parts]


def scattered() -> Any:
    own = torch.zeros(2)
    dist.scatter(own, [torch.ones(2), torch.ones(2) * 2] if rank == 0 else None, src=0)
    reduced = torch.zeros(2)
    dist.reduce_scatter(reduced, [torch.ones(2), torch.ones(2) * 2])
    return own.tolist(), reduced.tolist()


def exchanged() -> Any:
    output = torch.zeros(3)
    sizes = ([1, 2], [1, 2]) if rank == 0 else ([2, 1], [2, 1])
    dist.all_to_all_single(output, torch.arange(3.0) + 10 * rank, *sizes)
    return output.tolist()


def messages() -> Any:
    values = torch.zeros(2)
    if rank == 0:
        dist.send(torch.ones(2), 1)
        return dist.recv(values, 1), values.tolist()
    dist.recv(values, 0)
    dist.send(values * 3, 0)
    return None


def objects() -> Any:
    every, one = [None, None], [{"a": 1}, "b"] if rank == 0 else [None, None]
    dist.all_gather_object(every, {"rank": rank})
    dist.broadcast_object_list(one, src=0)
    return every, one


def differentiated() -> Any:
    import torch.distributed.nn.functional as functional

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = functional.all_reduce(x * (rank + 1))
    z = functional.all_gather(y * x)[1 - rank]
    (z.sum() * (rank + 1)).backward()
    return y.tolist(), z.tolist(), x.grad.tolist()


def groups() -> Any:
    second = dist.new_group([1])
    return (
        dist.get_rank(second),
        dist.get_world_size(second),
        repr(second),
        dist.get_process_group_ranks(dist.group.WORLD),
    )


for action in (turned, handled, gathered, scattered, exchanged, messages, objects, differentiated, groups):
    note(action.__name__, action)
note("no list", lambda: dist.all_reduce([torch.ones(1)]))
note("no root", lambda: dist.broadcast(torch.ones(1)))
note("itself", lambda: dist.send(torch.ones(1), rank))
note("list elsewhere", lambda: dist.scatter(torch.zeros(2), [torch.ones(2)] * 2, src=1 - rank))
note("twice", lambda: dist.init_process_group("gloo"))
note(
    "names",
    lambda: [repr(dist.ReduceOp.SUM), dist.get_backend(), dist.group.WORLD.group_name, os.environ["LOCAL_RANK"]],
)
if rank == 0:
    print("FOUND " + json.dumps(found))
dist.destroy_process_group()
