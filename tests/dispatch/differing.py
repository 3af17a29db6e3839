"""The expressions of which a mode still sees other operations than in PyTorch, with the same values, by reason."""

from __future__ import annotations

_BY_REASON = {
    "one operation stands for the chain, and forms of it cannot be told apart": [
        "F.dropout(x[0],0.5) | 3x4",
        "F.cosine_similarity(x[0],x[1]) | 3x4 3x4",
    ],
    "the rule is another chain with the same value": [
        "x[0].cumprod(1) | 3x4",
        "x[0].clone().copy_(x[1]) | 3x4 3x4",
        "torch.linalg.inv(x[0]) | regular:3x3",
        "torch.linalg.det(x[0]) | regular:3x3",
        "torch.linalg.solve(x[0],x[1]) | regular:3x3 3",
        "torch.linalg.cholesky(x[0]@x[0].T) | regular:3x3",
        "torch.linalg.eigh(x[0]@x[0].T) | regular:3x3",
        "torch.linalg.svd(x[0]) | regular:3x3",
    ],
    "its statistics are not differentiable results, and are not detached where they are saved": [
        "F.group_norm(x[0],3,x[1],x[2]) | 2x3x8x8 3 3",
    ],
    "a number that is added inside of a function is told as if it were a user's": [
        "F.rms_norm(x[0],(4,),x[1]) | 3x4 4",
    ],
    "gradients lie in the memory order of their tensors, and are taken over without a copy": [
        "F.scaled_dot_product_attention(x[0],x[1],x[2]) | 2x2x5x4 2x2x5x4 2x2x5x4",
        "F.scaled_dot_product_attention(x[0],x[1],x[2],is_causal=True) | 2x2x5x4 2x2x5x4 2x2x5x4",
    ],
    "bounds of slices and shapes are told as they are, not as they were written": [
        "x[0].reshape(-1) | 3x4",
        "x[0][1:] | 3x4",
        "x[0][:, None, ::2] | 3x4",
    ],
    "a mask is told as the positions that it stands for": [
        "x[0][x[0]>0] | 3x4",
    ],
    "running statistics are updated beside the operation, not in it": [
        "F.batch_norm(x[0],torch.zeros(3),torch.ones(3),x[1],x[2],training=True) | 2x3x8x8 3 3",
        "F.batch_norm(x[0],torch.zeros(3),torch.ones(3),x[1],x[2]) | 2x3x8x8 3 3",
        "F.instance_norm(x[0]) | 2x3x8x8",
    ],
    "the stride of a window that is not given is told as the one that holds": [
        "F.max_pool2d(x[0],2) | 2x3x8x8",
        "F.avg_pool2d(x[0],2) | 2x3x8x8",
    ],
}

DIFFERING: dict[str, str] = {name: reason for reason, names in _BY_REASON.items() for name in names}
