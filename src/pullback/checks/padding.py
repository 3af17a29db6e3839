"""What the kernels of kernels/padding.py ask of their arguments."""

from __future__ import annotations

from pullback.typing import Array, Scalar, Shape


def constant_pad_nd(input: Array, pad: Shape, value: Scalar = 0) -> None:
    lead = input.ndim - len(pad) // 2
    if lead < 0 or len(pad) % 2:
        raise RuntimeError(
            "Length of pad must be even and no more than twice the number of dimensions of the input. "
            f"Pad length is {len(pad)}while the input has {input.ndim}dimensions."
        )
    for d in range(lead, input.ndim):
        position = 2 * (input.ndim - 1 - d)
        before, after, size = pad[position], pad[position + 1], input.shape[d]
        if size + before + after < 0:
            raise RuntimeError(
                f"The input size {size}, plus negative padding {before} and {after} resulted in a negative output size, "
                f"which is invalid. Check dimension {d} of your input."
            )
        if size + min(before, 0) + min(after, 0) < 0:
            raise RuntimeError(
                f"narrow(): length must be non-negative. Paddings of {before} and {after} crop more than the size {size} "
                f"of dimension {d}"
            )
