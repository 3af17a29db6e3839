"""Group 8: custom Functions."""

from __future__ import annotations

from typing import Any


def _square(torch: Any) -> Any:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 2 * x * grad

    return Square


def row_101_function(torch: Any, say: Any) -> None:
    square = _square(torch)
    x = torch.tensor([3.0], requires_grad=True)
    y = square.apply(x)
    say(y, y.grad_fn.name(), type(y.grad_fn).__name__)
    y.backward()
    say(x.grad)

    class Empty(torch.autograd.Function):
        pass

    with say.catch("You must implement the forward function for custom autograd.Function."):
        Empty.apply(x)

    class OneWay(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

    with say.catch("You must implement either the backward or vjp method"):
        OneWay.apply(x).backward()
    with say.warned("should not be instantiated"):
        instance = OneWay()
    with say.catch("Legacy autograd function with non-static forward method is deprecated."):
        instance(x)


def row_102_vjp(torch: Any, say: Any) -> None:
    class Named(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def vjp(ctx: Any, grad: Any) -> Any:
            return grad * 2

    class Both(Named):
        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2

    x = torch.ones(1, requires_grad=True)
    Named.apply(x).backward()
    say(x.grad)
    with say.catch("Implementing both 'backward' and 'vjp' for a custom Function is not allowed."):
        Both.apply(x).backward()


def row_103_setup_context(torch: Any, say: Any) -> None:
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(x: Any, factor: float) -> Any:
            return x * factor, factor

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.factor = inputs[1]

        @staticmethod
        def backward(ctx: Any, grad: Any, _: Any) -> Any:
            return grad * ctx.factor, None

    x = torch.ones(2, requires_grad=True)
    y, factor = Scale.apply(x, 4.0)
    y.sum().backward()
    say(x.grad, factor)


def row_104_save_for_backward(torch: Any, say: Any) -> None:
    class Bad(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(3)
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad

    with say.catch("save_for_backward can only save variables, but argument 0 is of type int"):
        Bad.apply(torch.ones(1, requires_grad=True))
    square = _square(torch)
    x = torch.ones(1, requires_grad=True)
    y = x * 1
    z = square.apply(y)
    y.add_(1)
    with say.catch("has been modified by an inplace operation"):
        z.backward()
    w = square.apply(x)
    w.backward()
    with say.catch("Trying to backward through the graph a second time"):
        w.backward()


def row_106_needs_input_grad(torch: Any, say: Any) -> None:
    seen: list[Any] = []

    class Look(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any, c: Any) -> Any:
            seen.append(ctx.needs_input_grad)
            return a * b

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            seen.append(ctx.needs_input_grad)
            return grad, None, None

    Look.apply(torch.ones(1, requires_grad=True), torch.ones(1), 3).backward()
    say(seen)


def row_107_return_counts(torch: Any, say: Any) -> None:
    class Returns(torch.autograd.Function):
        result: Any = None

        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            return a * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return Returns.result

    one = torch.ones(1)
    for result, phrase in [
        ((one,), "returned an incorrect number of gradients (expected 2, got 1)"),
        ((one, None, None), ""),
        ((one, one, one), "returned an incorrect number of gradients (expected 2, got 3)"),
        (
            (one, one),
            "returned a gradient different than None at position 2, but the corresponding forward input was not a Variable",
        ),
        ((3, None), "expected Variable or None (got int)"),
    ]:
        Returns.result = result
        x = torch.ones(1, requires_grad=True)
        with say.catch(phrase):
            Returns.apply(x, 5).backward()
            say(x.grad)


def row_108_mark_dirty(torch: Any, say: Any) -> None:
    class AddOne(torch.autograd.Function):
        give_back = True

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            x.add_(1)
            ctx.mark_dirty(x)
            return x if AddOne.give_back else x.clone()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 3

    x = torch.ones(2, requires_grad=True)
    y = x * 1
    z = AddOne.apply(y)
    say(z is y, z.grad_fn.name(), y._version)
    z.sum().backward()
    say(x.grad)
    with say.catch("a leaf Variable that requires grad has been used in an in-place operation."):
        AddOne.apply(x)
    AddOne.give_back = False
    with say.catch("Some elements marked as dirty during the forward method were not returned as output."):
        AddOne.apply(x * 1)


def row_109_non_differentiable(torch: Any, say: Any) -> None:
    seen: list[Any] = []

    class Sort(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            mask = x > 0
            ctx.mark_non_differentiable(mask)
            return x * 2, mask

        @staticmethod
        def backward(ctx: Any, grad: Any, unused: Any) -> Any:
            seen.append((unused.dtype, unused.tolist()))
            return grad * 2

    x = torch.ones(2, requires_grad=True)
    y, mask = Sort.apply(x)
    y.sum().backward()
    say(mask.requires_grad, seen, x.grad)


def row_110_materialize(torch: Any, say: Any) -> None:
    seen: list[Any] = []

    class Two(torch.autograd.Function):
        on = True

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(Two.on)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx: Any, a: Any, b: Any) -> Any:
            seen.append(None if b is None else b.tolist())
            return a

    for on in (True, False):
        Two.on = on
        Two.apply(torch.ones(2, requires_grad=True))[0].sum().backward()
    say(seen)


def row_111_input_returned(torch: Any, say: Any) -> None:
    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 7

    x = torch.ones(1, requires_grad=True)
    y = Same.apply(x)
    say(y is x, y.grad_fn.name(), y._is_view())
    y.backward()
    say(x.grad)


def row_112_other_arguments(torch: Any, say: Any) -> None:
    class Mixed(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, text: str, flag: bool = False) -> Any:
            return x * 2, text, None, flag

        @staticmethod
        def backward(ctx: Any, grad: Any, *rest: Any) -> Any:
            return grad * 2, None, None

    x = torch.ones(1, requires_grad=True)
    y, *rest = Mixed.apply(x, "a", True)
    y.backward()
    say(rest, x.grad)


def row_113_once_differentiable(torch: Any, say: Any) -> None:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 2 * x * grad

    x = torch.ones(1, requires_grad=True)
    v = torch.ones(1, requires_grad=True)
    (g,) = torch.autograd.grad(Double.apply(x), x, v, create_graph=True)
    with say.catch("trying to differentiate twice a function that was marked with @once_differentiable"):
        g.backward()


def row_114_jvp(torch: Any, say: Any) -> None:
    forward_ad = torch.autograd.forward_ad

    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_forward(x)
            return x * x

        @staticmethod
        def jvp(ctx: Any, tangent: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 2 * x * tangent

    with forward_ad.dual_level():
        dual = forward_ad.make_dual(torch.tensor([3.0]), torch.tensor([1.0]))
        say(forward_ad.unpack_dual(Scale.apply(dual)).tangent)
        with say.catch(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        ):
            _square(torch).apply(dual)


def row_116_access_once(torch: Any, say: Any) -> None:
    class Once(torch.autograd.Function):
        clear_saved_tensors_on_access = True

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            _ = ctx.saved_tensors
            return grad * 2 * x

    with say.catch("saved_tensors can only be accessed once when clear_saved_tensors_on_access=True"):
        Once.apply(torch.ones(1, requires_grad=True)).backward()


def row_117_names(torch: Any, say: Any) -> None:
    function = torch.autograd.function
    for name in (
        "InplaceFunction",
        "NestedIOFunction",
        "BackwardCFunction",
        "FunctionMeta",
        "FunctionCtx",
        "once_differentiable",
    ):
        say(name, hasattr(function, name))


def row_118_double_backward(torch: Any, say: Any) -> None:
    square = _square(torch)
    x = torch.tensor([3.0], requires_grad=True)
    (g,) = torch.autograd.grad(square.apply(square.apply(x)), x, create_graph=True)
    say(g, torch.autograd.grad(g, x))


def row_119_straight_through(torch: Any, say: Any) -> None:
    class Round(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.round()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad

    x = torch.tensor([1.2, 2.7, -0.3], requires_grad=True)
    Round.apply(x).sum().backward()
    say(x.grad)
    y = x.round()
    x.grad = None
    y.sum().backward()
    say(y.requires_grad, x.grad)


def row_120_custom_op(torch: Any, say: Any) -> None:
    tensor = torch.Tensor
    name = f"rows_{id(say)}::scale"

    def scale(x: tensor, k: float = 2.0) -> tensor:  # type: ignore[valid-type]
        return x * k

    scale.__annotations__ = {"x": tensor, "k": float, "return": tensor}
    operator = torch.library.custom_op(name, scale, mutates_args=())
    x = torch.ones(3, requires_grad=True)
    y = operator(x)
    say(y, y.requires_grad)
    with say.catch("but no autograd formula was registered."):
        y.sum().backward()

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.k = inputs[1]

    operator.register_autograd(lambda ctx, grad: (grad * ctx.k, None), setup_context=setup)
    operator(x, 3.0).sum().backward()
    say(x.grad)


def row_105_attributes(torch: Any, say: Any) -> None:
    class Scale(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, factor: float) -> Any:
            ctx.factor = factor
            ctx.kept = x
            return x * factor

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * ctx.factor * ctx.kept, None

    x = torch.tensor([3.0], requires_grad=True)
    y = Scale.apply(x, 2.0)
    with torch.no_grad():
        x.add_(1)
    y.backward(retain_graph=True)
    y.backward()
    say(x.grad, y.grad_fn.factor)


def row_103_saving_what_is_returned(torch: Any, say: Any) -> None:
    class AsItIs(torch.autograd.Function):
        @staticmethod
        def forward(x: Any, y: Any) -> Any:
            return x * y, x

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx: Any, grad: Any, other: Any) -> Any:
            x, y = ctx.saved_tensors
            return grad * y + other, grad * x

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with say.catch("An input that has been returned as-is as output is being saved for backward."):
        AsItIs.apply(x, x * 2)


def row_114_tangents_that_are_missing(torch: Any, say: Any) -> None:
    for materialize in (True, False):

        class Product(torch.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any, y: Any, number: Any, indices: Any, materialize: bool) -> Any:
                ctx.set_materialize_grads(materialize)
                return x * y * number

            @staticmethod
            def jvp(ctx: Any, *tangents: Any) -> Any:
                say(tangents)
                return tangents[0] * 2

        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(torch.ones(2), torch.ones(2))
            result = Product.apply(dual, torch.ones(2) * 3, 5, torch.ones(2, dtype=torch.int64), materialize)
            say(*torch.autograd.forward_ad.unpack_dual(result))
