"""The Cython source of a module is its Python source, line by line, with the types of compiled classes added."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import native_sources
from tools.native_accesses import KINDS, TranslationError
from tools.native_sources import MODULES, NativeSource, name_python_sources, translate, translate_all

SOURCES = Path(__file__).parents[2] / "src"

NODE = '''"""A family."""
from pullback.recording.vocabulary import OperationNode, next_sequence_nr


class MulBackward0(OperationNode):
    __slots__ = ("__dict__",)
    operation = "mul"
    tensor_names = ("input",)
    value_names = ("alpha",)

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


def test_what_a_node_saves_becomes_fields() -> None:
    declarations = translate("pullback.generated.family", NODE).declarations.splitlines()
    assert declarations[1:3] == [
        "cdef class MulBackward0(Node):",
        "    cdef public object saved_input, saved_alpha, saved_input_version",
    ]


def test_a_version_is_minus_one_until_a_tensor_is_saved() -> None:
    assert translated(NODE)[5] == "    def __cinit__(self): self.saved_input_version = -1"


def test_other_attributes_stay_with_the_class() -> None:
    assert translated(NODE)[6] == '    operation = "mul"'
    assert translated(NODE)[7] == "    tensor_names = ('input',); saved_names = ('input', 'alpha')"


def test_saved_tensors_are_released_one_by_one() -> None:
    expected = "    cpdef object release_saved_tensors(self): self.released = True; self.saved_input = None"
    assert translated(NODE)[9] == expected


def test_a_node_without_room_for_its_methods_is_refused() -> None:
    with pytest.raises(ValueError, match="no empty line before the first method of MulBackward0"):
        translated(NODE.replace('("alpha",)\n\n', '("alpha",)\n'))


def test_a_rule_is_called_without_a_look_up() -> None:
    assert translated(NODE)[10] == "    cpdef object apply(self, object grads, tuple edges, bint owned=False):"


def test_extension_types_are_imported_as_such() -> None:
    expected = "from pullback.recording.vocabulary import OperationNode, next_sequence_nr; from pullback.graph.node cimport Node"
    assert translated(NODE)[1] == expected


def test_a_class_that_is_renamed_stays_a_python_class() -> None:
    assert (
        translated(NODE.replace('"mul"\n', '"mul"\n    shown = "Other"\n'))[4] == "class MulBackward0(OperationNode):"
    )


def test_operations_read_the_state_of_tensors_with_a_checked_cast() -> None:
    text = "def neg(input):\n    result._array = input._array\n    return input._edge\n"
    expected = ["    (<TensorBase?>result)._array = array_of(input)", "    return (<TensorBase?>input)._edge"]
    assert translated(text)[1:] == expected


def test_operations_read_arrays_as_structs() -> None:
    text = "def neg(input):\n    if input_array.dtype is not other_array.dtype or input_array.shape != computed.shape:\n        pass\n"
    expected = (
        "    if dtype_of(input_array) is not dtype_of(other_array) or shapes_differ_between(input_array, computed):"
    )
    assert translated(text)[1] == expected


def test_rules_read_what_was_saved_as_structs() -> None:
    text = NODE.replace("(grads[0],)", "(input._array if input._counter else 0,)")
    assert translated(text)[-1] == "        return (array_of(input) if counter_of(input) else 0,)"


def test_new_nodes_are_made_without_a_call() -> None:
    text = NODE + "\n\ndef mul(input):\n    node: Any = new_node(MulBackward0)\n"
    assert translated(text)[-1] == (
        "    node = <MulBackward0>MulBackward0.__new__(MulBackward0); node.source = source_line()"
    )


def test_slots_of_shared_classes_become_fields() -> None:
    text = 'class InputBuffer:\n    __slots__ = ("grads", "owned")\n'
    expected = "cdef class InputBuffer:\n    cdef public object grads\n    cdef public object owned"
    assert translate("pullback.engine.input_buffer", text).declarations == expected


def test_shared_types_are_declared_to_other_modules() -> None:
    text = "class TensorBase:\n    _array: Any\n    _requires_grad: bool = False\n"
    expected = "cdef class TensorBase:\n    cdef public object _array\n    cdef public bint _requires_grad"
    assert translate("pullback.tensor.tensor_base", text) == NativeSource("cdef class TensorBase:\n\n\n", expected)


OPERATION = """from pullback.recording.vocabulary import OperationNode, TensorBase

class MulBackward0(OperationNode):
    __slots__ = ("__dict__",)

def mul(input: Tensor) -> Tensor:
    node = new_node(MulBackward0)
"""


def test_a_node_that_is_made_otherwise_than_expected_is_refused() -> None:
    with pytest.raises(TranslationError, match=r"pullback.generated.family:7: new_node\(MulBackward0\) was not"):
        translate("pullback.generated.family", OPERATION)


def test_an_access_that_is_not_translated_is_refused() -> None:
    text = OPERATION.replace("node = new_node(MulBackward0)", "return first(input)._edge")
    with pytest.raises(TranslationError, match=r"family:7: first\(input\)\._edge was not translated"):
        translate("pullback.generated.family", text)


def test_a_tensor_that_is_made_otherwise_than_expected_is_refused() -> None:
    text = OPERATION.replace("node = new_node(MulBackward0)", "return new(type(input))")
    with pytest.raises(TranslationError, match=r"family:7: new\(type\(input\)\) was not translated"):
        translate("pullback.generated.family", text)


def test_names_in_strings_and_comments_stay_as_they_are() -> None:
    text = "def neg(input):\n    return 'input._array'  # input._array\n"
    assert translated(text)[1] == "    return 'input._array'  # input._array"


def test_an_access_behind_letters_of_several_bytes_is_found() -> None:
    assert translated("def neg(input):\n    return 'é', input._array\n")[1] == "    return 'é', array_of(input)"


def test_a_method_with_other_parameters_is_refused() -> None:
    with pytest.raises(
        TranslationError, match="apply takes grads, edges, in _METHODS object grads, tuple edges, bint owned"
    ):
        translated(NODE.replace(", owned: bool = False", ""))


def test_a_field_that_is_gone_is_refused() -> None:
    with pytest.raises(TranslationError, match=r"ReadyQueue of pullback\.engine\.ready_queue has no field heap"):
        translate("pullback.engine.ready_queue", 'class ReadyQueue:\n    __slots__ = ("nodes",)\n')


def test_a_file_of_c_that_does_not_name_its_source_is_refused(tmp_path: Path) -> None:
    (tmp_path / "node.c").write_text('"build/native/pullback/graph/node.pyx"', encoding="utf-8")
    name_python_sources(tmp_path / "node.c", "pullback.graph.node")
    assert (tmp_path / "node.c").read_text(encoding="utf-8") == '"pullback/graph/node.py"'
    with pytest.raises(TranslationError, match=r"names no pullback/graph/edge\.pyx"):
        name_python_sources(tmp_path / "node.c", "pullback.graph.edge")


def test_a_shared_class_that_is_gone_is_refused() -> None:
    with pytest.raises(TranslationError, match=r"pullback.graph.node has no class Node"):
        translate("pullback.graph.node", "class Knot:\n    x: int\n")


def test_a_kind_of_access_that_is_found_nowhere_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_sources, "KINDS", KINDS | {"gone"})
    with pytest.raises(TranslationError, match="nothing is gone any more"):
        translate_all(SOURCES)
