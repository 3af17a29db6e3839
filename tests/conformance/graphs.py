"""Compare the graphs that operations record: `python -m tests.conformance.graphs [--second] [operation ...]`.

Every tensor of real or complex numbers of a sample requires grad. The trees behind the results must be PyTorch's: names of
nodes, their `next_functions`, the numbers of outputs they lead to, and the names of what they saved (`_saved_...`). With
`--second` the trees are those of the gradients, recorded with `create_graph=True`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import Any

import torch

from .checks import Inapplicable, Side, _replace, both, theirs_or_inapplicable
from .comparison import tensors_in
from .entries import Entry, Sample, choose, database
from .exceptions import NOT_COMPARED, NOT_SHOWN

SECONDS = 60  # for one operation
SAMPLES = 8
LARGEST = 4000  # elements of the inputs of a sample
Difference = tuple[str, str, str]


def saved_names(node: Any) -> tuple[str, ...]:
    """The names under which a node shows what it saved."""
    return tuple(sorted(name.removeprefix("_saved_") for name in dir(node) if name.startswith("_saved_")))


def walk(roots: list[Any]) -> list[str]:
    """The graph behind results, one node a line, each when it is first reached."""
    numbers: dict[Any, int] = {}
    kept, lines = [], []

    def number(node: Any) -> int:
        if node not in numbers:
            numbers[node] = len(numbers)
            kept.append(node)
        return numbers[node]

    heads = [(number(root), root_nr) for root, root_nr in roots]
    lines.append(" ".join(f"{n}.{nr}" for n, nr in heads))
    place = 0
    while place < len(kept):
        node = kept[place]
        edges = ["-" if to is None else f"{number(to)}.{nr}" for to, nr in node.next_functions]
        hidden = NOT_SHOWN.get(node.name(), ("",))[0].split()
        saved = [name for name in saved_names(node) if name not in hidden]
        lines.append(f"{node.name()} [{' '.join(edges)}] {' '.join(saved)}".rstrip())
        place += 1
    return lines


def recorded(side: Side, second: bool = False) -> list[str]:
    """The graph that one side records for a sample, or for its gradients."""
    made = {id(t): _requiring(t) for t in side.tensors}
    side.arguments, side.options = _replace(side.arguments, made), _replace(side.options, made)
    results = tensors_in(side.call())
    if second:
        results = _gradients(side, results, list(made.values()))
    pattern = "".join("g" if t.requires_grad else "-" for t in results)
    roots = [(t.grad_fn, t.output_nr) for t in results if t.grad_fn is not None]
    return [pattern, *walk(roots)]


def _gradients(side: Side, results: list[Any], inputs: list[Any]) -> list[Any]:
    """The recorded gradients of the inputs that results lead to; those of the results are leaves."""
    outputs = [t for t in results if t.requires_grad]
    wanted = [t for t in inputs if t.requires_grad]
    if not outputs or not wanted:
        raise Inapplicable("nothing to differentiate")
    grads = [side.package.ones_like(t).requires_grad_() for t in outputs]
    found = side.package.autograd.grad(outputs, wanted, grads, create_graph=True, allow_unused=True)
    return [t for t in found if t is not None]


def _requiring(tensor: Any) -> Any:
    copy = tensor.detach().clone()
    return copy.requires_grad_() if tensor.is_floating_point() or tensor.is_complex() else copy


def unlike(expected: list[str], actual: list[str]) -> str | None:
    """The first line in which two graphs differ."""
    for theirs, ours in zip(expected, actual, strict=False):
        if theirs != ours:
            return f"expected {theirs}, got {ours}; of {len(expected)} and {len(actual)} nodes"
    return None if len(expected) == len(actual) else f"expected {len(expected)} nodes, got {len(actual)}"


def _bare(lines: list[str]) -> list[str]:
    return [line.partition("]")[0] for line in lines]


def compare_sample(
    entry: Entry, ours: Callable[..., Any], sample: Sample, second: bool = False
) -> tuple[str, str] | None:
    """How the graphs of one sample differ: in their nodes ("differ"), or only in what these saved ("saved")."""
    their_side, our_side = both(entry, ours, sample)
    if sum(t.numel() for t in their_side.tensors) > LARGEST:
        raise Inapplicable("too much")
    expected = theirs_or_inapplicable(lambda: recorded(their_side, second))
    try:
        actual = recorded(our_side, second)
    except Exception as error:
        return "differ", f"{type(error).__name__}: {str(error)[:150]}"
    if words := unlike(_bare(expected), _bare(actual)):
        return "differ", words
    words = unlike(expected, actual)
    return ("saved", words) if words else None


def compare_graphs(
    entry: Entry, plant: Callable[[Any], Any] = lambda form: form, second: bool = False
) -> tuple[int, list[Difference]]:
    """How many samples of an entry were recorded, and how the graphs differ; `plant` changes our side."""
    made, differences = 0, []
    for sample in choose(list(entry.samples(torch.float64, False))[:200], SAMPLES):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                found = compare_sample(entry, plant(entry.ours()), sample, second)
            except Inapplicable:
                continue
        made += 1
        if found:
            shapes = [tuple(t.shape) for t in tensors_in([sample.arguments, sample.options])]
            differences.append(
                (found[0], f"{shapes} {sample.arguments[1:]!r:.60} {sample.options!r:.80}".replace("\n", " "), found[1])
            )
    return made, differences


def compare_entry(index: int, second: bool) -> tuple[int, list[Difference]]:
    """The same for a place in the database."""
    torch.set_num_threads(1)
    return compare_graphs(database()[index], second=second)


def main(names: list[str]) -> int:
    """Compare the operations named, or all of them."""
    from .processes import compare_each

    second = "--second" in names
    names = [name for name in names if name != "--second"]
    chosen = [
        (i, entry.name)
        for i, entry in enumerate(database())
        if ((entry.name, "graphs") not in NOT_COMPARED and not names) or entry.name in names
    ]
    return compare_each(chosen, compare_entry, (second,), ("differ", "saved"), SECONDS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
