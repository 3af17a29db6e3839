"""What the generator writes for an operation: its function, its node, and what is rendered when first asked for."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from pullback.rules.emit_apply import Path as RulePath
from pullback.rules.emit_apply import emit_body
from pullback.rules.emit_family import emit_family
from pullback.rules.emit_functions import emit_function
from pullback.rules.emit_nodes import emit_line_functions, emit_node
from pullback.rules.emit_tangents import emit_tangent
from pullback.rules.model import Operation, Refusal
from pullback.rules.read_kernels import read_kernels
from pullback.rules.read_rules import read_rules
from pullback.rules.render import Library
from tools.codegen.emit_modules import VOCABULARY, emit_first_use, emit_namespace, emit_registry
from tools.codegen.generator import without_refused

HEAD = "from pullback.typing import Array, Arrays, Dim, DType, Scalar, Shape\n"


def read(tmp_path: Path, kernel: str, rule: str) -> Operation:
    for folder, text in (("kernels", HEAD + kernel), ("derivatives", rule)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "sample.py").write_text(text)
    refusals: list[Refusal] = []
    (operation,) = read_rules(tmp_path / "derivatives", read_kernels(tmp_path / "kernels", refusals), refusals)
    assert refusals == []
    return operation


def library(*names: str) -> Library:
    return Library(dict.fromkeys(names, "sample"), dict.fromkeys(names, "sample"), set())


UNARY = (
    'def bend(input: Array) -> Array:\n    """Bend it."""\n',
    "@elementwise(promote='float', in_place=True)\n"
    "def bend(grad, input):\n    return wrt(input=grad * F.conj(F.cos(input)))\n",
)
BINARY = (
    "def scale(input: Array, other: Array | Scalar, *, alpha: float = 1.0) -> Array: ...\n",
    "@elementwise\ndef scale(grad, input, other, alpha):\n"
    "    return wrt(input=grad * other * alpha, other=grad * input * alpha)\n",
)
TWO_RESULTS = (
    "def part(input: Array, dim: Dim, keepdim: bool = False) -> tuple[Array, ...]: ...\n",
    "@general(outputs=('values', 'indices'), differentiable=(True, False))\n"
    "def part(grad, input, dim, *, indices):\n    return wrt(input=F.put(grad, indices, dim, input.shape))\n",
)


def test_the_fast_path_of_a_unary_operation(tmp_path: Path) -> None:
    expected = '''
def bend(input: Tensor, *, out: Any = None) -> Tensor:
    """Bend it."""
    if process.diverted or out is not None or not isinstance(input, TensorBase):
        if (taken := divert('bend', (input,), out)) is not PROCEED:
            return taken
    input_array = input._array
    if input_array.dtype.kind not in "fc":
        input_array = promote_to_float(input_array)
    try:
        computed: Any = bend_kernel(input_array)
    except MemoryError as error:
        raise refuse('bend', error, locals()) from None
    result: Tensor = new(Tensor)
    result._array = computed = computed if type(computed) is ndarray else as_array(computed)
    if input._requires_grad and (not process.changed or switches.records or note_cut(None, result, input)):
        node: Any = new_node(BendBackward0)
        node.next_edges = (input._edge or gradient_edge(input),)
        node.sequence_nr, node.shape, node.dtype = next_sequence_nr(), computed.shape, computed.dtype
        result._requires_grad, result._edge = True, (node, 0)
        node.saved_input = input
        node.saved_input_version = input._counter.value if input._counter is not None else 0
    return finish('bend', result, (input,)) if process.finishing else result
'''
    assert "\n".join(emit_function(read(tmp_path, *UNARY))) == expected.lstrip("\n")


def test_the_node_of_a_unary_operation(tmp_path: Path) -> None:
    expected = """
class BendBackward0(OperationNode):
    __slots__ = ("__dict__",)
    operation = "bend"
    tensor_names = ('input',)
    fresh = (True,)

    def apply(self, grads: Sequence[Any], edges: Edges, owned: bool = False) -> Sequence[Any]:
        if self.released or grads[0].dtype.itemsize == 2:
            return apply_rarely(self, grads, edges)
        input = self.saved_input
        if input._counter is not None and input._counter.value != self.saved_input_version:
            raise_stale(self, "input")
        return (grads[0] * cos_kernel(input._array).conjugate(),)
"""
    text, imports = emit_node(read(tmp_path, *UNARY), library("bend", "cos"))
    assert "\n".join(text) == expected.lstrip("\n")
    assert imports == {("pullback.kernels.sample", "cos")}


def test_a_compiled_line_is_a_function_of_its_own(tmp_path: Path) -> None:
    operation, known = read(tmp_path, *UNARY), library("bend", "cos")
    known.native_lines = {"bend_grad_of_input"}
    assert emit_line_functions(operation, known, set())[:3] == [
        "@native",
        "def bend_grad_of_input(grad: Any, input: Any, owned: bool = False) -> Any:",
        "    return grad * cos_kernel(input).conjugate()",
    ]
    assert emit_node(operation, known)[0][-2].strip() == "return (bend_grad_of_input(grads[0], input._array, owned),)"


def test_a_number_for_a_tensor_is_promoted_and_asked_whether_it_is_foreign(tmp_path: Path) -> None:
    text = emit_function(read(tmp_path, *BINARY))
    assert "        alpha = alpha if type(alpha) is float or type(alpha) in NUMBERS else plain_float(alpha)" in text
    assert "            if is_foreign(other_array):" in text
    assert "                return ask_foreign_of('scale', locals(), out)" in text
    assert "        raise refuse('scale', error, locals()) from None" in text


def test_what_broadcasting_needs_is_saved_where_shapes_differ(tmp_path: Path) -> None:
    text = emit_function(read(tmp_path, *BINARY))
    place = text.index("            node.broadcast = shapes_and_dtypes((input, other))")
    assert text[place - 1].strip() == (
        "if promoted or input_array.shape != computed.shape or (other_is_tensor and other_array.shape != computed.shape):"
    )


def test_a_gradient_is_computed_only_along_a_wanted_edge(tmp_path: Path) -> None:
    body = emit_body(read(tmp_path, *BINARY), RulePath(on_arrays=True, library=library("scale")))
    assert body[3:5] == ["grad_of_input = grad_of_other = None", "if edges[0] is not None:"]
    assert body[-1] == "return (grad_of_input, grad_of_other)"


def test_a_required_dim_may_be_called_axis(tmp_path: Path) -> None:
    text = emit_function(read(tmp_path, *TWO_RESULTS))
    assert text[0] == (
        "def part(input: Tensor, dim: Any = None, keepdim: bool = False, *, out: Any = None, axis: Any = None, "
        "keepdims: Any = None) -> Any:"
    )
    assert "    if axis is not None:" in text
    assert any("type(keepdim) is not bool" in line for line in text)


def test_several_results_are_wrapped_and_only_differentiable_ones_get_an_edge(tmp_path: Path) -> None:
    text = emit_function(read(tmp_path, *TWO_RESULTS))
    assert "    values = new_tensor(as_array(values_value))" in text
    assert "        values._requires_grad, values._edge = True, (node, 0)" in text
    assert not any("indices._edge" in line for line in text)
    assert "        node.saved_indices = SavedOutput(indices, 1)" in text


def test_a_wide_operation_hands_over_its_local_variables(tmp_path: Path) -> None:
    names = [f"a_rather_long_name_{i}" for i in range(6)]
    kernel = f"def wide(input: Array, {', '.join(f'{n}: int' for n in names)}) -> Array: ...\n"
    text = emit_function(read(tmp_path, kernel, "@non_differentiable\ndef wide(): ...\n"))
    assert "        if (taken := divert('wide', locals(), out)) is not PROCEED:" in text


def test_a_view_is_made_and_attached_as_one(tmp_path: Path) -> None:
    rule = "@linear(view=True)\ndef turn(grad):\n    return wrt(input=F.turn(grad))\n"
    text = emit_function(read(tmp_path, "def turn(input: Array) -> Array: ...\n", rule))
    assert "    make_view(result, input)" in text
    assert "        attach_view(node, result)" in text
    assert "out" not in text[0]


def test_the_rule_on_tensors_calls_operations_and_unpacks(tmp_path: Path) -> None:
    assert emit_body(read(tmp_path, *UNARY), RulePath(on_arrays=False)) == [
        "if self.released:",
        "    refuse_freed(self, edges)",
        "grad = grads[0]",
        'input = self.unpack("input")',
        "return (grad * conjugate(F.cos(input)),)",
    ]


def test_half_precision_is_widened_and_rounded_once(tmp_path: Path) -> None:
    body = emit_body(read(tmp_path, *UNARY), RulePath(on_arrays=True, widened=True))
    assert "grad = widen_half(grads[0])" in body
    assert "input = widen_half(input._array)" in body
    assert body[-2:] == ["grad_of_input = rounded(grad_of_input, grads[0].dtype)", "return (grad_of_input,)"]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("@linear\ndef bend(grad):\n    return wrt(input=grad)\n", "    return F.bend(input_tangent)"),
        (
            "@multilinear\ndef bend(grad):\n    return wrt(input=grad)\n",
            "        terms.append(F.bend(input_tangent))",
        ),
        (
            "@self_adjoint\ndef bend(grad, input):\n    return wrt(input=F.bend(grad))\n",
            "        terms.append(conjugate(F.bend(grad)))",
        ),
        (
            "@general\ndef bend(grad):\n    return wrt(input=grad)\n",
            "    return double_pullback(lambda xs: F.bend(xs[0]), (input,), (input_tangent,))",
        ),
        (
            "@general\ndef bend(grad):\n    return wrt(input=not_implemented('bend: input'))\n",
            '    raise forward_not_implemented("bend")',
        ),
        (
            "@general\ndef bend(grad):\n    return wrt(input=grad)\n\n"
            "@tangent\ndef bend_tangent(input, input_tangent):\n    return input * input_tangent\n",
            "    return input * input_tangent",
        ),
    ],
)
def test_the_kind_gives_the_tangent(tmp_path: Path, rule: str, expected: str) -> None:
    text = emit_tangent(read(tmp_path, UNARY[0], rule))
    assert expected in text
    ast.parse("\n".join(text))


def test_a_rule_that_calls_what_nobody_wrote_is_left_out(tmp_path: Path) -> None:
    operation = read(tmp_path, *UNARY)
    refusals: list[Refusal] = []
    kept, _ = without_refused([operation], {"bend": "sample"}, {}, refusals)
    assert kept == []
    assert "F.cos: no kernel and no formula of that name" in str(refusals[0])


def test_a_rule_that_calls_a_kernel_without_a_rule_is_left_out(tmp_path: Path) -> None:
    operation = read(tmp_path, *UNARY)
    refusals: list[Refusal] = []
    kept, _ = without_refused([operation], {"bend": "sample", "cos": "sample"}, {}, refusals)
    assert kept == []
    assert "F.cos cannot be differentiated: give the kernel a rule" in str(refusals[0])


def test_a_family_on_first_use_names_its_kernels_and_compiled_lines(tmp_path: Path) -> None:
    known = library("bend", "cos")
    known.native_lines = {"bend_grad_of_input", "other_grad_of_input"}
    text = emit_first_use("sample", [read(tmp_path, *UNARY)], known)
    assert "    kernels='sample',\n    native_lines='bend_grad_of_input',\n" in text


def test_a_family_imports_what_it_uses_and_nothing_else(tmp_path: Path) -> None:
    text = emit_family("sample", [read(tmp_path, *UNARY)], library("bend", "cos"), VOCABULARY)
    tree = ast.parse(text)
    imported = {
        alias.asname or alias.name
        for statement in tree.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert imported - used <= {"annotations"}
    assert {"bend_kernel", "cos_kernel", "overwriting", "PROCEED"} <= imported


def test_the_namespace_and_the_registry_name_the_operation(tmp_path: Path) -> None:
    operation = read(tmp_path, *TWO_RESULTS)
    namespace = emit_namespace({"slope": "sample"}, {"sample": [operation]})
    assert "part PartBackward0" in namespace
    scope: dict[str, object] = {}
    exec(namespace, scope)
    assert scope["MODULES"] == {
        "part": "pullback.generated.sample",
        "PartBackward0": "pullback.generated.sample",
        "slope": "pullback.formulas.sample",
    }
    row = next(line for line in emit_registry([operation]).splitlines() if line.startswith("    'part': Operation("))
    assert "('Array', 'Dim', 'bool')" in row
