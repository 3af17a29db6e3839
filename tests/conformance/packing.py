"""Compare what operations hand to saved-tensor hooks: `python -m tests.conformance.packing [operation ...]`.

Every tensor of real or complex numbers of a sample requires grad. The tensors that the pack hook sees, in the order in
which it sees them, must be PyTorch's, and so must those that the unpack hook sees in a backward pass.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import torch

from .checks import Inapplicable, Side, _replace, both, theirs_or_inapplicable
from .comparison import tensors_in
from .entries import Entry, Sample, choose, database
from .exceptions import NOT_COMPARED
from .graphs import LARGEST, SECONDS, Difference, _requiring

SAMPLES = 3
Seen = tuple[list[str], list[str]]


def seen_by_hooks(side: Side) -> Seen:
    """Describe the tensors that hooks pack in the forward pass and unpack in the backward pass, in order."""
    packed: list[str] = []
    unpacked: list[str] = []

    def pack(tensor: Any) -> Any:
        packed.append(describe(tensor))
        return tensor

    def unpack(tensor: Any) -> Any:
        unpacked.append(describe(tensor))
        return tensor

    made = {id(t): _requiring(t) for t in side.tensors}
    side.arguments, side.options = _replace(side.arguments, made), _replace(side.options, made)
    with side.package.autograd.graph.saved_tensors_hooks(pack, unpack):
        results = [t for t in tensors_in(side.call()) if t.requires_grad]
    inputs = [t for t in made.values() if t.requires_grad]
    if not results or not inputs:
        raise Inapplicable("nothing to differentiate")
    grads = [side.package.ones_like(t) for t in results]
    side.package.autograd.grad(results, inputs, grads, allow_unused=True)
    return packed, unpacked


def describe(tensor: Any) -> str:
    """Tell a saved tensor by its shape, its dtype and the sum of its elements."""
    total = complex(tensor.detach().sum()) if tensor.numel() else 0
    return f"{tuple(tensor.shape)} {str(tensor.dtype).rpartition('.')[2]} {total:.4g}"


def compare_packing(entry: Entry, sample: Sample) -> tuple[str, str] | None:
    """How what hooks see differs for one sample: in what is packed, in its order, or in what is unpacked."""
    their_side, our_side = both(entry, entry.ours(), sample)
    if sum(t.numel() for t in their_side.tensors) > LARGEST:
        raise Inapplicable("too much")
    expected = theirs_or_inapplicable(lambda: seen_by_hooks(their_side))
    try:
        actual = seen_by_hooks(our_side)
    except Exception as error:
        return "differ", f"{type(error).__name__}: {str(error)[:150]}"
    for kind, theirs, ours in zip(("packed", "unpacked"), expected, actual, strict=True):
        if theirs != ours:
            return f"{kind}-order" if sorted(theirs) == sorted(ours) else kind, f"expected {theirs}, got {ours}"
    return None


def compare_entry(index: int) -> tuple[int, list[Difference]]:
    """How many samples of an entry were compared, and how they differ."""
    torch.set_num_threads(1)
    entry = database()[index]
    made, differences = 0, []
    for sample in choose(list(entry.samples(torch.float64, False))[:200], SAMPLES):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = compare_packing(entry, sample)
            except Inapplicable:
                continue
        made += 1
        if found:
            shapes = [tuple(t.shape) for t in tensors_in([sample.arguments, sample.options])]
            differences.append((found[0], f"{shapes} {sample.options!r:.80}".replace("\n", " "), found[1]))
    return made, differences


def main(names: list[str]) -> int:
    """Compare the operations named, or all of them."""
    from .processes import compare_each

    chosen = [
        (i, entry.name)
        for i, entry in enumerate(database())
        if ((entry.name, "graphs") not in NOT_COMPARED and not names) or entry.name in names
    ]
    return compare_each(
        chosen, compare_entry, (), ("packed", "packed-order", "unpacked", "unpacked-order", "differ"), SECONDS
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
