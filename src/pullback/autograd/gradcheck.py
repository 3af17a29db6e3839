"""gradcheck and gradgradcheck: backward and forward mode against finite differences.

The work is done by gradient_check.py, which is loaded when it is first called: few programs check gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pullback.autograd.differentiation import grad as _grad
from pullback.autograd.grad_mode import enable_grad
from pullback.modes.user_warnings import warn_user
from pullback.tensor.tensor import Tensor

__all__ = [
    "GradcheckError", "get_analytical_jacobian", "get_numerical_jacobian", "get_numerical_jacobian_wrt_specific_input",
    "gradcheck", "gradgradcheck",
]  # fmt: skip


class GradcheckError(RuntimeError):
    """A derivative differs from what finite differences say."""


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
        _check(func, values, options).run()
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
    check = _check(func, values, {})
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


def _check(func: Callable[..., Any], values: tuple[Any, ...], options: dict[str, Any]) -> Any:
    from pullback.autograd.gradient_check import GradientCheck  # lazy: see above

    return GradientCheck(func, values, options)


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
    from pullback.autograd.numerical_jacobian import numerical_jacobian  # lazy: see above

    _deprecated("get_numerical_jacobian", grad_out)
    values = tuple(inputs) if isinstance(inputs, (tuple, list)) else (inputs,)
    check = _check(lambda *a: fn(values), values, {})
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
    from pullback.autograd.numerical_jacobian import numerical_jacobian  # lazy: see above

    x = inputs[input_idx] if input is None else input
    if not x.requires_grad:
        raise AssertionError("Expected input to have requires_grad=True")
    check = _check(fn, tuple(inputs), {})
    return tuple(numerical_jacobian(check.float_outputs, x, eps, check.axes_of(x)))


def get_analytical_jacobian(inputs: Any, output: Any, nondet_tol: float = 0.0, grad_out: float = 1.0) -> Any:
    """Deprecated: the Jacobian of `output` by backward, and whether it is the same twice and has right sizes and dtypes."""
    from pullback.autograd.numerical_jacobian import backward_jacobian  # lazy: see above

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
