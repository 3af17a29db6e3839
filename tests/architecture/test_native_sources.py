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

    def apply(self, grads: Sequence[Any]) -> Sequence[Any]:
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
    assert translated(NODE)[13] == "    cpdef object apply(self, object grads):"


def test_extension_types_are_imported_as_such() -> None:
    expected = "from pullback.graph.node import next_sequence_nr; from pullback.graph.node cimport Node"
    assert translated(NODE)[1] == expected


def test_a_class_that_is_renamed_stays_a_python_class() -> None:
    assert translated(NODE + 'MulBackward0.__name__ = "Other"\n')[4] == "class MulBackward0(Node):"


def test_operations_read_the_state_of_tensors_with_a_checked_cast() -> None:
    text = "def neg(input):\n    result._array = input._array\n    return input._edge\n"
    expected = ["    (<TensorBase?>result)._array = input._array", "    return (<TensorBase?>input)._edge"]
    assert translated(text)[1:] == expected


def test_shared_types_are_declared_to_other_modules() -> None:
    text = "class TensorBase:\n    _array: Any\n    _requires_grad: bool = False\n"
    expected = "cdef class TensorBase:\n    cdef public object _array\n    cdef public bint _requires_grad"
    assert translate("pullback.tensor.tensor_base", text) == NativeSource("cdef class TensorBase:\n\n\n", expected)
