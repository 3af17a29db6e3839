"""Sequences of different lengths in one tensor: padded, or packed without padding.

Packed data holds, step by step, the elements of all sequences that are that long; `batch_sizes` counts them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any, NamedTuple

import pullback.generated as G
from pullback import creation, functions
from pullback.backend.array_module import is_plain
from pullback.backend.dtype import int64
from pullback.tensor.tensor import Tensor

__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence",
    "pad_sequence", "unpack_sequence", "unpad_sequence",
]  # fmt: skip


class PackedSequence_(NamedTuple):
    """The fields of a PackedSequence."""

    data: Any
    batch_sizes: Any
    sorted_indices: Any
    unsorted_indices: Any


class PackedSequence(PackedSequence_):
    """Sequences of different lengths without padding; recurrent networks take and return it."""

    def __new__(
        cls, data: Any, batch_sizes: Any = None, sorted_indices: Any = None, unsorted_indices: Any = None
    ) -> Any:
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is None:
            data, batch_sizes = data
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """The sequences in another dtype or on another device."""
        data = self.data.to(*args, **kwargs)
        return self if data is self.data else self._with(data)

    def _with(self, data: Any) -> Any:
        return type(self)(data, self.batch_sizes, self.sorted_indices, self.unsorted_indices)

    def cuda(self, *args: Any, **kwargs: Any) -> Any:
        """The sequences on a GPU, of which this build has none."""
        return self._with(self.data.cuda(*args, **kwargs))

    def cpu(self, *args: Any, **kwargs: Any) -> Any:
        """The sequences on the CPU."""
        return self

    def pin_memory(self) -> Any:
        """The sequences themselves: there is no other memory."""
        return self

    def double(self) -> Any:
        """The sequences as float64."""
        return self._with(self.data.double())

    def float(self) -> Any:
        """The sequences as float32."""
        return self._with(self.data.float())

    def half(self) -> Any:
        """The sequences as float16."""
        return self._with(self.data.half())

    def long(self) -> Any:
        """The sequences as int64."""
        return self._with(self.data.long())

    def int(self) -> Any:
        """The sequences as int32."""
        return self._with(self.data.int())

    @property
    def is_cuda(self) -> bool:
        """Whether the data lies on a GPU."""
        return bool(self.data.is_cuda)

    def is_pinned(self) -> bool:
        """Whether the data lies in pinned memory."""
        return False


def invert_permutation(permutation: Any) -> Any:
    """The permutation that undoes another."""
    if permutation is None:
        return None
    output = creation.empty_like(permutation)
    output.scatter_(0, permutation, creation.arange(0, permutation.numel(), device=permutation.device))
    return output


def pack_padded_sequence(input: Any, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True) -> Any:
    """Pack padded sequences of the given lengths."""
    if not isinstance(lengths, Tensor):
        lengths = creation.as_tensor(lengths, dtype=int64, device="cpu")
    sorted_indices = None
    if not enforce_sorted:
        lengths, sorted_indices = functions.sort(lengths, descending=True)
        sorted_indices = sorted_indices.to(input.device)
        input = input.index_select(0 if batch_first else 1, sorted_indices)
    counts = [int(length) for length in lengths._array.tolist()]
    _check_lengths(counts, input, batch_first, enforce_sorted)
    data, batch_sizes = G.pack_padded_sequence(input, lengths, batch_first)
    if not is_plain(batch_sizes._array):  # under vmap: the sizes are the same for all examples
        batch_sizes = creation.tensor([sum(count > step for count in counts) for step in range(counts[0])])
    return PackedSequence(data, batch_sizes, sorted_indices, None)


def _check_lengths(counts: list[int], input: Any, batch_first: bool, enforce_sorted: bool) -> None:
    batch = input.size(0) if batch_first else input.size(1)
    if not counts or batch == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    if len(counts) != batch:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(counts)} (batch_size={batch})"
        )
    if counts[-1] <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if enforce_sorted and any(later > earlier for earlier, later in itertools.pairwise(counts)):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True, got "
            f"{counts}. Pass enforce_sorted=False to have the sequences sorted."
        )


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Any, Any]:
    """The padded sequences and their lengths."""
    batch_sizes = [int(size) for size in sequence.batch_sizes._array.tolist()]
    max_length = len(batch_sizes)
    if total_length is not None:
        if total_length < max_length:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input: "
                f"{total_length} is less than {max_length}"
            )
        max_length = total_length
    padded = padded_steps(sequence.data, batch_sizes, max_length, padding_value)
    if batch_first:
        padded = padded.transpose(0, 1)
    lengths = creation.tensor(
        [sum(1 for size in batch_sizes if size > i) for i in range(batch_sizes[0])], dtype=int64, device="cpu"
    )
    if sequence.unsorted_indices is not None:
        padded = padded.index_select(0 if batch_first else 1, sequence.unsorted_indices)
        lengths = lengths[sequence.unsorted_indices]
    return padded, lengths


def padded_steps(data: Any, batch_sizes: list[int], length: int, padding_value: float) -> Any:
    """The rows of packed sequences at their places (step, sequence), `padding_value` elsewhere."""
    padded = data.new_full((length, batch_sizes[0], *data.shape[1:]), padding_value)
    step = start = 0
    for size, run in itertools.groupby(batch_sizes):
        count = len(list(run))
        part = data[start : start + count * size].view(count, size, *data.shape[1:])
        padded[step : step + count, :size].copy_(part)
        step, start = step + count, start + count * size
    return padded


def pad_sequence(
    sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Any:
    """Stack sequences of different lengths, filled up with a value."""
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    sequences = list(sequences)
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    longest = max(sequence.size(0) for sequence in sequences)
    padded = []
    for sequence in sequences:
        missing = longest - sequence.size(0)
        if missing:
            filling = sequence.new_full((missing, *sequence.shape[1:]), padding_value)
            sequence = functions.cat([sequence, filling] if padding_side == "right" else [filling, sequence], 0)
        padded.append(sequence)
    return functions.stack(padded, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Any, lengths: Any, batch_first: bool = False) -> list[Any]:
    """Undo `pad_sequence`."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    steps = creation.arange(padded_sequences.size(1))
    return [sequence[steps < length] for sequence, length in zip(padded_sequences, lengths, strict=True)]


def pack_sequence(sequences: list[Any], enforce_sorted: bool = True) -> Any:
    """Pack a list of sequences."""
    lengths = creation.tensor([sequence.size(0) for sequence in sequences], dtype=int64, device="cpu")
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Any]:
    """Undo `pack_sequence`."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
