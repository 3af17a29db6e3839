"""Cython sources of the hot modules, made from their Python sources: for setup.py, where compiling is asked for.

The Python text is the only one that is written and read. Line by line, so that tracebacks show the right place, this
turns the classes of Note [Compiled classes] into extension types and tells Cython where a value is one of these.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from tools.native_accesses import (
    KINDS,
    Edit,
    TranslationError,
    apply_edits,
    edits_in,
    in_checking_module,
    in_module_by_hand,
    in_module_with_switches,
    in_operation,
    in_rule,
)

SHARED = {
    "Process": "pullback.modes.switches",
    "VersionCounter": "pullback.tensor.version_counter",
    "ViewInfo": "pullback.tensor.autograd_extra",
    "AutogradExtra": "pullback.tensor.autograd_extra",
    "TensorBase": "pullback.tensor.tensor_base",
    "Node": "pullback.graph.node",
    "AccumulateGrad": "pullback.graph.accumulate_grad",
    "GraphRoot": "pullback.graph.basic_nodes",
    "SavedOutput": "pullback.graph.saved_tensor",
    "PartialGradient": "pullback.graph.partial_gradient",
    "InputBuffer": "pullback.engine.input_buffer",
    "ReadyQueue": "pullback.engine.ready_queue",
    "GraphTask": "pullback.engine.graph_task",
}
"""The extension types that several modules know, and the module of each."""

GENERATED = (
    "activation", "arithmetic", "clamping", "embeddings", "exponential", "indexing", "joining", "linear_interpolation",
    "matrix_products", "normalization", "reductions", "selection", "shape", "signs", "softmaxes", "trigonometric",
)  # fmt: skip
FUNCTIONS = (
    "arithmetic", "clamping", "copies", "deprecated_signatures", "indexing", "joining", "many_tensors", "matrix_products",
    "operators", "reductions", "scattering", "selection", "shape", "transpositions",
)  # fmt: skip
MODULES = (
    "pullback.modes.switches",
    "pullback.tensor.version_counter", "pullback.tensor.autograd_extra", "pullback.tensor.tensor_base",
    "pullback.tensor.dims", "pullback.tensor.tensor", "pullback.tensor.arguments",
    "pullback.graph.node", "pullback.graph.accumulate_grad", "pullback.graph.basic_nodes", "pullback.graph.saved_tensor",
    "pullback.graph.partial_gradient", "pullback.graph.recording", "pullback.graph.views", "pullback.graph.history",
    "pullback.graph.overwriting", "pullback.graph.in_place", "pullback.graph.custom_function_node",
    "pullback.engine.input_buffer", "pullback.engine.ready_queue", "pullback.engine.graph_task",
    "pullback.engine.passes", "pullback.engine.careful_run", "pullback.engine.engine", "pullback.engine.validation",
    "pullback.autograd.differentiation", "pullback.autograd.function", "pullback.recording.recorder",
    "pullback.recording.slow_road", "pullback.recording.gradient_node", "pullback.recording.gradient_at_once",
    *[f"pullback.functions.{family}" for family in FUNCTIONS],
    *[f"pullback.generated.{family}" for family in GENERATED],
)  # fmt: skip
"""What is compiled: where the profile of small operations spends its time."""

TYPED = ("pullback.engine.graph_task", "pullback.engine.careful_run", "pullback.engine.engine")
"""Modules whose annotations Cython may believe: elsewhere `float` must go on to accept an int, and so on."""

ACCESSING = (
    "pullback.tensor.tensor", "pullback.graph.accumulate_grad", "pullback.graph.saved_tensor", "pullback.graph.history",
    "pullback.graph.views", "pullback.graph.overwriting", "pullback.engine.input_buffer",
    "pullback.autograd.differentiation",
)  # fmt: skip
"""Modules written by hand that read tensors and arrays as structs too."""

CHECKING = ("pullback.graph.overwriting",)
"""Those of them that make sure of a tensor before they read its state."""

ACCESS = Path(__file__).with_name("native_access.pxd")
"""The functions that stand for attributes of tensors and arrays in compiled modules."""

FIELD_TYPES = {
    "Process": {"changed": "Py_ssize_t", "diverted": "Py_ssize_t", "modes": "Py_ssize_t", "passes": "Py_ssize_t"},
    "ReadyQueue": {"heap": "list"},
    "GraphTask": {"keep_graph": "bint", "create_graph": "bint", "dependencies": "dict", "not_ready": "dict"},
}
"""What the fields of a class are in C where their annotation does not say it. An `int` is no C integer by itself: a
sequence number may need 64 bits without a sign, a version may be half a step off."""

_ANNOTATED = {"bool": "bint", "tuple": "tuple"}

_METHODS = {
    "apply": ("object grads", "tuple edges", "bint owned"),
    "release_saved_tensors": (),
    "accumulate_array": ("object grad", "Py_ssize_t owned"),
    "takes_arrays": (),
    "add": ("Py_ssize_t index", "object grad", "Py_ssize_t owned"),
    "push": ("object node", "object grads", "object owned"),
}
"""The methods of compiled classes that are called without a look-up, with the types of their parameters in C."""

_ACCESS_IMPORT = "; from pullback.native_access cimport " + (
    "array_of, c_contiguous_of, carray_of, counter_of, dtype_of, shape_of, shapes_differ_between, writeable_of"
)

_OPERATION_IMPORT = _ACCESS_IMPORT + "; from pullback.modes.source_lines import source_line"


class NativeSource(NamedTuple):
    """The text of one module for Cython: what it implements, and what it declares to other modules ("" for nothing)."""

    implementation: str
    declarations: str


class _Translation:
    """The lines of one module while they are changed; their number stays the same."""

    def __init__(self, module: str, text: str) -> None:
        self.module = module
        self.lines = text.splitlines()
        self.tree = ast.parse(text)
        self.declarations: list[str] = []
        self.generated = ".generated." in module
        classes = [statement for statement in self.tree.body if isinstance(statement, ast.ClassDef)]
        self.native = frozenset(statement.name for statement in classes if self._is_native(statement))
        self.matched: set[str] = set()

    def run(self) -> NativeSource:
        missing = [name for name, module in SHARED.items() if module == self.module and name not in self.native]
        if missing:
            raise TranslationError(f"{self.module} has no class {', '.join(missing)}, which SHARED names")
        self._rewrite_accesses()
        for statement in self.tree.body:
            if isinstance(statement, ast.ImportFrom):
                self._import(statement)
            elif isinstance(statement, ast.ClassDef) and statement.name in self.native:
                self._class(statement)
        declares = any(line.startswith("cdef class") for line in self.declarations)
        return NativeSource("\n".join(self.lines) + "\n", "\n".join(self.declarations) if declares else "")

    def _rewrite_accesses(self) -> None:
        """Put calls and fields of C in the places of accesses. Columns are those of the Python text: this comes first."""
        try:
            edits = list(self._accesses())
            apply_edits(self.lines, edits)
        except TranslationError as error:
            raise TranslationError(f"{self.module}:{error}") from None
        self.matched |= {edit.kind for edit in edits}

    def _accesses(self) -> Iterator[Edit]:
        body = self.tree.body
        if any(isinstance(item, ast.ImportFrom) and "process" in _imported(item) for item in body):
            yield from edits_in(body, in_module_with_switches)
        if self.generated:
            functions = [item for item in body if isinstance(item, ast.FunctionDef)]
            yield from edits_in((item for function in functions for item in function.body), in_operation(self.native))
            nodes = [item for item in body if isinstance(item, ast.ClassDef) and item.name in self.native]
            methods = [item for node in nodes for item in node.body if isinstance(item, ast.FunctionDef)]
            yield from edits_in(
                (item for method in methods if method.name in _METHODS for item in method.body), in_rule
            )
        if self.module in ACCESSING:
            yield from edits_in(body, in_checking_module if self.module in CHECKING else in_module_by_hand)

    def _is_native(self, statement: ast.ClassDef) -> bool:
        if SHARED.get(statement.name) == self.module:
            return True
        bases = {base.id for base in statement.bases if isinstance(base, ast.Name)}
        # An extension type keeps its name, so a class that is shown under another one stays a Python class.
        return self.generated and "OperationNode" in bases and "shown" not in _assigned(statement)

    def _replace(self, statement: ast.stmt, text: str) -> None:
        """Put `text` on the first line of `statement` and nothing on its others."""
        assert statement.end_lineno is not None
        self.lines[statement.lineno - 1] = " " * statement.col_offset + text if text else ""
        for number in range(statement.lineno, statement.end_lineno):
            self.lines[number] = ""

    def _import(self, statement: ast.ImportFrom) -> None:
        """Let Cython know the extension types among the imported names."""
        names = [alias.name for alias in statement.names]
        native = [name for name in names if SHARED.get(name) not in (None, self.module)]
        if "OperationNode" in names:
            native.append("Node")
        if "process" in names:
            native.append("Process")
        if statement.module == "__future__" and self.module in ACCESSING:
            self.lines[statement.lineno - 1] += _ACCESS_IMPORT
        if not native:
            return
        for name in native:
            self.declarations.append(f"from {SHARED[name]} cimport {name}")
        parts = [f"from {SHARED[name]} cimport {name}" for name in native]
        # What a module imports for others as well (`import X as X`) must be a name of Python's too.
        parts += [f"globals()['{a.name}'] = {a.name}" for a in statement.names if a.asname and a.name in native]
        others = [ast.unparse(alias) for alias in statement.names if alias.name not in native]
        if others:
            parts.insert(0, f"from {statement.module} import {', '.join(others)}")
        self._replace(
            statement, "; ".join(parts) + (_OPERATION_IMPORT if "TensorBase" in native and self.generated else "")
        )

    def _class(self, statement: ast.ClassDef) -> None:
        if SHARED.get(statement.name) != self.module:
            self._node(statement)
            return
        number = statement.lineno - 1
        header = "cdef " + self.lines[number]
        self.lines[number] = header
        fields: list[str] = []
        defaults: list[str] = []
        types = FIELD_TYPES.get(statement.name, {})
        for item in statement.body:
            if isinstance(item, ast.AnnAssign):
                self._field(item, fields, defaults, types)
            elif isinstance(item, ast.FunctionDef) and item.name in _METHODS:
                self._method(item, fields)
        for item in statement.body:
            if isinstance(item, ast.Assign) and ast.unparse(item.targets[0]) == "__slots__":
                fields += _slots(ast.literal_eval(item.value) if isinstance(item.value, ast.Tuple) else (), types)
                self._replace(item, _initializer(defaults))
                defaults = []
        if defaults:
            self._replace(
                next(item for item in statement.body if isinstance(item, ast.AnnAssign)), _initializer(defaults)
            )
        for name, kind in types.items():
            if f"cdef public {kind} {name}" not in fields:
                raise TranslationError(
                    f"{statement.name} of {self.module} has no field {name}, which FIELD_TYPES names"
                )
        self.declarations += [header, *[f"    {field}" for field in fields or ["pass"]]]

    def _node(self, statement: ast.ClassDef) -> None:
        """The node of an operation: what it saves is declared beside the module, so that lines keep their numbers."""
        self.lines[statement.lineno - 1] = header = f"cdef class {statement.name}(Node):"
        assigned = _assigned(statement)
        names = {key: ast.literal_eval(assigned[key].value) if key in assigned else () for key in _SAVING}
        tensors, values, facts = (names[key] for key in _SAVING)
        fields = [f"saved_{name}" for name in (*tensors, *values, *facts)]
        fields += [f"saved_{name}_version" for name in tensors]
        for key in _SAVING[:2]:
            if key in assigned:
                self._replace(assigned[key], f"{key} = {names[key]!r}; saved_names = {(*tensors, *values)!r}")
        declared = [f"cdef public object {', '.join(fields)}"] if fields else []
        defaults = [f"self.saved_{name}_version = -1" for name in tensors]
        for field in [item for item in statement.body if isinstance(item, ast.AnnAssign)]:
            self._field(field, declared, defaults, {})
        self._replace(assigned["__slots__"], _initializer(defaults))
        methods = [item for item in statement.body if isinstance(item, ast.FunctionDef)]
        for item in methods:
            if item.name in _METHODS:
                self._method(item, declared)
        if tensors:
            released = "; ".join(f"self.saved_{name} = None" for name in tensors)
            signature = "cpdef object release_saved_tensors(self)"
            number = methods[0].lineno - 2
            if self.lines[number].strip():
                raise ValueError(f"{self.module}: no empty line before the first method of {statement.name}")
            self.lines[number] = f"    {signature}: self.released = True; {released}"
            declared.append(signature)
        self.declarations += [header, *[f"    {line}" for line in declared or ["pass"]]]

    def _method(self, function: ast.FunctionDef, declared: list[str]) -> None:
        """Give a method its signature in C, which must have the parameters of Python's."""
        self.matched.add(function.name)
        typed, defaults = _METHODS[function.name], function.args.defaults
        names = [argument.arg for argument in function.args.args[1:]]
        if names != [parameter.split()[-1] for parameter in typed]:
            raise TranslationError(
                f"{self.module}:{function.lineno}: {function.name} takes {', '.join(names)}, in _METHODS {', '.join(typed)}"
            )
        required = len(typed) - len(defaults)
        with_default = [f"{kind}={ast.unparse(value)}" for kind, value in zip(typed[required:], defaults, strict=True)]
        self._replace_header(function, _signature(function.name, [*typed[:required], *with_default]) + ":")
        declared.append(_signature(function.name, [*typed[:required], *[f"{kind}=*" for kind in typed[required:]]]))

    def _field(self, item: ast.AnnAssign, fields: list[str], defaults: list[str], types: Mapping[str, str]) -> None:
        """An annotated attribute: a field of the struct, unless it belongs to the class."""
        name, annotation = ast.unparse(item.target), ast.unparse(item.annotation)
        value = ast.unparse(item.value) if item.value is not None else "None"
        if annotation.startswith("ClassVar"):
            self._replace(item, f"{name} = {value}")
            return
        kind = types.get(name) or _ANNOTATED.get(annotation.partition("[")[0], "object")
        fields.append(f"cdef public {kind} {name}")
        if value not in ("None", "False") and kind != "Py_ssize_t":
            defaults.append(f"self.{name} = {value}")
        self._replace(item, "")

    def _replace_header(self, function: ast.FunctionDef, text: str) -> None:
        """Put `text` in the place of a function's signature, however many lines that has."""
        self.lines[function.lineno - 1] = " " * function.col_offset + text
        for number in range(function.lineno, function.body[0].lineno - 1):
            self.lines[number] = ""


_SAVING = ("tensor_names", "value_names", "fact_names")


def _assigned(statement: ast.ClassDef) -> dict[str, ast.Assign]:
    """The attributes that a class body sets, by name."""
    return {ast.unparse(s.targets[0]): s for s in statement.body if isinstance(s, ast.Assign)}


def _initializer(defaults: list[str]) -> str:
    return f"def __cinit__(self): {'; '.join(defaults)}" if defaults else ""


def _signature(name: str, parameters: list[str]) -> str:
    return f"cpdef object {name}({', '.join(['self', *parameters])})"


def _imported(statement: ast.ImportFrom) -> list[str]:
    return [alias.name for alias in statement.names]


def _slots(names: tuple[str, ...], types: Mapping[str, str]) -> list[str]:
    """The fields of a class that names its attributes in `__slots__`; only shared classes have such."""
    fields = [f"cdef public {types.get(name, 'object')} {name}" for name in names if not name.startswith("__")]
    return [*fields, "cdef object __weakref__"] if "__weakref__" in names else fields


def translate(module: str, text: str) -> NativeSource:
    """The Cython source of the module whose Python source is `text`."""
    return _Translation(module, text).run()


def translate_all(sources: Path) -> dict[str, NativeSource]:
    """The Cython source of every module of MODULES; TranslationError if a kind of access is in none of them any more."""
    translations = {
        module: _Translation(module, (sources / Path(*module.split("."))).with_suffix(".py").read_text("utf-8"))
        for module in MODULES
    }
    made = {module: translation.run() for module, translation in translations.items()}
    stale = {*KINDS, *_METHODS}.difference(*[translation.matched for translation in translations.values()])
    if stale:
        raise TranslationError(f"nothing is {', '.join(sorted(stale))} any more: mend or delete what translates it")
    return made


def write_sources(sources: Path, target: Path) -> dict[str, Path]:
    """Translate every module of MODULES from the tree `sources` into `target`; the file of each."""
    written: dict[str, Path] = {}
    access = target / "pullback" / ACCESS.name
    access.parent.mkdir(parents=True, exist_ok=True)
    _write(access, ACCESS.read_text(encoding="utf-8"))
    for module, native in translate_all(sources).items():
        path = (target / Path(*module.split("."))).with_suffix(".pyx")
        path.parent.mkdir(parents=True, exist_ok=True)
        for folder in path.relative_to(target).parents:
            if folder != Path("."):
                (target / folder / "__init__.pxd").touch()
        _write(path, native.implementation)
        if native.declarations:
            _write(path.with_suffix(".pxd"), native.declarations + "\n")
        written[module] = path
    return written


def _write(path: Path, text: str) -> None:
    """Write a file unless it holds this already, so that a second build compiles only what changed."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def name_python_sources(c_file: Path, module: str) -> None:
    """Let tracebacks name the Python file, whose lines the translation kept."""
    relative = module.replace(".", "/")
    text = c_file.read_text(encoding="utf-8")
    named = re.sub(rf'"[^"\n]*{relative}\.pyx"', f'"{relative}.py"', text)
    if f'"{relative}.py"' not in named:
        raise TranslationError(f"{c_file} names no {relative}.pyx: tracebacks would not show {relative}.py")
    _write(c_file, named)
