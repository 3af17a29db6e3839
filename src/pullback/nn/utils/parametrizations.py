"""Parametrizations: weight normalisation, spectral normalisation, orthogonal matrices."""

from __future__ import annotations

from typing import Any

import pullback.functions as functions
from pullback import creation
from pullback.autograd.grad_mode import no_grad
from pullback.backend.dtype import finfo
from pullback.nn import functional
from pullback.nn.modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from pullback.nn.modules.module import Module
from pullback.nn.utils import parametrize
from pullback.nn.utils.norm_except_dim import norm_except_dim, weight_from_norm
from pullback.tensor.tensor import Tensor

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Any, weight_v: Any) -> Any:
        return weight_from_norm(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Any) -> tuple[Any, Any]:
        """Norm and direction of a weight."""
        return norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Learn norm and direction of a weight apart from each other.

    The module gets a parametrization of its parameter `name`: original0 is the norm g, for each index of `dim`, original1
    the direction v. weight = g * v / |v|.

    >>> import pullback
    >>> layer = pullback.nn.utils.parametrizations.weight_norm(pullback.nn.Linear(2, 3))
    >>> list(layer.parametrizations.weight.original0.shape)
    [3, 1]
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename_old_keys(state_dict: Any, prefix: str, *rest: Any) -> None:
        for old, new in ((f"{prefix}{name}_g", "original0"), (f"{prefix}{name}_v", "original1")):
            if old in state_dict:
                state_dict[f"{prefix}parametrizations.{name}.{new}"] = state_dict.pop(old)

    module._register_load_state_dict_pre_hook(rename_old_keys)
    return module


class _SpectralNorm(Module):
    _u: Any
    _v: Any

    def __init__(self, weight: Any, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        ndim = weight.ndim
        if dim >= ndim or dim < -ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim = dim if dim >= 0 else dim + ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = self._as_matrix(weight)
            rows, columns = matrix.size()
            u = functions.normal_(matrix.detach().new_empty(rows), 0, 1)
            v = functions.normal_(matrix.detach().new_empty(columns), 0, 1)
            self.register_buffer("_u", functional.normalize(u, dim=0, eps=eps))
            self.register_buffer("_v", functional.normalize(v, dim=0, eps=eps))
            self._power_method(matrix, 15)

    def _as_matrix(self, weight: Any) -> Any:
        if weight.ndim <= 1:
            raise AssertionError("weight must have more than one dimension")
        if self.dim != 0:
            weight = weight.permute(self.dim, *[d for d in range(weight.dim()) if d != self.dim])
        return weight.flatten(1)

    def _power_method(self, matrix: Any, iterations: int) -> None:
        with no_grad():
            for _ in range(iterations):
                self._u.copy_(functional.normalize(matrix @ self._v, dim=0, eps=self.eps))
                self._v.copy_(functional.normalize(matrix.mH @ self._u, dim=0, eps=self.eps))

    def forward(self, weight: Any) -> Any:
        if weight.ndim == 1:
            return functional.normalize(weight, dim=0, eps=self.eps)
        matrix = self._as_matrix(weight)
        if self.training:
            self._power_method(matrix, self.n_power_iterations)
        # Clones, since the buffers change in the next forward while this one may still await its backward.
        sigma = functions.vdot(self._u.clone(), matrix @ self._v.clone())
        return weight / sigma

    def right_inverse(self, value: Any) -> Any:
        """Any matrix stands for its own normalised form."""
        return value


def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
    """Divide a weight by its largest singular value, estimated by power iterations.

    The module gets a parametrization of its parameter `name`; each call in training mode does `n_power_iterations` steps.

    >>> import pullback
    >>> _ = pullback.manual_seed(0)
    >>> layer = pullback.nn.utils.parametrizations.spectral_norm(pullback.nn.Linear(2, 2), n_power_iterations=20)
    >>> round(pullback.linalg.matrix_norm(layer.weight, 2).item(), 4)
    1.0
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if dim is None:
        dim = 1 if isinstance(module, (ConvTranspose1d, ConvTranspose2d, ConvTranspose3d)) else 0
    parametrize.register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
    return module


def _made_orthogonal(matrix: Any) -> Any:
    """The orthogonal factor of a matrix, with signs that make it unique."""
    from pullback import linalg

    q, r = linalg.qr(matrix)
    return q * r.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


def _is_orthogonal(matrix: Any) -> bool:
    tolerance = 10.0 * matrix.size(-2) * finfo(matrix.dtype).eps
    identity = creation.eye(matrix.size(-1), dtype=matrix.dtype)
    return bool(((matrix.mH @ matrix - identity).abs() <= tolerance).all())


class _Orthogonal(Module):
    base: Any

    def __init__(self, weight: Any, orthogonal_map: str, *, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.dtype.is_complex and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Any) -> Any:
        from pullback import linalg

        rows, columns = X.size(-2), X.size(-1)
        is_wide = rows < columns
        if is_wide:
            X, rows, columns = X.mT, columns, rows
        if self.orthogonal_map == "householder":
            below = X.tril(diagonal=-1)
            tau = 2.0 / (1.0 + (below * below).sum(-2))
            Q = linalg.householder_product(below, tau)
            Q = Q * X.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)
        else:
            X = X.tril()
            if rows != columns:
                X = functions.cat([X, X.new_zeros((*X.shape[:-2], rows, rows - columns))], -1)
            skew = X - X.mH
            if self.orthogonal_map == "matrix_exp":
                Q = linalg.matrix_exp(skew)
            else:
                identity = creation.eye(rows, dtype=skew.dtype)
                Q = linalg.solve(identity - 0.5 * skew, identity + 0.5 * skew)
            Q = Q[..., :columns]
        if getattr(self, "base", None) is not None:
            Q = self.base @ Q
        return Q.mT if is_wide else Q

    def right_inverse(self, Q: Any) -> Any:
        """What gives `Q`, or the orthogonal matrix nearest to it in a sense."""
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}."
            )
        Q_given = Q
        rows, columns = Q.size(-2), Q.size(-1)
        is_wide = rows < columns
        if is_wide:
            Q, rows, columns = Q.mT, columns, rows
        if "base" not in self._buffers:
            if self.orthogonal_map != "householder":
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                    "use_trivialization=False: their inverse is not unique."
                )
            return self._householder_inverse(Q, is_wide)
        if rows == columns:
            Q = Q.clone() if _is_orthogonal(Q) else _made_orthogonal(Q)
        else:
            filling = functions.randn(*Q.size()[:-2], rows, rows - columns, dtype=Q.dtype)
            Q = _made_orthogonal(functions.cat([Q, filling], -1))
        self.base = Q
        start = creation.zeros_like(Q_given.detach())
        start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return start

    def _householder_inverse(self, Q: Any, is_wide: bool) -> Any:
        A, tau = functions.geqrf(Q)
        A.diagonal(dim1=-2, dim2=-1).sign_()
        A.diagonal(dim1=-2, dim2=-1)[tau == 0.0] *= -1
        return A.mT if is_wide else A


def orthogonal(
    module: Any, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Any:
    """Keep a matrix orthogonal, by the matrix exponential, Cayley's map or Householder reflections."""
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        is_square = weight.size(-2) == weight.size(-1)
        orthogonal_map = "matrix_exp" if is_square or weight.dtype.is_complex else "householder"
    if orthogonal_map not in ("matrix_exp", "cayley", "householder"):
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    parametrization = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    parametrize.register_parametrization(module, name, parametrization, unsafe=True)
    return module
