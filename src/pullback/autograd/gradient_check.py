"""One run of gradcheck: what backward and forward mode compute beside finite differences, and what they have to hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.autograd.differentiation import grad as _grad
from pullback.autograd.function import Function
from pullback.autograd.gradcheck import GradcheckError
from pullback.autograd.gradient_comparison import GradientComparison, fixed_generator, random_unit_vectors
from pullback.autograd.numerical_jacobian import numerical_jacobian, tangents_of, vector_jacobian
from pullback.creation import zeros_like
from pullback.modes.user_warnings import warn_user


class GradientCheck(GradientComparison):
    """One run of gradcheck: the comparisons, and what backward and forward mode have to hold besides."""

    def run(self) -> None:
        """All the checks that were asked for."""
        self.check_inputs()
        outputs = self.differentiable_outputs()
        if self.options["check_backward_ad"]:
            if not outputs:
                self.check_no_gradient()
                return
            self.compare_backward(outputs)
        if self.options["check_forward_ad"]:
            self.compare_forward()
            if self.options["check_undefined_grad"]:
                self.check_undefined_tangents()
        if self.options["check_batched_forward_grad"]:
            for position in self.positions:
                self.check_batched_forward(position)
        if self.options["check_backward_ad"]:
            for output in outputs if self.options["check_batched_grad"] else ():
                self.check_batched(output)
            self.check_zero_gradients(outputs)
            if self.options["check_undefined_grad"]:
                self.check_undefined(outputs)

    def check_inputs(self) -> None:
        """Refuse inputs on which finite differences mean nothing, and warn of single precision."""
        if not self.differentiable:
            raise ValueError(
                "gradcheck expects at least one input tensor to require gradient, but none of them have "
                "requires_grad=True."
            )
        for index in self.positions:
            x = self.inputs[index]
            if str(x.dtype).rpartition(".")[2] not in ("float64", "complex128"):
                warn_user(
                    f"Input #{index} requires gradient and is not a double precision floating point or complex. This check "
                    "will likely fail if all the inputs are not of double precision floating point or complex. "
                )
            if any(stride == 0 and size > 1 for stride, size in zip(x.stride(), x.shape, strict=True)):
                raise RuntimeError(
                    f"The {index}th input has a dimension with stride 0. gradcheck only supports inputs that are "
                    "non-overlapping to be able to compute the numerical gradients correctly. You should call .contiguous "
                    "on the input before passing it to gradcheck."
                )

    def check_no_gradient(self) -> None:
        """Outputs without history must not depend on the inputs."""
        for x in self.differentiable:
            for matrix in numerical_jacobian(self.float_outputs, x, self.options["eps"], self.axes_of(x)):
                if matrix.numel() and float(matrix.abs().max()) > self.options["atol"]:
                    raise GradcheckError("Numerical gradient for function expected to be zero")

    def check_zero_gradients(self, outputs: Sequence[Any]) -> None:
        """Gradients of zero give gradients of zero."""
        found = _grad(
            outputs, self.differentiable, [zeros_like(o) for o in outputs], retain_graph=True, allow_unused=True
        )
        for index, grad in enumerate(found):
            if grad is not None and grad.numel() and bool((grad != 0).any()):
                raise GradcheckError(f"backward not multiplied by grad_output: input {index} has a gradient for zeros")

    def check_undefined(self, outputs: Sequence[Any]) -> None:
        """A backward that gets no gradient for an output, for each of several and for all, must treat it as zeros."""
        numbers = range(len(outputs))
        for hidden in (set(numbers), *([{n} for n in numbers] if len(outputs) > 1 else [])):
            given = [_Undefined.apply(o) if n in hidden else o for n, o in enumerate(self.differentiable_outputs())]
            try:
                grads = _grad(given, self.differentiable, [zeros_like(o) for o in given], allow_unused=True)
            except RuntimeError as error:
                raise GradcheckError(
                    "Expected backward function to handle undefined output grads: it was called with None for an output "
                    f"that nothing uses, and raised {type(error).__name__}: {error}"
                ) from error
            for index, grad in enumerate(grads):
                if grad is not None and grad.numel() and bool((grad != 0).any()):
                    raise GradcheckError(
                        "Expected all input grads to be undefined or zero when all output grads are undefined or zero. "
                        f"Input {index} has another gradient."
                    )

    def check_undefined_tangents(self) -> None:
        """An input without a tangent gives what one with a tangent of zeros gives."""
        from pullback import functions

        directions = random_unit_vectors(self.differentiable, fixed_generator())
        tangents = {i: d.to(self.inputs[i].dtype) for i, d in zip(self.positions, directions, strict=True)}
        for position in self.positions:
            x = self.inputs[position]
            zero = {**tangents, position: zeros_like(x).detach()}
            without = {i: t for i, t in tangents.items() if i != position}
            inputs = [v.detach() if i == position else v for i, v in enumerate(self.inputs)]
            with_zeros = tangents_of(self.float_outputs, self.inputs, zero)
            undefined = tangents_of(self.float_outputs, inputs, without)
            for number, ((_, a), (_, b)) in enumerate(zip(with_zeros, undefined, strict=True)):
                if a is not None and b is not None and not bool(functions.allclose(a, b)):
                    raise GradcheckError(
                        f"Mismatch in tangent values for output with index: {number} when input: {x} has an undefined "
                        f"tangent value.  Got: {a} but expected: {b}"
                    )

    def check_batched_forward(self, position: int) -> None:
        """A batch of tangents at once gives what one by one gives."""
        from pullback import functions
        from pullback.func.vmap_level import VmapLevel  # lazy: transforms are above autograd

        def pushed(direction: Any) -> list[Any]:
            tangents = {i: zeros_like(self.inputs[i]).detach() for i in self.positions}
            pairs = tangents_of(self.float_outputs, self.inputs, {**tangents, position: direction})
            return [zeros_like(p) if t is None else t for p, t in pairs]

        directions = [functions.randn_like(self.inputs[position].detach()) for _ in range(2)]
        expected = [pushed(d) for d in directions]
        level = VmapLevel(len(directions), "error", is_transform=False)
        try:
            with level.running():
                batch = pushed(level.wrap(functions.stack(directions)))
        except RuntimeError as error:
            raise GradcheckError(f"While computing batched gradients, got: {error}") from error
        for number, tangent in enumerate(batch):
            if not self.close(level.to_physical(tangent), functions.stack([row[number] for row in expected])):
                raise GradcheckError(
                    f"While computing batched forward gradients, got: output {number} differs from the tangents one by one "
                    f"for input {position}"
                )

    def check_batched(self, output: Any) -> None:
        """A batch of cotangents at once gives what one by one gives."""
        from pullback import functions

        vectors = [functions.randn_like(output.detach()) for _ in range(2)]
        expected = [vector_jacobian(output, self.differentiable, v) for v in vectors]
        try:
            actual = _grad(
                output,
                self.differentiable,
                functions.stack(vectors),
                retain_graph=True,
                allow_unused=True,
                is_grads_batched=True,
            )
        except RuntimeError as error:
            raise GradcheckError(f"While computing batched gradients, got: {error}") from error
        for index, grad in enumerate(actual):
            rows = [row[index] for row in expected]
            if grad is not None and rows[0] is not None and not self.close(grad.detach(), functions.stack(rows)):
                raise GradcheckError(
                    f"While computing batched gradients, got: batched and individual gradients differ for input {index}"
                )


class _Undefined(Function):
    """Passes no gradient on."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return None
