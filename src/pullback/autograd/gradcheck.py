"""gradcheck and gradgradcheck: backward and forward mode against finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.autograd.differentiation import grad as _grad
from pullback.autograd.grad_mode import enable_grad
from pullback.autograd.gradient_comparison import (
    GradcheckError,
    GradientComparison,
    fixed_generator,
    random_unit_vectors,
)
from pullback.autograd.numerical_jacobian import backward_jacobian, numerical_jacobian, tangents_of, vector_jacobian
from pullback.creation import zeros_like
from pullback.modes.user_warnings import warn_user
from pullback.tensor.tensor import Tensor

__all__ = [
    "GradcheckError", "get_analytical_jacobian", "get_numerical_jacobian", "get_numerical_jacobian_wrt_specific_input",
    "gradcheck", "gradgradcheck",
]  # fmt: skip


class _Check(GradientComparison):
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


def _undefined_function() -> Any:
    from pullback.autograd.function import Function

    class Undefined(Function):
        """Passes no gradient on."""

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return None

    return Undefined


_Undefined = _undefined_function()


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Check gradients against finite differences; True, or GradcheckError (False without raise_exception).

    >>> import pullback
    >>> x = pullback.tensor([1.0, 2.0], dtype=pullback.float64, requires_grad=True)
    >>> gradcheck(lambda x: x.sin(), x)
    True
    """
    if not (check_forward_ad or check_backward_ad):
        raise AssertionError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_batched_grad and not check_backward_ad:
        raise AssertionError("Setting check_batched_grad=True requires check_backward_ad to be True")
    if check_batched_forward_grad and not check_forward_ad:
        raise AssertionError("Setting check_batched_forward_grad=True requires check_forward_ad to be True")
    options = {
        "eps": eps, "atol": atol, "rtol": rtol, "nondet_tol": nondet_tol, "check_undefined_grad": check_undefined_grad,
        "check_batched_forward_grad": check_batched_forward_grad,
        "check_grad_dtypes": check_grad_dtypes, "check_batched_grad": check_batched_grad, "fast_mode": fast_mode,
        "check_forward_ad": check_forward_ad, "check_backward_ad": check_backward_ad,
    }  # fmt: skip
    values = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    try:
        _Check(func, values, options).run()
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Check the gradients of gradients against finite differences of gradients.

    >>> import pullback
    >>> x = pullback.tensor([1.0, 2.0], dtype=pullback.float64, requires_grad=True)
    >>> gradgradcheck(lambda x: x.sin(), x)
    True
    """
    from pullback import functions

    if not (check_fwd_over_rev or check_rev_over_rev):
        raise AssertionError("Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True")
    if check_undefined_grad and not check_rev_over_rev:
        raise AssertionError("Setting check_undefined_grad=True requires check_rev_over_rev to be True")
    if check_batched_grad and not check_rev_over_rev:
        raise AssertionError("Setting check_batched_grad=True requires check_rev_over_rev to be True")
    values = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    check = _Check(func, values, {})
    if grad_outputs is None:
        outputs = check.differentiable_outputs()
        vectors = tuple([functions.randn_like(o.detach()).requires_grad_() for o in outputs])
        if gen_non_contig_grad_outputs:
            vectors = tuple([_non_contiguous(v) for v in vectors])
    else:
        vectors = (grad_outputs,) if isinstance(grad_outputs, Tensor) else tuple(grad_outputs)
    split = len(values)

    def gradient(*arguments: Any) -> tuple[Any, ...]:
        with enable_grad():
            inner = [x if i not in check.positions else _tracked(x) for i, x in enumerate(arguments[:split])]
            outputs = [o for o in check.float_outputs(*inner) if o.requires_grad]
            tracked = [inner[i] for i in check.positions]
            grads = _grad(outputs, tracked, arguments[split:], create_graph=True, allow_unused=True)
            return tuple([g for g in grads if g is not None])

    return gradcheck(
        gradient, (*values, *vectors), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception,
        nondet_tol=nondet_tol, check_undefined_grad=check_undefined_grad, check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad, fast_mode=fast_mode, check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
    )  # fmt: skip


def _tracked(x: Any) -> Any:
    """The input itself if it is recorded; finite differences and duals pass values that are not."""
    return x if x.requires_grad else x.requires_grad_()


def _non_contiguous(v: Any) -> Any:
    from pullback import functions

    return functions.stack([v.detach(), v.detach()], -1)[..., 0].requires_grad_()


def get_numerical_jacobian(
    fn: Callable[..., Any], inputs: Any, target: Any = None, eps: float = 1e-3, grad_out: float = 1.0
) -> Any:
    """Deprecated: the Jacobian of the first output by finite differences, one matrix (input x output) per input."""
    _deprecated("get_numerical_jacobian", grad_out)
    values = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    check = _Check(lambda *a: fn(values), values, {})
    if any(output.is_complex() for output in check.float_outputs()):
        raise ValueError(
            "Expected output to be non-complex. get_numerical_jacobian no longer supports functions that return complex "
            "outputs."
        )
    targets = check.differentiable if target is None else [target] if isinstance(target, Tensor) else target
    return tuple([numerical_jacobian(check.float_outputs, x, eps, check.axes_of(x))[0] for x in targets])


def get_numerical_jacobian_wrt_specific_input(
    fn: Callable[..., Any],
    input_idx: int,
    inputs: Any,
    outputs: Any,
    eps: float,
    input: Any = None,
    is_forward_ad: bool = False,
) -> Any:
    """The Jacobian of each output with respect to one input, by finite differences."""
    x = inputs[input_idx] if input is None else input
    if not x.requires_grad:
        raise AssertionError("Expected input to have requires_grad=True")
    check = _Check(fn, tuple(inputs), {})
    return tuple(numerical_jacobian(check.float_outputs, x, eps, check.axes_of(x)))


def get_analytical_jacobian(inputs: Any, output: Any, nondet_tol: float = 0.0, grad_out: float = 1.0) -> Any:
    """Deprecated: the Jacobian of `output` by backward, and whether it is the same twice and has right sizes and dtypes."""
    _deprecated("get_analytical_jacobian", grad_out)
    if output.is_complex():
        raise ValueError(
            "Expected output to be non-complex. get_analytical_jacobian no longer supports functions that return complex "
            "outputs."
        )
    values = [
        x for x in ((inputs,) if isinstance(inputs, Tensor) else inputs) if isinstance(x, Tensor) and x.requires_grad
    ]
    first, again = backward_jacobian(output, values), backward_jacobian(output, values)
    pairs = zip(first, again, strict=True)
    reentrant = all(not a.numel() or float((a - b).abs().max()) <= nondet_tol for a, b in pairs)
    return tuple(first), reentrant, True, True


def _deprecated(name: str, grad_out: float) -> None:
    warn_user(
        f"`{name}` was part of PyTorch's private API and not meant to be exposed. We are deprecating it: use gradcheck.",
        FutureWarning,
    )
    if grad_out != 1.0:
        raise ValueError(f"Expected grad_out to be 1.0. {name} no longer supports values of grad_out != 1.0.")
