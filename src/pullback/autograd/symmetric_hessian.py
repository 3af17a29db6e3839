"""When a Hessian is known to be symmetric, so that its product with a vector may be computed from either side.

# Note [Symmetric Hessians]
`hvp` multiplies from the right, which takes three passes of the engine; from the left, as `vhp` does, two are enough.
The results are the same where the function is twice continuously differentiable. That is decided by the nodes that were
recorded: if all are of the kinds below, which are smooth wherever their derivatives are finite, and the result is finite.
Kinds whose rules choose a value at a kink or at a pole (abs, norms, atan2, powers of zero) are not among them: there the
two products may differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pullback.autograd.batched_rows import nodes_between
from pullback.graph.node import Node
from pullback.kernels.comparison import isfinite

_SMOOTH = frozenset(
    (
        "AddBackward0 SubBackward0 RsubBackward1 NegBackward0 MulBackward0 DivBackward0 ReciprocalBackward0 "
        "MmBackward0 MvBackward0 BmmBackward0 DotBackward0 AddmmBackward0 AddmvBackward0 AddbmmBackward0 BaddbmmBackward0 "
        "SumBackward0 SumBackward1 MeanBackward0 MeanBackward1 LogsumexpBackward0 SoftmaxBackward0 LogSoftmaxBackward0 "
        "ExpBackward0 Expm1Backward0 LogBackward0 Log1PBackward0 SqrtBackward0 SinBackward0 CosBackward0 SinhBackward0 "
        "CoshBackward0 TanhBackward0 SigmoidBackward0 SoftplusBackward0 LogSigmoidBackward0 SiluBackward0 GeluBackward0 "
        "ErfBackward0 AtanBackward0 AsinhBackward0 MseLossBackward0 "
        "ViewBackward0 UnsafeViewBackward0 ReshapeAliasBackward0 AliasBackward0 CloneBackward0 TBackward0 "
        "TransposeBackward0 PermuteBackward0 ExpandBackward0 SqueezeBackward0 SqueezeBackward1 SqueezeBackward2 "
        "UnsqueezeBackward0 SliceBackward0 SelectBackward0 SplitBackward0 SplitWithSizesBackward0 UnbindBackward0 "
        "CatBackward0 StackBackward0 IndexBackward0 IndexSelectBackward0 GatherBackward0 DiagonalBackward0 "
        "TrilBackward0 TriuBackward0 FlipBackward0 RollBackward0 RepeatBackward0 torch::autograd::AccumulateGrad"
    ).split()
)
_POWER = "PowBackward0"


def has_symmetric_hessian(output: Any, inputs: Sequence[Any]) -> bool:
    """Whether nothing but smooth operations of real numbers leads from the inputs to the output, unseen by anybody.

    A recording is told no: whether the result is finite, on which the shorter way depends, is different for each call, and
    what the longer way computes in vain is dropped from the program.
    """
    from pullback.backend.traced_array import recorder_of  # few programs are recorded

    if recorder_of(*[x._array for x in inputs]) is not None:
        return False
    nodes = nodes_between(output, inputs)
    return nodes is not None and all(x._array.dtype.kind == "f" for x in inputs) and all(map(_is_smooth, nodes))


def _is_smooth(node: Node) -> bool:
    name = node.name()
    if name == _POWER:
        exponent = node._saved_exponent  # negative and broken powers have a pole, or none but a kink, at zero
        return isinstance(exponent, (int, float)) and exponent >= 0 and exponent == int(exponent)
    return name in _SMOOTH


def are_finite(values: Sequence[Any]) -> bool:
    """Whether no value is infinite or NaN; None counts as zero."""
    return all(value is None or isfinite(value._array).all() for value in values)
