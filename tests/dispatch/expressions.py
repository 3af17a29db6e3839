"""Expressions whose operations, forward and backward, are compared with those that PyTorch's dispatch modes see.

Each has the shapes of its tensors `x[0]`, `x[1]`, ...; `positive:`, `regular:` (an invertible matrix) and `index:` say what
they hold. `python -m tests.dispatch.record` writes what PyTorch sees to recorded.json.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

EXPRESSIONS: list[tuple[str, str]] = [
    ("x[0].sin()", "3x4"),
    ("x[0].cos()", "3x4"),
    ("x[0].tan()", "3x4"),
    ("x[0].exp()", "3x4"),
    ("x[0].log1p()", "3x4"),
    ("x[0].abs().sqrt()", "3x4"),
    ("x[0].tanh()", "3x4"),
    ("x[0].sigmoid()", "3x4"),
    ("x[0].relu()", "3x4"),
    ("x[0].abs()", "3x4"),
    ("x[0].neg()", "3x4"),
    ("x[0].reciprocal()", "3x4"),
    ("x[0].erf()", "3x4"),
    ("x[0].asin()", "3x4"),
    ("x[0].atan()", "3x4"),
    ("x[0].sinh()", "3x4"),
    ("x[0].square()", "3x4"),
    ("x[0].abs().rsqrt()", "3x4"),
    ("x[0].floor()", "3x4"),
    ("x[0].sign()", "3x4"),
    ("x[0].expm1()", "3x4"),
    ("x[0].abs().log2()", "3x4"),
    ("F.softplus(x[0])", "3x4"),
    ("x[0] + x[1]", "3x4 3x4"),
    ("x[0] + x[1]", "3x4 4"),
    ("x[0] + 2", "3x4"),
    ("2 + x[0]", "3x4"),
    ("x[0] - x[1]", "3x4 3x4"),
    ("x[0] - x[1]", "3x4 4"),
    ("x[0] - 2", "3x4"),
    ("2 - x[0]", "3x4"),
    ("x[0] * x[1]", "3x4 3x4"),
    ("x[0] * x[1]", "3x4 4"),
    ("x[0] * 2", "3x4"),
    ("2 * x[0]", "3x4"),
    ("x[0] / x[1]", "3x4 3x4"),
    ("x[0] / x[1]", "3x4 4"),
    ("x[0] / 2", "3x4"),
    ("2 / x[0]", "3x4"),
    ("x[0] ** 2", "3x4"),
    ("x[0] ** 3", "3x4"),
    ("x[0].abs() ** x[1]", "3x4 3x4"),
    ("2 ** x[0]", "3x4"),
    ("-x[0]", "3x4"),
    ("x[0] % 2", "3x4"),
    ("x[0] // 2", "3x4"),
    ("x[0] @ x[1]", "3x4 4x5"),
    ("x[0] @ x[1]", "3x4 4"),
    ("x[0] @ x[1]", "4 4"),
    ("x[0] @ x[1]", "2x3x4 4x5"),
    ("x[0] @ x[1]", "2x3x4 2x4x3"),
    ("x[0] @ x[1]", "2x2x3x4 2x2x4x3"),
    ("x[0] @ x[1]", "4 4x5"),
    ("torch.addmm(x[0],x[1],x[2])", "3x5 3x4 4x5"),
    ("torch.bmm(x[0],x[1])", "2x3x4 2x4x3"),
    ("torch.baddbmm(x[0],x[1],x[2])", "2x3x3 2x3x4 2x4x3"),
    ("torch.outer(x[0],x[1])", "4 4"),
    ("torch.einsum('bij,jk->bik',x[0],x[1])", "2x3x4 4x5"),
    ("x[0].T", "3x4"),
    ("x[0].t() @ x[0]", "3x4"),
    ("x[0].sum()", "3x4"),
    ("x[0].sum(1)", "3x4"),
    ("x[0].mean()", "3x4"),
    ("x[0].mean(1)", "3x4"),
    ("x[0].prod()", "3x4"),
    ("x[0].prod(1)", "3x4"),
    ("x[0].max()", "3x4"),
    ("x[0].max(1)", "3x4"),
    ("x[0].min()", "3x4"),
    ("x[0].min(1)", "3x4"),
    ("x[0].amax()", "3x4"),
    ("x[0].amax(1)", "3x4"),
    ("x[0].amin()", "3x4"),
    ("x[0].amin(1)", "3x4"),
    ("x[0].argmax()", "3x4"),
    ("x[0].argmax(1)", "3x4"),
    ("x[0].var()", "3x4"),
    ("x[0].var(dim=1)", "3x4"),
    ("x[0].std()", "3x4"),
    ("x[0].std(dim=1)", "3x4"),
    ("x[0].logsumexp(1)", "3x4"),
    ("x[0].norm()", "3x4"),
    ("x[0].cumsum(1)", "3x4"),
    ("x[0].cumprod(1)", "3x4"),
    ("x[0].softmax(1)", "3x4"),
    ("x[0].log_softmax(1)", "3x4"),
    ("x[0].sum((0,1),keepdim=True)", "3x4"),
    ("x[0].mean(0)", "3x4"),
    ("x[0].view(2,6)", "3x4"),
    ("x[0].reshape(-1)", "3x4"),
    ("x[0].t().reshape(-1)", "3x4"),
    ("x[0].transpose(0,1)", "3x4"),
    ("x[0].permute(2,0,1)", "2x3x4"),
    ("x[0].unsqueeze(0)", "3x4"),
    ("x[0].unsqueeze(0).squeeze(0)", "3x4"),
    ("x[0].expand(2,3,4)", "3x4"),
    ("x[0].flatten()", "3x4"),
    ("x[0].contiguous()", "3x4"),
    ("x[0].t().contiguous()", "3x4"),
    ("x[0].clone()", "3x4"),
    ("x[0].detach()", "3x4"),
    ("x[0][0]", "3x4"),
    ("x[0][1:]", "3x4"),
    ("x[0][:,1:3]", "3x4"),
    ("x[0][...,0]", "3x4"),
    ("x[0][x[1]]", "3x4 index:3"),
    ("x[0][x[0]>0]", "3x4"),
    ("x[0][None]", "3x4"),
    ("x[0][:, None, ::2]", "3x4"),
    ("x[0].index_select(0,x[1])", "3x4 index:3"),
    ("x[0].gather(1,x[1][:,None])", "3x4 index:3"),
    ("x[0].masked_fill(x[0]>0, 0.)", "3x4"),
    ("torch.where(x[0]>0,x[0],x[1])", "3x4 3x4"),
    ("torch.cat([x[0],x[1]])", "3x4 3x4"),
    ("torch.stack([x[0],x[1]])", "3x4 3x4"),
    ("x[0].split(2,dim=1)", "3x4"),
    ("x[0].chunk(2,dim=1)", "3x4"),
    ("x[0].unbind(0)", "3x4"),
    ("x[0].repeat(2,1)", "3x4"),
    ("x[0].flip(0)", "3x4"),
    ("x[0].roll(1,0)", "3x4"),
    ("x[0].tril()", "3x4"),
    ("x[0].diagonal()", "3x4"),
    ("x[0].sort()", "3x4"),
    ("x[0].topk(2)", "3x4"),
    ("x[0].clamp(-1,1)", "3x4"),
    ("x[0].clamp(min=0)", "3x4"),
    ("torch.maximum(x[0],x[1])", "3x4 3x4"),
    ("x[0].scatter_add(0,x[1][None],x[2][None])", "regular:3x3 index:3 3"),
    ("x[0].double()", "3x4"),
    ("x[0].to(torch.float64)", "3x4"),
    ("F.linear(torch.ones(2,3),x[0],x[1])", "4x3 4"),
    ("torch.ones(2,3)@x[0].T", "4x3"),
    ("F.linear(x[0],x[1],x[2])", "3x4 5x4 5"),
    ("F.linear(x[0],x[1])", "3x4 5x4"),
    ("F.linear(x[0],x[1],x[2])", "2x3x4 5x4 5"),
    ("F.linear(x[0],x[1])", "2x3x4 5x4"),
    ("F.linear(x[0],x[1],x[2])", "4 5x4 5"),
    ("F.gelu(x[0])", "3x4"),
    ("F.gelu(x[0],approximate='tanh')", "3x4"),
    ("F.silu(x[0])", "3x4"),
    ("F.leaky_relu(x[0])", "3x4"),
    ("F.elu(x[0])", "3x4"),
    ("F.hardtanh(x[0])", "3x4"),
    ("F.relu6(x[0])", "3x4"),
    ("F.logsigmoid(x[0])", "3x4"),
    ("F.mish(x[0])", "3x4"),
    ("F.glu(x[0])", "3x4"),
    ("F.softmax(x[0],-1)", "3x4"),
    ("F.cross_entropy(x[0],x[1])", "3x4 index:3"),
    ("F.nll_loss(x[0],x[1])", "3x4 index:3"),
    ("F.mse_loss(x[0],x[1])", "3x4 3x4"),
    ("F.l1_loss(x[0],x[1])", "3x4 3x4"),
    ("F.smooth_l1_loss(x[0],x[1])", "3x4 3x4"),
    ("F.huber_loss(x[0],x[1])", "3x4 3x4"),
    ("F.binary_cross_entropy_with_logits(x[0],x[1].detach().sigmoid())", "3x4 3x4"),
    ("F.binary_cross_entropy(x[0].sigmoid(),x[1].detach().sigmoid())", "3x4 3x4"),
    ("F.kl_div(x[0],x[1].detach())", "3x4 3x4"),
    ("F.layer_norm(x[0],(4,),x[1],x[2])", "3x4 4 4"),
    ("F.layer_norm(x[0],(4,))", "3x4"),
    ("F.group_norm(x[0],3,x[1],x[2])", "2x3x8x8 3 3"),
    ("F.batch_norm(x[0],torch.zeros(3),torch.ones(3),x[1],x[2],training=True)", "2x3x8x8 3 3"),
    ("F.batch_norm(x[0],torch.zeros(3),torch.ones(3),x[1],x[2])", "2x3x8x8 3 3"),
    ("F.rms_norm(x[0],(4,),x[1])", "3x4 4"),
    ("F.instance_norm(x[0])", "2x3x8x8"),
    ("F.conv2d(x[0],x[1],x[2],padding=1)", "2x3x8x8 4x3x3x3 4"),
    ("F.conv2d(x[0],x[1])", "2x3x8x8 4x3x3x3"),
    ("F.conv1d(x[0],x[1])", "2x3x4 2x3x2"),
    ("F.conv_transpose2d(x[0],x[1])", "2x3x8x8 3x4x2x2"),
    ("F.max_pool2d(x[0],2)", "2x3x8x8"),
    ("F.avg_pool2d(x[0],2)", "2x3x8x8"),
    ("F.adaptive_avg_pool2d(x[0],1)", "2x3x8x8"),
    ("F.adaptive_avg_pool2d(x[0],2)", "2x3x8x8"),
    ("F.interpolate(x[0],scale_factor=2)", "2x3x8x8"),
    ("F.interpolate(x[0],scale_factor=2,mode='bilinear')", "2x3x8x8"),
    ("F.pad(x[0],(1,1))", "3x4"),
    ("F.pad(x[0],(1,1),mode='reflect')", "3x4"),
    ("F.embedding(x[1],x[0])", "3x4 index:3"),
    ("F.dropout(x[0],0.5)", "3x4"),
    ("F.normalize(x[0])", "3x4"),
    ("F.cosine_similarity(x[0],x[1])", "3x4 3x4"),
    ("F.scaled_dot_product_attention(x[0],x[1],x[2])", "2x2x5x4 2x2x5x4 2x2x5x4"),
    ("F.scaled_dot_product_attention(x[0],x[1],x[2],is_causal=True)", "2x2x5x4 2x2x5x4 2x2x5x4"),
    ("F.one_hot(x[1],3)", "3x4 index:3"),
    ("x[0].clone().add_(x[1])", "3x4 3x4"),
    ("x[0].clone().mul_(2)", "3x4"),
    ("x[0].clone().relu_()", "3x4"),
    ("x[0].clone().copy_(x[1])", "3x4 3x4"),
    ("x[0].clone().zero_()", "3x4"),
    ("x[0].clone().fill_(1.)", "3x4"),
    ("torch.linalg.inv(x[0])", "regular:3x3"),
    ("torch.linalg.det(x[0])", "regular:3x3"),
    ("torch.linalg.solve(x[0],x[1])", "regular:3x3 3"),
    ("torch.linalg.norm(x[0])", "3x4"),
    ("torch.linalg.cholesky(x[0]@x[0].T)", "regular:3x3"),
    ("torch.linalg.eigh(x[0]@x[0].T)", "regular:3x3"),
    ("torch.linalg.svd(x[0])", "regular:3x3"),
    ("x[0].cumsum(0)", "3x4"),
    ("torch.lerp(x[0],x[1],0.5)", "3x4 3x4"),
    ("torch.addcmul(x[0],x[1],x[1])", "3x4 3x4"),
    ("torch.atan2(x[0],x[1])", "3x4 3x4"),
    ("x[0].pow(0.5)", "positive:3x4"),
    ("torch.dist(x[0],x[1])", "3x4 3x4"),
    ("torch.cdist(x[0],x[1])", "3x4 5x4"),
    ("torch.logaddexp(x[0],x[1])", "3x4 3x4"),
    ("x[0]*x[0]+x[0]", "3x4"),
    ("(x[0]>0).sum()", "3x4"),
    ("x[0].item() if 0 else x[0].sum().item() and x[0]", "3x4"),
    ("torch.ones(2)*x[0].sum()", "3x4"),
    ("torch.zeros_like(x[0])+x[0]", "3x4"),
    ("x[0]+torch.arange(4)", "3x4"),
    ("x[0]+torch.tensor(1.)", "3x4"),
]


def inputs(specification: str) -> list[Any]:
    """The arrays of a specification, the same on every run."""
    rng = np.random.default_rng(0)
    made: list[Any] = []
    for word in specification.split():
        kind, _, sizes = word.rpartition(":")
        shape = tuple(int(n) for n in sizes.split("x"))
        values: Any = rng.normal(size=shape).astype(np.float32)
        if kind == "positive":
            values = np.abs(values) + np.float32(0.1)
        elif kind == "regular":
            values = values + 3 * np.eye(*shape, dtype=np.float32)
        elif kind == "index":
            values = np.arange(shape[0])[::-1].copy()
        made.append(values)
    return made


def seen(torch: Any, mode_class: type, text: str, specification: str) -> list[str]:
    """What a mode sees of an expression and of the gradients of its sum, one line per operation."""
    mode = logging_mode(torch, mode_class)
    tensors = [torch.from_numpy(values) for values in inputs(specification)]
    tensors = [t.requires_grad_() if t.is_floating_point() else t for t in tensors]
    function: Callable[..., Any] = eval(f"lambda *x: {text}", {"torch": torch, "F": torch.nn.functional})
    with mode:
        result = function(*tensors)
        mode.lines.append("backward")
        results = result if isinstance(result, (tuple, list)) else [result]
        wanted = [r for r in results if r.requires_grad]
        if wanted:
            (wanted[0].sum() if wanted[0].ndim else wanted[0]).backward()
    return list(mode.lines)


def logging_mode(torch: Any, mode_class: type) -> Any:
    """A mode that writes a line per operation: tensors by their shapes."""

    def shown(value: Any) -> str:
        if isinstance(value, torch.Tensor):
            return f"T{list(value.shape)}"
        if isinstance(value, (list, tuple)):
            return "[" + ", ".join([shown(v) for v in value]) + "]"
        return str(value).replace("pullback.", "torch.")

    class Lines(mode_class):
        def __init__(self) -> None:
            super().__init__()
            self.lines: list[str] = []

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            given = [shown(a) for a in args] + [f"{k}={shown(v)}" for k, v in (kwargs or {}).items()]
            self.lines.append(f"{func}({', '.join(given)})")
            return func(*args, **(kwargs or {}))

    return Lines()
