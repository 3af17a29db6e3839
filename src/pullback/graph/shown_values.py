"""What nodes show of what they saved, under PyTorch's names: `_saved_self_sym_sizes`, `_saved_result1`.

A node shows what its rule saved by the names of the rule. Where PyTorch's node has other names, the table says them; most
of what it adds is the shape of an input, which is found when somebody asks. What PyTorch saves and our rule does not need
is not shown.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from pullback.backend.array_module import contiguous_strides
from pullback.graph.node import PUBLIC_NAMES
from pullback.graph.shown_results import result_names, result_of
from pullback.typing import Shape

# Node, then PyTorch's names; `theirs=ours` where the rule has another name for it.
_TABLE = """
AdaptiveAvgPool2DBackwardBackward0: grad_output_sym_argsize_minus_1 grad_output_sym_argsize_minus_2
AdaptiveAvgPool3DBackwardBackward0: grad_output_sym_argsize_minus_1 grad_output_sym_argsize_minus_2 grad_output_sym_argsize_minus_3
AdaptiveMaxPool2DBackward0: result1=indices self
AdaptiveMaxPool2DBackwardBackward0: indices
AdaptiveMaxPool3DBackward0: result1=indices self
AdaptiveMaxPool3DBackwardBackward0: indices
AddbmmBackward0: alpha batch1 batch1_sym_argsize_0 batch1_sym_argsize_1 batch2 batch2_sym_argsize_2 beta
AddmmBackward0: alpha beta mat1 mat1_sym_sizes mat1_sym_strides mat2 mat2_sym_sizes mat2_sym_strides
AsStridedBackward0: size storage_offset stride
AvgPool2DBackwardBackward0: ceil_mode count_include_pad divisor_override kernel_size padding stride
AvgPool3DBackwardBackward0: ceil_mode count_include_pad divisor_override kernel_size padding stride
BinaryCrossEntropyBackwardBackward0: grad_output reduction self target weight
ConvolutionBackward0: bias_sym_sizes_opt dilation groups input=self output_padding padding stride transposed weight
ConvolutionBackwardBackward0: dilation grad_output groups input=self output_padding padding stride transposed weight
DiagonalBackward0: dim1 dim2 offset self_sym_sizes
DiagonalBackwardBackward0: dim1 dim2 offset
EmbeddingBackward0: indices padding_idx scale_grad_by_freq sparse weight_sym_argsize_0
EmbeddingBagBackward0: indices mode padding_idx per_sample_weights scale_grad_by_freq weight weight_sym_argsize_0
EmbeddingBagBackwardBackward0:
ExpandBackward0: self_sym_sizes
FftC2CBackward0: dim forward
FftC2RBackward0: dim
FftR2CBackward0: dim onesided
FractionalMaxPool2DBackward0: kernel_size output_size result1=indices self
FractionalMaxPool2DBackwardBackward0: indices
FractionalMaxPool3DBackward0: kernel_size output_size result1=indices self
FractionalMaxPool3DBackwardBackward0: indices
GluBackwardBackward0: dim grad_output self
GridSampler2DBackward0: align_corners grid input=self interpolation_mode padding_mode
GridSampler2DBackwardBackward0: align_corners grad_output grid input=self interpolation_mode padding_mode
GridSampler3DBackward0: align_corners grid input=self interpolation_mode padding_mode
GridSampler3DBackwardBackward0: align_corners grad_output grid input=self interpolation_mode padding_mode
HuberLossBackwardBackward0: delta grad_output reduction self target
Im2ColBackward0: dilation kernel_size padding self_sym_argsize_minus_1 self_sym_argsize_minus_2 stride
IndexAddBackward0: alpha dim index source_dim
IndexBackward0: indices self_sym_sizes
IndexCopyBackward0: dim index source_dim
IndexPutBackward0: accumulate indices
IndexSelectBackward0: dim index self_sym_sizes
KthvalueBackward0: dim indices keepdim self_sym_sizes
LinalgHouseholderProductBackward0: input=self tau
LinalgLstsqBackward0: b=B self=A solution
LinalgLuBackward0: L P U pivot
LinalgLuFactorExBackward0: LU pivot pivots
LinalgMatrixExpBackward0: self=A
LinalgPinvBackward0: result self=A
LinalgSolveTriangularBackward0: left result self=A unitriangular upper
LinalgSvdBackward0: S S_sym_argsize_minus_1 U Vh full_matrices
LuUnpackBackward0: LU_data_sym_argsize_minus_1 LU_data_sym_argsize_minus_2
MaskedScatterBackward0: mask source_sym_sizes
MaxBackward0: dim indices keepdim self_sym_sizes
MaxPool2DWithIndicesBackward0: ceil_mode dilation kernel_size padding result1=indices self stride
MaxPool2DWithIndicesBackwardBackward0: indices
MaxPool3DWithIndicesBackward0: ceil_mode dilation kernel_size padding result1=indices self stride
MaxPool3DWithIndicesBackwardBackward0: indices
MeanBackward0: self_sym_numel self_sym_sizes
MeanBackward1: dim keepdim self_sym_numel self_sym_sizes
MedianBackward1: dim indices keepdim self_sym_sizes
MinBackward0: dim indices keepdim self_sym_sizes
MkldnnRnnLayerBackward0: cx_=c0 hx_=h0 input=self result3=gates reverse weight0=weight_ih weight1=weight_hh
MmBackward0: mat2 mat2_sym_sizes mat2_sym_strides self self_sym_sizes self_sym_strides
ModeBackward0: dim indices keepdim self_sym_sizes
MseLossBackwardBackward0: grad_output reduction self target
MulBackward0: other self
NanmedianBackward1: dim indices keepdim self_sym_sizes
NarrowCopyBackward0: dim self_sym_sizes start
NativeBatchNormBackward0: eps input=self result1=mean result2=rstd weight
NativeBatchNormBackwardBackward0: eps grad_out=grad_output input=self running_mean running_var save_invstd=rstd save_mean=mean weight
NativeGroupNormBackward0: C HxW N eps group input=self result1=mean result2=rstd weight
NativeLayerNormBackward0: input=self normalized_shape result1=mean result2=rstd weight
NativeLayerNormBackwardBackward0: grad_out=grad_output input=self mean normalized_shape rstd weight
NllLoss2DBackwardBackward0: ignore_index reduction target weight
NllLossBackwardBackward0: ignore_index reduction target weight
NormalBackward1: mean_sym_sizes
NormalBackward3: mean_sym_sizes std_sym_sizes
PackPaddedSequenceBackward0: batch_first input_sym_sizes result1=batch_sizes
PdistBackwardBackward0:
PolarBackward0: result
ReflectionPad1DBackwardBackward0: padding
ReflectionPad2DBackwardBackward0: padding
ReflectionPad3DBackwardBackward0: padding
RepeatBackward0: repeats self_sym_sizes
ReplicationPad1DBackwardBackward0: padding
ReplicationPad2DBackwardBackward0: padding
ReplicationPad3DBackwardBackward0: padding
ReshapeAliasBackward0: self_sym_sizes
RreluWithNoiseBackwardBackward0: noise self
ScaledDotProductFlashAttentionForCpuBackward0: attn_mask is_causal key logsumexp output=result query scale value
SelectBackward0: dim index self_sym_sizes
SliceBackward0: dim end self_sym_sizes start step
SmoothL1LossBackwardBackward0: beta grad_output reduction self target
SortBackward0: dim indices self_sym_sizes
SortBackward1: dim indices self_sym_sizes
SplitBackward0: dim self_sym_sizes split_size
SplitWithSizesBackward0: dim self_sym_sizes split_sizes
SqueezeBackward0: self_sym_sizes
SqueezeBackward1: dim self_sym_sizes
SqueezeBackward2: dim self_sym_sizes
SqueezeBackward4: dim self_sym_sizes
StdMeanBackward0: correction dim keepdim result0=deviation self
SumBackward0: self_sym_sizes
SumBackward1: dim keepdim self_sym_sizes
TopkBackward0: dim indices self_sym_sizes
TraceBackward0: self_sym_sizes
TrilinearBackward0: i1=input1 i2=weight i3=input2
UnfoldBackward0: dimension self_sym_sizes size step
UnfoldBackwardBackward0: dim=dimension size step
UnsafeSplitBackward0: dim self_sym_sizes split_size
UnsafeViewBackward0: self_sym_sizes
UnsqueezeBackward0: dim
UpsampleBicubic2DBackward0: align_corners output_size scales_h scales_w self_sym_sizes
UpsampleBicubic2DBackwardBackward0: align_corners output_size scales_h scales_w
UpsampleBilinear2DBackward0: align_corners output_size scales_h scales_w self_sym_sizes
UpsampleBilinear2DBackwardBackward0: align_corners output_size scales_h scales_w
UpsampleLinear1DBackward0: align_corners output_size scales self_sym_sizes
UpsampleLinear1DBackwardBackward0: align_corners output_size scales
UpsampleNearest1DBackward0: output_size scales self_sym_sizes
UpsampleNearest1DBackwardBackward0: output_size scales
UpsampleNearest2DBackward0: output_size scales_h scales_w self_sym_sizes
UpsampleNearest2DBackwardBackward0: output_size scales_h scales_w
UpsampleNearest3DBackward0: output_size scales_d scales_h scales_w self_sym_sizes
UpsampleNearest3DBackwardBackward0: output_size scales_d scales_h scales_w
UpsampleNearestExact1DBackward0: output_size scales self_sym_sizes
UpsampleNearestExact1DBackwardBackward0: output_size scales
UpsampleNearestExact2DBackward0: output_size scales_h scales_w self_sym_sizes
UpsampleNearestExact2DBackwardBackward0: output_size scales_h scales_w
UpsampleNearestExact3DBackward0: output_size scales_d scales_h scales_w self_sym_sizes
UpsampleNearestExact3DBackwardBackward0: output_size scales_d scales_h scales_w
UpsampleTrilinear3DBackward0: align_corners output_size scales_d scales_h scales_w self_sym_sizes
UpsampleTrilinear3DBackwardBackward0: align_corners output_size scales_d scales_h scales_w
ViewBackward0: self_sym_sizes
"""  # noqa: E501
_PLACES = {"self": 0, "mean": 0, "std": 1}
"""The edges of inputs of nodes without a rule."""
_OWN_NAMES = {theirs: ours for ours, theirs in PUBLIC_NAMES.items()}


@functools.cache
def _shown() -> dict[str, dict[str, str]]:
    """The names that each node shows, with what they mean to the rule."""
    rows = [line.partition(":") for line in _TABLE.strip().splitlines()]
    return {node: dict(_pair(word) for word in words.split()) for node, _, words in rows}


def _pair(word: str) -> tuple[str, str]:
    theirs, _, ours = word.partition("=")
    return theirs, ours or theirs


def shown_names(node: Any, names: list[str]) -> list[str]:
    """The names that a node shows, given those of what it saved."""
    return list(dict.fromkeys((*_shown().get(node.name(), names), *result_names(node.name()))))


def saved_under(node: Any, public: str) -> str:
    """The name under which a node saved what PyTorch calls `public`."""
    return _shown().get(node.name(), {}).get(public, public)


def public_name(node: Any, name: str) -> str:
    """PyTorch's name of what a node saved as `name`."""
    row = _shown().get(node.name(), {})
    return next((theirs for theirs, ours in row.items() if ours == name), PUBLIC_NAMES.get(name, name))


def has_row(node: Any) -> bool:
    """Whether the table says what a node shows."""
    return node.name() in _shown()


NOTHING = object()
"""What `read_derived` returns where nothing follows."""


def read_derived(node: Any, public: str) -> Any:
    """Derive a value from shapes and other saved values, where the node shows it."""
    if public not in shown_names(node, []):
        return NOTHING
    if (compute := result_of(node, public)) is not None:
        return compute(node)
    name, _, kind = public.partition("_sym_")
    shape = _shape_of(node, name if kind else "source" if public == "source_dim" else "self")
    if kind == "sizes_opt":
        return (0,) if shape is None else shape
    if public.startswith("scales_"):
        scales = node._read_saved("scales", raw=False)
        return None if scales is None else scales["dhw".index(public[-1]) - 3]
    if kind == "strides":
        return _strides_of(node, name)
    if public == "output_size":
        return tuple(node.shape[2:])
    if shape is None:
        return NOTHING
    if kind == "sizes":
        return shape
    if kind == "numel":
        return math.prod(shape)
    if kind.startswith("argsize_"):
        return shape[int(kind.removeprefix("argsize_").replace("minus_", "-"))]
    return _FROM_SHAPES[public](shape) if public in _FROM_SHAPES else NOTHING


def _strides_of(node: Any, public: str) -> Any:
    """The strides of a factor that was saved, else those of row-major order, as gradients have it."""
    saved = node._read_saved(public, raw=False)
    return contiguous_strides(_shape_of(node, public) or ()) if saved is None else tuple(saved.stride())


_FROM_SHAPES: dict[str, Any] = {
    "source_dim": len,
    "N": lambda shape: shape[0],
    "C": lambda shape: shape[1],
    "HxW": lambda shape: math.prod(shape[2:]),
}


def _shape_of(node: Any, public: str) -> Shape | None:
    """The sizes of an input: saved, or those of the tensor that its edge leads to."""
    shape: Shape | None = node._read_shape(public)
    if shape is not None:
        return tuple(shape)
    from pullback.generated.registry import OPERATIONS  # lazy: above this layer

    name = _OWN_NAMES.get(public, public)
    operation = OPERATIONS.get(getattr(node, "operation", ""))
    inputs = () if operation is None else operation.differentiable_inputs
    place = inputs.index(name) if name in inputs else _PLACES.get(public)
    if place is not None and place < len(node.next_edges) and (edge := node.next_edges[place]) is not None:
        metadata = edge[0].input_metadata(edge[1])
        return None if metadata is None else tuple(metadata.shape)
    saved = getattr(node, f"saved_{name}", None)
    return None if saved is None else tuple(saved._array.shape)
