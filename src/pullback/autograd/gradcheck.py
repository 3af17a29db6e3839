"""gradcheck and gradgradcheck: backward and forward mode against finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.autograd.differentiation import grad as _grad
from pullback.autograd.grad_mode import enable_grad
from pullback.autograd.numerical_jacobian import (
    analytical_jacobian,
    basis_vector,
    count,
    directional_difference,
    forward_derivative,
    forward_jacobian,
    numerical_jacobian,
    real_parts,
    vector_jacobian,
)
from pullback.creation import zeros, zeros_like
from pullback.modes.user_warnings import warn_user
from pullback.tensor.tensor import Tensor

__all__ = [
    "GradcheckError", "get_analytical_jacobian", "get_numerical_jacobian", "get_numerical_jacobian_wrt_specific_input",
    "gradcheck", "gradgradcheck",
]  # fmt: skip


class GradcheckError(RuntimeError):
    """A derivative differs from what finite differences say."""


class _Check:
    """One run of gradcheck: the function, its inputs and the tolerances."""

    def __init__(self, func: Callable[..., Any], inputs: tuple[Any, ...], options: dict[str, Any]) -> None:
        self.func = func
        self.inputs = inputs
        self.options = options
        self.differentiable = [x for x in inputs if isinstance(x, Tensor) and x.requires_grad]
        self.positions = [i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad]

    def outputs(self, *inputs: Any) -> list[Any]:
        """The results that can have a gradient."""
        result = self.func(*(inputs or self.inputs))
        results = result if isinstance(result, (tuple, list)) else (result,)
        return [r for r in results if isinstance(r, Tensor) and (r.is_floating_point() or r.is_complex())]

    def close(self, a: Any, b: Any) -> bool:
        import pullback.functions as F

        wide = (F.double(a), F.double(b))
        return bool(F.allclose(wide[0], wide[1], self.options["rtol"], self.options["atol"]))

    def run(self) -> None:
        """All the checks that were asked for."""
        self.check_inputs()
        outputs = self.outputs()
        if not any(o.requires_grad for o in outputs):
            self.check_no_gradient(outputs)
            return
        if self.options["fast_mode"]:
            self.check_fast(outputs)
        else:
            self.check_slow(outputs)
        if self.options["check_backward_ad"]:
            for number, output in enumerate(outputs):
                if output.requires_grad:
                    self.check_backward_properties(number, output)
        if self.options["check_batched_forward_grad"]:
            for position in self.positions:
                self.check_batched_forward(position)

    def check_inputs(self) -> None:
        """Refuse inputs on which finite differences mean nothing, and warn of single precision."""
        if not self.differentiable:
            raise ValueError(
                "gradcheck expects at least one input tensor to require gradient, but none of the them have "
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

    def check_no_gradient(self, outputs: Sequence[Any]) -> None:
        """Outputs without history must not depend on the inputs."""
        for x in self.differentiable:
            for column in numerical_jacobian(self.outputs, x, self.options["eps"]):
                for change in column:
                    if change.numel() and float(change.abs().max()) > self.options["atol"]:
                        raise GradcheckError("Numerical gradient for function expected to be zero")

    def check_slow(self, outputs: Sequence[Any]) -> None:
        """Compare every element of every Jacobian."""
        eps = self.options["eps"]
        for index, x in enumerate(self.differentiable):
            columns = numerical_jacobian(self.outputs, x, eps)
            numerical = [_from_columns(columns, number, output, x) for number, output in enumerate(outputs)]
            if self.options["check_backward_ad"]:
                for number, output in enumerate(outputs):
                    analytical = self.backward_matrix(output, x)
                    self.compare(numerical[number], analytical, number, index, "analytical")
            if self.options["check_forward_ad"]:
                columns = forward_jacobian(self.forward_outputs, self.inputs, self.positions[index])
                for number, output in enumerate(outputs):
                    forward = _from_columns(columns, number, output, x)
                    self.compare(numerical[number], forward, number, index, "analytical (forward mode)")

    def forward_outputs(self, *inputs: Any) -> list[Any]:
        return self.outputs(*inputs)

    def backward_matrix(self, output: Any, x: Any) -> Any:
        if not output.requires_grad:
            return zeros((count(output), count(x)), dtype=_real_double())
        rows = []
        for row in analytical_jacobian(output, [x]):
            grad = row[0]
            if grad is not None:
                self.check_gradient_type(grad, x)
            rows.append(real_parts(zeros_like(x) if grad is None else grad))
        return _stack(rows, count(x))

    def check_gradient_type(self, grad: Any, x: Any) -> None:
        if grad.shape != x.shape:
            raise GradcheckError(f"The gradient has size {tuple(grad.shape)}, but the input {tuple(x.shape)}")
        if self.options["check_grad_dtypes"] and grad.dtype != x.dtype:
            raise GradcheckError(f"The gradient has dtype {grad.dtype}, but the input {x.dtype}")

    def compare(self, numerical: Any, analytical: Any, output: int, input: int, kind: str) -> None:
        """Raise with both matrices and the worst element if they differ."""
        if self.close(analytical, numerical):
            return
        difference = (analytical.double() - numerical.double()).abs()
        worst = int(difference.argmax())
        row, column = divmod(worst, max(numerical.shape[1], 1))
        raise GradcheckError(
            f"Jacobian mismatch for output {output} with respect to input {input},\n"
            f"numerical:{numerical}\n{kind}:{analytical}\n"
            f"The worst element is the derivative of number {row} of the output with respect to number {column} of the "
            f"input: numerical {float(numerical[row, column]):.6g}, {kind} {float(analytical[row, column]):.6g}."
        )

    def check_fast(self, outputs: Sequence[Any]) -> None:
        """Compare u^T J v for random u and v; on a mismatch run the slow check for its message."""
        for x_index, x in enumerate(self.differentiable):
            direction = _random_like(x)
            numerical = directional_difference(self.outputs, [x], [direction], self.options["eps"])
            directions: list[Any] = [None] * len(self.inputs)
            directions[self.positions[x_index]] = direction
            forward = (
                forward_derivative(self.forward_outputs, self.inputs, directions)
                if self.options["check_forward_ad"]
                else None
            )
            for number, output in enumerate(outputs):
                vector = _random_like(output)
                weights = real_parts(vector).double()
                expected = (weights * numerical[number].double()).sum()
                found = []
                if self.options["check_backward_ad"] and output.requires_grad:
                    (grad,) = vector_jacobian(output, [x], vector)
                    pulled = 0.0 if grad is None else (real_parts(grad).double() * real_parts(direction).double()).sum()
                    found.append(pulled)
                if forward is not None:
                    found.append((weights * forward[number].double()).sum())
                for value in found:
                    scale = max(abs(float(expected)), 1.0)
                    if (
                        not abs(float(value) - float(expected))
                        <= self.options["atol"] * scale + self.options["rtol"] * scale
                    ):
                        self.check_slow(outputs)
                        raise GradcheckError(
                            f"Jacobian mismatch for output {number} with respect to input {x_index},\nthe fast check found "
                            f"numerical:{float(expected):.6g} analytical:{float(value):.6g}, though the slow check passes."
                        )

    def check_backward_properties(self, number: int, output: Any) -> None:
        """The same backward twice, undefined gradients, and batched gradients."""
        vector = _random_like(output)
        first = vector_jacobian(output, self.differentiable, vector)
        again = vector_jacobian(output, self.differentiable, vector)
        for a, b in zip(first, again, strict=True):
            if a is not None and a.numel() and float((a - b).abs().max()) > self.options["nondet_tol"]:
                raise GradcheckError(
                    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times gives "
                    "different values, although analytical gradient matches numerical gradient.The tolerance for "
                    f"nondeterminism was {self.options['nondet_tol']}."
                )
        zero = vector_jacobian(output, self.differentiable, zeros_like(output))
        for index, grad in enumerate(zero):
            if grad is not None and grad.numel() and bool((grad != 0).any()):
                raise GradcheckError(f"backward not multiplied by grad_output: input {index} has a gradient for zeros")
        if self.options["check_undefined_grad"]:
            self.check_undefined(number)
        if self.options["check_batched_grad"]:
            self.check_batched(output)

    def check_undefined(self, number: int) -> None:
        """A backward that gets no gradient for an output must treat it as zeros."""
        outputs = [o for o in self.outputs() if o.requires_grad]
        undefined = _Undefined.apply
        hidden = [undefined(o) for o in outputs]
        grads = _grad(hidden, self.differentiable, [zeros_like(h) for h in hidden], allow_unused=True)
        for index, grad in enumerate(grads):
            if grad is not None and grad.numel() and bool((grad != 0).any()):
                raise GradcheckError(
                    "Expected all input grads to be undefined or zero when all output grads are undefined or zero: input "
                    f"{index} of output {number} has another gradient"
                )

    def check_batched_forward(self, position: int) -> None:
        """A batch of tangents at once gives what one by one gives."""
        import pullback.functions as F
        from pullback.func import jvp, vmap  # lazy: transforms are above autograd

        def pushed(direction: Any) -> Any:
            def function(x: Any) -> tuple[Any, ...]:
                inputs = [x if i == position else v for i, v in enumerate(self.inputs)]
                return tuple(self.outputs(*inputs))

            return jvp(function, (self.inputs[position].detach(),), (direction,))[1]

        directions = [_random_like(self.inputs[position]) for _ in range(3)]
        expected = [pushed(d) for d in directions]
        actual = vmap(pushed)(F.stack(directions))
        for number, batch in enumerate(actual):
            if not self.close(real_parts(batch), real_parts(F.stack([row[number] for row in expected]))):
                raise GradcheckError(
                    f"While computing batched forward gradients, got: output {number} differs from the tangents one by one "
                    f"for input {position}"
                )

    def check_batched(self, output: Any) -> None:
        """A batch of cotangents at once gives what one by one gives."""
        import pullback.functions as F

        vectors = [_random_like(output) for _ in range(3)]
        expected = [vector_jacobian(output, self.differentiable, v) for v in vectors]
        actual = _grad(
            output, self.differentiable, F.stack(vectors), retain_graph=True, allow_unused=True, is_grads_batched=True
        )
        for index, grad in enumerate(actual):
            rows = [row[index] for row in expected]
            if grad is None or rows[0] is None:
                continue
            if not self.close(grad.detach().reshape(-1).abs(), F.stack(rows).reshape(-1).abs()):
                raise GradcheckError("While computing batched gradients, got: batched and individual gradients differ for "
                                     f"input {index}")  # fmt: skip


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


def _real_double() -> Any:
    from pullback.backend.dtype import float64

    return float64


def _stack(rows: list[Any], width: int) -> Any:
    import pullback.functions as F

    return F.stack(rows).double() if rows else zeros((0, width), dtype=_real_double())


def _from_columns(columns: list[list[Any]], number: int, output: Any, x: Any) -> Any:
    """The Jacobian of one output from the columns of an input."""
    if not columns:
        return zeros((count(output), 0), dtype=_real_double())
    return _stack([column[number] for column in columns], count(output)).t()


def _random_like(tensor: Any) -> Any:
    import pullback.functions as F

    return F.randn_like(tensor.detach())


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
        raise ValueError("Expected at least one of check_forward_ad or check_backward_ad to be True")
    if check_undefined_grad and not check_backward_ad:
        check_undefined_grad = False
    if check_batched_grad and not check_backward_ad:
        raise ValueError("Setting check_batched_grad=True requires check_backward_ad to be True")
    options = {
        "eps": eps, "atol": atol, "rtol": rtol, "nondet_tol": nondet_tol, "check_undefined_grad": check_undefined_grad,
        "check_batched_forward_grad": check_batched_forward_grad,
        "check_grad_dtypes": check_grad_dtypes, "check_batched_grad": check_batched_grad, "fast_mode": fast_mode,
        "check_forward_ad": check_forward_ad, "check_backward_ad": check_backward_ad,
    }  # fmt: skip
    values = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
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
    values = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    check = _Check(func, values, {})
    if grad_outputs is None:
        outputs = [o for o in check.outputs() if o.requires_grad]
        vectors = tuple([_random_like(o).requires_grad_() for o in outputs])
        if gen_non_contig_grad_outputs:
            vectors = tuple([_non_contiguous(v) for v in vectors])
    else:
        vectors = (grad_outputs,) if isinstance(grad_outputs, Tensor) else tuple(grad_outputs)
    split = len(values)

    def gradient(*arguments: Any) -> tuple[Any, ...]:
        with enable_grad():
            inner = [x if i not in check.positions else _tracked(x) for i, x in enumerate(arguments[:split])]
            outputs = [o for o in check.outputs(*inner) if o.requires_grad]
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
    import pullback.functions as F

    return F.stack([v.detach(), v.detach()], -1)[..., 0].requires_grad_()


def get_numerical_jacobian(
    fn: Callable[..., Any], inputs: Any, target: Any = None, eps: float = 1e-3, grad_out: float = 1.0
) -> Any:
    """Deprecated: the Jacobian of the first output by finite differences, one matrix (input x output) per input."""
    _deprecated("get_numerical_jacobian")
    values = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    check = _Check(lambda *a: fn(values if isinstance(inputs, tuple) else inputs), values, {})
    tensors = [x for x in values if isinstance(x, Tensor)]
    output = check.outputs()[0]
    return [_from_columns(numerical_jacobian(check.outputs, x, eps), 0, output, x).t() for x in tensors]


def get_numerical_jacobian_wrt_specific_input(
    fn: Callable[..., Any],
    input_idx: int,
    inputs: Any,
    outputs: Any,
    eps: float,
    input: Any = None,
    is_forward_ad: bool = False,
) -> Any:
    """The columns of the Jacobian with respect to one input."""
    x = inputs[input_idx] if input is None else input
    check = _Check(fn, tuple(inputs), {})
    columns = numerical_jacobian(check.outputs, x, eps)
    return tuple([_from_columns(columns, number, output, x).t() for number, output in enumerate(check.outputs())])


def get_analytical_jacobian(inputs: Any, output: Any, nondet_tol: float = 0.0, grad_out: float = 1.0) -> Any:
    """Deprecated: the Jacobian of `output` by backward, and whether it is reentrant and well-typed."""
    _deprecated("get_analytical_jacobian")
    values = [
        x for x in ((inputs,) if isinstance(inputs, Tensor) else inputs) if isinstance(x, Tensor) and x.requires_grad
    ]
    matrices = []
    for x in values:
        rows = [vector_jacobian(output, [x], basis_vector(output, i))[0] for i in range(count(output))]
        matrices.append(_stack([real_parts(zeros_like(x) if g is None else g) for g in rows], count(x)).t())
    return tuple(matrices), True, True, True


def _deprecated(name: str) -> None:
    warn_user(f"{name} is deprecated: it was part of PyTorch's private API", FutureWarning)
