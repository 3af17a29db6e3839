"""Tables of vectors that are looked up by index."""

from __future__ import annotations

from typing import Any

from pullback import creation
from pullback.autograd.grad_mode import no_grad
from pullback.nn import functional, init
from pullback.nn.modules.module import Module
from pullback.nn.parameter import Parameter
from pullback.tensor.tensor import Tensor

__all__ = ["Embedding", "EmbeddingBag"]


def _wrapped_padding_idx(padding_idx: int | None, num_embeddings: int) -> int | None:
    if padding_idx is None:
        return None
    if padding_idx >= num_embeddings if padding_idx > 0 else padding_idx < -num_embeddings:
        raise AssertionError("padding_idx must be within num_embeddings")
    return num_embeddings + padding_idx if padding_idx < 0 else padding_idx


def _checked_weight(weight: Tensor, num_embeddings: int, embedding_dim: int) -> Tensor:
    if list(weight.shape) != [num_embeddings, embedding_dim]:
        raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
    return weight


class _Table(Module):
    """What Embedding and EmbeddingBag have in common."""

    weight: Any
    padding_idx: int | None

    def reset_parameters(self) -> None:
        """Draw the vectors from the standard normal distribution."""
        init.normal_(self.weight)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self) -> None:
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)


class Embedding(_Table):
    """Look up vectors by index.

    >>> Embedding(10, 3, padding_idx=0)
    Embedding(10, 3, padding_idx=0)
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Tensor | None = None,
        _freeze: bool = False, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = _wrapped_padding_idx(padding_idx, num_embeddings)
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        if _weight is None:
            data = creation.empty((num_embeddings, embedding_dim), device=device, dtype=dtype)
            self.weight = Parameter(data, requires_grad=not _freeze)
            self.reset_parameters()
        else:
            self.weight = Parameter(_checked_weight(_weight, num_embeddings, embedding_dim), requires_grad=not _freeze)
        self.sparse = sparse

    def forward(self, input: Tensor) -> Any:
        return functional.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        )

    def extra_repr(self) -> str:
        parts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        defaults = {
            "padding_idx": None, "max_norm": None, "norm_type": 2.0, "scale_grad_by_freq": False, "sparse": False,
        }  # fmt: skip
        for name, default in defaults.items():
            value = getattr(self, name)
            if value is not default and value != default:
                parts.append(f"{name}={value}")
        return ", ".join(parts)

    @classmethod
    def from_pretrained(
        cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
    ) -> Any:  # fmt: skip
        """Make an Embedding of a matrix, which is not learned unless `freeze` is False."""
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        return cls(
            num_embeddings=rows, embedding_dim=columns, _weight=embeddings, _freeze=freeze, padding_idx=padding_idx,
            max_norm=max_norm, norm_type=norm_type, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse,
        )  # fmt: skip


class EmbeddingBag(_Table):
    """Look up vectors by index and sum, average or maximise them bag by bag.

    Indices (B, N), or (N,) with `offsets` (B,) where each bag begins, give (B, embedding_dim). `mode` is "sum", "mean"
    or "max"; `per_sample_weights`, for "sum" alone, multiply the rows.

    >>> import pullback
    >>> pullback.nn.EmbeddingBag(10, 3)(pullback.tensor([[1, 2], [4, 5]])).shape
    pullback.Size([2, 3])
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, _weight: Tensor | None = None,
        include_last_offset: bool = False, padding_idx: int | None = None, device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.padding_idx = _wrapped_padding_idx(padding_idx, num_embeddings)
        if _weight is None:
            self.weight = Parameter(creation.empty((num_embeddings, embedding_dim), device=device, dtype=dtype))
            self.reset_parameters()
        else:
            self.weight = Parameter(_checked_weight(_weight, num_embeddings, embedding_dim))
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Any:
        return functional.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.mode, self.sparse,
            per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip

    def extra_repr(self) -> str:
        parts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        if self.max_norm is not None:
            parts.append(f"max_norm={self.max_norm}")
        if self.norm_type != 2:
            parts.append(f"norm_type={self.norm_type}")
        if self.scale_grad_by_freq is not False:
            parts.append(f"scale_grad_by_freq={self.scale_grad_by_freq}")
        parts.append(f"mode={self.mode!r}")
        if self.padding_idx is not None:
            parts.append(f"padding_idx={self.padding_idx}")
        return ", ".join(parts)

    @classmethod
    def from_pretrained(
        cls, embeddings: Tensor, freeze: bool = True, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> Any:  # fmt: skip
        """Make an EmbeddingBag of a matrix, which is not learned unless `freeze` is False."""
        if embeddings.dim() != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        made = cls(
            num_embeddings=rows, embedding_dim=columns, _weight=embeddings, max_norm=max_norm, norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq, mode=mode, sparse=sparse, include_last_offset=include_last_offset,
            padding_idx=padding_idx,
        )  # fmt: skip
        made.weight.requires_grad = not freeze
        return made
