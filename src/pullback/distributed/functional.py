"""Collectives that gradients pass through, in both directions and as often as one likes.

Every one is linear, so its tangent is the same collective of the tangents, and its gradient is the transposed one:

    all_reduce      all_reduce             all_gather      reduce_scatter
    broadcast       reduce                 gather          scatter
    all_to_all      all_to_all             send            recv

All ranks of a group must call them in the same order, and run backward alike, since that communicates too. Functions take
tensors and return new ones. Only sums and means are differentiable.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pullback
from pullback.autograd.function import Function
from pullback.distributed import collectives, point_to_point
from pullback.distributed.process_group import group_of
from pullback.distributed.reduce_operation import RedOpType, ReduceOp, kind_of

__all__ = [
    "all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "recv", "reduce",
    "reduce_scatter", "scatter", "send",
]  # fmt: skip


def _check_linear(op: Any, *tensors: Any) -> None:
    """Refuse what has no gradient here, where one will be asked for."""
    asked = pullback.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
    if asked and kind_of(op) not in (RedOpType.SUM, RedOpType.AVG):
        raise NotImplementedError(
            f"gradients pass through sums and means of ranks, not through {kind_of(op)}: use ReduceOp.SUM or ReduceOp.AVG, "
            "or detach() the tensor"
        )


class _Linear(Function):
    """A linear map of the first argument; the others say how."""

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.how = inputs[1:]


class _AllReduce(_Linear):
    @staticmethod
    def forward(tensor: Any, op: Any, group: Any) -> Any:
        result = tensor.clone(memory_format=pullback.contiguous_format)
        collectives.all_reduce(result, op, group)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return _AllReduce.apply(grad, *ctx.how), None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Any, *_: Any) -> Any:
        return _AllReduce.apply(tangent, *ctx.how)


class _Broadcast(_Linear):
    @staticmethod
    def forward(tensor: Any, root: int, group: Any) -> Any:
        result = tensor.clone(memory_format=pullback.contiguous_format)
        collectives.broadcast(result, group=group, group_src=root)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return _Reduce.apply(grad, ReduceOp.SUM, *ctx.how), None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Any, *_: Any) -> Any:
        return _Broadcast.apply(tangent, *ctx.how)


class _Reduce(_Linear):
    """The sum on `root`; zeros elsewhere, which is what makes broadcasting its transpose."""

    @staticmethod
    def forward(tensor: Any, op: Any, root: int, group: Any) -> Any:
        result = tensor.clone(memory_format=pullback.contiguous_format)
        collectives.reduce(result, op=op, group=group, group_dst=root)
        return result if group_of(group).rank() == root else pullback.zeros_like(result)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        op, root, group = ctx.how
        shared = _Broadcast.apply(grad, root, group)
        return shared / group_of(group).size() if kind_of(op) is RedOpType.AVG else shared, None, None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Any, *_: Any) -> Any:
        return _Reduce.apply(tangent, *ctx.how)


class _AllGather(_Linear):
    """The tensors of all ranks, stacked."""

    @staticmethod
    def forward(tensor: Any, group: Any) -> Any:
        result = tensor.new_empty((group_of(group).size(), *tensor.shape))
        collectives.all_gather_into_tensor(result, tensor, group)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return _ReduceScatter.apply(grad, ReduceOp.SUM, *ctx.how), None

    @staticmethod
    def jvp(ctx: Any, tangent: Any, *_: Any) -> Any:
        return _AllGather.apply(tangent, *ctx.how)


class _ReduceScatter(_Linear):
    """Of stacked tensors, one for every rank, the sum of those for this rank."""

    @staticmethod
    def forward(stacked: Any, op: Any, group: Any) -> Any:
        result = stacked.new_empty(stacked.shape[1:])
        collectives.reduce_scatter_tensor(result, stacked, op, group)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        op, group = ctx.how
        gathered = _AllGather.apply(grad, group)
        return gathered / group_of(group).size() if kind_of(op) is RedOpType.AVG else gathered, None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Any, *_: Any) -> Any:
        return _ReduceScatter.apply(tangent, *ctx.how)


class _Gather(_Linear):
    """On `root` the tensors of all ranks, stacked; zeros elsewhere."""

    @staticmethod
    def forward(tensor: Any, root: int, group: Any) -> Any:
        members = group_of(group)
        result = tensor.new_zeros((members.size(), *tensor.shape))
        parts = list(result.unbind(0)) if members.rank() == root else None
        collectives.gather(tensor, parts, group=group, group_dst=root)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return _Scatter.apply(grad, *ctx.how), None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Any, *_: Any) -> Any:
        return _Gather.apply(tangent, *ctx.how)


class _Scatter(_Linear):
    """The tensor for this rank of those that `root` has stacked."""

    @staticmethod
    def forward(stacked: Any, root: int, group: Any) -> Any:
        result = stacked.new_empty(stacked.shape[1:])
        parts = [part.contiguous() for part in stacked.unbind(0)] if group_of(group).rank() == root else None
        collectives.scatter(result, parts, group=group, group_src=root)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return _Gather.apply(grad, *ctx.how), None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Any, *_: Any) -> Any:
        return _Scatter.apply(tangent, *ctx.how)


class _AllToAll(_Linear):
    """Rows for every rank, exchanged."""

    @staticmethod
    def forward(tensor: Any, received: Sequence[int], sent: Sequence[int], group: Any) -> Any:
        result = tensor.new_empty((sum(received), *tensor.shape[1:]))
        collectives.all_to_all_single(result, tensor, received, sent, group)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        received, sent, group = ctx.how
        return _AllToAll.apply(grad, sent, received, group), None, None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Any, *_: Any) -> Any:
        return _AllToAll.apply(tangent, *ctx.how)


class _Send(_Linear):
    """Send a tensor; the result is a 0 that carries the gradient back."""

    @staticmethod
    def forward(tensor: Any, dst: int, tag: int, group: Any) -> Any:
        point_to_point.send(tensor, group=group, tag=tag, group_dst=dst)
        return tensor.new_zeros(())

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.how = inputs[1:]
        ctx.like = inputs[0].detach()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return _Receive.apply(pullback.zeros_like(ctx.like) * grad, *ctx.how), None, None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Any, *_: Any) -> Any:
        return _Send.apply(tangent, *ctx.how)


class _Receive(_Linear):
    """Receive a tensor as large as the one given, whose gradient is 0."""

    @staticmethod
    def forward(like: Any, src: int, tag: int, group: Any) -> Any:
        result = pullback.empty_like(like, memory_format=pullback.contiguous_format)
        point_to_point.recv(result, group=group, tag=tag, group_src=src)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        carried = _Send.apply(grad.contiguous(), *ctx.how)
        return pullback.zeros_like(grad) + carried, None, None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Any, *_: Any) -> Any:
        return _Receive.apply(tangent, *ctx.how)


def all_reduce(tensor: Any, op: Any = ReduceOp.SUM, group: Any = None) -> Any:
    """The sum, or mean, of the tensors of all ranks.

    >>> import pullback
    >>> import pullback.distributed as dist
    >>> dist.init_process_group("gloo", rank=0, world_size=1)
    >>> x = pullback.tensor([1.0, 2.0], requires_grad=True)
    >>> all_reduce(x).sum().backward()
    >>> x.grad
    tensor([1., 1.])
    >>> dist.destroy_process_group()
    """
    _check_linear(op, tensor)
    return _AllReduce.apply(tensor, op, group)


def broadcast(tensor: Any, src: int, group: Any = None) -> Any:
    """The tensor of rank `src`; elsewhere `tensor` says which shape and dtype to expect."""
    return _Broadcast.apply(tensor, group_of(group).position(src), group)


def reduce(tensor: Any, dst: int, op: Any = ReduceOp.SUM, group: Any = None) -> Any:
    """On rank `dst` the sum, or mean, of the tensors of all ranks; zeros elsewhere."""
    _check_linear(op, tensor)
    return _Reduce.apply(tensor, op, group_of(group).position(dst), group)


def all_gather(tensor: Any, group: Any = None) -> tuple[Any, ...]:
    """The tensors of all ranks."""
    return tuple(_AllGather.apply(tensor, group).unbind(0))


def gather(tensor: Any, dst: int = 0, group: Any = None) -> tuple[Any, ...]:
    """On rank `dst` the tensors of all ranks; zeros elsewhere."""
    return tuple(_Gather.apply(tensor, group_of(group).position(dst), group).unbind(0))


def scatter(tensors: Sequence[Any], src: int = 0, group: Any = None) -> Any:
    """The tensor for this rank of those that rank `src` has; elsewhere they say which shape and dtype to expect."""
    return _Scatter.apply(pullback.stack(list(tensors)), group_of(group).position(src), group)


def reduce_scatter(input_list: Sequence[Any], op: Any = ReduceOp.SUM, group: Any = None) -> Any:
    """The sum, or mean, over all ranks of the tensors that are meant for this one."""
    _check_linear(op, *input_list)
    return _ReduceScatter.apply(pullback.stack(list(input_list)), op, group)


def all_to_all_single(
    tensor: Any, output_split_sizes: Sequence[int] | None = None, input_split_sizes: Sequence[int] | None = None,
    group: Any = None,
) -> Any:  # fmt: skip
    """The rows that all ranks have for this one; the i-th part of `tensor` goes to rank i."""
    size = group_of(group).size()
    even = [tensor.shape[0] // size] * size
    return _AllToAll.apply(tensor, list(output_split_sizes or even), list(input_split_sizes or even), group)


def all_to_all(output_like: Sequence[Any], tensors: Sequence[Any], group: Any = None) -> tuple[Any, ...]:
    """One tensor from every rank, for one tensor to every rank; `output_like` says how large they are."""
    received, sent = [each.numel() for each in output_like], [each.numel() for each in tensors]
    flat = _AllToAll.apply(pullback.cat([each.reshape(-1) for each in tensors]), received, sent, group)
    parts = flat.split(received)
    return tuple(part.reshape(like.shape) for part, like in zip(parts, output_like, strict=True))


def send(tensor: Any, dst: int, group: Any = None, tag: int = 0) -> Any:
    """Send to rank `dst`. Add the 0 that is returned to the loss of this rank: through it the gradient comes back."""
    return _Send.apply(tensor, group_of(group).position(dst), tag, group)


def recv(like: Any, src: int, group: Any = None, tag: int = 0) -> Any:
    """Receive from rank `src` a tensor as large as `like`, which must require grad for the gradient to be sent back."""
    return _Receive.apply(like, group_of(group).position(src), tag, group)
