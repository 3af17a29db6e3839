"""What tensors print as. The expected texts were recorded from PyTorch 2.13."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from pullback.tensor import formatting
from pullback.typing import Array

nan, inf = float("nan"), float("inf")


@pytest.fixture(autouse=True)
def _default_print_options() -> Iterator[None]:
    formatting.set_printoptions(profile="default")
    yield
    formatting.set_printoptions(profile="default")


def written(values: Any, dtype_name: str = "float32", **state: Any) -> str:
    array: Array = np.asarray(values, dtype=dtype_name)
    return formatting.format_tensor(array, dtype_name=dtype_name, namespace="torch", **state)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.0, 2.0], "tensor([1., 2.])"),
        ([1.0, -20.0], "tensor([  1., -20.])"),
        ([1.5, 100.25], "tensor([  1.5000, 100.2500])"),
        ([-0.0, 0.0], "tensor([-0., 0.])"),
        ([0.0, nan], "tensor([0., nan])"),
        ([nan, inf, -inf], "tensor([nan, inf, -inf])"),
        ([1.0, nan, -inf, 100.0], "tensor([  1.,  nan, -inf, 100.])"),
        ([1.5, nan, -inf], "tensor([1.5000,    nan,   -inf])"),
        ([1.0, 1000.0], "tensor([   1., 1000.])"),
        ([1.0, 1001.0], "tensor([1.0000e+00, 1.0010e+03])"),
        ([1e8], "tensor([100000000.])"),
        ([1.1e8], "tensor([1.1000e+08])"),
        ([0.99e-4], "tensor([9.9000e-05])"),
        (12345.678, "tensor(12345.6777)"),
        (3.0, "tensor(3.)"),
        (1e-5, "tensor(1.0000e-05)"),
        ([3e-45], "tensor([2.8026e-45])"),
    ],
)
def test_floats_share_one_format(values: Any, expected: str) -> None:
    assert written(values) == expected


@pytest.mark.parametrize(
    ("values", "dtype_name", "expected"),
    [
        ([1, -20, 300], "int64", "tensor([  1, -20, 300])"),
        (5, "uint8", "tensor(5, dtype=torch.uint8)"),
        ([-128, 127], "int8", "tensor([-128,  127], dtype=torch.int8)"),
        ([2**63 + 1], "uint64", "tensor([9223372036854775809], dtype=torch.uint64)"),
        ([True, False], "bool", "tensor([ True, False])"),
        (True, "bool", "tensor(True)"),
        ([1.0, 2.0], "float16", "tensor([1., 2.], dtype=torch.float16)"),
        ([1e308, 1e-308], "float64", "tensor([1.0000e+308, 1.0000e-308], dtype=torch.float64)"),
        (5e-324, "float64", "tensor(4.9407e-324, dtype=torch.float64)"),
        (1 - 2j, "complex64", "tensor(1.-2.j)"),
        ([1j], "complex128", "tensor([0.+1.j], dtype=torch.complex128)"),
        ([1j, 20j, 0], "complex64", "tensor([0.+1.j, 0.+20.j, 0.+0.j])"),
        ([1 + 2j, -3.5], "complex64", "tensor([ 1.0000+2.j, -3.5000+0.j])"),
        ([complex(nan, -inf), 1j], "complex64", "tensor([nan-infj, 0.+1.j])"),
        ([complex(-0.0, -0.0)], "complex64", "tensor([-0.-0.j])"),
    ],
)
def test_each_dtype_is_written_and_named_if_not_evident(values: Any, dtype_name: str, expected: str) -> None:
    assert written(values, dtype_name) == expected


def test_bfloat16_is_written_by_its_value() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = np.asarray([1.123, 2.0], dtype=ml_dtypes.bfloat16)

    actual = formatting.format_tensor(array, dtype_name="bfloat16", namespace="torch")

    assert actual == "tensor([1.1250, 2.0000], dtype=torch.bfloat16)"


@pytest.mark.parametrize(
    ("shape", "dtype_name", "expected"),
    [
        ((0,), "float32", "tensor([])"),
        ((0, 3), "float32", "tensor([], size=(0, 3))"),
        ((0,), "int64", "tensor([], dtype=torch.int64)"),
        ((0,), "complex64", "tensor([], dtype=torch.complex64)"),
        ((2, 0), "bool", "tensor([], size=(2, 0), dtype=torch.bool)"),
    ],
)
def test_an_empty_tensor_shows_size_and_dtype(shape: tuple[int, ...], dtype_name: str, expected: str) -> None:
    assert written(np.zeros(shape), dtype_name) == expected


@pytest.mark.parametrize(
    ("dtype_name", "default_dtype_name", "expected"),
    [
        ("float64", "float64", "tensor([1.])"),
        ("float32", "float64", "tensor([1.], dtype=torch.float32)"),
        ("complex128", "float64", "tensor([1.+0.j])"),
        ("complex64", "float64", "tensor([1.+0.j], dtype=torch.complex64)"),
        ("complex64", "float16", "tensor([1.+0.j])"),
    ],
)
def test_the_default_dtype_is_not_named(dtype_name: str, default_dtype_name: str, expected: str) -> None:
    assert written([1.0], dtype_name, default_dtype_name=default_dtype_name) == expected


def test_dimensions_are_nested_with_blank_lines() -> None:
    expected = """\
tensor([[[0., 0.],
         [0., 0.]],

        [[0., 0.],
         [0., 0.]]])"""
    assert written(np.zeros((2, 2, 2))) == expected


def test_a_long_row_wraps_at_the_line_width() -> None:
    expected = """\
tensor([2., 2., 2., 2., 2., 2., 2., 2., 2., 2., 2., 2., 2., 2., 2., 2., 2., 2.,
        2., 2., 2., 2., 2., 2., 2., 2., 2., 2., 2., 2.], dtype=torch.float64,
       grad_fn=<MulBackward0>)"""
    assert written(np.full(30, 2.0), "float64", grad_fn_name="MulBackward0") == expected


def test_a_complex_row_may_pass_the_line_width() -> None:
    expected = """\
tensor([ 0.+0.0000j,  1.+0.5000j,  2.+1.0000j,  3.+1.5000j,  4.+2.0000j,  5.+2.5000j,
         6.+3.0000j,  7.+3.5000j,  8.+4.0000j,  9.+4.5000j, 10.+5.0000j])"""
    assert written(np.arange(11) * (1 + 0.5j), "complex64") == expected


def test_many_elements_are_summarized() -> None:
    expected = """\
tensor([0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 1.9970e+03, 1.9980e+03,
        1.9990e+03])"""
    assert written(np.arange(2000.0)) == expected


def test_a_long_dimension_is_cut_and_a_short_one_is_not() -> None:
    formatting.set_printoptions(edgeitems=2, threshold=5)
    expected = """\
tensor([[ 0,  1],
        [ 2,  3],
        ...,
        [46, 47],
        [48, 49]])"""
    assert written(np.arange(50).reshape(25, 2), "int64") == expected


def test_a_summary_chooses_its_format_from_what_it_shows() -> None:
    values = np.ones(2000)
    values[1000] = 0.5
    assert written(values) == "tensor([1., 1., 1.,  ..., 1., 1., 1.])"


def test_a_summary_reads_only_what_it_shows() -> None:
    enormous = np.broadcast_to(np.float32(1), (100_000, 100_000, 100_000))
    start = time.process_time()
    written(enormous)
    assert time.process_time() - start < 1.0


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({"requires_grad": True}, "tensor([1., 1.], requires_grad=True)"),
        ({"requires_grad": True, "grad_fn_name": "MulBackward0"}, "tensor([1., 1.], grad_fn=<MulBackward0>)"),
        ({"requires_grad": True, "invalid_grad_fn": True}, "tensor([1., 1.], grad_fn=<Invalid>)"),
        ({"tangent": "tensor([1., 1.])"}, "tensor([1., 1.], tangent=tensor([1., 1.]))"),
        ({"device": "cuda:0"}, "tensor([1., 1.], device='cuda:0')"),
        ({"device": "meta"}, "tensor(..., device='meta', size=(2,))"),
        ({"class_name": "Weight"}, "Weight([1., 1.])"),
        ({"contents": "abc", "requires_grad": True}, "tensor(abc, requires_grad=True)"),
    ],
)
def test_state_is_shown_as_suffixes(state: dict[str, Any], expected: str) -> None:
    assert written([1.0, 1.0], **state) == expected


def test_a_suffix_that_would_pass_the_line_width_starts_a_new_line() -> None:
    expected = """\
tensor([1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1., 1.],
       requires_grad=True)"""
    assert written(np.ones(14), requires_grad=True) == expected


def test_a_subclass_indents_by_its_own_name() -> None:
    assert written(np.ones((2, 2)), class_name="Foo") == "Foo([[1., 1.],\n     [1., 1.]])"


def test_the_displayed_namespace_is_the_packages_own_by_default() -> None:
    actual = formatting.format_tensor(np.ones(1, "int8"), dtype_name="int8")
    assert actual == "tensor([1], dtype=pullback.int8)"


@pytest.mark.parametrize(
    ("options", "values", "expected"),
    [
        ({"sci_mode": True}, [1.0, 20.0], "tensor([1.0000e+00, 2.0000e+01])"),
        ({"sci_mode": True}, [0.0, nan], "tensor([0., nan])"),
        ({"sci_mode": False}, [1e10, 1.0], "tensor([10000000000.,           1.])"),
        ({"sci_mode": False}, [1e-10, 1.5], "tensor([0.0000, 1.5000])"),
        ({"precision": 2}, [1e-6, 20.5], "tensor([1.00e-06, 2.05e+01])"),
        ({"precision": 0}, [1.5, 2.0], "tensor([2, 2])"),
        ({"profile": "short"}, [1.23456], "tensor([1.23])"),
        ({"edgeitems": 0}, [1.0, 20.0], "tensor([ 1., 20.], size=(2,))"),
        ({"edgeitems": 0, "threshold": 1}, [1.0, 20.0], "tensor([...], size=(2,))"),
        ({"edgeitems": 1, "threshold": 3}, [1.0, 2.0, 3.0, 4.0], "tensor([1.,  ..., 4.])"),
        ({"linewidth": 5}, [1.5, 2.0], "tensor([1.5000,\n        2.0000])"),
    ],
)
def test_print_options_change_the_text(options: dict[str, Any], values: Any, expected: str) -> None:
    formatting.set_printoptions(**options)
    assert written(values) == expected


def test_the_full_profile_never_summarizes() -> None:
    formatting.set_printoptions(profile="full")
    assert written(np.zeros(3000)).count("0.") == 3000


def test_every_call_sets_sci_mode_and_keeps_the_rest() -> None:
    formatting.set_printoptions(precision=2, sci_mode=True)
    formatting.set_printoptions(linewidth=40)
    assert formatting.get_printoptions() == {
        "precision": 2,
        "threshold": 1000,
        "edgeitems": 3,
        "linewidth": 40,
        "sci_mode": None,
    }


def test_printoptions_are_restored_after_the_block() -> None:
    formatting.set_printoptions(sci_mode=True)
    with formatting.printoptions(precision=2):
        assert written([1.23456]) == "tensor([1.23])"
    assert written([1.23456]) == "tensor([1.2346e+00])"


@pytest.mark.parametrize("options", [{"precision": -1}, {"edgeitems": -1}])
def test_impossible_print_options_are_refused_and_change_nothing(options: dict[str, Any]) -> None:
    before = formatting.get_printoptions()
    with pytest.raises(ValueError, match="set_printoptions"):
        formatting.set_printoptions(**options)
    assert formatting.get_printoptions() == before


def test_an_unknown_profile_changes_nothing_as_in_pytorch() -> None:
    formatting.set_printoptions(precision=2, profile="long")
    assert formatting.get_printoptions()["precision"] == 2


def test_a_parameter_contains_a_tensor() -> None:
    assert formatting.format_parameter("tensor([1.])") == "Parameter containing:\ntensor([1.])"
    assert formatting.format_parameter("P([1.])", is_subclass=True) == "Parameter containing:\nParameter(P([1.]))"


def test_a_wrapper_indents_the_value_inside_it() -> None:
    inner = formatting.format_wrapper("GradTrackingTensor", "tensor([[1.],\n        [2.]])", level=1)
    expected = """\
BatchedTensor(lvl=2, bdim=0, value=
    GradTrackingTensor(lvl=1, value=
        tensor([[1.],
                [2.]])
    )
)"""
    assert formatting.format_wrapper("BatchedTensor", inner, level=2, batch_dim=0) == expected


@pytest.mark.parametrize(
    ("array", "spec", "expected"),
    [
        (np.float32(3.14159), ".2f", "3.14"),
        (np.float32(3.0), "", "3.0"),
        (np.int64(3), "05d", "00003"),
        (np.bool_(True), "", "True"),
        (np.complex64(1 + 2j), ".1f", "1.0+2.0j"),
    ],
)
def test_a_format_specification_applies_to_a_single_number(array: Any, spec: str, expected: str) -> None:
    assert formatting.format_spec(np.asarray(array), spec, "unused") == expected


@pytest.mark.parametrize(("shape", "class_name"), [((1,), "Tensor"), ((), "Parameter")])
def test_a_format_specification_is_refused_otherwise(shape: tuple[int, ...], class_name: str) -> None:
    array = np.ones(shape)
    with pytest.raises(TypeError, match=f"unsupported format string passed to {class_name}.__format__"):
        formatting.format_spec(array, ".2f", "text", class_name)
    assert formatting.format_spec(array, "", "text", class_name) == "text"
