"""Padding in all modes."""

from __future__ import annotations

from typing import Any

import pullback.generated as G
from pullback.errors import wrong_type
from pullback.functions.memory_formats import in_format_of
from pullback.tensor.arguments import as_shape
from pullback.tensor.tensor import Tensor
from pullback.typing import Shape

_NAMES = {"reflect": "reflection_pad", "replicate": "replication_pad"}


def pad(input: Tensor, pad: Any, mode: str = "constant", value: float | None = None) -> Tensor:
    """Pad the last dimensions; `pad` is (before, after) of the last one, then of the one before it, and so on.

    `mode` is 'constant' (with `value`), 'reflect', 'replicate' or 'circular'; negative numbers crop.

    >>> import pullback
    >>> pullback.nn.functional.pad(pullback.tensor([1.0, 2.0]), (1, 0))
    tensor([0., 1., 2.])
    """
    if isinstance(pad, int):
        raise wrong_type("pad", "pad", 2, "tuple of ints", pad)
    sizes = as_shape(pad)
    if len(sizes) % 2:
        raise RuntimeError(
            f"Padding length must be divisible by 2: (before, after) of each dimension; got {len(sizes)}"
        )
    if len(sizes) > 2 * input._array.ndim:
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(sizes)} and input of dimension {input._array.ndim}"
        )
    if mode == "constant":
        return in_format_of(input, G.constant_pad_nd(input, sizes, 0.0 if value is None else value))
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    if mode not in ("reflect", "replicate", "circular"):
        raise NotImplementedError(f"Unrecognised padding mode {mode}: 'constant', 'reflect', 'replicate' or 'circular'")
    dims = len(sizes) // 2
    if dims not in (1, 2, 3) or input._array.ndim not in (dims + 1, dims + 2):
        raise NotImplementedError(
            f"Padding size {len(sizes)} is not supported for {input._array.ndim}D input tensor. Modes other than "
            "'constant' pad the last dimension of 2D or 3D input, the last two of 3D or 4D, the last three of 4D or 5D."
        )
    _check(input, sizes, mode)
    if mode == "circular":
        if any(n < 0 for n in sizes):  # cropped first, so that what is cut off is not wrapped around
            input = G.constant_pad_nd(input, tuple([min(n, 0) for n in sizes]), 0)
            sizes = tuple([max(n, 0) for n in sizes])
        return G.edge_pad(input, sizes, mode)
    return in_format_of(input, getattr(G, f"{_NAMES[mode]}{dims}d")(input, sizes))


def _check(input: Tensor, sizes: Shape, mode: str) -> None:
    shape, dims = input._array.shape, len(sizes) // 2
    if mode != "circular" and 0 in shape[len(shape) - dims - 1 :]:
        raise RuntimeError(
            f"Expected {dims + 1}D or {dims + 2}D (batch mode) tensor with possibly 0 batch size and other non-zero "
            f"dimensions for input, but got: {list(shape)}"
        )
    for i in range(len(sizes) // 2):
        d, before, after = len(shape) - 1 - i, sizes[2 * i], sizes[2 * i + 1]
        if mode == "circular":
            if before > shape[d] or after > shape[d]:
                raise RuntimeError("Padding value causes wrapping around more than once.")
            if shape[d] + before + after < 0:
                raise RuntimeError("Negative padding value is resulting in an empty dimension")
            continue
        if mode == "reflect" and (before >= shape[d] or after >= shape[d]):
            raise RuntimeError(
                f"Argument #{2 * i + 4}: Padding size should be less than the corresponding input dimension, but got: "
                f"padding ({before}, {after}) at dimension {d} of input {list(shape)}"
            )
        if shape[d] + before + after < 1:
            name = "WHT"[i]
            raise RuntimeError(
                f"input ({name}: {shape[d]}) is too small. Calculated output {name}: {shape[d] + before + after}"
            )
