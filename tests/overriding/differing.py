"""The calls of which `__torch_function__` is told otherwise than in PyTorch, and why."""

from __future__ import annotations

DIFFERING: dict[str, str] = {
    "copy.deepcopy(s)": "PyTorch refuses to copy a view of a subclass; here it is copied.",
    **dict.fromkeys(
        ["numpy.asarray(s)", "numpy.sin(s)", "s.__array__()"],
        "Newer NumPy hands over more arguments: they are told too.",
    ),
    "torch.nn.utils.clip_grad_norm_([s], 1.0)": "Gradients are read once, not twice.",
    "s.real = y": "Writing a part is an operation on memory that the class sees as copy_.",
    **dict.fromkeys(["s.__dlpack_c_exchange_api__", "s.volatile"], "There is no such attribute here."),
    "s.__dlpack__()": "Arguments that were not given are not told.",
    **dict.fromkeys(
        ["x.addcdiv(0, i, t)", "x.addcdiv_(0, i, t)", "x.addcmul(0, i, t)", "x.addcmul_(0, i, t)"],
        "A form that PyTorch deprecates is told as the one that replaces it.",
    ),
    **dict.fromkeys(["s.index(0, 1)", "s.index(0, i)"], "Tensor.index takes one list of indices."),
    "x.new_tensor(t)": "The argument is asked too.",
    **dict.fromkeys(
        [f"torch.{name}({args})" for name in ("dsmm", "mm", "spmm") for args in ("s, y", "y, t")],
        "PyTorch has one function of three names and tells the last of them; here each has its own.",
    ),
    **dict.fromkeys(
        ["torch.from_dlpack(s)", "torch.from_dlpack(s[0])", "torch.to_dlpack(s[0])"],
        "A tensor of pullback is not sent through DLPack to itself.",
    ),
    "torch.searchsorted(m, s)": "Bools are not sorted values.",
    "torch.slice_inverse(m, s)": "Values are not converted to bool unasked.",
    **dict.fromkeys(
        ["torch.sym_sum(s)", "torch.sym_sum(s, y)", "torch.sym_sum(y, t)"], "It sums numbers, and asks nobody itself."
    ),
    **dict.fromkeys(["torch.typename(s)", "torch.typename(s[0])"], "The type's name is no question to the tensor."),
    **dict.fromkeys(
        ["torch.nn.functional.adaptive_avg_pool2d(s, 1)", "torch.nn.functional.adaptive_avg_pool3d(s[None], 1)"],
        "PyTorch averages inputs of too few dimensions for the size 1 alone.",
    ),
    "torch.nn.functional.embedding(i, s, i[:1])": "A tensor is no padding index.",
    "torch.nn.functional.gumbel_softmax(y, t)": "Functions, not methods, are called inside.",
    **dict.fromkeys(
        [f"torch.nn.functional.l1_loss({args})" for args in ("s, y", "y, t", "i, s")],
        "PyTorch loses the weight on the way; here it is told.",
    ),
    **dict.fromkeys(
        [
            "torch.nn.functional.logsigmoid(s)",
            "torch.nn.functional.logsigmoid(s[0])",
            "torch.nn.functional.threshold(s, 1.0, 2.0)",
            "torch.nn.functional.threshold(s, 0.5, False)",
        ],
        "The function bears its public name.",
    ),
}
