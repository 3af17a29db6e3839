"""Changed files are refused with an error that names the record, run no code, and take memory in proportion to their size."""

from __future__ import annotations

import importlib
import io
import pickle
import sys
import zipfile
from typing import Any

import pytest

import pullback
from tests.file_fuzz.__main__ import changed_file
from tests.file_fuzz.examination import CodeWatch, examine
from tests.file_fuzz.real_files import real_files
from tests.serialization.crafted import SIX_FLOATS, archive, integer, integers, tensor_pickle, text

FILES = real_files()


@pytest.mark.parametrize("name", FILES)
def test_a_real_file_is_loaded(name: str) -> None:
    kind = FILES[name]

    kind.load(kind.content)


@pytest.mark.parametrize("name", FILES)
def test_changed_files_are_loaded_or_refused(name: str) -> None:
    kind = FILES[name]
    found = [examine(changed_file(kind, name, 0, number), kind.load) for number in range(40)]

    assert [wrong for wrong in found if wrong] == []


def test_a_load_that_runs_code_every_time_is_noticed() -> None:
    assert "ran code" in str(examine(b"", lambda content: exec("1"), CodeWatch()))


def test_a_load_that_imports_what_the_file_names_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)

    assert "ran code" in str(examine(b"\x80\x02ccolorsys\nrgb_to_hsv\n.", _import_colorsys, CodeWatch()))


def test_a_load_that_needs_a_module_for_the_first_time_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)

    assert examine(b"\x80\x02ccolors\n.", _import_colorsys, CodeWatch()) is None


def _import_colorsys(content: bytes) -> None:
    importlib.import_module("colorsys")


def test_a_load_of_too_much_memory_is_noticed() -> None:
    assert "bytes of memory" in str(examine(b"", lambda content: bytearray(100 << 20)))


def test_an_error_without_the_record_is_noticed() -> None:
    def refuse(content: bytes) -> Any:
        raise RuntimeError("no")

    assert "does not name the record" in str(examine(b"", refuse))


@pytest.mark.parametrize("function", ["builtins\nset", "builtins\nfrozenset", "torch\nSize"])
def test_a_pickle_whose_calls_multiply_its_objects_is_refused(function: str) -> None:
    numbers = b"(" + b"".join(integer(n) for n in range(2000)) + b"lq\x00"
    calls = (b"c" + function.encode() + b"\nh\x00\x85R") * 2000
    content = archive(b"\x80\x02(" + numbers + calls + b"l.").getvalue()

    assert examine(content, lambda content: pullback.load(io.BytesIO(content))) is None
    with pytest.raises(pickle.UnpicklingError, match="copy each other to more than"):
        pullback.load(io.BytesIO(content))


def test_attributes_that_are_given_to_many_tensors_are_counted() -> None:
    attributes = b"}(" + b"".join(text(f"a{n}") + b"N" for n in range(2000)) + b"uq\x01"
    call = b"ctorch._utils\n_rebuild_parameter_with_state\n(h\x00\x89Nh\x01tR"
    pickled = b"\x80\x02(" + tensor_pickle()[2:-1] + b"q\x00" + attributes + call * 1000 + b"l."

    with pytest.raises(pickle.UnpicklingError, match="copy each other to more than"):
        pullback.load(archive(pickled, {"data/0": SIX_FLOATS}))


def test_a_conjugated_tensor_far_larger_than_its_storage_is_refused() -> None:
    pickled = tensor_pickle("torch\nComplexFloatStorage", count=3, size=(1 << 30,), stride=(0,))
    pickled = pickled.removesuffix(b"tR.") + b"}" + text("conj") + b"\x88stR."

    with pytest.raises(pickle.UnpicklingError, match="copy each other to more than"):
        pullback.load(archive(pickled, {"data/0": SIX_FLOATS}))


@pytest.mark.parametrize("hooks", [b"K\x07", b"]", b"}K\x00K\x01s"])
def test_hooks_of_another_kind_are_refused_at_load(hooks: bytes) -> None:
    pickled = tensor_pickle().replace(b"ccollections\nOrderedDict\n)R", hooks)

    with pytest.raises(pickle.UnpicklingError, match="hooks of a tensor to be a dict of functions"):
        pullback.load(archive(pickled, {"data/0": SIX_FLOATS}))


@pytest.mark.parametrize(
    "geometry", [{"size": (1,), "stride": (2**60,)}, {"size": (0,), "stride": (1,), "offset": 2**60}]
)
def test_strides_and_offsets_that_no_memory_has_are_refused(geometry: dict[str, Any]) -> None:
    with pytest.raises(RuntimeError, match=r"out of bounds.*near byte .* of record 'data\.pkl'"):
        pullback.load(archive(tensor_pickle(**geometry), {"data/0": SIX_FLOATS}))


def test_an_error_names_the_record_of_an_old_file() -> None:
    file = io.BytesIO()
    pullback.save([1], file, _use_new_zipfile_serialization=False)

    with pytest.raises(pickle.UnpicklingError, match="record 'object'"):
        pullback.load(io.BytesIO(file.getvalue().replace(b"\x80\x02]q", b"\x80\x02\x92q", 1)))


def test_a_deflated_pickle_is_read_too() -> None:
    content = archive(b"\x80\x02" + integers((1, 2)) + b".", compression=zipfile.ZIP_DEFLATED)

    assert pullback.load(content) == (1, 2)
