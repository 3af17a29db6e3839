"""Programs of transforms, each a function of the library it runs on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Program = Callable[[Any], Any]


def _square_without_grad(t: Any, x: Any) -> Any:
    with t.no_grad():
        return x * x


def _assign(target: Any, index: Any, value: Any) -> Any:
    target[index] = value
    return target


def _definite(t: Any, *shape: int) -> Any:
    a = t.randn(*shape)
    return a @ a.mT + 3 * t.eye(shape[-1])


def _mapped(t: Any, function: Any, shapes: Any, **options: Any) -> Any:
    """vmap of a function of several tensors, for several (in_dims, shapes)."""
    return [t.func.vmap(function, in_dims=dims, **options)(*[t.randn(*s) for s in sizes]) for dims, *sizes in shapes]


def _gradient_with_captured(t: Any, w: Any) -> Any:
    return t.func.grad(lambda x: (x * w).pow(3).sum())(t.randn(3))


def _wave(x: Any) -> Any:
    return x.sin() * x.sum()


NESTING: dict[str, Program] = {
    "vmap of vmap": lambda t: t.func.vmap(
        t.func.vmap(lambda x, y: (x * y).sum(), in_dims=(0, None)), in_dims=(None, 0)
    )(t.randn(3, 4), t.randn(5, 4)),
    "per-sample gradients": lambda t: t.func.vmap(
        t.func.grad(lambda w, x, y: ((x @ w).tanh() - y).pow(2).sum()), in_dims=(None, 0, 0)
    )(t.randn(4, 2), t.randn(5, 4), t.randn(5, 2)),
    "hessian": lambda t: t.func.hessian(lambda x: (x**3).sum() + x.prod())(t.randn(4)),
    "hessian of two": lambda t: t.func.hessian(lambda a, b: (a * b).sin().sum(), (0, 1))(t.randn(3), t.randn(3)),
    "jacfwd of jacfwd": lambda t: t.func.jacfwd(t.func.jacfwd(_wave))(t.randn(3)),
    "jacrev of jacrev": lambda t: t.func.jacrev(t.func.jacrev(_wave))(t.randn(3)),
    "jacrev of jacfwd": lambda t: t.func.jacrev(t.func.jacfwd(_wave))(t.randn(3)),
    "vmap of jacrev": lambda t: t.func.vmap(t.func.jacrev(_wave))(t.randn(2, 3)),
    "vmap of jacfwd": lambda t: t.func.vmap(t.func.jacfwd(_wave))(t.randn(2, 3)),
    "vmap of hessian": lambda t: t.func.vmap(t.func.hessian(lambda x: x.sin().prod()))(t.randn(2, 3)),
    "third order": lambda t: t.func.vmap(t.func.grad(t.func.grad(t.func.grad(lambda x: x**5))))(t.randn(3)),
    "three modes": lambda t: t.func.jacfwd(t.func.jacrev(t.func.jacfwd(lambda x: x.exp().prod())))(t.rand(2)),
    "jvp of grad": lambda t: t.func.jvp(t.func.grad(lambda x: (x**3).sum()), (t.randn(3),), (t.randn(3),)),
    "grad of jvp": lambda t: t.func.grad(lambda x: t.func.jvp(lambda y: (y**3).sum(), (x,), (t.ones(3),))[1])(
        t.randn(3)
    ),
    "jvp of vmap": lambda t: t.func.jvp(t.func.vmap(lambda x: _wave(x).sum()), (t.randn(4, 3),), (t.randn(4, 3),)),
    "vjp of vmap": lambda t: t.func.vjp(t.func.vmap(lambda x: _wave(x).sum()), t.randn(4, 3))[1](t.ones(4)),
    "vmap of vjp_fn": lambda t: t.func.vmap(t.func.vmap(t.func.vjp(_wave, t.randn(3))[1]))(t.randn(2, 3, 3)),
    "grad over vmap": lambda t: t.func.grad(lambda w: t.func.vmap(lambda x: (x * w).sum())(t.ones(4, 3)).pow(2).sum())(
        t.randn(3)
    ),
    "a captured parameter": lambda t: _gradient_with_captured(t, t.randn(3, requires_grad=True)),
    "inner no_grad": lambda t: t.func.vmap(t.func.grad(lambda x: (x * _square_without_grad(t, x)).sum()))(
        t.randn(4, 3)
    ),
    "detach": lambda t: t.func.hessian(lambda x: (x.detach() * x**2).sum())(t.randn(3)),
    "trees": lambda t: t.func.vmap(
        lambda d, y: {"o": d["a"] * y, "p": (d["b"].sum(),)}, ({"a": 0, "b": None}, 1), {"o": 1, "p": (0,)}
    )({"a": t.randn(3, 2), "b": t.randn(2)}, t.randn(2, 3)),
    "aux": lambda t: t.func.grad(lambda x: (x.sum(), (x, {"z": x * 2})), has_aux=True)(t.randn(2)),
    "jacfwd aux": lambda t: t.func.jacfwd(lambda x: (x.sin(), x.sum()), has_aux=True)(t.randn(2)),
    "chunks": lambda t: t.func.vmap(lambda x: (x.sin().sum(), x), out_dims=(0, 1), chunk_size=2)(t.randn(5, 4)),
}

RANDOM: dict[str, Program] = {
    "randn": lambda t: t.func.vmap(lambda x: x + t.randn(3), randomness="different")(t.zeros(4, 3)),
    "randn same": lambda t: t.func.vmap(lambda x: x + t.randn(3), randomness="same")(t.zeros(4, 3)),
    "rand_like": lambda t: t.func.vmap(lambda x: t.rand_like(x), randomness="different")(t.zeros(4, 3)),
    "rand_like same": lambda t: t.func.vmap(lambda x: t.rand_like(x), randomness="same")(t.zeros(4, 3)),
    "dropout": lambda t: t.func.vmap(t.nn.functional.dropout, randomness="different")(t.ones(4, 30)),
    "dropout same": lambda t: t.func.vmap(t.nn.functional.dropout, randomness="same")(t.ones(4, 30)),
    "normal_": lambda t: t.func.vmap(lambda x: t.zeros_like(x).normal_(), randomness="different")(t.ones(4, 30)),
    "bernoulli": lambda t: t.func.vmap(t.bernoulli, randomness="different")(t.rand(4, 30)),
    "randint": lambda t: t.func.vmap(lambda x: t.randint(0, 10, (3,)), randomness="different")(t.rand(4)),
    "randperm": lambda t: t.func.vmap(lambda x: t.randperm(4), randomness="different")(t.rand(4)),
    "nested": lambda t: t.func.vmap(t.func.vmap(lambda x: x + t.rand(2), randomness="same"), randomness="different")(
        t.zeros(2, 3, 2)
    ),
}

OPERATIONS: dict[str, Program] = {
    "matmul": lambda t: _mapped(
        t,
        t.matmul,
        [
            ((0, 0), (5, 3), (5, 3)),
            ((0, None), (5, 3), (3,)),
            ((0, 0), (5, 2, 3), (5, 3)),
            ((None, 0), (2, 3), (5, 3)),
            ((0, None), (5, 3), (3, 4)),
            ((0, 0), (5, 7, 2, 3), (5, 3, 4)),
            ((0, 0), (5, 3), (5, 7, 3, 4)),
            ((None, 0), (7, 2, 3), (5, 7, 3, 4)),
        ],
    ),
    "linear": lambda t: _mapped(
        t,
        t.nn.functional.linear,
        [
            ((0, None, None), (5, 3), (4, 3), (4,)),
            ((0, 0, 0), (5, 3), (5, 4, 3), (5, 4)),
            ((None, 0, 0), (6, 2, 3), (5, 4, 3), (5, 4)),
            ((0, None, 0), (5, 2, 3), (4, 3), (5, 4)),
        ],
    ),
    "conv2d": lambda t: _mapped(
        t,
        t.nn.functional.conv2d,
        [
            ((0, None, None), (5, 2, 3, 6, 6), (4, 3, 3, 3), (4,)),
            ((0, 0, 0), (5, 2, 3, 6, 6), (5, 4, 3, 3, 3), (5, 4)),
            ((None, 0, 0), (2, 3, 6, 6), (5, 4, 3, 3, 3), (5, 4)),
            ((0, None, 0), (5, 2, 3, 6, 6), (4, 3, 3, 3), (5, 4)),
        ],
    ),
    "cross_entropy": lambda t: t.func.vmap(lambda x, y: t.nn.functional.cross_entropy(x, y, label_smoothing=0.1))(
        t.randn(5, 6, 3), t.randint(0, 3, (5, 6))
    ),
    "layer_norm": lambda t: t.func.vmap(lambda x, w, b: t.nn.functional.layer_norm(x, (3,), w, b))(
        t.randn(5, 2, 3), t.randn(5, 3), t.randn(5, 3)
    ),
    "batch_norm": lambda t: t.func.vmap(lambda x, w, b: t.nn.functional.batch_norm(x, None, None, w, b, training=True))(
        t.randn(5, 4, 3), t.randn(5, 3), t.randn(5, 3)
    ),
    "attention": lambda t: t.func.vmap(lambda q: t.nn.functional.scaled_dot_product_attention(q, q, q))(
        t.randn(4, 2, 3, 5)
    ),
    "reductions": lambda t: t.func.vmap(
        lambda x: (
            x.sum(),
            x.mean(),
            x.max(),
            x.prod(),
            x.var(),
            x.norm(),
            x.argmax(),
            x.amax(0),
            x.sort(0).values,
            x.topk(2, 0).values,
            x.logsumexp(0),
            x.cumsum(0),
            x.all(),
            x.mean((0, 1), keepdim=True),
        )
    )(t.randn(5, 4, 3)),
    "of numbers": lambda t: t.func.vmap(
        lambda x: (
            x.sum(0),
            x.softmax(0),
            x.cumsum(0),
            x.max(),
            x.sort().values,
            x.reshape(1),
            x.expand(3),
            x.squeeze(),
        )
    )(t.randn(5)),
    "views": lambda t: t.func.vmap(
        lambda x: (
            x.T,
            x.reshape(-1),
            x.view(3, 4),
            x.unsqueeze(-1),
            x.squeeze(),
            x.expand(2, 4, 3),
            x[0],
            x[:, 1:],
            x[..., None],
            x.chunk(2, 0),
            x.unbind(1),
            x.flip(0),
            x.roll(1, 0),
            x.diagonal(),
            x.tril(),
            x.repeat(2, 1),
            t.cat([x, x]),
            t.stack([x, x], -1),
            x.as_strided((2, 2), (1, 2)),
        )
    )(t.randn(5, 4, 3)),
    "indexing": lambda t: [
        t.func.vmap(lambda x, i: x[i])(t.randn(2, 3), t.tensor([0, 2])),
        t.func.vmap(lambda x, i: x[:, i])(t.randn(2, 3, 5), t.tensor([[0, 1], [4, 3]])),
        t.func.vmap(lambda x, i: x[i, :, i])(t.randn(2, 3, 2, 3), t.tensor([[0, 1], [1, 2]])),
        t.func.vmap(lambda x, i: x[:, i], in_dims=(None, 0))(t.randn(2, 3, 3), t.tensor([[0, 1], [1, 2]])),
        t.func.vmap(lambda x: x[[0, 2], :, [1, 1]])(t.randn(2, 3, 2, 3)),
    ],
    "writing": lambda t: [
        t.func.vmap(lambda x: _assign(t.zeros_like(x), slice(1, None), x[:2]))(t.randn(4, 3)),
        t.func.vmap(lambda x, i: _assign(t.zeros_like(x), i, x[:2]))(t.randn(2, 3), t.tensor([[0, 1], [2, 1]])),
        t.func.vmap(lambda x: _assign(x.new_zeros(3, 2), (slice(None), 0), x))(t.randn(4, 3)),
    ],
    "gradients through writing": lambda t: t.func.hessian(lambda x: (_assign(x.clone(), 0, x[1] ** 2) ** 2).sum())(
        t.randn(3)
    ),
    "in-place gradients": lambda t: t.func.vmap(t.func.hessian(lambda x: x.sin().mul_(x).sum()))(t.randn(4, 3)),
    "promotion": lambda t: [
        t.func.vmap(t.mul)(t.randn(4, 3), t.randn(4, dtype=t.float64)),
        t.func.vmap(t.mul, in_dims=(0, None))(t.randn(4), t.randn((), dtype=t.float64)),
        t.func.vmap(t.lt)(t.arange(4), t.randn(4, 2)),
    ],
    "complex": lambda t: t.func.vmap(t.func.grad(lambda x: (x * x.conj()).real.sum()))(
        t.randn(4, 3, dtype=t.complex64)
    ),
    "no examples": lambda t: t.func.vmap(lambda x: (x.sum(), x * 2, x.T))(t.randn(0, 2, 3)),
    "inverse and solve": lambda t: t.func.vmap(lambda a, b: (t.linalg.inv(a), t.linalg.solve(a, b), t.logdet(a)))(
        _definite(t, 4, 3, 3), t.randn(4, 3)
    ),
    "derivatives of matrix functions": lambda t: [
        t.func.hessian(t.logdet)(_definite(t, 3, 3)),
        t.func.jacrev(t.linalg.inv)(_definite(t, 3, 3)),
        t.func.jacfwd(lambda a: t.linalg.solve(a, t.ones(3)))(_definite(t, 3, 3)),
        t.func.jacrev(t.linalg.svdvals)(t.randn(3, 2)),
    ],
    "derivatives of images": lambda t: [
        t.func.jacrev(lambda x: t.nn.functional.max_pool2d(x, 2))(t.randn(1, 1, 4, 4)),
        t.func.jacrev(lambda x: t.nn.functional.interpolate(x, scale_factor=2, mode="bilinear"))(t.randn(1, 1, 2, 2)),
        t.func.hessian(lambda w: t.nn.functional.conv2d(t.ones(1, 1, 4, 4), w).tanh().sum())(t.randn(1, 1, 2, 2)),
    ],
    "second derivatives": lambda t: [
        t.func.hessian(f)(t.rand(3) + 0.2)
        for f in (
            lambda x: x.exp().sum(),
            lambda x: x.softmax(0)[0],
            lambda x: x.norm(),
            lambda x: x.var(),
            lambda x: x.max() ** 2,
            lambda x: (x[[0, 1, 0]] ** 3).sum(),
            lambda x: x.cumprod(0).sum(),
        )
    ],
}
