"""The graphs of recorded gradients are PyTorch's: names of nodes, where they lead, and which of them are one node."""

from __future__ import annotations

from typing import Any

import pytest

import pullback

torch = pytest.importorskip("torch", reason="the conformance extra is not installed")

# Expressions of two matrices x and y (3 by 4, positive), a square matrix s, a vector v, images i, a kernel k, a bias b,
# whole numbers n and the functions F of nn.functional.
EXPRESSIONS = """
x + y | x - y | x * y | x / y | x * 2 | x / 2 | 2 / x | 2 - x | x + v | x * v | x / v | -x | x ** 2 | x ** 3 | x ** 0.5
x ** -1 | x ** y | 2 ** x | x.square() | x.sqrt() | x.rsqrt() | x.reciprocal() | x.exp() | x.exp2() | x.expm1() | x.log()
x.log2() | x.log10() | x.log1p() | x.sin() | x.cos() | x.tan() | (x / 9).asin() | (x / 9).acos() | x.atan() | x.sinh()
x.cosh() | x.tanh() | x.asinh() | (x + 1).acosh() | (x / 9).atanh() | x.erf() | x.erfc() | (x / 9).erfinv() | x.abs()
x.sign() | x.sigmoid() | x.relu() | x.clamp(0.5, 1.5) | x.clamp_min(1) | x.sinc() | x.lgamma() | x.digamma() | x.logit(0.1)
torch.atan2(x, y) | torch.hypot(x, y) | torch.maximum(x, y) | torch.minimum(x, y) | torch.fmax(x, y) | torch.where(x > y, x, y)
torch.lerp(x, y, 0.3) | torch.lerp(x, y, y) | torch.addcmul(x, x, y) | torch.addcdiv(x, x, y) | torch.xlogy(x, y)
torch.logaddexp(x, y) | x.deg2rad() | x.floor() | x.fmod(y) | x.nan_to_num() | x.masked_fill(x > 1, 0) | x.copysign(y)
x.sum() | x.sum(1) | x.sum(0, keepdim=True) | x.mean() | x.mean(1) | x.prod() | x.prod(1) | x.var() | x.var(1) | x.std()
x.std(1) | x.norm() | x.norm(dim=1) | x.norm(3) | x.norm(1) | x.norm(float('inf')) | torch.linalg.vector_norm(x, 2, 1)
x.max() | x.max(1).values | x.min(1).values | x.amax(1) | x.amin() | x.median() | x.median(1).values | x.sort(1).values
x.topk(2, 1).values | x.kthvalue(2, 1).values | x.cumsum(1) | x.cumprod(1) | x.cummax(1).values | x.logsumexp(1)
x.softmax(1) | x.log_softmax(1) | torch.var_mean(x, 1)[0] | x.trace() | s.diagonal() | s.diag() | v.diag()
x.t() | x.transpose(0, 1) | x.permute(1, 0) | x.view(-1) | x.reshape(4, 3) | x.unsqueeze(1) | x[None].squeeze() | x.flatten()
x.expand(2, 3, 4) | x.repeat(2, 1) | x.tile(2, 2) | x.flip(0) | x.roll(1, 0) | x.tril() | x.triu() | torch.cat([x, y])
torch.stack([x, y]) | x.split(2, 1)[0] | x.chunk(2, 1)[1] | x[0] | x[:, 1:3] | x[n] | x[x > 1] | x.index_select(0, n)
x.gather(1, n.expand(3, 2)) | x.scatter_add(0, n.expand(3, 2).t()[:, :3].contiguous(), y[:2, :3]) | x.take(n) | x.masked_select(x > 1) | x.unfold(1, 2, 1)
x.narrow(1, 0, 2) | x.clone() | x.contiguous() | x.double().float() | x.select(1, 0) | torch.outer(v, b)
x @ y.t() | x @ y.T | s @ s | x @ v | v @ v | v.dot(v) | torch.addmm(s, s, s) | torch.baddbmm(i[0], i[0], i[0]) | i @ (i * 2)
i @ s | s @ i | torch.bmm(i[0], i[0]) | torch.einsum('ij,kj->ik', x, y) | torch.einsum('bcij,bcjk->bcik', i, i * 2)
torch.linalg.inv(s) | F.linear(x, y, v[:3]) | F.linear(x, y) | F.linear(i, s, v) | F.relu(F.linear(x, y)) | F.gelu(x)
F.silu(x) | F.mish(x) | F.elu(x) | F.selu(x) | F.celu(x) | F.softplus(x) | F.leaky_relu(x) | F.hardtanh(x) | F.hardswish(x)
F.logsigmoid(x) | F.softsign(x) | F.tanhshrink(x) | F.glu(x) | F.prelu(x, v[:1]) | F.threshold(x, 1, 0) | F.normalize(x)
F.mse_loss(x, y) | F.l1_loss(x, y) | F.smooth_l1_loss(x, y) | F.huber_loss(x, y) | F.cross_entropy(x, n3) | F.nll_loss(x, n3)
F.binary_cross_entropy(x.sigmoid(), y.sigmoid()) | F.binary_cross_entropy_with_logits(x, y) | F.kl_div(x, y, reduction='sum') | F.layer_norm(x, (4,))
F.kl_div(x, y, reduction='sum', log_target=True) | F.poisson_nll_loss(x, y) | F.cosine_similarity(x, y) | F.layer_norm(x, (4,), v, v)
F.batch_norm(i, None, None, training=True) | F.instance_norm(i) | F.rms_norm(x, (4,), v) | F.conv2d(i, k, b) | F.conv2d(i, k)
F.conv_transpose2d(i, k) | F.max_pool2d(i, 2) | F.avg_pool2d(i, 2) | F.adaptive_avg_pool2d(i, 2) | F.pad(i, (1, 1)) | F.embedding(n, x)
F.pad(i, (1, 1, 1, 1), 'reflect') | F.interpolate(i, scale_factor=2.0) | F.interpolate(i, scale_factor=2.0, mode='bilinear')
F.relu(F.linear(F.relu(F.linear(x, s)), y, v[:3])).sum() | (x @ s).tanh().square().mean() | ((x - x.mean(1, keepdim=True)) ** 2).mean()
"""
CASES = [case.strip() for row in EXPRESSIONS.strip().splitlines() for case in row.split(" | ")]


def arguments(package: Any) -> dict[str, Any]:
    """The same tensors on either side."""

    def made(*shape: int) -> Any:
        count = package.arange(1.0, 1 + torch.Size(shape).numel(), dtype=package.float64)
        return (1.5 + (count * 0.7).sin()).reshape(shape).requires_grad_()

    return {
        "torch": package, "F": package.nn.functional, "x": made(3, 4), "y": made(3, 4), "s": made(4, 4), "v": made(4),
        "i": made(2, 2, 4, 4), "k": made(2, 2, 3, 3), "b": made(2), "n": package.tensor([0, 2]),
        "n3": package.tensor([0, 2, 1]),
    }  # fmt: skip


def graph_of_gradients(package: Any, expression: str) -> list[str]:
    """The nodes behind the gradients of an expression, each when it is first reached, with the numbers of those it leads to."""
    given = arguments(package)
    result = eval(expression, given)
    leaves = [t for t in given.values() if isinstance(t, package.Tensor) and t.requires_grad]
    grad = package.ones_like(result).requires_grad_()
    gradients = package.autograd.grad(result, leaves, grad, create_graph=True, allow_unused=True)
    nodes = [t.grad_fn for t in gradients if t is not None and t.grad_fn is not None]
    return [" ".join("-" if t is None else "g" if t.requires_grad else "." for t in gradients), *graph_from(nodes)]


def graph_from(nodes: list[Any]) -> list[str]:
    """Everything that nodes lead to."""
    lines = []
    for node in nodes:
        edges = []
        for following, number in node.next_functions:
            if following is not None and following not in nodes:
                nodes.append(following)
            edges.append("-" if following is None else f"{nodes.index(following)}.{number}")
        lines.append(f"{node.name()} {' '.join(edges)}")
    return lines


@pytest.mark.parametrize("expression", ["x @ y.t()", "s @ s", "torch.outer(v, v)", "i @ i", "F.linear(x, y, v[:3])",
                                        "F.linear(i, s, v)", "F.rms_norm(x, (4,), v)", "torch.einsum('ij,kj->ik', x, y)",
                                        "F.mse_loss(x, y)", "F.conv2d(i, k, b)", "F.smooth_l1_loss(x, y)"])  # fmt: skip
def test_looking_at_the_graph_of_a_gradient_does_not_change_the_next_ones(expression: str) -> None:
    found = []
    for package, looks in ((torch, False), (pullback, False), (pullback, True)):
        given = arguments(package)
        leaves = [t for t in given.values() if isinstance(t, package.Tensor) and t.requires_grad]
        total = (eval(expression, given) * 0.1).sin().sum()
        for _ in range(3):
            grads = package.autograd.grad(total, leaves, create_graph=True, allow_unused=True)
            for grad in grads:
                if looks and grad is not None and grad.grad_fn is not None:
                    graph_from([grad.grad_fn])
            total = sum((grad * 0.1).sin().sum() for grad in grads if grad is not None)
        found.append(total.item())
    assert found[1] == pytest.approx(found[0], rel=1e-9)
    assert found[2] == pytest.approx(found[0], rel=1e-9)


def test_there_are_as_many_expressions_as_the_name_says() -> None:
    assert len(set(CASES)) == len(CASES) > 200


@pytest.mark.parametrize("expression", CASES)
def test_graphs_of_gradients_are_those_of_pytorch(expression: str) -> None:
    assert graph_of_gradients(pullback, expression) == graph_of_gradients(torch, expression)
