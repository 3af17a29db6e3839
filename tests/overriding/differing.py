"""The calls of which a class or a mode is told otherwise than in PyTorch, and why."""

from __future__ import annotations

DIFFERING: dict[str, str] = {
    "copy.deepcopy(s)": "PyTorch refuses to copy a view of a subclass; here it is copied.",
    "s.__dlpack_c_exchange_api__": "There is no such attribute here.",
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
    "torch.slice_inverse(m, s)": "Values are not converted to bool unasked.",
    **dict.fromkeys(
        ["torch.sym_sum(s)", "torch.sym_sum(s, y)", "torch.sym_sum(y, t)"], "It sums numbers, and asks nobody itself."
    ),
    **dict.fromkeys(["torch.typename(s)", "torch.typename(s[0])"], "The type's name is not a question to the tensor."),
    **dict.fromkeys(
        ["torch.nn.functional.adaptive_avg_pool2d(s, 1)", "torch.nn.functional.adaptive_avg_pool3d(s[None], 1)"],
        "PyTorch averages inputs of too few dimensions for the size 1 alone.",
    ),
    "torch.nn.functional.embedding(i, s, i[:1])": "A tensor is not a padding index.",
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

_ONLY_OF_CLASSES = ("copy.deepcopy(s)", "x.new_tensor(t)", "torch.nn.functional.gumbel_softmax(y, t)")

DIFFERING_IN_MODES: dict[str, str] = {
    **{call: reason for call, reason in DIFFERING.items() if call not in _ONLY_OF_CLASSES},
    **dict.fromkeys(
        ["copy.copy(s)", "pickle.dumps(s)"], "The state of a tensor is read at once, not property by property."
    ),
    "torch.einsum(s, i)": "Subscripts in a list are read without operations.",
    **dict.fromkeys(
        [f"torch.{name}({args})" for name in ("pca_lowrank", "svd_lowrank") for args in ("s", "s, 0")],
        "The function is told, as to a class, and not the products that it is made of.",
    ),
    "torch.nn.utils.clip_grad_norm_([s], 1.0)": "The norm of no gradients is made without a block of its own.",
    "torch.nn.L1Loss()(x, y)": "PyTorch loses the weight on the way; here it is told.",
    **dict.fromkeys(
        ["torch.vmap(torch.sin)(x)", "torch.func.grad(lambda v: v.sin().sum())(x)"],
        "What a transform does before and after the function is not made of calls here.",
    ),
}

_COMPILED = "Assignments reach the slots of the compiled class: what is told is the operation inside."
DIFFERING_WHERE_COMPILED = {"operator.setitem(x, 0, t[0])": _COMPILED}
DIFFERING_IN_MODES_WHERE_COMPILED = {"s.real = y": _COMPILED}
"""The calls that compiled modules tell otherwise, and why."""
