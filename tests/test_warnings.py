"""Warnings point at the user's line and are given as often as PyTorch gives them."""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import pullback
from pullback.modes import user_warnings

BYTES = pullback.tensor([1, 0], dtype=pullback.uint8)
ONCE: dict[str, Callable[[], Any]] = {
    "torch.qr is deprecated in favor of torch.linalg.qr": lambda: pullback.qr(pullback.eye(2)),
    "torch.cholesky is deprecated in favor of torch.linalg.cholesky": lambda: pullback.eye(2).cholesky(),
    "torch.lu is deprecated in favor of torch.linalg.lu_factor": lambda: pullback.lu(pullback.eye(2)),
    "torch.triangular_solve is deprecated": lambda: pullback.triangular_solve(pullback.eye(2), pullback.eye(2)),
    "torch.chain_matmul is deprecated": lambda: pullback.chain_matmul(pullback.eye(2), pullback.eye(2)),
    "torch.set_default_tensor_type() is deprecated": lambda: pullback.set_default_tensor_type("torch.FloatTensor"),
    "A window was not provided": lambda: pullback.stft(pullback.ones(8), 4, return_complex=True),
    "stft with return_complex=False is deprecated": lambda: pullback.stft(
        pullback.ones(8), 4, window=pullback.ones(4), return_complex=False
    ),
    "Please provide the same window used by stft": lambda: pullback.istft(pullback.ones(3, 5) + 0j, 4),
    "TypedStorage is deprecated": lambda: pullback.ones(2).storage(),
    "The reduce argument of torch.scatter with Tensor src": lambda: pullback.zeros(2).scatter_(
        0, pullback.tensor([0]), pullback.ones(1), reduce="add"
    ),
    "The use of `x.T` on tensors of dimension other than 2": lambda: pullback.ones(2, 2, 2).T,
    "where received a uint8 condition": lambda: pullback.where(BYTES, pullback.ones(2), pullback.zeros(2)),
    "Casting complex values to real discards": lambda: pullback.tensor([1j]).float(),
    "Using torch.cross without specifying the dim arg": lambda: pullback.cross(pullback.ones(3), pullback.ones(3)),
}


EACH_TIME: dict[str, tuple[Callable[[], Any], type[Warning]]] = {
    "Using a non-tuple sequence for multidimensional indexing": (lambda: pullback.eye(2)[[[0], [1]]], UserWarning),
    "Positional args are being deprecated": (lambda: pullback.nn.Linear(1, 1).state_dict({}), FutureWarning),
    "Support for mismatched src_key_padding_mask and src_mask": (
        lambda: pullback.nn.TransformerEncoderLayer(2, 1, 2)(
            pullback.ones(1, 1, 2),
            src_mask=pullback.zeros(1, 1),
            src_key_padding_mask=pullback.zeros(1, 1, dtype=pullback.bool),
        ),
        UserWarning,
    ),
    "Argument order of nn.functional.embedding_bag was changed": (
        lambda: pullback.nn.functional.embedding_bag(pullback.ones(2, 3), pullback.tensor([[0]])),
        UserWarning,
    ),
}


def given(action: Callable[[], Any]) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        action()
    return found


@pytest.mark.parametrize("phrase", ONCE)
def test_what_is_left_off_is_told_once_at_the_users_line(phrase: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_warnings, "_told", set())
    (warning,) = given(ONCE[phrase])
    assert phrase in str(warning.message)
    assert warning.filename == __file__
    assert given(ONCE[phrase]) == []


@pytest.mark.parametrize("phrase", EACH_TIME)
def test_what_may_mean_something_else_is_told_each_time(phrase: str) -> None:
    action, category = EACH_TIME[phrase]
    for _ in range(2):
        (warning,) = given(action)
        assert (warning.category, warning.filename) == (category, __file__)
        assert phrase in str(warning.message)


def test_complex_values_copied_into_real_ones_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_warnings, "_told", set())
    (warning,) = given(lambda: pullback.zeros(2).copy_(pullback.ones(2) + 1j))
    assert "Casting complex values to real discards" in str(warning.message)


def test_set_warn_always_repeats_what_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_warnings, "_always", False)
    pullback.set_warn_always(True)
    assert pullback.is_warn_always_enabled()
    assert [len(given(lambda: pullback.qr(pullback.eye(2)))) for _ in range(2)] == [1, 1]


def test_arguments_without_effect_are_told() -> None:
    (warning,) = given(lambda: pullback.nn.functional.gumbel_softmax(pullback.ones(2), eps=1e-3))
    assert "`eps` parameter is deprecated and has no effect" in str(warning.message)
    (warning,) = given(lambda: pullback.backends.cuda.sdp_kernel())
    assert warning.category is FutureWarning
    (warning,) = given(lambda: pullback.autograd.Variable(pullback.ones(1), volatile=True))
    assert "volatile was removed and now has no effect" in str(warning.message)


def test_masks_of_two_types_are_told() -> None:
    x = pullback.ones(3, 2, 4)
    layer = pullback.nn.MultiheadAttention(4, 2)
    padding = pullback.zeros(2, 3, dtype=pullback.bool)
    (warning,) = given(lambda: layer(x, x, x, attn_mask=pullback.zeros(3, 3), key_padding_mask=padding))
    assert "Support for mismatched key_padding_mask and attn_mask is deprecated" in str(warning.message)


def test_bytes_as_index_are_told_each_time() -> None:
    for _ in range(2):
        (warning,) = given(lambda: pullback.ones(2)[BYTES])
        assert "indexing with dtype torch.uint8 is now deprecated" in str(warning.message)


@pytest.mark.parametrize("make", [pullback.tensor, pullback.as_tensor])
def test_a_list_of_vectors_is_refused(make: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError, match="only one element tensors can be converted to Python scalars"):
        make([pullback.ones(2), pullback.ones(2)])
    assert make([[pullback.ones(1)], [pullback.ones(1, 1)]]).shape == (2, 1)


def test_a_deprecation_is_about_pullbacks_own_line_and_seen_on_request_alone() -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        pullback.jit.script(pullback.nn.Linear(2, 2))
    (warning,) = seen
    assert warning.category is DeprecationWarning
    assert warning.filename != __file__
    program = "import pullback; pullback.jit.script(pullback.nn.Linear(2, 2))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not done.stderr
