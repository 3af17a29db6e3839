"""What a file loaded with weights_only=True can and cannot do."""

from __future__ import annotations

import collections
import contextlib
import datetime
import io
import os
import pickle
import random
from typing import Any

import numpy as np
import pytest

from pullback.serialization import add_safe_globals, clear_safe_globals, get_safe_globals, load, safe_globals
from pullback.serialization.checkpoint import save
from pullback.serialization.pullback_tensors import PullbackTensors
from pullback.serialization.restricted_unpickler import RestrictedUnpickler
from pullback.serialization.vocabulary import Vocabulary
from tests.serialization.crafted import SIX_FLOATS, archive, integer, tensor_pickle, text

REFUSED = "Weights only load failed"


def unpickle(data: bytes) -> Any:
    return RestrictedUnpickler(data, Vocabulary(PullbackTensors())).load()


class Point:
    def __init__(self, x: int) -> None:
        self.x = x


class Slotted:
    __slots__ = ("x",)
    x: int


class RunsCode:
    def __reduce__(self) -> Any:
        return os.system, ("exit 1",)


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
@pytest.mark.parametrize(
    "value",
    [None, True, False, 0, -1, 255, 256, 70000, -(2**31), 2**63, -(10**300), 10**1000, 1.5, float("inf"), 1 + 2j, "é☃",
     b"\x00\xff", bytearray(b"ab"), (), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4), [], [1, [2]], {}, {"a": {1: (2,)}},
     {1, 2}, frozenset({1}), collections.OrderedDict(a=1), collections.Counter("aab"), list(range(2000)),
     {index: str(index) for index in range(300)}, {(1, (2, 3)): "key"}],
    ids=str,
)  # fmt: skip
def test_plain_values_are_read_as_pickle_reads_them(value: object, protocol: int) -> None:
    actual = unpickle(pickle.dumps(value, protocol))
    assert actual == value
    assert type(actual) is type(value)


def test_shared_and_recursive_containers_stay_so() -> None:
    inner: list[Any] = [1]
    outer: list[Any] = [inner, inner]
    outer.append(outer)
    actual = unpickle(pickle.dumps(outer, 2))
    assert actual[0] is actual[1]
    assert actual[2] is actual


def test_attributes_of_an_ordered_dict_are_read() -> None:
    state = collections.OrderedDict(a=1)
    state._metadata = {"version": 1}  # type: ignore[attr-defined]  # as state_dict() does
    assert unpickle(pickle.dumps(state, 2))._metadata == {"version": 1}


@pytest.mark.parametrize("name", ["os.system", "posix.system", "sys.exit", "subprocess.Popen"])
def test_a_blocked_module_is_refused_and_named(name: str) -> None:
    module, _, function = name.rpartition(".")
    phrase = f"Unsupported global: GLOBAL {name} was not an allowed global by default.*whose module {module} is blocked"
    with pytest.raises(pickle.UnpicklingError, match=phrase) as caught:
        unpickle(f"\x80\x02c{module}\n{function}\n(tR.".encode("latin1"))
    assert str(caught.value).startswith(REFUSED)


@pytest.mark.parametrize("name", ["builtins.eval", "__builtin__.exec", "builtins.getattr", "torch.load",
                                  "torch.nn.modules.linear.Linear", "pickle.loads", "operator.attrgetter"])  # fmt: skip
def test_any_other_unknown_name_is_refused(name: str) -> None:
    module, _, function = name.rpartition(".")
    with pytest.raises(pickle.UnpicklingError, match=f"Unsupported global: GLOBAL {name} was not an allowed global"):
        unpickle(f"\x80\x02c{module}\n{function}\n.".encode("latin1"))


def test_a_name_built_on_the_stack_is_refused_too() -> None:
    with pytest.raises(pickle.UnpicklingError, match=r"GLOBAL os\.system"):
        unpickle(pickle.dumps(RunsCode(), 4).replace(b"posix", b"os").replace(b"\x8c\x05os", b"\x8c\x02os"))


def test_code_in_a_file_is_not_run() -> None:
    file = io.BytesIO()
    save(RunsCode(), file)
    file.seek(0)
    with pytest.raises(pickle.UnpicklingError, match=REFUSED):
        load(file)


@pytest.mark.parametrize("value", [np.ones(2), np.float64(1.0), datetime.date(2020, 1, 1), Point(1)], ids=type)
def test_objects_outside_the_vocabulary_are_refused(value: object) -> None:
    with pytest.raises(pickle.UnpicklingError, match=r"add_safe_globals\(\["):
        unpickle(pickle.dumps(value, 2))


@pytest.mark.parametrize(
    ("pickled", "phrase"),
    [
        (b"\x80\x02}(tR.", "Trying to call reduce for unrecognized function"),
        (b"\x80\x02ctorch\nfloat32\n)R.", "Trying to call reduce for unrecognized function"),
        (b"\x80\x02ctorch\nFloatStorage\n)R.", "Trying to call reduce for unrecognized function"),
        (b"\x80\x02}}b.", "Can only build"),
        (b"\x80\x02\xff.", "Unsupported operand 255"),
        (b"\x80\x02I1\n.", "Unsupported operand 73"),
        (b"\x80\x09N.", "Unsupported pickle protocol 9"),
        (b"\x80\x02h\x05.", "malformed"),
        (b"\x80\x02t.", "malformed"),
        (b"\x80\x02.", "malformed"),
        (b"\x80\x02K\x01K\x02a.", "expected a list to fill"),
        (b"\x80\x02K\x01]s.", "malformed"),
        (b"\x80\x02}(K\x01u.", "key without a value"),
        (b"\x80\x02}]K\x01s.", "unhashable"),
        (b"\x80\x02K\x01Q.", "persistent id"),
        (b"\x80\x02ctorch\nSize\n](" + text("a") + b"e\x85R.", "expected an integer"),
        (b"\x80\x02c__builtin__\nbytearray\n" + integer(10**12) + b"\x85R.", "_codecs.encode"),
        (b"\x80\x02c_codecs\nencode\n" + text("a") + text("zlib") + b"\x86R.", "latin1"),
        (b"\x80\x02ctorch\nqint8\n.", "pullback does not have"),
        (b"\x80\x02ctorch._utils\n_rebuild_qtensor\n)R.", "quantized tensors"),
        (b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n)R.", "malformed"),
        (b"\x80\x02ctorch._utils\n_rebuild_parameter\n}\x88}\x87R.", "a parameter needs a tensor"),
        (b"\x80\x02ccollections\nOrderedDict\n)R}]K\x01sb.", "malformed"),
    ],
)
def test_a_malformed_pickle_gets_a_clear_error(pickled: bytes, phrase: str) -> None:
    with pytest.raises(pickle.UnpicklingError, match=phrase) as caught:
        unpickle(pickled)
    assert str(caught.value).startswith(REFUSED)


@pytest.mark.parametrize(
    "pickled",
    [b"", b"\x80", b"\x80\x02K\x01", b"\x80\x02X\xff\xff\xff\x7fabc.", b"\x80\x02\x8b\xff\xff\xff\x7f.",
     b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.", b"\x80\x02cos"],
)  # fmt: skip
def test_a_truncated_pickle_or_one_with_a_bogus_length_ends_early(pickled: bytes) -> None:
    with pytest.raises(EOFError, match="Ran out of input"):
        unpickle(pickled)


def test_a_key_of_exponentially_shared_tuples_is_refused() -> None:
    key: Any = (1,)
    for _ in range(60):
        key = (key, key)
    with pytest.raises(pickle.UnpicklingError, match="more than 10000 parts"):
        unpickle(b"\x80\x02}" + pickle.dumps(key, 2)[2:-1] + b"K\x01s.")


def test_deeply_nested_containers_do_not_exhaust_the_stack() -> None:
    depth = 100_000
    actual = unpickle(b"\x80\x02" + b"]" * depth + b"a" * (depth - 1) + b".")
    assert len(actual) == 1
    key = b"\x80\x02}K\x01" + b"\x85" * depth + b"K\x01s."
    with pytest.raises(pickle.UnpicklingError, match="more than 10000 parts"):
        unpickle(key)


class TestSafeGlobals:
    def test_an_allowed_class_is_built(self) -> None:
        with safe_globals([Point]):
            assert get_safe_globals() == [Point]
            assert unpickle(pickle.dumps(Point(3), 2)).x == 3
        assert get_safe_globals() == []

    def test_slots_are_set(self) -> None:
        value = Slotted()
        value.x = 4
        with safe_globals([Slotted]):
            assert unpickle(pickle.dumps(value, 2)).x == 4

    def test_a_name_can_be_given(self) -> None:
        with safe_globals([(Point, "elsewhere.Point")]):
            assert isinstance(unpickle(b"\x80\x02celsewhere\nPoint\n)\x81."), Point)

    def test_a_counterpart_is_found_under_its_name_in_pytorch(self) -> None:
        with safe_globals([(Point, "pullback.nn.modules.Point")]):
            assert unpickle(b"\x80\x02ctorch.nn.points\nPoint\n.") is Point

    def test_adding_and_clearing(self) -> None:
        add_safe_globals([Point])
        clear_safe_globals()
        with pytest.raises(pickle.UnpicklingError, match="Unsupported global"):
            unpickle(pickle.dumps(Point(3), 2))

    def test_arrays_can_be_allowed(self) -> None:
        array = np.arange(3.0)
        reconstruct: Any = array.__reduce__()[0]
        with safe_globals([reconstruct, np.ndarray, np.dtype, type(array.dtype)]):
            assert unpickle(pickle.dumps(array, 2)).tolist() == [0.0, 1.0, 2.0]

    def test_something_without_a_name_is_refused(self) -> None:
        with pytest.raises(TypeError, match="expected a class, a function"):
            add_safe_globals([1])  # type: ignore[list-item]  # on purpose


@pytest.mark.parametrize("seed", range(300))
def test_a_mutated_pickle_never_does_worse_than_raise(seed: int) -> None:
    random_bytes = random.Random(seed)
    pickled = bytearray(tensor_pickle())
    for _ in range(random_bytes.randint(1, 4)):
        pickled[random_bytes.randrange(len(pickled))] = random_bytes.randrange(256)
    with contextlib.suppress(pickle.UnpicklingError, RuntimeError, EOFError, ValueError):
        load(archive(bytes(pickled), {"data/0": SIX_FLOATS}))
