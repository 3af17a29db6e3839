"""Which dtypes the tensors given as `out=` may have."""

from __future__ import annotations

from pullback.backend.dtype import can_cast, scalar_type_name
from pullback.typing import DType

_IN_C = "Expected out tensor to have dtype {0}, but got {1} instead"
_FOUND = "Found dtype {1} but expected {0}"
_FOR_INPUT = "Expected the dtype for input and out to match, but got {0} for input's dtype and {1} for out's dtype."
_FOR_OBJECT = "Expected object of scalar type {0} but got scalar type {1} for argument 'out'"
_FOR_DOT = "result dtype {1} does not match input dtype {0}"
_FOR_NORM = "linalg.matrix_norm expected out tensor dtype {0} but got: {1}"
_FOR_TENSORDOT = "tensordot: Expected the output tensor to have dtype {0}, but got an output tensor with dtype {1}"
_SCALAR_TYPE = "expected scalar type {0} but found {1}"
_SAME_SCALAR_TYPE = "{2}(): self and result must have the same scalar type: {0}, not {1}"
_NOT_BOOL = "{2} does not support non-boolean outputs: {1}"
_NOT_INDEX = (
    "torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) depending on whether "
    "out_int32 flag is True, but we got output tensor's dtype {1}"
)
_HISTOGRAM = "torch.histogram: input tensor and hist tensor should have the same dtype, but got input {0} and hist {1}"

_EXACT = {
    **dict.fromkeys(
        "cumsum cumprod sum prod nansum gather "
        "aminmax addmm addmv baddbmm bmm mm diag isin lu_unpack softmax log_softmax avg_pool2d avg_pool3d linear "
        "view_copy split_copy slice_scatter triangular_solve svd index_copy index_add index_reduce scatter scatter_add "
        "scatter_reduce renorm tril triu argmax argmin linalg_cross linalg_lu_solve linalg_qr linalg_vector_norm "
        "linalg_det linalg_cholesky linalg_cholesky_ex linalg_eigh linalg_eigvalsh linalg_ldl_factor linalg_ldl_factor_ex "
        "linalg_ldl_solve linalg_slogdet linalg_lu_factor linalg_lu_factor_ex linalg_lu linalg_inv linalg_inv_ex "
        "linalg_solve linalg_solve_ex linalg_svd linalg_svdvals".split(),
        _IN_C,
    ),
    **dict.fromkeys(
        "bitwise_not abs ceil conj_physical frac floor softshrink hardshrink gelu neg round sign sgn trunc softplus".split(),
        _FOUND,
    ),
    **dict.fromkeys("dot vdot matmul".split(), _FOR_DOT),
    **dict.fromkeys("native_batch_norm logsigmoid linalg_solve_triangular logcumsumexp".split(), _SCALAR_TYPE),
    **dict.fromkeys("masked_select index_select".split(), _SAME_SCALAR_TYPE),
    **dict.fromkeys("signbit isposinf isneginf".split(), _NOT_BOOL),
    **dict.fromkeys("inner tensordot".split(), _FOR_TENSORDOT),
    **dict.fromkeys("histogram histc".split(), _HISTOGRAM),
    **dict.fromkeys("amax amin".split(), _FOR_INPUT),
    **dict.fromkeys("complex polar".split(), _FOR_OBJECT),
    "addbmm": "self and mat2 must have the same dtype, but got {1} and {0}",
    "mv": "addmv input tensors must have the same dtype, but got {1}, {0}, and {0}",
    "frexp": "torch.frexp() expects mantissa to have dtype {0} but got {1}",
    "heaviside": "heaviside is not yet implemented for tensors with different dtypes: {0} and {1}",
    "narrow_copy": "Expected self.dtype() == output.dtype() to be true, but got false: {0} and {1}",
    "ormqr": "torch.ormqr: Expected input and result to have the same dtype, but input has dtype {0} and result {1}",
    "float_power": "the output given to float_power has dtype {1} but the operation's result requires dtype {0}",
    "nan_to_num": "nan_to_num: dtype of out: {1} should be same as input: {0}",
    "take": "take(): self and out expected to have the same dtype, but got self.dtype = {0} and out.dtype = {1}",
    "quantile": "quantile() out tensor must be same dtype as the input tensor, {0}, and not {1}",
    "searchsorted": _NOT_INDEX,
    "where": "Expected out type to be {0} but got {1}",
    "nonzero": "nonzero: Expected out tensor to have scalar type {0} but got scalar type {1}",
    "linalg_matrix_norm": _FOR_NORM,
    "hash_tensor": "Expected result to be of dtype uint64, but got {1}",
    "linalg_vecdot": "linalg.vecdot: Expected out of dtype {0} but found {1}",
    "linalg_multi_dot": "multi_dot(): expected out tensor to have dtype {0} but got {1}",
}
"""Functions that write into no other dtype than the result's, and their words: dtype of the result, of out, function."""

_IN_C_LANGUAGE = {
    "Long": "long int", "Short": "short int", "Char": "signed char", "Byte": "unsigned char", "Half": "c10::Half",
    "BFloat16": "c10::BFloat16", "ComplexFloat": "c10::complex<float>", "ComplexDouble": "c10::complex<double>",
}  # fmt: skip


def check_out_dtype(name: str, result: DType, out: DType) -> None:
    """Refuse to write a result into a tensor of another dtype where PyTorch does."""
    names = (scalar_type_name(result), scalar_type_name(out))
    words = _EXACT.get(name)
    if words is _IN_C:
        names = (_in_c(names[0]), _in_c(names[1]))
    if words is not None:
        raise RuntimeError(words.format(*names, name))
    if name in ("all", "any") and names[1] != "Byte":
        raise RuntimeError(f"{name} only supports bool tensor for result, got: {names[1]}")
    if can_cast(result, out):
        return
    if name in ("cat", "stack"):
        raise TypeError(f"torch.cat(): input types can't be cast to the desired output type {names[1]}")
    raise RuntimeError(f"result type {names[0]} can't be cast to the desired output type {names[1]}")


def _in_c(name: str) -> str:
    return _IN_C_LANGUAGE.get(name, name.lower())
