"""Group 3: backward and grad."""

from __future__ import annotations

from typing import Any


def row_033_backward(torch: Any, say: Any) -> None:
    x = torch.ones(3, requires_grad=True)
    with say.catch("grad can be implicitly created only for scalar outputs"):
        (x * 2).backward()
    z = torch.ones(1, dtype=torch.complex64, requires_grad=True)
    with say.catch("grad can be implicitly created only for real scalar outputs but got torch.complex64"):
        (z * 2).backward()
    with say.catch("element 0 of tensors does not require grad and does not have a grad_fn"):
        torch.ones(1).backward()
    (x * 2).backward(gradient=torch.tensor([1.0, 2.0, 3.0]))
    say(x.grad)


def row_034_several_roots(torch: Any, say: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    shared = x * 2
    calls: list[int] = []
    shared.register_hook(lambda g: calls.append(1))
    torch.autograd.backward([shared.sum(), (shared * 3).sum()])
    say(x.grad, len(calls))
    with say.catch("element 1 of tensors"):
        torch.autograd.backward([(x * 2).sum(), torch.ones(1)])
    torch.autograd.backward([x.sum()], [torch.tensor(1.0), torch.tensor(5.0)])
    say(x.grad)


def row_035_grad(torch: Any, say: Any) -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = torch.ones(2, requires_grad=True)
    say(torch.autograd.grad((x * x).sum(), x), x.grad)
    with say.catch(
        "The differentiated Tensor at index 0 appears to not have been used in the graph. Set allow_unused=True"
    ):
        torch.autograd.grad(x.sum(), y)
    with say.catch(
        "The differentiated Tensor at index 1 appears to not have been used in the graph. Set allow_unused=True"
    ):
        torch.autograd.grad(x.sum(), [x, y])
    with say.catch("One of the differentiated Tensors does not require grad"):
        torch.autograd.grad(x.sum(), torch.ones(1))
    with say.catch("`inputs` argument to `grad()` cannot be empty."):
        torch.autograd.grad(x.sum(), [])


def row_036_allow_unused(torch: Any, say: Any) -> None:
    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    say(torch.autograd.grad(x.sum(), [x, y], allow_unused=True))


def row_037_materialize_grads(torch: Any, say: Any) -> None:
    x, y = torch.ones(2, requires_grad=True), torch.ones(3, requires_grad=True)
    say(torch.autograd.grad(x.sum(), [x, y], materialize_grads=True))
    with say.catch("Expected allow_unused to be True or not passed when materialize_grads=True"):
        torch.autograd.grad(x.sum(), [x, y], materialize_grads=True, allow_unused=False)


def row_039_only_inputs(torch: Any, say: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    with say.warned("only_inputs argument is deprecated"):
        torch.autograd.grad(x.sum(), x, only_inputs=False)


def row_040_gradient_checks(torch: Any, say: Any) -> None:
    x = torch.ones(3, requires_grad=True)
    with say.catch("Mismatch in shape: grad_output[0] has a shape of"):
        (x * 2).backward(torch.ones(2))
    (x * 2).backward(torch.ones(3, dtype=torch.float64))
    say(x.grad.dtype)
    z = torch.ones(2, dtype=torch.complex64, requires_grad=True)
    with say.catch("For complex Tensors, both grad_output and output are required to have the same dtype"):
        (z * 2).backward(torch.ones(2))


def row_041_retain_graph(torch: Any, say: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    with say.catch("Trying to backward through the graph a second time"):
        y.backward()
    say(x.grad)
    z = (x + 1).sum()
    z.backward()
    z.backward()
    say(x.grad)


def row_042_create_graph(torch: Any, say: Any) -> None:
    x = torch.tensor(3.0, requires_grad=True)
    (first,) = torch.autograd.grad(x**3, x, create_graph=True)
    (second,) = torch.autograd.grad(first, x, create_graph=True)
    say(first, second, torch.autograd.grad(second, x))
    with say.warned(
        "will create a reference cycle between the parameter and its gradient which can cause a memory leak"
    ):
        (x**2).backward(create_graph=True)
    say(x.grad.requires_grad)
    x.grad = None


def row_043_inputs(torch: Any, say: Any) -> None:
    x, w = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    calls: list[str] = []
    w.register_hook(lambda g: calls.append("w"))
    y = x * w
    y.sum().backward(inputs=[x])
    say(x.grad, w.grad, calls)
    y = x * w
    (y * 2).sum().backward(inputs=[y])
    say(y.grad, w.grad)
    with say.catch("`inputs` argument to `backward()` cannot be empty."):
        (x * 2).sum().backward(inputs=[])


def row_044_accumulation(torch: Any, say: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    (x * 2).sum().backward()
    kept = x.grad
    (x * 3).sum().backward()
    say(x.grad is kept, kept)
    (x * x).sum().backward(create_graph=True)
    say(x.grad is kept, x.grad)
    x.grad = None


def row_045_layout(torch: Any, say: Any) -> None:
    x = torch.ones(3, 2).t().requires_grad_()
    (x * 2).sum().backward()
    say(x.grad.stride(), x.stride())
    y = torch.ones(2, requires_grad=True)
    gradient = torch.ones(2)
    y.clone().backward(gradient)
    gradient.zero_()
    say(y.grad)
    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    (a + b).sum().backward()
    a.grad.zero_()
    say(b.grad)


def row_046_sum_over_paths(torch: Any, say: Any) -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    calls: list[Any] = []
    y.register_hook(lambda g: calls.append(g.tolist()))
    (y * y + y + y).sum().backward()
    say(x.grad, calls)


def row_047_reduction_to_input(torch: Any, say: Any) -> None:
    class Wide(torch.autograd.Function):
        result: Any = None

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.clone()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return Wide.result

    x = torch.ones(3, requires_grad=True)
    Wide.result = torch.ones(2, 3)
    Wide.apply(x).sum().backward()
    say(x.grad)
    Wide.result = torch.ones(3, dtype=torch.float64)
    x.grad = None
    Wide.apply(x).sum().backward()
    say(x.grad)
    Wide.result = torch.ones(2)
    with say.catch(
        "Function WideBackward returned an invalid gradient at index 0 - got [2] but expected shape compatible with [3]"
    ):
        Wide.apply(x).sum().backward()
    Wide.result = torch.ones(3, dtype=torch.complex64)
    with say.catch("Expected isFloatingType(grad.scalar_type()) || (input_is_complex == grad_is_complex)"):
        Wide.apply(x).sum().backward()


def row_048_undefined_gradients(torch: Any, say: Any) -> None:
    seen: list[Any] = []

    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx: Any, a: Any, b: Any) -> Any:
            seen.append((a is None, b is None))
            return a

    x = torch.ones(2, requires_grad=True)
    first, second = Two.apply(x)
    second.register_hook(lambda g: seen.append(g))
    first.sum().backward()
    say(seen, x.grad)


def row_050_backward_without_grad_mode(torch: Any, say: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    y = (x * 2).sum()
    z = (x * 3).sum()
    with torch.no_grad():
        y.backward()
    say(x.grad)
    x.grad = None
    with torch.inference_mode():
        z.backward()
    say(x.grad.is_inference())


def row_051_exceptions(torch: Any, say: Any) -> None:
    x = torch.ones(1, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: 1 / 0)
    with say.catch("division by zero"):
        y.backward()
    say(x.grad)


def row_052_degenerate(torch: Any, say: Any) -> None:
    x = torch.tensor([2.0], requires_grad=True)
    say(torch.autograd.grad((x * x).sum(), [x, x]))
    empty = torch.ones(0, 3, requires_grad=True)
    (empty * 2).sum().backward()
    say(empty.grad)
    scalar = torch.tensor(2.0, requires_grad=True)
    (scalar * scalar).backward()
    say(scalar.grad)


def row_049_selective_execution(torch: Any, say: Any) -> None:
    x, w = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    left, right = x * 2, w * 3
    ran: list[str] = []
    left.grad_fn.register_hook(lambda gi, go: ran.append("left"))
    right.grad_fn.register_hook(lambda gi, go: ran.append("right"))
    say(torch.autograd.grad((left * right).sum(), x), ran)


def row_053_sparse_gradients(torch: Any, say: Any) -> None:
    embedding = torch.nn.functional.embedding
    w = torch.ones(4, 2, requires_grad=True)
    index = torch.tensor([1, 3, 1])
    embedding(index, w, sparse=True).sum().backward()
    grad = w.grad
    say(grad.is_sparse, grad.is_coalesced(), grad._nnz(), grad._indices(), grad.to_dense(), grad.shape)
    say(repr(grad), grad.coalesce().indices(), grad.coalesce().values())
    with say.catch("Cannot get indices on an uncoalesced tensor, please call .coalesce() first"):
        grad.indices()
    embedding(index, w, sparse=True).sum().backward()
    say(w.grad.is_sparse, w.grad._nnz(), w.grad.to_dense())
    (w * 1).sum().backward()
    say(w.grad.is_sparse, w.grad)
    embedding(index, w, sparse=True).sum().backward()
    say(w.grad.is_sparse, w.grad)
    w.grad = None
    (embedding(index, w, sparse=True).sum() + w.sum()).backward()
    say(w.grad.is_sparse, w.grad)
    say(torch.autograd.grad(embedding(index, w, sparse=True).sum(), w)[0].is_sparse)
    w.grad = None
    embedding(index, w, sparse=True).sum().backward()
    torch.optim.SGD([w], lr=0.1).step()
    say(w)
