"""Group 10: functional transforms and higher order."""

from __future__ import annotations

from typing import Any


def row_38_is_grads_batched(torch: Any, say: Any) -> None:
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x**2 * x.sum()
    rows = torch.autograd.grad(y, x, torch.eye(3), is_grads_batched=True, retain_graph=True)[0]
    say(rows)
    (one,) = torch.autograd.grad(y, x, torch.tensor([[1.0, 0.0, 1.0]]), is_grads_batched=True)
    say(one)


def row_115_function_vmap(torch: Any, say: Any) -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x * 2

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2

    with say.catch("You tried to vmap over Twice, but it does not have vmap support."):
        torch.vmap(Twice.apply)(torch.ones(2))

    class Cube(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x: Any) -> Any:
            return x**3

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 3 * x**2 * grad

    x = torch.tensor([1.0, 2.0, 3.0])
    say(torch.vmap(Cube.apply)(x), torch.vmap(torch.func.grad(Cube.apply))(x))

    class Scale(Twice):
        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any) -> Any:
            say(info.batch_size, info.randomness, len(in_dims))
            return x * 2, in_dims[0]

    say(torch.vmap(Scale.apply, in_dims=1)(torch.arange(6.0).reshape(2, 3)))

    class NoSetup(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x

    with say.catch("it must override the setup_context staticmethod"):
        torch.vmap(NoSetup.apply)(x)


def row_128_nested_forward(torch: Any, say: Any) -> None:
    jvp, jacfwd = torch.func.jvp, torch.func.jacfwd
    one = torch.tensor(1.0)
    say(jvp(lambda x: jvp(lambda y: y**3 * x, (x,), (one,))[1], (torch.tensor(2.0),), (one,)))
    say(jacfwd(jacfwd(lambda x: x.sin() * x.sum()))(torch.tensor([0.5, 1.0])))
    say(jvp(lambda x: x * jvp(lambda y: x + y, (one,), (one,))[1], (one,), (one,)))


def row_130_jacobian(torch: Any, say: Any) -> None:
    jacobian = torch.autograd.functional.jacobian
    x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0])
    say(jacobian(lambda a, b: (a * b, a.sum()), (x, y)))
    say(jacobian(lambda a: torch.ones(2), x))
    with say.catch("Output 0 of the user-provided function does not require gradients."):
        jacobian(lambda a: torch.ones(2), x, strict=True)
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    say(jacobian(lambda a: a**3, w).requires_grad, jacobian(lambda a: a**3, w, create_graph=True).requires_grad)


def row_131_vectorized_jacobian(torch: Any, say: Any) -> None:
    jacobian = torch.autograd.functional.jacobian
    x = torch.tensor([1.0, 2.0])
    say(jacobian(lambda a: a**2 * a.sum(), x, vectorize=True))
    say(jacobian(lambda a: a**2 * a.sum(), x, vectorize=True, strategy="forward-mode"))
    with say.catch("only implemented for `vectorize=True`"):
        jacobian(lambda a: a**2, x, strategy="forward-mode")
    with say.catch("are not supported together"):
        jacobian(lambda a: a**2, x, vectorize=True, strict=True)


def row_132_hessian(torch: Any, say: Any) -> None:
    hessian = torch.autograd.functional.hessian
    x = torch.tensor([1.0, 2.0])
    say(hessian(lambda a: (a**3).sum(), x), hessian(lambda a: (a**3).sum(), x, vectorize=True))
    say(hessian(lambda a: (a**3).sum(), x, vectorize=True, outer_jacobian_strategy="forward-mode"))
    say(hessian(lambda a, b: (a * b).sum(), (x, x)))
    with say.catch("The Tensor returned by the function given to hessian should contain a single element"):
        hessian(lambda a: a**3, x)


def row_133_products(torch: Any, say: Any) -> None:
    functional = torch.autograd.functional
    x, v = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([1.0, 0.0, 2.0])
    say(functional.vjp(lambda a: a**2, x, v), functional.jvp(lambda a: a**2, x, v))
    say(functional.hvp(lambda a: (a**3).sum(), x, v), functional.vhp(lambda a: (a**3).sum(), x, v))
    with say.catch("v has invalid size: should be torch.Size([3]) but got torch.Size([2])."):
        functional.vjp(lambda a: a**2, x, torch.ones(2))
    with say.catch("The vector v can only be None if"):
        functional.vjp(lambda a: a**2, x)


def row_134_grad(torch: Any, say: Any) -> None:
    grad = torch.func.grad
    x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    say(grad(lambda a, b: (a * b).sum(), argnums=(1, 0))(x, y), grad(lambda a, b: (a * b).sum(), argnums=-1)(x, y))
    say(grad(lambda a: (a.sum(), a * 2), has_aux=True)(x))
    say(torch.func.grad_and_value(lambda a: (a**2).sum())(x))
    with say.catch("Expected f(*args) to return a scalar Tensor, got tensor with 1 dims"):
        grad(lambda a: a)(x)
    with torch.no_grad():
        say(grad(lambda a: (a**2).sum())(x))

    def inner(a: Any) -> Any:
        with torch.no_grad():
            b = a * a
        return (a - b).sum()

    say(grad(inner)(x))
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    outer = grad(lambda a: (a**3).sum())(w)
    say(outer.requires_grad, torch.autograd.grad(outer.sum(), w))
    say(grad(lambda a: (a * w.detach()).sum())(x).requires_grad)


def row_135_vjp_jvp_linearize(torch: Any, say: Any) -> None:
    x = torch.tensor([1.0, 2.0])
    output, vjp_fn = torch.func.vjp(lambda a: {"s": a.sum(), "p": a * 2}, x)
    say(output, vjp_fn({"s": torch.tensor(1.0), "p": torch.ones(2)}))
    with say.catch("Expected pytree structure of cotangents to be the same as"):
        vjp_fn(torch.ones(2))
    say(torch.func.jvp(lambda a: (a.sin(), a.sum()), (x,), (torch.ones(2),)))
    with say.catch("Expected primals and tangents to have the same python structure"):
        torch.func.jvp(lambda a: a, (x,), (x, x))
    with say.catch("The output of f is independent of the inputs. This is not allowed with strict=True."):
        torch.func.jvp(lambda a: torch.ones(2), (x,), (x,), strict=True)
    output, jvp_fn = torch.func.linearize(torch.sin, x)
    say(output, jvp_fn(torch.ones(2)), jvp_fn(x))


def row_136_jacobians(torch: Any, say: Any) -> None:
    x = torch.tensor([0.5, 1.0, 1.5])

    def function(a: Any) -> Any:
        return {"s": a.sin(), "t": a.sum()}

    say(torch.func.jacrev(function)(x), torch.func.jacfwd(function)(x))
    for chunk_size in (1, 2):
        say(torch.func.jacrev(lambda a: a**2 * a.sum(), chunk_size=chunk_size)(x))
    say(torch.func.hessian(lambda a: a.sin().prod())(x))
    with say.catch("jacfwd: Expected all inputs to be real"):
        torch.func.jacfwd(lambda a: a)(torch.ones(2, dtype=torch.complex64))
    with say.catch("chunk_size` should be greater than 0"):
        torch.func.jacrev(lambda a: a, chunk_size=0)


def row_137_vmap(torch: Any, say: Any) -> None:
    vmap = torch.vmap
    x = torch.arange(6.0).reshape(2, 3)
    say(vmap(lambda a, b: a * b, in_dims=(0, None))(x, torch.ones(3)), vmap(lambda a: a.sum(), in_dims=1)(x))
    say(vmap(lambda a: (a, a.sum()), out_dims=(1, 0))(x), vmap(torch.sin, chunk_size=1)(x))
    say(vmap(lambda d: d["a"] + d["b"], in_dims=({"a": 0, "b": None},))({"a": x, "b": torch.ones(3)}))
    say(vmap(lambda a: a + torch.randn(3), randomness="same")(torch.zeros(2, 3)))
    torch.manual_seed(0)
    say(vmap(lambda a: a + torch.randn(3), randomness="different")(torch.zeros(2, 3)))
    with say.catch("Expected all tensors to have the same size in the mapped dimension"):
        vmap(torch.add)(x, x.T)
    with say.catch("vmap: called random operation while in randomness error mode"):
        vmap(lambda a: a + torch.rand(3))(x)
    with say.catch("data-dependent control flow"):
        vmap(lambda a: a if a.sum() > 0 else -a)(x)
    with say.catch("vmap: It looks like you're calling .item() on a Tensor."):
        vmap(lambda a: a.sum().item())(x)
    with say.catch("must only return Tensors"):
        vmap(lambda a: 3)(x)
    with say.catch("We do not support batching operators that can output dynamic shape"):
        vmap(lambda a: a.nonzero())(x)
    with say.catch("in_dims is not compatible with the structure of `inputs`"):
        vmap(torch.sum, in_dims=(0, 0))(x)
    with say.catch("out_dims is not compatible with the structure of `outputs`"):
        vmap(lambda a: a, out_dims=(0, 1))(x)


def row_138_nesting(torch: Any, say: Any) -> None:
    func = torch.func
    x = torch.tensor([[0.5, 1.0], [1.5, 2.0]])
    say(func.vmap(func.vmap(func.grad(lambda a: a**3)))(x))
    say(func.vmap(func.jacrev(lambda a: a.sin() * a.sum()))(x))
    say(func.grad(lambda w: func.vmap(lambda a: (a * w).sum() ** 2)(x).sum())(torch.tensor([1.0, 2.0])))
    say(func.jvp(func.grad(lambda a: (a**3).sum()), (x,), (torch.ones(2, 2),)))
    say(func.grad(lambda a: func.jvp(lambda b: (b**3).sum(), (a,), (torch.ones(2, 2),))[1])(x))
    say(func.vmap(lambda v: func.jvp(torch.sin, (x[0],), (v,))[1])(torch.eye(2)))
    say(func.grad(lambda a: a * func.grad(lambda b: a + b)(torch.tensor(1.0)))(torch.tensor(2.0)))
    escaped = []

    def keep(a: Any) -> Any:
        escaped.append(a)
        return a

    func.vmap(keep)(x)
    with say.catch(""):
        escaped[0] + 1


def row_139_backward_inside(torch: Any, say: Any) -> None:
    x = torch.ones(2)
    with say.catch("backward() called inside a functorch transform."):
        torch.func.grad(lambda a: a.sum().backward())(x)
    with say.catch("You are attempting to call Tensor.requires_grad_()"):
        torch.func.vmap(lambda a: a.requires_grad_())(x)


def row_140_functional_call(torch: Any, say: Any) -> None:
    layer = torch.nn.Linear(2, 2, bias=False)
    weight = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    say(torch.func.functional_call(layer, {"weight": weight}, torch.ones(2)), layer.weight.shape)
    say(torch.func.grad(lambda p: torch.func.functional_call(layer, p, torch.ones(2)).sum())({"weight": weight}))
    models = [torch.nn.Linear(2, 1) for _ in range(3)]
    params, buffers = torch.func.stack_module_state(models)
    say({k: list(v.shape) for k, v in params.items()}, buffers, params["weight"].requires_grad)

    def call(p: Any, b: Any, a: Any) -> Any:
        return torch.func.functional_call(models[0], (p, b), a)

    results = torch.vmap(call, in_dims=(0, 0, None))(params, buffers, torch.ones(2))
    say(bool(torch.allclose(results, torch.stack([m(torch.ones(2)) for m in models]))))
    with say.catch("Expected at least one model, got 0"):
        torch.func.stack_module_state([])


def row_141_other_names(torch: Any, say: Any) -> None:
    say(torch.func.functionalize(lambda a: a.clone().mul_(2))(torch.ones(2)))
    say(torch.func.debug_unwrap(torch.ones(2)))
    norm = torch.nn.Sequential(torch.nn.BatchNorm1d(2))
    with say.catch("Batch norm got a batched tensor as input while the running_mean or running_var"):
        torch.vmap(norm)(torch.ones(3, 4, 2))
    torch.func.replace_all_batch_norm_modules_(norm)
    say(norm[0].running_mean, torch.vmap(norm)(torch.arange(12.0).reshape(3, 2, 2)).sign())


def row_142_per_sample_gradients(torch: Any, say: Any) -> None:
    weight = torch.tensor([[1.0, -1.0], [0.5, 2.0], [1.0, 0.0]])
    x = torch.arange(12.0).reshape(4, 3) / 10
    target = torch.tensor([0, 1, 1, 0])

    def loss(w: Any, a: Any, t: Any) -> Any:
        return torch.nn.functional.cross_entropy((a @ w).unsqueeze(0), t.unsqueeze(0))

    say(torch.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))(weight, x, target))


def row_143_hessian_diagonal(torch: Any, say: Any) -> None:
    x = torch.tensor([0.5, 1.0])

    def entry(v: Any) -> Any:
        return (torch.func.jvp(torch.func.grad(lambda a: a.sin().prod()), (x,), (v,))[1] * v).sum()

    say(torch.vmap(entry)(torch.eye(2)))


def row_144_sparse_jacobian(torch: Any, say: Any) -> None:
    x = torch.tensor([1.0, 2.0, 3.0])
    _, vjp_fn = torch.func.vjp(lambda a: a**2, x)
    say(vjp_fn(torch.ones(3))[0])


def row_145_nth_order(torch: Any, say: Any) -> None:
    x = torch.tensor(0.5, requires_grad=True)
    value = x.sin() * x**4
    for _ in range(5):
        (value,) = torch.autograd.grad(value, x, create_graph=True)
        say(value)
    derivative = lambda a: a**6  # noqa: E731
    for _ in range(4):
        derivative = torch.func.grad(derivative)
    say(derivative(torch.tensor(2.0)))
