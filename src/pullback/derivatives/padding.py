"""Rules of kernels/padding.py."""

from __future__ import annotations

from pullback.rules import F, Pullback, Shape, Tensor, general, linear, tangent, wrt


@general(out=False, structure="leading", found="torch")
def constant_pad_nd(grad: Tensor, input: Tensor, pad: Shape) -> Pullback:
    return wrt(input=F.constant_pad_nd(grad, F.opposite(pad), 0))


@tangent
def constant_pad_nd_tangent(input_tangent: Tensor, pad: Shape) -> Tensor:
    return F.constant_pad_nd(input_tangent, pad, 0)


@linear(
    node="ReflectionPad1DBackward0",
    out=False,
    structure="leading",
    backward="reflection_pad1d_backward(grad, input, padding)",
    autocast="float32",
    gradient_nodes="(grad, input)",
)
def reflection_pad1d(grad: Tensor, input: Tensor, padding: Shape) -> Pullback:
    return wrt(input=F.depending_on(F.edge_pad_back(grad, input.shape, padding, "reflect"), input))


@linear(
    node="ReplicationPad1DBackward0",
    out=False,
    structure="leading",
    backward="replication_pad1d_backward(grad, input, padding)",
    autocast="float32",
    gradient_nodes="(grad, input)",
)
def replication_pad1d(grad: Tensor, input: Tensor, padding: Shape) -> Pullback:
    return wrt(input=F.depending_on(F.edge_pad_back(grad, input.shape, padding, "replicate"), input))


@linear(
    node="ReflectionPad2DBackward0",
    out=False,
    structure="leading",
    backward="reflection_pad2d_backward(grad, input, padding)",
    autocast="float32",
    gradient_nodes="(grad, input)",
)
def reflection_pad2d(grad: Tensor, input: Tensor, padding: Shape) -> Pullback:
    return wrt(input=F.depending_on(F.edge_pad_back(grad, input.shape, padding, "reflect"), input))


@linear(
    node="ReplicationPad2DBackward0",
    out=False,
    structure="leading",
    backward="replication_pad2d_backward(grad, input, padding)",
    autocast="float32",
    gradient_nodes="(grad, input)",
)
def replication_pad2d(grad: Tensor, input: Tensor, padding: Shape) -> Pullback:
    return wrt(input=F.depending_on(F.edge_pad_back(grad, input.shape, padding, "replicate"), input))


@linear(
    node="ReflectionPad3DBackward0",
    out=False,
    structure="leading",
    backward="reflection_pad3d_backward(grad, input, padding)",
    gradient_nodes="(grad, input)",
)
def reflection_pad3d(grad: Tensor, input: Tensor, padding: Shape) -> Pullback:
    return wrt(input=F.depending_on(F.edge_pad_back(grad, input.shape, padding, "reflect"), input))


@linear(
    node="ReplicationPad3DBackward0",
    out=False,
    structure="leading",
    backward="replication_pad3d_backward(grad, input, padding)",
    autocast="float32",
    gradient_nodes="(grad, input)",
)
def replication_pad3d(grad: Tensor, input: Tensor, padding: Shape) -> Pullback:
    return wrt(input=F.depending_on(F.edge_pad_back(grad, input.shape, padding, "replicate"), input))


@linear(out=False, structure="leading")
def edge_pad(grad: Tensor, input: Tensor, pad: Shape, mode: str) -> Pullback:
    return wrt(input=F.edge_pad_back(grad, input.shape, pad, mode))


@linear(out=False, structure="leading")
def edge_pad_back(grad: Tensor, input: Tensor, pad: Shape, mode: str) -> Pullback:
    return wrt(input=F.edge_pad(grad, pad, mode))
