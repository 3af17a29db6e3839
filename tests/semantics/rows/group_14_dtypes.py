"""Group 14: dtypes and complex autograd."""

from __future__ import annotations

import copy
import pickle
from typing import Any


def row_175_complex(torch: Any, say: Any) -> None:
    z = torch.tensor([1 + 2j], requires_grad=True)
    (z.abs() ** 2).sum().backward()
    say(z.grad)
    z.grad = None
    (z * z).backward(torch.tensor([1 + 0j]))
    say(z.grad)
    for f in (
        lambda z: (z * z.conj()).real.sum(), lambda z: z.real.sum(), lambda z: z.imag.sum(), lambda z: z.exp().real.sum(),
        lambda z: z.angle().sum(), lambda z: torch.view_as_real(z).pow(2).sum(), lambda z: (z / (1 + 1j)).imag.sum(),
        lambda z: z.abs().sum(), lambda z: z.sin().real.sum(), lambda z: (z**3).real.sum(),
    ):  # fmt: skip
        z.grad = None
        f(z).backward()
        say(z.grad)
    x = torch.tensor([2.0], requires_grad=True)
    (x * (1 + 2j)).real.sum().backward()
    say(x.grad)
    x.grad = None
    torch.complex(x, x * 2).abs().sum().backward()
    say(x.grad)


def row_176_conj(torch: Any, say: Any) -> None:
    z = torch.tensor([1 + 2j])
    say(z.conj(), z.conj().resolve_conj(), z.conj().conj(), torch.ones(1).conj().is_conj())
    c = z.conj()
    say(
        c.is_conj(),
        z.is_conj(),
        torch.is_conj(c),
        c.conj().is_conj(),
        c.resolve_conj().is_conj(),
        type(c) is torch.Tensor,
    )
    say(c._is_view(), c._base is z, c.data_ptr() == z.data_ptr(), c.stride(), c.storage_offset(), c.contiguous() is c)
    say(
        c.imag,
        c.imag.is_neg(),
        c.real.is_neg(),
        torch.is_neg(c.imag),
        c.imag.resolve_neg().is_neg(),
        (-c.imag).is_neg(),
    )
    say(z._neg_view(), z._neg_view().is_neg(), c._neg_view().is_neg(), c._neg_view().is_conj(), c._neg_view())
    say(
        [made.is_conj() for made in (c[0], c.view(1, 1), c.expand(2, 1), c.detach(), c.data, c + 1, c.clone(), c.sum())]
    )
    matrix = torch.tensor([[1 + 1j, 2], [3, 4 - 1j]], requires_grad=True)
    say(matrix.mH, matrix.mH.is_conj(), matrix.H.is_conj(), matrix.adjoint().is_conj(), matrix.mH.grad_fn.name())
    with say.catch(
        "Can't call numpy() on Tensor that has conjugate bit set. Use tensor.resolve_conj().numpy() instead."
    ):
        c.numpy()
    with say.catch("Can't call numpy() on Tensor that has negative bit set. Use tensor.resolve_neg().numpy() instead."):
        c.imag.numpy()
    with say.catch("view_as_real doesn't work on unresolved conjugated tensors."):
        torch.view_as_real(c)
    with say.catch(
        "torch.Tensor.view is not supported for conjugate view tensors when converting to a different dtype."
    ):
        c.view(torch.float32)
    say(copy.deepcopy(c).is_conj(), pickle.loads(pickle.dumps(c)), pickle.loads(pickle.dumps(c)).is_conj())
    say(torch.vmap(lambda row: row.conj())(torch.stack([z, c])), torch.vmap(lambda row: row * 2)(c))


def row_176_conj_in_place(torch: Any, say: Any) -> None:
    def names(node: Any) -> Any:
        return [node.name(), *[names(next) for next, _ in node.next_functions if next is not None]]

    def fresh() -> Any:
        leaf = torch.tensor([1 + 2j, 3 - 4j, 0.5j], requires_grad=True)
        return leaf, leaf * 1

    weights = torch.tensor([1j, 2, 3])
    for change in (
        lambda z, c: c.mul_(2j), lambda z, c: z.mul_(2j), lambda z, c: c[1:].mul_(2j), lambda z, c: z[:1].zero_(),
        lambda z, c: c.imag.mul_(3), lambda z, c: z.real.exp_(), lambda z, c: c.imag[1:].fill_(2), lambda z, c: c.sin_(),
        lambda z, c: z._neg_view().add_(1j), lambda z, c: z.conj()[:2].copy_(c[1:].detach().clone()),
    ):  # fmt: skip
        leaf, z = fresh()
        c = z.conj()
        change(z, c)
        say(z, c, names(z.grad_fn), names(c.grad_fn), z._version, c._version)
        ((z * weights).real + (c * c).imag).sum().backward()
        say(leaf.grad)
    leaf, z = fresh()
    c = z.conj()
    out = (c * c).real.sum()
    z.add_(1)
    with say.catch("one of the variables needed for gradient computation has been modified by an inplace operation"):
        out.backward()
    with say.catch("a view of a leaf Variable that requires grad is being used in an in-place operation."):
        leaf.conj().mul_(2)
    leaf, z = fresh()
    c = z.conj()
    c.mul_(c.detach().clone() + 1)
    (grad,) = torch.autograd.grad((z * z).real.sum(), leaf, create_graph=True)
    grad.abs().sum().backward()
    say(grad, leaf.grad)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(torch.tensor([1 + 2j]), torch.tensor([3 + 1j]))
        c = dual.conj()
        c.mul_(2j)
        dual.add_(1j)
        for tensor in (dual, c):
            say(*torch.autograd.forward_ad.unpack_dual(tensor))


def row_177_integers(torch: Any, say: Any) -> None:
    x = torch.tensor([1.5, -2.5], requires_grad=True)
    say((x > 0).requires_grad, x.argmax().requires_grad, x.long().requires_grad)
    say(x.round().requires_grad, x.floor().requires_grad, x.sign().requires_grad, x.trunc().requires_grad)


def row_178_mixed_dtypes(torch: Any, say: Any) -> None:
    a = torch.ones(2, requires_grad=True)
    b = torch.ones(2, dtype=torch.float64, requires_grad=True)
    (a * b).sum().backward()
    say((a * b).dtype, a.grad, b.grad)
    scalar = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
    say(
        (a * scalar).dtype,
        (torch.ones(2, dtype=torch.int64) * 2.5).dtype,
        (torch.ones(2, dtype=torch.int64) * a.detach()).dtype,
    )
    (a * scalar).sum().backward()
    say(scalar.grad)
    (a * torch.tensor([2, 3])).sum().backward()
    say(a.grad)


def row_179_half(torch: Any, say: Any) -> None:
    for dtype in (torch.float16, torch.bfloat16):
        x = torch.tensor([1.0, 2.0], dtype=dtype, requires_grad=True)
        (x * x).sum().backward()
        say(x.grad)
    say(torch.tensor([1e-8], dtype=torch.float16))


def row_180_autocast(torch: Any, say: Any) -> None:
    x = torch.ones(4, 4, requires_grad=True)
    w = torch.ones(4, 4, requires_grad=True)
    functional = torch.nn.functional
    with torch.autocast("cpu", dtype=torch.bfloat16):
        product = x @ w
        say(product.dtype, functional.linear(x, w).dtype, (x + w).dtype, product.softmax(0).dtype)
        say(functional.mse_loss(product, x).dtype, torch.cat([product, x]).dtype, torch.bmm(x[None], w[None]).dtype)
        with torch.autocast("cpu", enabled=False):
            say((x @ w).dtype)
        say(torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu"))
        loss = product.float().sum()
    loss.backward()
    say(x.grad.dtype, torch.is_autocast_enabled("cpu"))
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    p = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([p], lr=0.1)
    scaler.scale((p * 2).sum()).backward()
    say(p.grad)
    scaler.unscale_(optimizer)
    say(p.grad)
    with say.catch("unscale_() has already been called on this optimizer since the last update()."):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    say(p, scaler.get_scale())
    p.grad = torch.tensor([float("inf"), 1.0])
    scaler.step(optimizer)
    scaler.update()
    say(p, scaler.get_scale())
