"""Copies between GPUs as recorded operations: the gradients go the opposite way."""

from __future__ import annotations

from typing import Any

from pullback.autograd.function import Function
from pullback.modes.user_warnings import warn_user
from pullback.nn.parallel import comm

__all__ = ["Broadcast", "Gather", "ReduceAddCoalesced", "Scatter"]


def _check_on_gpus(function: str, tensors: Any) -> None:
    if any(tensor.device.type == "cpu" for tensor in tensors):
        raise AssertionError(f"{function} function not implemented for CPU tensors")


class Broadcast(Function):
    """Copies of tensors on all GPUs, those of the first GPU first; gradients are added up."""

    @staticmethod
    def forward(ctx: Any, target_gpus: Any, *inputs: Any) -> Any:
        _check_on_gpus("Broadcast", inputs)
        ctx.count = len(inputs)
        if not inputs:
            return ()
        ctx.place = inputs[0].device
        rows = comm.broadcast_coalesced(inputs, target_gpus)
        ctx.mark_non_differentiable(
            *[row[n] for n, needed in enumerate(ctx.needs_input_grad[1:]) if not needed for row in rows]
        )
        return tuple([tensor for row in rows for tensor in row])

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None, *ReduceAddCoalesced.apply(ctx.place, ctx.count, *grads))


class ReduceAddCoalesced(Function):
    """The sums of `count` tensors over several GPUs; gradients are copied to all of them."""

    @staticmethod
    def forward(ctx: Any, destination: Any, count: int, *grads: Any) -> Any:
        ctx.places = [grads[n].device for n in range(0, len(grads), count)]
        return comm.reduce_add_coalesced([grads[n : n + count] for n in range(0, len(grads), count)], destination)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return (None, None, *Broadcast.apply(ctx.places, *grads))


class Gather(Function):
    """Tensors of several GPUs joined on one device; the gradient is scattered."""

    @staticmethod
    def forward(ctx: Any, target_device: Any, dim: int, *inputs: Any) -> Any:
        _check_on_gpus("Gather", inputs)
        ctx.places, ctx.dim = [tensor.device for tensor in inputs], dim
        ctx.are_numbers = all(tensor.dim() == 0 for tensor in inputs) and dim == 0
        if ctx.are_numbers:
            inputs = tuple([tensor.view(1) for tensor in inputs])
            warn_user(
                "Was asked to gather along dimension 0, but all input tensors were scalars; will instead unsqueeze and "
                "return a vector."
            )
        ctx.sizes = [tensor.size(dim) for tensor in inputs]
        return comm.gather(inputs, dim, target_device)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        parts = Scatter.apply(ctx.places, ctx.sizes, ctx.dim, grad)
        return (None, None, *([part[0] for part in parts] if ctx.are_numbers else parts))


class Scatter(Function):
    """Parts of a tensor, one on each GPU; the gradients are gathered."""

    @staticmethod
    def forward(ctx: Any, target_gpus: Any, chunk_sizes: Any, dim: int, input: Any) -> Any:
        ctx.dim, ctx.place = dim, input.device
        return comm.scatter(input, target_gpus, chunk_sizes, dim)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return None, None, None, Gather.apply(ctx.place, ctx.dim, *grads)
