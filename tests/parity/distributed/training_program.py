"""Data-parallel training on two ranks; run with PyTorch over gloo and with pullback. Rank 0 prints losses and sums."""

import json
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
rank = dist.get_rank()
found: dict[str, Any] = {}


class Branches(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x: Any) -> Any:
        return self.second(self.first(x)) if x.sum() > 0 else self.first(x)


def train(
    name: Any,
    module: Any,
    steps: Any = 6,
    optimizer: Any = torch.optim.SGD,
    hook: Any = None,
    accumulate: Any = 1,
    uneven: Any = False,
    **options: Any,
) -> Any:
    torch.manual_seed(0)
    module = module()
    module = DistributedDataParallel(module, **options)
    if hook is not None:
        module.register_comm_hook(None, hook)
    if optimizer is ZeroRedundancyOptimizer:
        optimizer = ZeroRedundancyOptimizer(module.parameters(), torch.optim.Adam, lr=0.01)
    else:
        optimizer = optimizer(module.parameters(), lr=0.05)
    data = TensorDataset(torch.randn(96, 6), torch.randn(96, 6))
    loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data, seed=3))
    losses = []

    def run() -> Any:
        for step, (x, y) in enumerate(loader):
            if step == steps + (2 * rank if uneven else 0):
                break
            if accumulate > 1 and step % accumulate:
                with module.no_sync():
                    nn.functional.mse_loss(module(x), y).backward()
                continue
            loss = nn.functional.mse_loss(module(x), y)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(module.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())

    if uneven:
        with module.join():
            run()
    else:
        run()
    both = [None, None]
    dist.all_gather_object(both, losses)
    found[name] = {
        "losses": both,
        "sums": [p.sum().item() for p in module.parameters()],
        "names": list(module.state_dict()),
        "buffers": [b.double().sum().item() for b in module.buffers()],
    }


def mlp() -> Any:
    return nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.BatchNorm1d(16), nn.Linear(16, 6))


train("plain", mlp)
train("adam", mlp, optimizer=torch.optim.AdamW)
train("views", mlp, gradient_as_bucket_view=True)
train("small buckets", mlp, bucket_cap_mb=0.0005)
train("static", mlp, static_graph=True)
train("accumulated", mlp, accumulate=2)
train("unused", Branches, find_unused_parameters=True)
train("unused and accumulated", Branches, accumulate=2, find_unused_parameters=True)
train("float16", mlp, hook=default_hooks.fp16_compress_hook)
train("zero", mlp, optimizer=ZeroRedundancyOptimizer)
train("uneven", lambda: nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 6)), steps=3, uneven=True)
if rank == 0:
    print("FOUND " + json.dumps(found))
dist.destroy_process_group()
