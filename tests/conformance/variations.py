"""The samples once more, laid out otherwise or of another dtype: lazy views, strides, no elements, dtypes refused.

`python -m tests.conformance.variations [--dtypes] [--count 4] [words of families or names]` prints what differs.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from itertools import islice
from typing import Any

import torch

import pullback

from .checks import Inapplicable, Side, _gradients, _replace, compare_gradients
from .comparison import Mismatch, compare, tensors_in
from .entries import Entry, Sample, choose

Variation = Callable[[Any, Any], Any]
_REFUSALS = (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError)
_DTYPES = ("float16", "bfloat16", "float32", "complex64", "int64", "uint8", "bool")


def _conjugated(package: Any, tensor: Any) -> Any:
    return tensor.conj_physical().conj() if tensor.is_complex() else tensor


def _negated(package: Any, tensor: Any) -> Any:
    """The same values, lazily negated: the imaginary part of a conjugate, or a plain negative view."""
    if tensor.dtype not in (package.float32, package.float64, package.complex64, package.complex128):
        return tensor
    return package._neg_view(-tensor)


def _imaginary(package: Any, tensor: Any) -> Any:
    if tensor.dtype not in (package.float32, package.float64):
        return tensor
    return package.complex(package.zeros_like(tensor), -tensor).conj().imag


def _transposed(package: Any, tensor: Any) -> Any:
    """The memory in the reverse order of dimensions."""
    order = tuple(reversed(range(tensor.ndim)))
    return tensor.permute(order).contiguous().permute(order)


def _channels_last(package: Any, tensor: Any) -> Any:
    if tensor.ndim not in (4, 5):
        return tensor
    last = package.channels_last if tensor.ndim == 4 else package.channels_last_3d
    return tensor.contiguous(memory_format=last)


def _with_gaps(package: Any, tensor: Any) -> Any:
    """Every second place of a larger memory."""
    return package.stack((tensor, tensor), -1)[..., 1] if tensor.ndim else tensor


def _expanded(package: Any, tensor: Any) -> Any:
    """The first row in place of every row, with a stride of zero."""
    return tensor[:1].expand(tensor.shape) if tensor.ndim and tensor.shape[0] else tensor


def _empty_first(package: Any, tensor: Any) -> Any:
    return tensor[:0] if tensor.ndim else tensor


def _empty_last(package: Any, tensor: Any) -> Any:
    return tensor[..., :0] if tensor.ndim else tensor


VARIATIONS: dict[str, Variation] = {
    "as it is": lambda package, tensor: tensor,
    "conjugate view": _conjugated,
    "negative view": _negated,
    "imaginary part of a conjugate": _imaginary,
    "transposed": _transposed,
    "channels last": _channels_last,
    "with gaps": _with_gaps,
    "expanded": _expanded,
    "first dimension empty": _empty_first,
    "last dimension empty": _empty_last,
}


def check_layout(entry: Entry, ours: Callable[..., Any], sample: Sample) -> None:
    """Values, strides, lazy bits, node names and gradients of the sample under every variation."""
    _check_all(entry, ours, sample, VARIATIONS)


def _check_all(entry: Entry, ours: Callable[..., Any], sample: Sample, variations: dict[str, Variation]) -> None:
    differences: dict[str, str] = {}
    for name, variation in variations.items():
        try:
            _check_variation(entry, ours, sample, variation)
        except Inapplicable:
            continue
        except Mismatch as difference:
            differences.setdefault(str(difference), name)
    if differences:
        raise Mismatch("; ".join(f"{name}: {difference}" for difference, name in differences.items()))


def _check_variation(entry: Entry, ours: Callable[..., Any], sample: Sample, variation: Any) -> None:
    theirs = _varied_side(torch, entry.theirs, sample, variation)
    expected, refusal = _outcome(theirs.call)
    mine = _varied_side(pullback, ours, sample, variation)
    actual, our_refusal = _outcome(mine.call)
    if refusal is not None:
        _compare_refusals(refusal, our_refusal)
        return
    if our_refusal is not None:
        raise Mismatch(f"refused: {_words(our_refusal)}")
    if sample.process is None and not entry.has_ties:
        compare(expected, actual, entry.measure)
        _compare_strides(expected, actual)
    _compare_nodes(expected, actual)
    if theirs.differentiable and any(tensor.requires_grad for tensor in tensors_in(expected)):
        _compare_first_gradients(entry, theirs, mine, expected, actual)


def _compare_first_gradients(entry: Entry, theirs: Side, mine: Side, expected: Any, actual: Any) -> None:
    wanted, refusal = _outcome(lambda: _gradients(theirs, expected))
    given, our_refusal = _outcome(lambda: _gradients(mine, actual))
    if refusal is not None:
        return
    if our_refusal is not None:
        raise Mismatch(f"gradient refused: {_words(our_refusal)}")
    compare_gradients(wanted, given, entry.measure, "gradient")


def _varied_side(package: Any, function: Any, sample: Sample, variation: Any) -> Side:
    try:
        side = Side(package, function, sample)
        replaced = {id(tensor): _vary(package, tensor, variation) for tensor in side.tensors}
    except Exception as error:
        raise Inapplicable(str(error)) from error
    side.arguments, side.options = _replace(side.arguments, replaced), _replace(side.options, replaced)
    side.tensors = [replaced[id(tensor)] for tensor in side.tensors]
    side.differentiable = [tensor for tensor in side.tensors if tensor.requires_grad]
    return side


def _vary(package: Any, tensor: Any, variation: Any) -> Any:
    made = variation(package, tensor.detach())
    differentiable = tensor.requires_grad and (made.is_floating_point() or made.is_complex())
    return made.detach().requires_grad_() if differentiable else made


def _outcome(action: Callable[[], Any]) -> tuple[Any, Exception | None]:
    try:
        return action(), None
    except Exception as error:
        return None, error


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0][:160] if str(error) else ''}"


def _compare_refusals(theirs: Exception, ours: Exception | None) -> None:
    if not isinstance(theirs, _REFUSALS):
        raise Inapplicable(str(theirs))
    if ours is None:
        raise Mismatch(f"must be refused: {_words(theirs)}")
    family = next(kind for kind in type(theirs).__mro__ if kind.__module__ == "builtins")
    if not isinstance(ours, family):
        raise Mismatch(f"refused with {_words(ours)}, not {_words(theirs)}")


def _compare_strides(expected: Any, actual: Any) -> None:
    for position, (theirs, ours) in enumerate(zip(tensors_in(expected), tensors_in(actual), strict=True)):
        if theirs.numel() and _strides(theirs) != _strides(ours):  # what is empty lies nowhere
            raise Mismatch(f"strides[{position}]: expected {theirs.stride()}, got {ours.stride()} of {theirs.shape}")
        for bit in ("is_conj", "is_neg"):
            if getattr(theirs, bit)() != getattr(ours, bit)():
                raise Mismatch(f"{bit}[{position}]: expected {getattr(theirs, bit)()}")


def _strides(tensor: Any) -> tuple[int, ...]:
    """Strides of dimensions of size one say nothing."""
    return tuple(stride for stride, size in zip(tensor.stride(), tensor.shape, strict=True) if size != 1)


def _compare_nodes(expected: Any, actual: Any) -> None:
    for position, (theirs, ours) in enumerate(zip(tensors_in(expected), tensors_in(actual), strict=True)):
        names = [None if tensor.grad_fn is None else tensor.grad_fn.name() for tensor in (theirs, ours)]
        if names[0] != names[1]:
            raise Mismatch(f"node[{position}]: expected {names[0]}, got {names[1]}")


def _cast_to(name: str) -> Variation:
    def cast(package: Any, tensor: Any) -> Any:
        return tensor.to(getattr(package, name)) if tensor.is_floating_point() else tensor

    return cast


_CASTS = {name: _cast_to(name) for name in _DTYPES}


def check_other_dtypes(entry: Entry, ours: Callable[..., Any], sample: Sample) -> None:
    """The sample with its floating-point tensors of every other dtype: the same value, or the same refusal."""
    _check_all(entry, ours, sample, _CASTS)


def compare_entry(entry: Entry, check: Any, count: int, plant: Callable[[Any], Any] = lambda function: function) -> Any:
    """Give how many samples were tried, and what differs with how often; `plant` puts a fault into our function."""
    ours = plant(entry.ours())
    tried, differences = 0, dict[str, int]()
    for dtype in (torch.float64, torch.complex128) if check is check_layout else (torch.float64,):
        if dtype not in entry.dtypes:
            continue
        for sample in choose(list(islice(entry.samples(dtype, dtype in entry.differentiable), 400)), max(2, count)):
            tried += 1
            try:
                check(entry, ours, sample)
            except Inapplicable:
                continue
            except Mismatch as difference:
                for words in str(difference).split("; "):
                    differences[words] = differences.get(words, 0) + 1
    return tried, differences


def compare_chosen(check: Callable[..., Any], arguments: argparse.Namespace) -> int:
    """Compare the entries whose family or name has one of the words, and tell how many differ."""
    from .worker import all_entries

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    entries = [
        entry
        for entry in all_entries().values()
        if not arguments.words or any(word in entry.family or word in entry.name for word in arguments.words)
    ]
    different = 0
    for entry in entries:
        _, differences = compare_entry(entry, check, arguments.count)
        different += bool(differences)
        for words, times in differences.items():
            print(f"{entry.name}: {times} times {words[:250]}", flush=True)
    print(f"{len(entries)} entries, {different} of them differ somewhere")
    return int(different > 0)


def arguments_for(prog: str, doc: str | None, count: int) -> argparse.ArgumentParser:
    """The command line of a comparison of chosen entries."""
    parser = argparse.ArgumentParser(prog=f"python -m tests.conformance.{prog}", description=doc)
    parser.add_argument("words", nargs="*", help="of families or names; all without any")
    parser.add_argument("--count", type=int, default=count, help="how many samples of an operation are tried")
    return parser


def main() -> int:
    """Compare the chosen entries."""
    parser = arguments_for("variations", __doc__, 4)
    parser.add_argument("--dtypes", action="store_true", help="vary the dtype and not the layout")
    arguments = parser.parse_args()
    return compare_chosen(check_other_dtypes if arguments.dtypes else check_layout, arguments)


if __name__ == "__main__":
    sys.exit(main())
