"""Nonlinearities as modules; multi-head attention is in multihead_attention.py."""

from __future__ import annotations

from typing import Any

from pullback import creation, functions
from pullback.modes.user_warnings import warn_user
from pullback.nn import functional, init
from pullback.nn.modules.module import Module
from pullback.nn.modules.multihead_attention import MultiheadAttention
from pullback.nn.parameter import Parameter
from pullback.tensor.tensor import Tensor

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "SELU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU",
    "LogSigmoid", "LogSoftmax", "Mish", "MultiheadAttention", "PReLU", "RReLU", "ReLU", "ReLU6", "SiLU", "Sigmoid",
    "Softmax", "Softmax2d", "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold",
]  # fmt: skip


def _described(module: Any, *names: str) -> str:
    """The named attributes, and `inplace` where it is set."""
    parts = [f"{name}={getattr(module, name)}" for name in names]
    if getattr(module, "inplace", False):
        parts.append("inplace=True")
    return ", ".join(parts)


class Threshold(Module):
    """Replace elements not above `threshold` by `value`.

    Any shape. y = x where x > threshold, else value.

    >>> import pullback
    >>> pullback.nn.Threshold(1.0, 0.0)(pullback.tensor([0.5, 2.]))
    tensor([0., 2.])
    """

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Any:
        return functional.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self) -> str:
        return _described(self, "threshold", "value")


class ReLU(Module):
    """max(x, 0).

    The input has any shape, and the result has the same; `inplace` writes the result into it. y = max(0, x).

    >>> import pullback
    >>> ReLU()(pullback.tensor([-1., 2.]))
    tensor([0., 2.])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Any:
        return functional.relu_(input) if self.inplace else functional.relu(input)

    def extra_repr(self) -> str:
        return _described(self)


class RReLU(Module):
    """A leaky rectifier with a random slope in training, and the mean slope in evaluation.

    Any shape. y = x where x >= 0, else a * x; a is drawn from [lower, upper] for each element in training and is (lower
    + upper) / 2 in evaluation.

    >>> import pullback
    >>> pullback.nn.RReLU(0.1, 0.3).eval()(pullback.tensor([-1., 2.]))
    tensor([-0.2000,  2.0000])
    """

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Any:
        return functional.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return _described(self, "lower", "upper")


class Hardtanh(Module):
    """Clip to [min_val, max_val].

    Any shape. y = min(max(x, min_val), max_val).

    >>> import pullback
    >>> pullback.nn.Hardtanh()(pullback.tensor([-4., 0.5, 3.]))
    tensor([-1.0000,  0.5000,  1.0000])
    """

    def __init__(
        self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False, min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        if min_value is not None:
            warn_user("keyword argument `min_value` is deprecated and rename to `min_val`", FutureWarning)
            min_val = min_value
        if max_value is not None:
            warn_user("keyword argument `max_value` is deprecated and rename to `max_val`", FutureWarning)
            max_val = max_value
        if max_val <= min_val:
            raise AssertionError("max_val must be greater than min_val")
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace

    def forward(self, input: Tensor) -> Any:
        return functional.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self) -> str:
        return _described(self, "min_val", "max_val")


class ReLU6(Hardtanh):
    """Clip to [0, 6].

    Any shape. y = min(max(0, x), 6).

    >>> import pullback
    >>> pullback.nn.ReLU6()(pullback.tensor([-1., 2., 8.]))
    tensor([0., 2., 6.])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        return _described(self)


class Sigmoid(Module):
    """1 / (1 + exp(-x)).

    Any shape. y = 1 / (1 + exp(-x)).

    >>> import pullback
    >>> pullback.nn.Sigmoid()(pullback.tensor([0., 2.]))
    tensor([0.5000, 0.8808])
    """

    def forward(self, input: Tensor) -> Any:
        return functions.sigmoid(input)


class Hardsigmoid(Module):
    """A sigmoid of straight lines.

    Any shape. y = min(max(x + 3, 0), 6) / 6.

    >>> import pullback
    >>> pullback.nn.Hardsigmoid()(pullback.tensor([-4., 0., 3.]))
    tensor([0.0000, 0.5000, 1.0000])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Any:
        return functional.hardsigmoid(input, self.inplace)


class Tanh(Module):
    """The hyperbolic tangent.

    Any shape. y = (exp(x) - exp(-x)) / (exp(x) + exp(-x)).

    >>> import pullback
    >>> pullback.nn.Tanh()(pullback.tensor([0., 1.]))
    tensor([0.0000, 0.7616])
    """

    def forward(self, input: Tensor) -> Any:
        return functions.tanh(input)


class SiLU(Module):
    """x * sigmoid(x).

    Any shape. y = x * sigmoid(x).

    >>> import pullback
    >>> pullback.nn.SiLU()(pullback.tensor([-1., 2.]))
    tensor([-0.2689,  1.7616])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Any:
        return functional.silu(input, inplace=self.inplace)

    def extra_repr(self) -> str:
        return _described(self)


class Mish(Module):
    """x * tanh(softplus(x)).

    Any shape. y = x * tanh(ln(1 + exp(x))).

    >>> import pullback
    >>> pullback.nn.Mish()(pullback.tensor([-1., 2.]))
    tensor([-0.3034,  1.9440])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Any:
        return functional.mish(input, inplace=self.inplace)

    def extra_repr(self) -> str:
        return _described(self)


class Hardswish(Module):
    """x * hardsigmoid(x).

    Any shape. y = x * min(max(x + 3, 0), 6) / 6.

    >>> import pullback
    >>> pullback.nn.Hardswish()(pullback.tensor([-4., 1., 3.]))
    tensor([-0.0000, 0.6667, 3.0000])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Any:
        return functional.hardswish(input, self.inplace)


class ELU(Module):
    """x above zero, alpha * (exp(x) - 1) below.

    Any shape. y = x where x > 0, else alpha * (exp(x) - 1).

    >>> import pullback
    >>> pullback.nn.ELU()(pullback.tensor([-1., 2.]))
    tensor([-0.6321,  2.0000])
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Any:
        return functional.elu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return _described(self, "alpha")


class CELU(Module):
    """An ELU with a continuous derivative for every alpha.

    Any shape. y = max(0, x) + min(0, alpha * (exp(x / alpha) - 1)).

    >>> import pullback
    >>> pullback.nn.CELU()(pullback.tensor([-1., 2.]))
    tensor([-0.6321,  2.0000])
    """

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Any:
        return functional.celu(input, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return _described(self, "alpha")


class SELU(Module):
    """The self-normalising ELU.

    Any shape. y = scale * (max(0, x) + min(0, alpha * (exp(x) - 1))), scale = 1.0507..., alpha = 1.6732....

    >>> import pullback
    >>> pullback.nn.SELU()(pullback.tensor([-1., 2.]))
    tensor([-1.1113,  2.1014])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Any:
        return functional.selu(input, self.inplace)

    def extra_repr(self) -> str:
        return _described(self)


class GLU(Module):
    """One half of the input times the sigmoid of the other.

    The size of `dim` is even, and halved in the result. y = a * sigmoid(b) for the halves a and b.

    >>> import pullback
    >>> pullback.nn.GLU()(pullback.tensor([2., 0.]))
    tensor([1.])
    """

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Any:
        return functional.glu(input, self.dim)

    def extra_repr(self) -> str:
        return _described(self, "dim")


class GELU(Module):
    """x times the normal distribution function of x.

    Any shape. y = x * (1 + erf(x / sqrt(2))) / 2, or with `approximate`="tanh" x * (1 + tanh(sqrt(2 / pi) * (x +
    0.044715 * x ** 3))) / 2.

    >>> import pullback
    >>> pullback.nn.GELU()(pullback.tensor([-1., 2.]))
    tensor([-0.1587,  1.9545])
    """

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Any:
        return functional.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Hardshrink(Module):
    """Zero within [-lambd, lambd].

    Any shape. y = x where |x| > lambd, else 0.

    >>> import pullback
    >>> pullback.nn.Hardshrink()(pullback.tensor([-1., 0.3]))
    tensor([-1.,  0.])
    """

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Any:
        return functional.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class LeakyReLU(Module):
    """x above zero, negative_slope * x below.

    Any shape. y = x where x > 0, else negative_slope * x.

    >>> import pullback
    >>> pullback.nn.LeakyReLU(0.1)(pullback.tensor([-1., 2.]))
    tensor([-0.1000,  2.0000])
    """

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Any:
        return functional.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return _described(self, "negative_slope")


class LogSigmoid(Module):
    """log(sigmoid(x)), safe from underflow.

    Any shape. y = -ln(1 + exp(-x)).

    >>> import pullback
    >>> pullback.nn.LogSigmoid()(pullback.tensor([0., 2.]))
    tensor([-0.6931, -0.1269])
    """

    def forward(self, input: Tensor) -> Any:
        return functional.logsigmoid(input)


class Softplus(Module):
    """log(1 + exp(beta * x)) / beta, linear above the threshold.

    Any shape. y = ln(1 + exp(beta * x)) / beta, and x where beta * x exceeds `threshold`.

    >>> import pullback
    >>> pullback.nn.Softplus()(pullback.tensor([0., 2.]))
    tensor([0.6931, 2.1269])
    """

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Any:
        return functional.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return _described(self, "beta", "threshold")


class Softshrink(Module):
    """x moved towards zero by lambd.

    Any shape. y = x - lambd where x > lambd, x + lambd where x < -lambd, else 0.

    >>> import pullback
    >>> pullback.nn.Softshrink()(pullback.tensor([-1., 0.3]))
    tensor([-0.5000,  0.0000])
    """

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Any:
        return functional.softshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return str(self.lambd)


class PReLU(Module):
    """A leaky rectifier with learned slopes.

    Any shape; `weight` is one number, or one for each of `num_parameters` channels (dimension 1). y = x where x > 0,
    else weight * x.

    >>> import pullback
    >>> pullback.nn.PReLU()(pullback.tensor([-1., 2.])).detach()
    tensor([-0.2500,  2.0000])
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(creation.empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set all slopes to `init`."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Any:
        return functional.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class Softsign(Module):
    """x / (1 + |x|).

    Any shape. y = x / (1 + |x|).

    >>> import pullback
    >>> pullback.nn.Softsign()(pullback.tensor([-1., 3.]))
    tensor([-0.5000,  0.7500])
    """

    def forward(self, input: Tensor) -> Any:
        return functional.softsign(input)


class Tanhshrink(Module):
    """x - tanh(x).

    Any shape. y = x - tanh(x).

    >>> import pullback
    >>> pullback.nn.Tanhshrink()(pullback.tensor([0., 1.]))
    tensor([0.0000, 0.2384])
    """

    def forward(self, input: Tensor) -> Any:
        return functional.tanhshrink(input)


class Softmin(Module):
    """Softmax of -x.

    The shape stays, and `dim` sums to 1. y_i = exp(-x_i) / sum over j of exp(-x_j).

    >>> import pullback
    >>> pullback.nn.Softmin(0)(pullback.tensor([0., 1.]))
    tensor([0.7311, 0.2689])
    """

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Any:
        return functional.softmin(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(Module):
    """exp(x), scaled so that it sums to one along `dim`.

    The shape stays, and `dim` sums to 1. y_i = exp(x_i) / sum over j of exp(x_j).

    >>> import pullback
    >>> pullback.nn.Softmax(0)(pullback.tensor([0., 0.]))
    tensor([0.5000, 0.5000])
    """

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.setdefault("dim", None)

    def forward(self, input: Tensor) -> Any:
        return functional.softmax(input, self.dim, _stacklevel=5)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax2d(Module):
    """Softmax over the channels of images.

    (N, C, H, W) or (C, H, W); the channels of each place sum to 1.

    >>> import pullback
    >>> pullback.nn.Softmax2d()(pullback.zeros(2, 1, 1)).flatten()
    tensor([0.5000, 0.5000])
    """

    def forward(self, input: Tensor) -> Any:
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return functional.softmax(input, -3, _stacklevel=5)


class LogSoftmax(Module):
    """log(softmax(x)), safe from underflow.

    The shape stays. y_i = x_i - ln(sum over j of exp(x_j)) along `dim`.

    >>> import pullback
    >>> pullback.nn.LogSoftmax(0)(pullback.tensor([0., 0.]))
    tensor([-0.6931, -0.6931])
    """

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Any:
        return functional.log_softmax(input, self.dim, _stacklevel=5)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"
