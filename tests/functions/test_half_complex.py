"""complex32 and 8-bit floats: values recorded from PyTorch."""

from __future__ import annotations

from io import BytesIO

import pytest

import pullback

pytest.importorskip("ml_dtypes", minversion="0.6")


def test_parts_are_views_of_half_precision() -> None:
    x = pullback.tensor([1 + 2j, 3 - 4j], dtype=pullback.complex32)

    assert (x.real.dtype, x.element_size(), x.dtype.to_real()) == (pullback.float16, 4, pullback.float16)
    x.real[0] = 7
    x.imag.neg_()
    assert x.tolist() == [7 - 2j, 3 + 4j]
    assert pullback.view_as_real(x).tolist() == [[7.0, -2.0], [3.0, 4.0]]
    assert repr(x) == "tensor([7.-2.j, 3.+4.j], dtype=pullback.complex32)"


def test_arithmetic_is_rounded_once() -> None:
    x = pullback.tensor([1 + 2j, 3 - 4j], dtype=pullback.chalf)

    assert (x * x).tolist() == [-3 + 4j, -7 - 24j]
    assert (x * x).dtype is pullback.complex32
    assert x.abs().tolist() == [2.236328125, 5.0]
    assert x.abs().dtype is pullback.float16
    assert x.conj().resolve_conj().tolist() == [1 - 2j, 3 + 4j]
    assert (x * pullback.ones(2)).dtype is pullback.complex64
    assert (pullback.ones(2, dtype=pullback.float16) * 1j).dtype is pullback.complex32
    x.mul_(2)
    assert x.tolist() == [2 + 4j, 6 - 8j]
    assert pullback.promote_types(pullback.float64, pullback.complex32) is pullback.complex128


def test_gradients_conjugate() -> None:
    x = pullback.tensor([1.5 + 2j, 3 - 4j], dtype=pullback.complex32, requires_grad=True)
    (x * x).abs().sum().backward()

    assert x.grad.tolist() == [3 + 4j, 6 - 8j]
    assert x.grad.dtype is pullback.complex32

    z = pullback.tensor([1.5 + 2j], requires_grad=True)
    z.chalf().backward(pullback.tensor([1 + 1j], dtype=pullback.complex32))
    assert z.grad.tolist() == [1 + 1j]


@pytest.mark.parametrize("name", ["complex32", "float8_e4m3fn", "float8_e5m2"])
def test_files_keep_the_dtype(name: str) -> None:
    file = BytesIO()
    dtype = getattr(pullback, name)
    pullback.save(pullback.tensor([1.5, -2.0]).to(dtype), file)
    file.seek(0)
    loaded = pullback.load(file)

    assert loaded.dtype is dtype
    assert loaded.float().tolist() == [1.5, -2.0]


def test_eight_bit_floats_round_and_saturate() -> None:
    x = pullback.tensor([1.0, 300.0, -2.3, 1000.0])

    assert x.to(pullback.float8_e4m3fn).tolist() == [1.0, 288.0, -2.25, 448.0]
    assert x.to(pullback.float8_e5m2).tolist() == [1.0, 320.0, -2.5, 1024.0]
    assert x.to(pullback.float8_e8m0fnu).tolist() == [1.0, 256.0, 2.0, 1024.0]
    with pytest.raises(RuntimeError, match="Promotion for Float8 Types is not supported"):
        x.to(pullback.float8_e4m3fn) + x


def test_scaled_products() -> None:
    F = pullback.nn.functional
    x = pullback.tensor([[1.0, 2.0], [3.0, 4.0]]).to(pullback.float8_e4m3fn)
    scales = pullback.tensor([[0.5], [2.0]]), pullback.tensor([[1.0, 10.0]])
    rows = F.ScalingType.RowWise

    result = F.scaled_mm(x, x, scales[0], rows, scales[1], rows, output_dtype=pullback.float32)

    assert result.tolist() == [[3.5, 50.0], [30.0, 440.0]]
