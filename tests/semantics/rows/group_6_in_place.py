"""Group 6: in-place operations, views, versions."""

from __future__ import annotations

from typing import Any


def row_076_leaf(torch: Any, say: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    with say.catch("a leaf Variable that requires grad is being used in an in-place operation."):
        x.add_(1)
    with say.catch("a view of a leaf Variable that requires grad is being used in an in-place operation."):
        x[:1].add_(1)
    say(x)


def row_077_leaf_under_no_grad(torch: Any, say: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    y = (x * x).sum()
    with torch.no_grad():
        x.add_(1)
    say(x._version, x.is_leaf)
    with say.catch("has been modified by an inplace operation"):
        y.backward()


def row_078_version_check(torch: Any, say: Any) -> None:
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    y.add_(1)
    with say.catch(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        "[torch.FloatTensor [3]], which is output 0 of "
    ):
        y.sum().backward()
    with say.catch("is at version 1; expected version 0 instead. Hint: "):
        x.exp().add_(1).sum().backward()


def row_079_what_is_saved(torch: Any, say: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y += 1
    y.sum().backward()
    say(x.grad)
    a = x * 1
    b = a.sigmoid()
    a.zero_()
    b.sum().backward()
    say(x.grad)


def row_080_rebase(torch: Any, say: Any) -> None:
    base = torch.zeros(4)
    w = torch.ones(2, requires_grad=True)
    view = base[:2]
    view.add_(w)
    say(base.requires_grad, base.grad_fn.name(), view.grad_fn.name())
    (base * torch.tensor([1.0, 2.0, 3.0, 4.0])).sum().backward()
    say(w.grad)
    x = torch.ones(4, requires_grad=True)
    y = x * 2
    y[1:3].mul_(torch.tensor([10.0, 20.0]))
    y.sum().backward()
    say(x.grad)


def row_081_setitem(torch: Any, say: Any) -> None:
    x = torch.ones(4, requires_grad=True)
    v = torch.tensor([5.0, 6.0], requires_grad=True)
    y = x * 2
    y[1:3] = v
    y.sum().backward()
    say(y, x.grad, v.grad)
    x.grad = None
    z = x * 2
    z[torch.tensor([0, 3])] = v.detach()
    z[z > 5] = 0.0
    z.sum().backward()
    say(z, x.grad)


def row_082_multi_output_views(torch: Any, say: Any) -> None:
    x = torch.ones(2, 2, requires_grad=True) * 1
    first = x.unbind()[0]
    with say.catch("This view is the output of a function that returns multiple views."):
        first.mul_(2)
    with say.catch("is a view and is being modified inplace."):
        x.split(1)[0].mul_(2)
    with torch.no_grad():
        first.mul_(2)
    say(x)


def row_083_views_of_other_modes(torch: Any, say: Any) -> None:
    x = torch.ones(2, requires_grad=True) * 1
    with torch.no_grad():
        view = x[:1]
    with say.catch("A view was created in no_grad mode and is being modified inplace with grad mode enabled."):
        view.mul_(2)
    y = torch.ones(2)
    with torch.inference_mode():
        other = y[:1]
    w = torch.ones(1, requires_grad=True)
    with say.catch("A view was created in inference mode and is being modified inplace in normal mode."):
        other.mul_(w)


def row_084_views_in_functions(torch: Any, say: Any) -> None:
    class Same(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.view(-1)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad

    x = torch.ones(2, requires_grad=True) * 1
    y = Same.apply(x)
    with say.catch("This view was created inside a custom Function (or because an input was returned as-is)"):
        y.mul_(2)


def row_085_expanded(torch: Any, say: Any) -> None:
    x = torch.ones(1).expand(3)
    with say.catch(
        "unsupported operation: more than one element of the written-to tensor refers to a single memory location"
    ):
        x.add_(1)


def row_086_out(torch: Any, say: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    with say.catch(
        "mul(): functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad."
    ):
        torch.mul(x, 2, out=torch.empty(2))
    out = torch.empty(2)
    result = torch.mul(torch.ones(2), 3, out=out)
    say(result is out, out)


def row_087_metadata_operations(torch: Any, say: Any) -> None:
    x = torch.ones(2, 3, requires_grad=True)
    with say.catch("cannot resize variables that require grad"):
        x.resize_(6)
    y = x * 1
    y.t_()
    say(y.shape, y.grad_fn.name())
    y.unsqueeze_(0)
    say(y.shape)
    y.sum().backward()
    say(x.grad.shape)


def row_088_saves_and_overwrites(torch: Any, say: Any) -> None:
    a = torch.tensor([2.0], requires_grad=True)
    b = torch.tensor([3.0], requires_grad=True)
    c = a * 1
    c *= b
    c.backward()
    say(a.grad, b.grad)


def row_089_numpy_memory(torch: Any, say: Any) -> None:
    import numpy

    memory: Any = numpy.ones(2, dtype=numpy.float32)
    x = torch.from_numpy(memory)
    memory[0] = 5
    say(x, x._version)


def row_090_copy_across_dtypes(torch: Any, say: Any) -> None:
    x = torch.tensor([1.5], requires_grad=True)
    target = torch.zeros(1, dtype=torch.int64)
    target.copy_(x)
    say(target, target.requires_grad)


def row_091_preserve_version(torch: Any, say: Any) -> None:
    x = torch.ones(2)
    with torch.autograd._unsafe_preserve_version_counter(x):
        x.add_(1)
    say(x._version)


def row_83_views_and_the_flags_of_their_base(torch: Any, say: Any) -> None:
    base = torch.ones(2, 2)
    view = base[0]
    base.requires_grad_()
    say(view.requires_grad, view.is_leaf, view.grad_fn)
    base.requires_grad_(False)
    say(view.requires_grad)
    leaf = torch.ones(2, 2, requires_grad=True)
    with torch.no_grad():
        quiet = leaf[0]
    say(quiet.requires_grad, quiet.is_leaf, (quiet * 2).grad_fn.next_functions)
    leaf.requires_grad_(False)
    say(quiet.requires_grad)
    y = torch.ones(2, 2, requires_grad=True) * 1
    row = y[0]
    row.unsqueeze_(0)
    say(row._base is y, row.grad_fn.name(), row.grad_fn.next_functions[0][0].name())
    y[0] = 0
    y.sum().backward()
    with say.catch("Trying to backward through the graph a second time"):
        y.sum().backward()
    z = torch.ones(2, requires_grad=True)
    later = z * 2
    z.requires_grad_(False)
    z.mul_(torch.ones(2, requires_grad=True))
    with say.catch("leaf variable has been moved into the graph interior"):
        later.sum().backward()


def row_83_messages_of_forbidden_views(torch: Any, say: Any) -> None:
    y = torch.ones(2, 3, requires_grad=True) * 2
    with torch.no_grad():
        quiet = y.view(-1)
    with say.catch("A view was created in no_grad mode and is being modified inplace with grad mode enabled."):
        quiet.mul_(2)
    with say.catch(
        "Output 0 of View is a view of a view which was created in no_grad mode and is being modified inplace"
    ):
        quiet.view(6, 1).mul_(2)
    first, _ = torch.ones(2, 3).unbind(0)
    with say.catch(
        "A view was created in no_grad mode and is being modified inplace with grad mode enabled. This view is"
    ):
        first.mul_(y[0])
    first, _ = y.unbind(0)
    y.mul_(2)
    with say.catch("Output 0 of Unbind is a view and its base or another view of its base has been modified inplace."):
        first.grad_fn
