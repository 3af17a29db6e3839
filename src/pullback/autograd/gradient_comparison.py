"""The heart of gradcheck: derivatives by backward and forward mode beside finite differences, element by element or fast.

# Note [Fast mode]
Instead of whole Jacobians J, products u^T J v with one vector on each side are compared. The vectors are positive and of
length one, the same in every run, so that an element of J that is wrong by more than `atol` shows: the tolerance is `atol`
times the sums of u and v. Where a product differs, the whole Jacobians are computed for the message.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.autograd.gradcheck import GradcheckError
from pullback.autograd.numerical_jacobian import (
    backward_jacobian,
    central_difference,
    forward_jacobian,
    numerical_jacobian,
    tangents_of,
    vector_jacobian,
)
from pullback.backend.dtype import float32
from pullback.backend.layout import strided
from pullback.creation import zeros_like
from pullback.tensor.tensor import Tensor

_AXES = ((1j, "While considering the imaginary part of complex "), (1.0, "While considering the real part of complex "))


def fixed_generator() -> Any:
    """The source of the vectors, the same in every run."""
    from pullback.backend.random import Generator  # lazy: a program may draw nothing

    return Generator()


def random_unit_vectors(tensors: Sequence[Any], generator: Any) -> list[Any]:
    """Positive vectors of length one in the shapes of `tensors`, and of their real dtypes. See Note [Fast mode]."""
    from pullback import functions

    vectors = []
    for tensor in tensors:
        vector = functions.rand(tuple(tensor.shape), dtype=float32, generator=generator).to(tensor.dtype.to_real())
        vectors.append(vector / vector.norm() if tensor.numel() else vector)
    return vectors


class GradientComparison:
    """A function, its inputs and the options of gradcheck."""

    def __init__(self, func: Callable[..., Any], inputs: tuple[Any, ...], options: dict[str, Any]) -> None:
        self.func = func
        self.inputs = inputs
        self.options = options
        self.positions = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]
        self.differentiable = [inputs[i] for i in self.positions]

    def float_outputs(self, *inputs: Any) -> list[Any]:
        """The results that can have a derivative."""
        result = self.func(*(inputs or self.inputs))
        results = result if isinstance(result, (tuple, list)) else (result,)
        for each in results:
            if not isinstance(each, Tensor):
                raise AttributeError(
                    f"'{type(each).__name__}' object has no attribute 'requires_grad': gradcheck takes functions that "
                    "return tensors"
                )
            if each.layout is not strided:
                raise ValueError(
                    "Sparse output is not supported at gradcheck yet. Please call to_dense(masked_grad=...) on the output "
                    "of fn for gradcheck."
                )
        return [r for r in results if r.is_floating_point() or r.is_complex()]

    def differentiable_outputs(self) -> list[Any]:
        """The results that have a history."""
        return [r for r in self.float_outputs() if r.requires_grad]

    def close(self, actual: Any, expected: Any, atol_factor: float = 1.0) -> bool:
        """Whether two tensors agree within the tolerances."""
        from pullback import functions

        dtype = functions.promote_types(actual.dtype, expected.dtype)
        atol = self.options["atol"] * atol_factor
        return bool(functions.allclose(actual.to(dtype), expected.to(dtype), self.options["rtol"], atol))

    @staticmethod
    def axes_of(x: Any) -> tuple[Any, ...]:
        """The axes of the complex plane along which an input is moved."""
        return (1.0, 1j) if x.is_complex() else (1.0,)

    def compare_backward(self, outputs: Sequence[Any]) -> None:
        """Compare gradients, for the imaginary and the real parts of outputs apart where one is complex."""
        compare = self._backward_fast if self.options["fast_mode"] else self._backward_slow
        if not any(o.is_complex() for o in outputs):
            compare(self.differentiable_outputs, outputs, "")
            return
        for axis, words in _AXES:
            parts = _part(axis)
            compare(lambda parts=parts: parts(self.differentiable_outputs()), parts(outputs), f"{words}outputs only, ")

    def _backward_slow(self, function: Callable[..., Any], outputs: Sequence[Any], words: str) -> None:
        eps = self.options["eps"]
        numerical = [numerical_jacobian(function, x, eps, self.axes_of(x)) for x in self.differentiable]
        for number, output in enumerate(outputs):
            analytical = backward_jacobian(output, self.differentiable)
            self._check_repeated(analytical, backward_jacobian(output, self.differentiable))
            for index, matrix in enumerate(analytical):
                expected = numerical[index][number]
                if not self.close(matrix, expected):
                    raise GradcheckError(
                        f"{words}{_mismatch('', number, index, expected, matrix)}{_worst(expected, matrix)}"
                    )

    def _backward_fast(self, function: Callable[..., Any], outputs: Sequence[Any], words: str) -> None:
        """See Note [Fast mode]. A complex input is moved along both axes, by vectors of their own."""
        generator = fixed_generator()
        vectors = [random_unit_vectors([x] * len(self.axes_of(x)), generator) for x in self.differentiable]
        eps = self.options["eps"]
        changes = [
            [central_difference(function, x, v * axis, eps) for v, axis in zip(own, self.axes_of(x), strict=True)]
            for x, own in zip(self.differentiable, vectors, strict=True)
        ]
        for number, (output, weight) in enumerate(zip(outputs, random_unit_vectors(outputs, generator), strict=True)):
            found = vector_jacobian(output, self.differentiable, weight)
            self._check_repeated(found, vector_jacobian(output, self.differentiable, weight))
            for index, (x, own) in enumerate(zip(self.differentiable, vectors, strict=True)):
                expected = _complex_sum([(weight * change[number]).sum() for change in changes[index]])
                grad = zeros_like(x) if found[index] is None else found[index].detach()
                parts = [grad.real, grad.imag] if x.is_complex() else [grad]
                actual = _complex_sum([(part * v).sum() for part, v in zip(parts, own, strict=True)])
                if not self.close(actual, expected, float(weight.sum()) * sum(float(v.sum()) for v in own)):
                    whole = numerical_jacobian(function, x, eps, self.axes_of(x))[number]
                    exact = backward_jacobian(output, [x])[0]
                    text = _mismatch("", number, index, expected.item(), actual.item())
                    raise GradcheckError(f"{words}{text}{self._whole(whole, exact)}")

    def _check_repeated(self, first: Sequence[Any], again: Sequence[Any]) -> None:
        for a, b in zip(first, again, strict=True):
            if a is not None and a.numel() and float((a - b).abs().max()) > self.options["nondet_tol"]:
                raise GradcheckError(
                    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives "
                    "different values, although analytical gradient matches numerical gradient.The tolerance for "
                    f"nondeterminism was {self.options['nondet_tol']}."
                )

    def compare_forward(self) -> None:
        """Compare tangents, along the imaginary and the real axis apart where an input is complex."""
        compare = self._forward_fast if self.options["fast_mode"] else self._forward_slow
        if not any(x.is_complex() for x in self.differentiable):
            compare(1.0, "")
            return
        for axis, words in _AXES:
            compare(axis, f"{words}inputs only, ")

    def _forward_slow(self, axis: Any, words: str) -> None:
        for index, position in enumerate(self.positions):
            x = self.inputs[position]
            along = axis if x.is_complex() else 1.0
            numerical = numerical_jacobian(self.float_outputs, x, self.options["eps"], (along,))
            if not x.numel():
                continue
            analytical = forward_jacobian(self.float_outputs, self.inputs, self.positions, position, along)
            for number, (expected, matrix) in enumerate(zip(numerical, analytical, strict=True)):
                if not self.close(matrix, expected):
                    text = _mismatch(_FORWARD, number, index, expected, matrix)
                    raise GradcheckError(f"{words}{text}{_worst(expected, matrix)}")

    def _forward_fast(self, axis: Any, words: str) -> None:
        directions = random_unit_vectors(self.differentiable, fixed_generator())
        for index, (position, direction) in enumerate(zip(self.positions, directions, strict=True)):
            x = self.inputs[position]
            along = axis if x.is_complex() else 1.0
            tangents = {i: zeros_like(self.inputs[i]).detach() for i in self.positions}
            tangents[position] = (direction * along).to(x.dtype)
            expected = central_difference(self.float_outputs, x, tangents[position], self.options["eps"])
            pairs = tangents_of(self.float_outputs, self.inputs, tangents)
            for number, (change, (primal, tangent)) in enumerate(zip(expected, pairs, strict=True)):
                actual = (zeros_like(primal) if tangent is None else tangent).detach()
                if not self.close(actual, change, float(direction.sum())):
                    whole = numerical_jacobian(self.float_outputs, x, self.options["eps"], (along,))[number]
                    exact = forward_jacobian(self.float_outputs, self.inputs, self.positions, position, along)[number]
                    text = _mismatch(_FORWARD, number, index, change.reshape(-1), actual.reshape(-1))
                    raise GradcheckError(f"{words}{text}{self._whole(whole, exact)}")

    def _whole(self, numerical: Any, analytical: Any) -> str:
        """The whole Jacobians behind a product that differs in fast mode."""
        agrees = self.close(analytical, numerical)
        remark = " Element by element they agree: slow mode would pass." if agrees else _worst(numerical, analytical)
        return (
            f"\nThese are products of the Jacobians, of fast mode. The whole ones:\nNumerical:\n{numerical}\n"
            f"Analytical:\n{analytical}\n{remark}"
        )


_FORWARD = "computed with forward mode "


def _part(axis: Any) -> Callable[[Sequence[Any]], list[Any]]:
    """The function that takes one part of every complex output."""
    name = "imag" if axis == 1j else "real"
    return lambda outputs: [getattr(o, name) if o.is_complex() else o for o in outputs]


def _complex_sum(parts: Sequence[Any]) -> Any:
    return parts[0] if len(parts) == 1 else parts[0] + 1j * parts[1]


def _mismatch(how: str, output: int, input: int, numerical: Any, analytical: Any) -> str:
    return (
        f"Jacobian {how}mismatch for output {output} with respect to input {input},\n"
        f"numerical:{numerical}\nanalytical:{analytical}\n"
    )


def _worst(numerical: Any, analytical: Any) -> str:
    """Where two Jacobians differ most."""
    row, column = divmod(int((analytical - numerical).abs().argmax()), max(numerical.shape[1], 1))
    return (
        f"The worst element is the derivative of number {column} of the output with respect to number {row} of the input: "
        f"numerical {numerical[row, column].item():.6g}, analytical {analytical[row, column].item():.6g}."
    )
