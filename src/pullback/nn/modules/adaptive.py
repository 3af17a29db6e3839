"""Softmax over many classes, of which the frequent ones cost least."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

from pullback.nn import functional
from pullback.nn.modules.container import ModuleList, Sequential
from pullback.nn.modules.linear import Linear
from pullback.nn.modules.module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """A head for the frequent classes and one entry per cluster of rare ones, and a smaller tail per cluster."""

    def __init__(
        self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0, head_bias: bool = False,
        device: Any = None, dtype: Any = None,
    ) -> None:  # fmt: skip
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (
            cutoffs != sorted(cutoffs) or min(cutoffs) <= 0 or max(cutoffs) > n_classes - 1
            or len(set(cutoffs)) != len(cutoffs) or any(int(cutoff) != cutoff for cutoff in cutoffs)
        ):  # fmt: skip
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each value "
                "is between 1 and n_classes-1"
            )
        options = {"device": device, "dtype": dtype}
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, **options)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            hidden = int(in_features // (div_value ** (i + 1)))
            size = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(Sequential(Linear(in_features, hidden, bias=False, **options),
                                        Linear(hidden, size, bias=False, **options)))  # fmt: skip

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        self.head.reset_parameters()
        for first, second in self.tail:
            first.reset_parameters()
            second.reset_parameters()

    def forward(self, input_: Any, target_: Any) -> Any:
        if input_.dim() == target_.dim() + 1 == 2:
            input, target = input_, target_
        elif input_.dim() == 1 and target_.dim() == 0:
            input, target = input_.unsqueeze(0), target_.unsqueeze(0)
        elif target_.dim() > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        else:
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        if input.size(0) != target.size(0):
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        if bool((target < 0).any()) or bool((target >= self.n_classes).any()):
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{target.min().item()}, {target.max().item()}] were found. "
            )
        output = self._log_probabilities_of(input, target)
        loss = (-output).mean()
        return _ASMoutput(output if target_.dim() else output.squeeze(0), loss)

    def _log_probabilities_of(self, input: Any, target: Any) -> Any:
        head = functional.log_softmax(self.head(input), dim=1)
        in_head = target.clamp(max=self.shortlist_size - 1)
        output = head.gather(1, in_head.unsqueeze(1)).squeeze(1)
        for i in range(self.n_clusters):
            low, high = self.cutoffs[i], self.cutoffs[i + 1]
            rows = ((target >= low) & (target < high)).nonzero().squeeze(1)
            if rows.numel() == 0:
                continue
            tail = functional.log_softmax(self.tail[i](input.index_select(0, rows)), dim=1)
            local = tail.gather(1, (target[rows] - low).unsqueeze(1)).squeeze(1)
            values = head[rows, self.shortlist_size + i] + local
            output = output.index_copy(0, rows, values)
        return output

    def _get_full_log_prob(self, input: Any, head_output: Any) -> Any:
        import pullback.functions as functions

        head = functional.log_softmax(head_output, dim=1)
        parts = [head[:, : self.shortlist_size]]
        for i in range(self.n_clusters):
            tail = functional.log_softmax(self.tail[i](input), dim=1)
            parts.append(tail + head[:, self.shortlist_size + i].unsqueeze(1))
        return functions.cat(parts, 1)

    def log_prob(self, input: Any) -> Any:
        """The log-probabilities of all classes."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input: Any) -> Any:
        """The most probable class of each row."""
        return self.log_prob(input).argmax(dim=1)
