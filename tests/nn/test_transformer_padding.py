"""Padding of an encoder in inference: PyTorch computes with sequences of their own lengths there, and pads with zeros."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import pullback
from pullback import nn

PADDING = pullback.tensor([[False, False, False, True, True], [False, False, False, False, True]])


def encoder(**options: Any) -> Any:
    pullback.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    return nn.TransformerEncoder(layer, 2, **options).eval()


def zero_rows(result: Any) -> list[list[bool]]:
    found: list[list[bool]] = (result == 0).all(-1).tolist()
    return found


@pytest.mark.parametrize("kind", ["bool", "float"])
def test_padding_comes_out_as_zeros_without_gradients(kind: str) -> None:
    module, x = encoder(), pullback.randn(2, 5, 8)
    padding = PADDING if kind == "bool" else pullback.zeros(2, 5).masked_fill(PADDING, float("-inf"))
    with pullback.no_grad():
        found = module(x, src_key_padding_mask=padding)
    assert zero_rows(found) == PADDING.tolist()
    recorded = module(x, src_key_padding_mask=padding)
    assert not any(any(row) for row in zero_rows(recorded))
    assert pullback.allclose(found[~PADDING], recorded[~PADDING], atol=1e-6)


def test_a_row_of_padding_alone_is_zeros() -> None:
    padding = pullback.tensor([[True] * 5, [False] * 5])
    with pullback.no_grad():
        assert zero_rows(encoder()(pullback.randn(2, 5, 8), src_key_padding_mask=padding)) == padding.tolist()


@pytest.mark.parametrize("case", ["padding first", "mask", "switched off", "training", "without nested tensors"])
def test_other_passes_compute_the_padding_too(case: str) -> None:
    module = encoder(enable_nested_tensor=case != "without nested tensors")
    options: dict[str, Any] = {"src_key_padding_mask": PADDING.flip(1) if case == "padding first" else PADDING}
    if case == "mask":
        options["mask"] = pullback.zeros(5, 5, dtype=pullback.bool)
    module.train(case == "training")
    pullback.backends.mha.set_fastpath_enabled(case != "switched off")
    try:
        with pullback.no_grad():
            found = module(pullback.randn(2, 5, 8), **options)
    finally:
        pullback.backends.mha.set_fastpath_enabled(True)
    assert not any(any(row) for row in zero_rows(found))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"batch_first": False}, "self_attn.batch_first was not True"),
        ({"norm_first": True}, "norm_first was True"),
        ({"bias": False}, "self_attn was passed bias=False"),
        ({"activation": pullback.tanh}, "activation_relu_or_gelu was not True"),
        ({"nhead": 1}, "self_attn.num_heads is odd"),
        ({}, ""),
    ],
)
def test_an_encoder_says_why_it_does_not_shorten(options: dict[str, Any], reason: str) -> None:
    layer = nn.TransformerEncoderLayer(8, **{"nhead": 2, "batch_first": True, **options})
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        module = nn.TransformerEncoder(layer, 1)
    assert [reason in str(warning.message) for warning in given] == [True] * bool(reason)
    assert module.use_nested_tensor is (not reason)
