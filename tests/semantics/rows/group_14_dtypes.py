"""Group 14: dtypes and complex autograd."""

from __future__ import annotations

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
