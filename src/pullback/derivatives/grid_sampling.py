"""Rules of kernels/grid_sampling.py."""

from __future__ import annotations

from pullback.rules import F, Pullback, Shape, Tensor, general, linear, non_differentiable, self_adjoint, wrt

ON_FIRST_USE = True  # see Note [Families on first use]


@general(
    node="GridSampler2DBackward0",
    out=False,
    structure="samples",
    autocast="float32",
    found="torch",
    gradient_nodes="(grad, input, grid)",
)
def grid_sampler_2d(
    grad: Tensor, input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Pullback:
    return wrt(
        input=F.grid_sample_back_input(grad, input.shape, grid, interpolation_mode, padding_mode, align_corners),
        grid=F.grid_sample_back_grid(grad, input, grid, interpolation_mode, padding_mode, align_corners),
    )


@general(
    node="GridSampler3DBackward0",
    out=False,
    structure="samples",
    autocast="float32",
    found="torch",
    gradient_nodes="(grad, input, grid)",
)
def grid_sampler_3d(
    grad: Tensor, input: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Pullback:
    return wrt(
        input=F.grid_sample_back_input(grad, input.shape, grid, interpolation_mode, padding_mode, align_corners),
        grid=F.grid_sample_back_grid(grad, input, grid, interpolation_mode, padding_mode, align_corners),
    )


@self_adjoint(out=False, structure="samples")
def grid_points(
    grad: Tensor, input: Tensor, sizes: Shape, mode: int, padding_mode: int, align_corners: bool
) -> Pullback:
    return wrt(input=grad * F.slopes_of_points(input, sizes, mode, padding_mode, align_corners))


@non_differentiable(out=False, structure="samples")
def grid_slopes(input: Tensor, sizes: Shape, mode: int, padding_mode: int, align_corners: bool) -> None: ...


@general(out=False, structure="samples")
def reflected_slopes(
    grad: Tensor, input: Tensor, sizes: Shape, mode: int, padding_mode: int, align_corners: bool
) -> Pullback:
    return wrt(input=F.zeros_of(grad))


@non_differentiable(out=False, structure="samples")
def point_positions(
    input: Tensor, sizes: Shape, offsets: Shape, mode: int, padding_mode: int, align_corners: bool
) -> None: ...


@linear(out=False, structure="samples")
def take_points(grad: Tensor, input: Tensor, positions: Tensor) -> Pullback:
    return wrt(input=F.put_points(grad, positions, input.shape[2:]))


@linear(out=False, structure="samples")
def put_points(grad: Tensor, input: Tensor, positions: Tensor) -> Pullback:
    return wrt(input=F.take_points(grad, positions))


@linear(out=False, found="torch")
def affine_grid_generator(grad: Tensor, theta: Tensor, size: Shape, align_corners: bool) -> Pullback:
    return wrt(theta=F.affine_grid_back(grad, size, align_corners))


@linear(out=False)
def affine_grid_back(grad: Tensor, input: Tensor, size: Shape, align_corners: bool) -> Pullback:
    return wrt(input=F.affine_grid_generator(grad, size, align_corners))
