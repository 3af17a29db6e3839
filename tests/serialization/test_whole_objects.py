"""Objects that are saved whole: files name PyTorch's classes and functions, which PyTorch finds too."""

from __future__ import annotations

import copy
import io
import pickletools
import zipfile
from typing import Any

import pytest

import pullback
from pullback import nn
from pullback.pytorch.torch_places import place_of, torch_module
from pullback.serialization import load, safe_globals, save


def saved(value: object, **options: Any) -> io.BytesIO:
    file = io.BytesIO()
    save(value, file, **options)
    file.seek(0)
    return file


def names_in(file: io.BytesIO) -> set[str]:
    """The classes and functions that a file of protocol 2 names."""
    with zipfile.ZipFile(file) as archive:
        (data,) = (archive.read(name) for name in archive.namelist() if name.endswith("data.pkl"))
    return {str(argument).replace(" ", ".") for code, argument, _ in pickletools.genops(data) if code.name == "GLOBAL"}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (nn.Linear(1, 1), "torch.nn.modules.linear.Linear"),
        (nn.LSTM(1, 1), "torch.nn.modules.rnn.LSTM"),
        (nn.ParameterList([]), "torch.nn.modules.container.ParameterList"),
        (nn.TransformerEncoderLayer(2, 1, 2), "torch.nn.functional.relu"),
        (pullback.optim.AdamW([pullback.ones(1)]), "torch.optim.adamw.AdamW"),
        (pullback.distributions.Normal(0.0, 1.0), "torch.distributions.normal.Normal"),
        (pullback.distributions.ExpTransform(), "torch.distributions.transforms.ExpTransform"),
        (pullback.utils.data.TensorDataset(pullback.ones(1)), "torch.utils.data.dataset.TensorDataset"),
        (pullback.amp.GradScaler("cpu"), "torch.amp.grad_scaler._refresh_per_optimizer_state"),
    ],
)  # fmt: skip
def test_files_name_what_pytorch_has(value: object, expected: str) -> None:
    names = names_in(saved(value))
    assert expected in names
    assert not [name for name in names if name.startswith("pullback")]


def test_functions_that_are_used_later_are_found_too() -> None:
    assert place_of(nn.functional.relu) == ("torch.nn.functional", "relu")
    assert place_of(nn.functional.hardswish) == ("torch.nn.functional", "hardswish")


@pytest.mark.parametrize("protocol", [2, 4])
def test_static_methods_are_found_again(protocol: int) -> None:
    optimizer = pullback.optim.SGD([pullback.ones(1)], 0.1, momentum=0.9)
    schedule = pullback.optim.lr_scheduler.CyclicLR(optimizer, 0.1, 0.2, mode="triangular2")
    read = load(saved(schedule, pickle_protocol=protocol), weights_only=False)
    assert read.scale_fn(3) == schedule.scale_fn(3) == 0.25


class OwnModule(nn.Module):
    """A class of a program, which keeps its own name."""


def test_classes_of_the_program_keep_their_names() -> None:
    assert f"{__name__}.OwnModule" in names_in(saved(OwnModule()))
    assert place_of(OwnModule) is None


def test_allowed_classes_are_known_by_the_name_in_the_file() -> None:
    with safe_globals([pullback.utils.data.TensorDataset]):
        read = load(saved(pullback.utils.data.TensorDataset(pullback.ones(2))))
    assert read.tensors[0].tolist() == [1.0, 1.0]


def test_recurrent_layers_survive_copies_and_files() -> None:
    layer, x = nn.LSTM(2, 3), pullback.ones(1, 1, 2)
    expected = layer(x)[0].tolist()
    assert copy.deepcopy(layer)(x)[0].tolist() == expected
    assert load(saved(layer), weights_only=False)(x)[0].tolist() == expected


def test_a_scaler_is_pickled_between_steps() -> None:
    scaler = pullback.amp.GradScaler("cpu", 4.0)
    weight = nn.Parameter(pullback.ones(1))
    optimizer = pullback.optim.SGD([weight], 0.1)
    scaler.scale(weight.sum()).backward()
    scaler.unscale_(optimizer)
    with pytest.raises(AssertionError, match="at the beginning of an iteration"):
        copy.deepcopy(scaler)


def test_private_modules_belong_to_their_nearest_public_one() -> None:
    assert torch_module("pullback.utils.data.fetch") == "torch.utils.data"
    assert torch_module("pullback.kernels.arithmetic") == "torch"
