"""What kernels ask of shapes, in PyTorch's words."""

from __future__ import annotations

from pullback.typing import Array, Dims, Shape


def check_broadcastable(shape: Shape, other: Shape) -> None:
    """Refuse two shapes that do not go together."""
    length = max(len(shape), len(other))
    first, second = (1,) * (length - len(shape)) + shape, (1,) * (length - len(other)) + other
    for dim in range(length - 1, -1, -1):
        if first[dim] != second[dim] and 1 not in (first[dim], second[dim]):
            raise RuntimeError(
                f"The size of tensor a ({second[dim]}) must match the size of tensor b ({first[dim]}) at non-singleton "
                f"dimension {dim}"
            )


def require_elements(name: str, input: Array, dim: Dims) -> None:
    """Refuse to reduce nothing to something that has no neutral element."""
    if input.size:
        return
    if dim is None or dim == ():
        raise RuntimeError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. "
            "Specify the reduction dim with the 'dim' argument."
        )
    for axis in dim:
        if input.ndim and input.shape[axis] == 0:
            raise IndexError(f"{name}(): Expected reduction dim {axis} to have non-zero size.")
