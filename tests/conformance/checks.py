"""The kinds of check: each runs one sample on both packages and raises Mismatch where they differ."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch

import pullback

from .comparison import Measure, Mismatch, compare, is_tensor, memory_of, tensors_in
from .entries import Entry, ErrorSample, Sample
from .places import DEVICE, Places, default_device, place_of, refusing_reads, refusing_waits, sides_on, told_by
from .translation import Copier, our_function, to_array, values_of


class Inapplicable(Exception):
    """PyTorch itself refuses this, so there is nothing to compare."""


class Side:
    """One package with its own copy of a sample's arguments."""

    def __init__(self, package: Any, function: Callable[..., Any], sample: Sample) -> None:
        """Copy the arguments of `sample` for `package`."""
        self.package = package
        self.is_ours = package is pullback
        self._function = function
        self._copier = Copier(self.is_ours)
        self.arguments = self._copier.tree(sample.arguments)
        self.options = self._copier.tree(sample.options)
        if place_of(self.is_ours) and str(self.options.get("device", "")).startswith("cpu"):
            self.options["device"] = place_of(self.is_ours)
        self.tensors = tensors_in(self.arguments) + tensors_in(self.options)
        self.differentiable = [tensor for tensor in self.tensors if tensor.requires_grad]
        process = sample.process
        self.process = (our_function(process) if self.is_ours else process) if process else None

    def call(self, **more: Any) -> Any:
        """Call the function, from the same state of the random generator on both sides."""
        self.package.manual_seed(0)
        with default_device(self.package):
            return self._function(*self.arguments, **self.options, **more)

    def processed(self, result: Any) -> Any:
        """Remove from a result what is not determined."""
        return self.process(result) if self.process else result

    def constant(self, like: Any, seed: int) -> Any:
        """Draw the same random tensor of the dtype and shape of `like` on both sides."""
        generator = np.random.default_rng(seed)
        values = generator.standard_normal(tuple(like.shape))
        if like.is_complex():
            values = values + 1j * generator.standard_normal(tuple(like.shape))
        return self.package.as_tensor(np.asarray(values)).to(like.device).to(like.dtype)


def both(entry: Entry, ours: Callable[..., Any], sample: Sample) -> tuple[Side, Side]:
    """Give the two sides of one sample."""
    return _side(torch, entry.theirs, sample), _side(pullback, ours, sample)


def _side(package: Any, function: Callable[..., Any], sample: Sample) -> Side:
    """One side; what cannot be brought over (other devices, layouts, more than 64 dimensions) is not a sample."""
    try:
        return Side(package, function, sample)
    except Exception as error:
        raise Inapplicable(f"cannot be brought over: {error}") from error


def theirs_or_inapplicable(action: Callable[[], Any]) -> Any:
    """Run PyTorch; what it refuses is not a sample."""
    try:
        return action()
    except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError, AttributeError) as error:
        raise Inapplicable(str(error)) from error


def check_forward(entry: Entry, ours: Callable[..., Any], sample: Sample) -> None:
    """Values, dtypes, shapes, memory, and what became of the arguments."""
    their_side, our_side = both(entry, ours, sample)
    expected = theirs_or_inapplicable(their_side.call)
    actual = our_side.call()
    if DEVICE:
        _compare_places(expected, actual)
    try:
        compare(expected, actual, entry.measure)
    except Mismatch:
        if entry.has_ties:
            _compare_with_ties(expected, actual)
        elif sample.process is not None:
            compare(their_side.processed(expected), our_side.processed(actual), entry.measure)
        else:
            raise
    _compare_memory(expected, actual, their_side, our_side)
    if entry.measure.values:
        compare(their_side.tensors, our_side.tensors, entry.measure, where="arguments afterwards")


def _compare_with_ties(expected: Any, actual: Any) -> None:
    """Values, and dtypes and shapes of indices: which of equal elements is found is not determined."""
    compare(expected[0], actual[0])
    compare(expected[1:], actual[1:], Measure(values=False))


def _compare_places(expected: Any, actual: Any) -> None:
    for theirs, ours in zip(tensors_in(expected), tensors_in(actual), strict=False):
        wanted = theirs.device.type if Places.theirs or not Places.ours else Places.ours
        if ours.device.type != wanted:
            raise Mismatch(f"a result is on {ours.device}, not on {wanted}")


def check_stays(entry: Entry, ours: Callable[..., Any], sample: Sample) -> None:
    """Nothing is read on the host, in forward and backward, unless PyTorch waits for the device too."""
    theirs, mine = both(entry, ours, sample)
    theirs_or_inapplicable(theirs.call)
    try:
        _watched(_side(pullback, ours, sample), nullcontext)  # what is made at first use may read
    except Exception as error:
        raise Inapplicable("cannot be run: the other kinds of check look into that") from error
    wrong = told_by(_watched, mine, refusing_reads)
    if wrong is not None:
        with sides_on(DEVICE, DEVICE):
            if DEVICE == "cuda" and told_by(_watched, _side(torch, entry.theirs, sample), refusing_waits):
                raise Inapplicable("PyTorch waits for the device too")
        raise Mismatch(wrong)


def _watched(side: Side, watching: Callable[[], Any]) -> None:
    """Forward and backward, each in a block; cotangents come from the host, outside of them."""
    with watching():
        result = side.call()
    roots = [tensor for tensor in tensors_in(result) if tensor.requires_grad]
    if roots and side.differentiable:
        cotangents = [side.constant(root, seed) for seed, root in enumerate(roots)]
        with watching():
            side.package.autograd.grad(roots, side.differentiable, cotangents, allow_unused=True)


def _compare_memory(expected: Any, actual: Any, their_side: Side, our_side: Side) -> None:
    if DEVICE:  # to ask for addresses changes how the GPU works: see Note [Deferred work]
        return
    if any(tensor.is_conj() or tensor.is_neg() for tensor in tensors_in(expected)):
        return
    their_memory, our_memory = memory_of(expected, their_side.tensors), memory_of(actual, our_side.tensors)
    if their_memory != our_memory:
        raise Mismatch(f"memory: expected {their_memory}, got {our_memory}")


def check_backward(entry: Entry, ours: Callable[..., Any], sample: Sample) -> None:
    """First gradients under a random cotangent."""
    their_side, our_side = both(entry, ours, sample)
    if not their_side.differentiable:
        raise Inapplicable("no input requires grad")
    expected = theirs_or_inapplicable(lambda: _gradients(their_side, their_side.call()))
    compare_gradients(expected, _gradients(our_side, our_side.call()), entry.measure, "gradient")


def _roots(side: Side, result: Any) -> list[Any]:
    roots = [tensor for tensor in tensors_in(side.processed(result)) if tensor.requires_grad]
    if not roots:
        if side.is_ours:
            raise Mismatch("no result requires grad")
        raise Inapplicable("no result requires grad")
    return roots


def _gradients(side: Side, result: Any, differentiable: list[Any] | None = None) -> list[Any]:
    roots = _roots(side, result)
    cotangents = [side.constant(root, seed) for seed, root in enumerate(roots)]
    inputs = differentiable if differentiable is not None else side.differentiable
    return list(side.package.autograd.grad(roots, inputs, cotangents, allow_unused=True))


def check_double_backward(entry: Entry, ours: Callable[..., Any], sample: Sample) -> None:
    """Gradients of the gradients, with respect to the inputs and to the cotangent."""
    their_side, our_side = both(entry, ours, sample)
    if not their_side.differentiable:
        raise Inapplicable("no input requires grad")
    expected = theirs_or_inapplicable(lambda: _second_gradients(their_side))
    compare_gradients(
        expected, _second_gradients(our_side), Measure(scaled=True, slack=entry.measure.slack), "second gradient"
    )


def _second_gradients(side: Side) -> list[Any]:
    roots = _roots(side, side.call())
    cotangents = [side.constant(root, seed).requires_grad_() for seed, root in enumerate(roots)]
    grad = side.package.autograd.grad
    first = grad(roots, side.differentiable, cotangents, create_graph=True, allow_unused=True)
    # A gradient that does not require grad is a constant: its derivative is zero, which None stands for.
    varying = {seed: gradient for seed, gradient in enumerate(first) if gradient is not None and gradient.requires_grad}
    inputs = side.differentiable + cotangents
    if not varying:
        if not side.is_ours:
            raise Inapplicable("no gradient requires grad")
        return [None] * len(inputs)
    again = [side.constant(gradient, 100 + seed) for seed, gradient in varying.items()]
    return list(grad(list(varying.values()), inputs, again, allow_unused=True))


def compare_gradients(expected: list[Any], actual: list[Any], measure: Measure, what: str) -> None:
    """Compare lists of gradients, where None means zero."""
    if len(expected) != len(actual):
        raise Mismatch(f"{what}: expected {len(expected)}, got {len(actual)}")
    for position, (theirs, ours) in enumerate(zip(expected, actual, strict=True)):
        if theirs is None and ours is None:
            continue
        if theirs is None or ours is None:
            given = theirs if ours is None else ours
            if np.any(np.abs(values_of(given)) > 1e-9):
                raise Mismatch(f"{what}[{position}]: expected {_word(theirs)}, got {_word(ours)}")
            continue
        if theirs.numel() and np.isnan(values_of(theirs)).all() and not np.isnan(values_of(ours)).any():
            raise Inapplicable("PyTorch gives NaN alone")
        compare(theirs, ours, measure, where=f"{what}[{position}]")


def _word(gradient: Any) -> str:
    return "None" if gradient is None else "a gradient that is not zero"


def check_forward_ad(entry: Entry, ours: Callable[..., Any], sample: Sample) -> None:
    """Tangents of the results under random tangents of the inputs."""
    their_side, our_side = both(entry, ours, sample)
    if not their_side.differentiable:
        raise Inapplicable("no input requires grad")
    if any(_has_overlap(tensor) for tensor in their_side.differentiable):
        raise Inapplicable("PyTorch lays the tangent out over itself")
    expected = theirs_or_inapplicable(lambda: _tangents(their_side))
    if all(tangent is None for tangent in expected):
        raise Inapplicable("no result has a tangent")
    compare_gradients(expected, _tangents(our_side), entry.measure, "tangent")


def _has_overlap(tensor: Any) -> bool:
    """Whether there are more elements than places."""
    reach = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return bool(tensor.numel() > 1 + reach)


def _tangents(side: Side) -> list[Any]:
    forward_ad = side.package.autograd.forward_ad
    with forward_ad.dual_level():
        duals = {id(tensor): _dual(side, tensor, seed) for seed, tensor in enumerate(side.differentiable)}
        side.arguments, side.options = _replace(side.arguments, duals), _replace(side.options, duals)
        results = tensors_in(side.processed(side.call()))
        return [forward_ad.unpack_dual(result).tangent for result in results]


def _dual(side: Side, tensor: Any, seed: int) -> Any:
    return side.package.autograd.forward_ad.make_dual(tensor.detach(), side.constant(tensor, seed))


def _replace(value: Any, by: dict[int, Any]) -> Any:
    if is_tensor(value):
        return by.get(id(value), value)
    if isinstance(value, (list, tuple)):
        return type(value)(_replace(item, by) for item in value)
    if isinstance(value, dict):
        return {key: _replace(item, by) for key, item in value.items()}
    return value


def check_method(entry: Entry, ours: Callable[..., Any], sample: Sample) -> None:
    """The method: the same values, dtypes and memory."""
    as_method = Entry(**{**vars(entry), "theirs": entry.method})
    check_forward(as_method, our_function(entry.method), sample)


def check_in_place(entry: Entry, ours: Callable[..., Any], sample: Sample) -> None:
    """The in-place form: the values written, the gradients, and the refusals."""
    if not is_tensor(sample.arguments[0]):
        raise Inapplicable("the first argument is not a tensor")
    their_side = _side(torch, entry.in_place, sample)
    our_side = _side(pullback, our_function(entry.in_place), sample)
    try:
        expected = _modified(their_side)
    except (RuntimeError, TypeError, ValueError, IndexError) as error:
        if "is not implemented" in str(error):
            raise Inapplicable(str(error)) from error
        try:
            _modified(our_side)
        except Exception:
            raise Inapplicable(str(error)) from error
        raise Mismatch(f"must be refused: {_first_line(error)}") from error
    actual = _modified(our_side)
    compare(expected[:2], actual[:2], entry.measure, "modified")
    if (actual[0] is actual[1]) != (expected[0] is expected[1]):
        raise Mismatch("does not return the tensor that it modified")
    compare_gradients(expected[2], actual[2], entry.measure, "gradient through the modified tensor")


def _modified(side: Side) -> tuple[Any, Any, list[Any]]:
    base = side.arguments[0]
    target = base.clone()
    side.arguments = (target, *side.arguments[1:])
    result = side.call()
    if not side.differentiable or not target.requires_grad:
        return result, target, []
    gradients = _gradients(side, target)
    return result, target, gradients


def check_out(entry: Entry, ours: Callable[..., Any], sample: Sample) -> None:
    """The results written into out=."""
    their_side, our_side = both(entry, ours, sample)
    with torch.no_grad():
        reference = theirs_or_inapplicable(Side(torch, entry.theirs, sample).call)
    if not tensors_in(reference):
        raise Inapplicable("the result is not a tensor")
    out = _blank(reference)
    with torch.no_grad():
        expected = theirs_or_inapplicable(lambda: their_side.call(out=out))
    with pullback.no_grad():
        our_out = Copier(True).tree(_blank(reference))
        actual = our_side.call(out=our_out)
    if entry.has_ties:
        return _compare_with_ties(tuple(out), tuple(our_out))
    if sample.process is not None:
        expected, actual = their_side.processed(expected), our_side.processed(actual)
        return compare(expected, actual, entry.measure, "out")
    compare(expected, actual, entry.measure)
    return compare(tensors_in(out), tensors_in(our_out), entry.measure, "out")


def check_vmap(entry: Entry, ours: Callable[..., Any], sample: Sample) -> None:
    """Two examples at once, the second with the floating-point values in reverse."""
    their_side, our_side = both(entry, ours, sample)
    if not their_side.tensors:
        raise Inapplicable("no tensor to batch")
    with torch.no_grad(), pullback.no_grad():
        expected = theirs_or_inapplicable(lambda: _batched_call(their_side))
        compare(expected, _batched_call(our_side), entry.measure, "batched result")


def _batched_call(side: Side) -> Any:
    tensors = {id(tensor): tensor for tensor in side.tensors}
    arguments, options = side.arguments, side.options

    def function(*examples: Any) -> Any:
        by = dict(zip(tensors, examples, strict=True))
        side.arguments, side.options = _replace(arguments, by), _replace(options, by)
        return tensors_in(side.processed(side.call()))

    batches = [side.package.stack([tensor, _reversed(tensor)]) for tensor in tensors.values()]
    return side.package.func.vmap(function)(*batches)


def _reversed(tensor: Any) -> Any:
    return tensor.reshape(-1).flip(0).reshape(tensor.shape) if tensor.is_floating_point() else tensor


def _blank(reference: Any) -> Any:
    if isinstance(reference, torch.Tensor):
        return torch.zeros(reference.shape, dtype=reference.dtype, device=reference.device)
    return tuple(_blank(item) for item in reference)


def check_error(entry: Entry, ours: Callable[..., Any], given: ErrorSample) -> None:
    """The same refusal: an exception of that type whose message has the phrase that users search for."""
    their_side, our_side = both(entry, ours, given.sample)
    try:
        their_side.call()
    except Exception as error:
        theirs = error
    else:
        raise Inapplicable("PyTorch does not raise")
    try:
        our_side.call()
    except Exception as error:
        _compare_errors(theirs, error, given)
    else:
        raise Mismatch(f"did not raise {type(theirs).__name__}: {_first_line(theirs)}")


def _compare_errors(theirs: BaseException, ours: BaseException, given: ErrorSample) -> None:
    family = next(kind for kind in type(theirs).__mro__ if kind.__module__ == "builtins")
    if not isinstance(ours, family):
        raise Mismatch(
            f"raised {type(ours).__name__} ({_first_line(ours)}), not {family.__name__}: {_first_line(theirs)}"
        )
    if not re.search(given.phrase, str(ours)):
        raise Mismatch(f"said {_first_line(ours)!r}, not {_first_line(theirs)!r}")


def _first_line(error: BaseException) -> str:
    return str(error).split("\n")[0][:200]


def describe(sample: Sample) -> str:
    """Show a sample in one line."""
    parts = [_show(argument) for argument in sample.arguments]
    parts += [f"{name}={_show(value)}" for name, value in sample.options.items()]
    return ", ".join(parts)[:300]


def _show(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        dtype = str(value.dtype).removeprefix("torch.")
        if value.device.type != "cpu" or value.layout != torch.strided:
            return f"{dtype}{list(value.shape)} on {value.device}, {value.layout}"
        small = to_array(value).tolist() if value.numel() <= 4 else ""
        return f"{dtype}{list(value.shape)}{small}"
    if isinstance(value, (list, tuple)):
        return "(" + ", ".join(_show(item) for item in value) + ")"
    return repr(value)[:60]
