"""Which family an operation belongs to, by its name: the rows of the table."""

from __future__ import annotations

_PREFIXES = {
    "linalg.": "linear algebra",
    "fft.": "fft",
    "special.": "special",
    "nn.functional.": "nn.functional",
    "masked.": "masked",
    "signal.": "windows",
    "operator.": "operators",
    "setitem.": "indexing and scatter",
    "constructor.": "creation and casts",
}

_WORDS = {
    "linear algebra": """addbmm addmm addmv addr baddbmm bmm chain_matmul cholesky cholesky_inverse cholesky_solve cross det
        dot einsum geqrf ger inner inverse kron logdet lu lu_solve lu_unpack matmul matrix_exp matrix_power mm multi_dot mv
        norm orgqr ormqr outer pca_lowrank pinverse qr slogdet svd svd_lowrank tensordot trace triangular_solve vdot dist
        cdist renorm corrcoef cov""",
    "fft": "stft istft",
    "shape and views": """alias_copy as_strided as_strided_copy as_strided_scatter atleast_1d atleast_2d atleast_3d adjoint
        block_diag broadcast_shapes broadcast_tensors broadcast_to cartesian_prod cat chunk column_stack combinations
        concat concatenate contiguous diag diag_embed diagflat diagonal diagonal_copy diagonal_scatter dsplit dstack
        expand expand_as expand_copy flatten flip fliplr flipud H hsplit hstack imag real mH mT T meshgrid moveaxis
        movedim narrow narrow_copy permute permute_copy ravel repeat repeat_interleave reshape reshape_as resize_
        resize_as_ resolve_conj resolve_neg roll rot90 row_stack select select_scatter slice slice_scatter split
        split_with_sizes split_with_sizes_copy squeeze squeeze_copy stack sum_to_size swapaxes swapdims t t_copy
        tensor_split tile transpose transpose_copy tril triu unbind unbind_copy unflatten unfold unfold_copy unsafe_chunk
        unsafe_split unsqueeze unsqueeze_copy view view_as view_as_complex view_as_real view_copy vsplit vstack
        constant_pad_nd conj conj_physical""",
    "indexing and scatter": """__getitem__ argwhere bucketize gather index_add index_copy index_fill index_put index_reduce
        index_select masked_fill masked_scatter masked_select nonzero nonzero_static put scatter scatter_add
        scatter_reduce searchsorted take take_along_dim tril_indices triu_indices unravel_index where fill isin""",
    "reductions": """all allclose amax amin aminmax any argmax argmin argsort bincount count_nonzero cummax cummin cumprod
        cumsum cumulative_trapezoid diff equal gradient hash_tensor histc histogram histogramdd kthvalue logcumsumexp
        logsumexp max mean median min mode msort nanmean nanmedian nanquantile nansum prod quantile sort std std_mean sum
        topk trapezoid trapz unique unique_consecutive var var_mean softmax log_softmax""",
    "random": """bernoulli cauchy exponential geometric log_normal multinomial normal rand_like randint randint_like randn
        randn_like uniform rand randperm poisson binomial""",
    "creation and casts": """arange bfloat16 bool byte cdouble cfloat chalf char clone complex double empty empty_like
        empty_permuted empty_strided eye float full full_like half int item linspace logspace long new_empty
        new_empty_strided new_full new_ones new_zeros ones ones_like polar scalar_tensor short to zero_ zeros zeros_like
        tensor as_tensor asarray from_numpy range vander copy_ set_ type type_as""",
    "nn.functional": """native_batch_norm native_dropout_backward native_group_norm native_layer_norm grid_sampler_2d
        grid_sampler_3d conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d group_norm layer_norm
        rms_norm""",
}

_FAMILY_OF = {word: family for family, words in _WORDS.items() for word in words.split()}


def family_of(name: str, elementwise: str = "elementwise, several inputs") -> str:
    """Name the family of an operation; what no table lists is elementwise, of the given sort."""
    for prefix, family in _PREFIXES.items():
        if name.startswith(prefix):
            return family
    return _FAMILY_OF.get(name, elementwise)
