"""Files written by PyTorch are read here, and files written here are read by PyTorch."""

from __future__ import annotations

import collections
import io
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import pullback  # noqa: E402  (torch decides first)
from pullback.serialization import get_unsafe_globals_in_checkpoint, load, save  # noqa: E402  (torch decides first)
from pullback.tensor.tensor import Tensor, new_tensor  # noqa: E402
from tests.serialization.crafted import SIX_FLOATS, archive, tar_file, tensor_pickle  # noqa: E402

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64",
          "complex128", "uint16", "uint32", "uint64"]  # fmt: skip


def by_torch(value: object, **options: Any) -> io.BytesIO:
    file = io.BytesIO()
    torch.save(value, file, **options)
    file.seek(0)
    return file


def by_pullback(value: object, **options: Any) -> io.BytesIO:
    file = io.BytesIO()
    save(value, file, **options)
    file.seek(0)
    return file


def assert_same(actual: Any, expected: Any) -> None:
    """Compare a value of pullback with one of torch."""
    if isinstance(expected, torch.Tensor):
        assert_same_tensor(actual, expected)
    elif isinstance(expected, dict):
        assert type(actual) is type(expected)
        assert list(actual) == list(expected)
        for key, value in expected.items():
            assert_same(actual[key], value)
    elif type(expected) in (list, tuple):
        assert type(actual) is type(expected)
        assert len(actual) == len(expected)
        for left, right in zip(actual, expected, strict=True):
            assert_same(left, right)
    elif isinstance(expected, (torch.dtype, torch.device, torch.Size)):
        assert type(actual).__name__ == type(expected).__name__
        assert str(actual).rpartition(".")[2] == str(expected).rpartition(".")[2]
    else:
        assert type(actual) is type(expected)
        assert actual == expected


def assert_same_tensor(actual: Any, expected: Any) -> None:
    assert isinstance(actual, Tensor)
    assert type(actual).__name__ == type(expected).__name__
    assert actual.requires_grad == expected.requires_grad
    assert actual.dtype.name == str(expected.dtype).removeprefix("torch.")
    values = expected.detach().resolve_conj().resolve_neg()
    if values.dtype == torch.bfloat16:
        np.testing.assert_array_equal(actual._array.astype(np.float32), values.float().numpy())
    else:
        np.testing.assert_array_equal(actual._array, values.numpy())
    if expected.numel():
        assert actual.stride() == expected.stride()


def everything() -> dict[str, Any]:
    base = torch.arange(12.0).reshape(3, 4)
    return {
        "base": base, "row": base[1], "transposed": base.t(), "strided": base[::2, 1:3], "scalar": torch.tensor(2.5),
        "empty": torch.ones(0, 3), "expanded": torch.ones(3, 1).expand(3, 4),
        "leaf": torch.ones(2, requires_grad=True), "result": torch.ones(2, requires_grad=True) * 2,
        "conjugated": torch.tensor([1 + 2j, 3 - 1j]).conj(), "negated": torch.tensor([1 + 2j, 3 - 1j]).conj().imag,
        "elements": [torch.tensor([0, 1, 2]).to(getattr(torch, name)) for name in DTYPES],
        "dtypes": [getattr(torch, name) for name in DTYPES],
        "size": base.shape, "devices": [torch.device("cpu"), torch.device("cuda:1")],
        "ordered": collections.OrderedDict(a=1, b=[2]), "counter": collections.Counter("aab"),
        "numbers": [0, -1, 255, 65536, 2**31, -(2**63), 10**50, 1.5, float("inf"), 2 - 1j, True, None],
        "text": "é☃", "bytes": b"\x00\xff", "array": bytearray(b"ab"), "set": {1, 2}, "nested": (1, (2, [3, {}])),
        "random state": torch.get_rng_state(),
    }  # fmt: skip


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_zip_files_of_torch_are_read(protocol: int, weights_only: bool) -> None:
    expected = everything()
    actual = load(by_torch(expected, pickle_protocol=protocol), weights_only=weights_only)
    assert_same(actual, expected)
    actual["row"]._array[0] = 99
    assert actual["base"]._array[1, 0] == 99


@pytest.mark.parametrize("weights_only", [True, False])
def test_old_files_of_torch_are_read(weights_only: bool) -> None:
    expected = everything()
    file = by_torch(expected, _use_new_zipfile_serialization=False)
    assert_same(load(file, weights_only=weights_only), expected)


@pytest.mark.parametrize("weights_only", [True, False])
def test_torch_reads_our_zip_files(weights_only: bool) -> None:
    ours = load(by_torch(everything()))
    expected = torch.load(by_pullback(ours), weights_only=weights_only)
    assert_same(ours, expected)
    assert expected["row"].untyped_storage().data_ptr() == expected["base"].untyped_storage().data_ptr()


@pytest.mark.parametrize("protocol", [3, 4, 5])
def test_torch_reads_our_zip_files_of_newer_protocols(protocol: int) -> None:
    ours = load(by_torch(everything()))
    assert_same(ours, torch.load(by_pullback(ours, pickle_protocol=protocol), weights_only=False))


@pytest.mark.parametrize("weights_only", [True, False])
def test_torch_reads_our_old_files(weights_only: bool) -> None:
    ours = load(by_torch(everything()))
    # torch cannot read these three from the old format, not even from its own files.
    ours["elements"] = [item for item in ours["elements"] if item.dtype.name not in ("uint16", "uint32", "uint64")]
    expected = torch.load(by_pullback(ours, _use_new_zipfile_serialization=False), weights_only=weights_only)
    assert_same(ours, expected)


def test_mapped_files_agree(tmp_path: Path) -> None:
    torch.save(everything(), tmp_path / "theirs.pt")
    ours = load(tmp_path / "theirs.pt", mmap=True)
    assert_same(ours, everything())
    save(ours, tmp_path / "ours.pt")
    assert_same(ours, torch.load(tmp_path / "ours.pt", mmap=True))


def test_files_written_without_checksums_are_read() -> None:
    torch.serialization.set_crc32_options(False)
    try:
        file = by_torch(torch.ones(3))
    finally:
        torch.serialization.set_crc32_options(True)
    assert load(file)._array.tolist() == [1, 1, 1]


def test_attributes_of_tensors_cross_over() -> None:
    original = torch.ones(2)
    original.note = ["kept"]
    ours = load(by_torch(original))
    assert ours.note == ["kept"]
    assert torch.load(by_pullback(ours)).note == ["kept"]


def test_parameters_cross_over() -> None:
    weight = torch.nn.Parameter(torch.ones(2))
    noted = torch.nn.Parameter(torch.ones(3), requires_grad=False)
    noted.note = 1
    ours = load(by_torch({"a": weight, "tied": weight, "noted": noted}))
    assert ours["a"] is ours["tied"]
    assert ours["noted"].note == 1
    back = torch.load(by_pullback(ours))
    assert_same(ours, back)
    assert back["a"] is back["tied"]


def test_generators_and_layouts_cross_over() -> None:
    generator = torch.Generator().manual_seed(5)
    torch.randn(3, generator=generator)
    ours = load(by_torch([generator, torch.strided]), weights_only=False)
    theirs = torch.load(by_pullback(ours), weights_only=False)
    assert theirs[1] is torch.strided
    assert torch.equal(theirs[0].get_state(), generator.get_state())
    assert theirs[0].initial_seed() == ours[0].initial_seed() == 5


def test_training_state_crosses_over() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    optimizer = torch.optim.Adam(model.parameters(), amsgrad=True)
    model(torch.randn(5, 3)).sum().backward()
    optimizer.step()
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    ours = load(by_torch(state))
    assert_same(ours, state)
    assert ours["model"]._metadata == state["model"]._metadata
    back = torch.load(by_pullback(ours))
    model.load_state_dict(back["model"])
    optimizer.load_state_dict(back["optimizer"])


def test_a_trusted_module_of_torch_becomes_one_of_pullback() -> None:
    theirs = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.LayerNorm(4))
    ours = load(by_torch(theirs), weights_only=False)
    assert type(ours).__module__.startswith("pullback.nn.")
    inputs = torch.arange(6.0).reshape(2, 3)
    expected = theirs(inputs).detach().numpy()
    np.testing.assert_allclose(ours(new_tensor(inputs.numpy()))._array, expected, rtol=1e-5, atol=1e-6)
    theirs.load_state_dict(torch.load(by_pullback(ours.state_dict())))
    again = load(by_pullback(ours), weights_only=False)
    np.testing.assert_allclose(again(new_tensor(inputs.numpy()))._array, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("value", [np.ones(2), np.float64(1.0), torch.nn.Linear(1, 1), collections.defaultdict(list)])
def test_both_refuse_the_same_objects_and_name_them_alike(value: object) -> None:
    messages = []
    for loader in (load, torch.load):
        with pytest.raises(pickle.UnpicklingError, match="Weights only load failed") as caught:
            loader(by_torch(value), weights_only=True)
        messages.append(str(caught.value).partition("Unsupported global: GLOBAL ")[2].partition(" was not")[0])
    assert messages[0] == messages[1] != ""


def test_both_list_the_same_unsafe_names() -> None:
    value = [torch.nn.Linear(1, 1), np.float64(1.0), torch.ones(1)]
    expected = torch.serialization.get_unsafe_globals_in_checkpoint(by_torch(value))
    assert set(get_unsafe_globals_in_checkpoint(by_torch(value))) == set(expected)


@pytest.mark.parametrize(
    "changes",
    [{"count": 100}, {"count": 10**15}, {"offset": 3}, {"offset": -3}, {"stride": (-3, 1)}, {"stride": (30, 1)},
     {"size": (-2, 3)}, {"size": (2**40, 2**40)}, {"size": (2,)}, {"key": "7"}, {"location": "cuda:0"},
     {"location": "weird"}],
)  # fmt: skip
def test_both_refuse_the_same_bogus_tensors(changes: dict[str, Any]) -> None:
    for loader in (load, torch.load):
        with pytest.raises(RuntimeError):
            loader(archive(tensor_pickle(**changes), {"data/0": SIX_FLOATS}))


def test_both_refuse_one_memory_as_two_types() -> None:
    theirs = torch.ones(2, dtype=torch.complex64)
    ours = np.ones(2, np.complex64)
    for pair, writer in (([theirs, theirs.real], torch.save), ([new_tensor(ours), new_tensor(ours.real)], save)):
        with pytest.raises(RuntimeError, match="Cannot save multiple tensors or storages that view the same data"):
            writer(pair, io.BytesIO())


@pytest.mark.parametrize("view", [True, False])
def test_tar_files_agree(tmp_path: Path, view: bool) -> None:
    path = tmp_path / "old.tar"
    path.write_bytes(tar_file(view=view).getvalue())
    assert_same(load(path), torch.load(path, weights_only=False))


WHOLE_MODULES = [
    "Linear(2, 3)", "Conv2d(1, 2, 3)", "BatchNorm2d(2)", "LSTM(2, 3, 2)", "GRUCell(2, 3)", "Embedding(4, 2)",
    "MultiheadAttention(4, 2)", "TransformerEncoderLayer(4, 2, 8, batch_first=True)", "Transformer(4, 2, 1, 1, 8, batch_first=True)",
    "Sequential(Linear(2, 2), ReLU(), Dropout(0.1))", "CrossEntropyLoss()", "ParameterList([Parameter(ones(2))])",
]  # fmt: skip


@pytest.mark.parametrize("text", WHOLE_MODULES)
def test_whole_modules_cross_over(text: str) -> None:
    def made(package: Any) -> Any:
        return eval(text, {**vars(package.nn), "ones": package.ones})

    ours, theirs = made(pullback), made(torch)
    read_there = torch.load(by_pullback(ours), weights_only=False)
    read_here = load(by_torch(theirs), weights_only=False)
    assert (type(read_there), type(read_here)) == (type(theirs), type(ours))
    assert repr(read_there) == repr(theirs) == repr(read_here).replace("pullback.", "torch.")
    assert set(vars(read_there)) == set(vars(theirs))
    assert_same(ours.state_dict(), read_there.state_dict())


@pytest.mark.parametrize("text", ["StepLR(o, 2)", "CyclicLR(o, 0.1, 0.2)", "OneCycleLR(o, 0.1, 10)"])
def test_schedulers_cross_over_with_their_optimizers(text: str) -> None:
    def stepped(package: Any, schedule: Any = None) -> Any:
        if schedule is None:
            optimizer = package.optim.AdamW([package.nn.Parameter(package.ones(2))], 0.1)
            schedule = eval(text, {**vars(package.optim.lr_scheduler), "o": optimizer})
        schedule.optimizer.param_groups[0]["params"][0].grad = package.ones(2)
        schedule.optimizer.step()
        schedule.step()
        return schedule

    def state(schedule: Any) -> Any:
        return schedule.get_last_lr(), schedule.optimizer.param_groups[0]["params"][0].tolist()

    expected = state(stepped(torch, stepped(torch)))
    there = torch.load(by_pullback(stepped(pullback)), weights_only=False)
    here = load(by_torch(stepped(torch)), weights_only=False)
    assert np.allclose(np.concatenate(state(stepped(torch, there))), np.concatenate(expected), rtol=1e-6)
    assert np.allclose(np.concatenate(state(stepped(pullback, here))), np.concatenate(expected), rtol=1e-6)


def test_scalers_cross_over() -> None:
    ours, theirs = pullback.amp.GradScaler("cpu", 4.0), torch.amp.GradScaler("cpu", 4.0)
    there, here = torch.load(by_pullback(ours), weights_only=False), load(by_torch(theirs), weights_only=False)
    assert there.state_dict() == theirs.state_dict() == here.state_dict()
