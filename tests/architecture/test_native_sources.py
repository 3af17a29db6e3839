"""The Cython source of a module is its Python source, line by line, with the types of compiled classes added."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.native_sources import MODULES, NativeSource, translate

SOURCES = Path(__file__).parents[2] / "src"

NODE = '''"""A family."""
from pullback.graph.node import Node, next_sequence_nr


class MulBackward0(Node):
    """Gradient of mul."""

    __slots__ = ("__dict__",)
    saved_names = ("input",)
    saved_input: Any = None
    saved_input_version: int = -1
    broadcast: bool = False

    def apply(self, grads: Sequence[Any], edges: Edges, owned: bool = False) -> Sequence[Any]:
        return (grads[0],)
'''


def translated(text: str, module: str = "pullback.generated.family") -> list[str]:
    return translate(module, text).implementation.splitlines()


def python_source(module: str) -> str:
    return (SOURCES / Path(*module.split("."))).with_suffix(".py").read_text(encoding="utf-8")


@pytest.mark.parametrize("module", MODULES)
def test_every_line_keeps_its_number(module: str) -> None:
    text = python_source(module)
    assert len(translate(module, text).implementation.splitlines()) == len(text.splitlines())


def test_a_node_becomes_an_extension_type() -> None:
    assert translated(NODE)[4] == "cdef class MulBackward0(Node):"


def test_annotated_attributes_become_fields() -> None:
    expected = ["    cdef public object saved_input", "    cdef public object saved_input_version",
                "    cdef public bint broadcast"]  # fmt: skip
    assert translated(NODE)[9:12] == expected


def test_defaults_that_are_not_zero_are_set_when_an_instance_is_made() -> None:
    assert translated(NODE)[7] == "    def __cinit__(self): self.saved_input_version = -1"


def test_attributes_without_annotation_stay_with_the_class() -> None:
    assert translated(NODE)[8] == '    saved_names = ("input",)'


def test_a_rule_is_called_without_a_look_up() -> None:
    assert translated(NODE)[13] == "    cpdef object apply(self, object grads, tuple edges, bint owned=False):"


def test_extension_types_are_imported_as_such() -> None:
    expected = "from pullback.graph.node import next_sequence_nr; from pullback.graph.node cimport Node"
    assert translated(NODE)[1] == expected


def test_a_class_that_is_renamed_stays_a_python_class() -> None:
    assert translated(NODE + 'MulBackward0.__name__ = "Other"\n')[4] == "class MulBackward0(Node):"


def test_operations_read_the_state_of_tensors_with_a_checked_cast() -> None:
    text = "def neg(input):\n    result._array = input._array\n    return input._edge\n"
    expected = ["    (<TensorBase?>result)._array = array_of(input)", "    return (<TensorBase?>input)._edge"]
    assert translated(text)[1:] == expected


def test_operations_read_arrays_as_structs() -> None:
    text = "def neg(input):\n    if input_array.dtype is not other_array.dtype or input_array.shape != node.shape:\n        pass\n"
    expected = (
        "    if dtype_of(input_array) is not dtype_of(other_array) or shapes_differ_between(input_array, computed):"
    )
    assert translated(text)[1] == expected


def test_rules_read_what_was_saved_as_structs() -> None:
    text = (
        NODE + "\n    def release_saved_tensors(self) -> None:\n        input = input._array if input._counter else 0\n"
    )
    assert translated(text)[-1] == "        input = array_of(input) if counter_of(input) else 0"


def test_new_nodes_are_made_without_a_call() -> None:
    text = NODE + "\n\ndef mul(input):\n    node = new_node(MulBackward0)\n"
    assert translated(text)[-1] == "    node = <MulBackward0>MulBackward0.__new__(MulBackward0)"


def test_slots_of_shared_classes_become_fields() -> None:
    text = 'class InputBuffer:\n    __slots__ = ("grads", "owned")\n'
    expected = "cdef class InputBuffer:\n    cdef public object grads\n    cdef public object owned"
    assert translate("pullback.engine.input_buffer", text).declarations == expected


def test_shared_types_are_declared_to_other_modules() -> None:
    text = "class TensorBase:\n    _array: Any\n    _requires_grad: bool = False\n"
    expected = "cdef class TensorBase:\n    cdef public object _array\n    cdef public bint _requires_grad"
    assert translate("pullback.tensor.tensor_base", text) == NativeSource("cdef class TensorBase:\n\n\n", expected)
