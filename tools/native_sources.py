"""Cython sources of the hot modules, made from their Python sources: for setup.py, where compiling is asked for.

The Python text is the only one that is written and read. Line by line, so that tracebacks show the right place, this
turns the classes of Note [Compiled classes] into extension types and tells Cython where a value is one of these.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import NamedTuple

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
    "arithmetic", "clamping", "indexing", "joining", "many_tensors", "matrix_products", "deprecated_signatures", "operators",
    "reductions", "scattering", "selection", "shape",
)  # fmt: skip
MODULES = (
    "pullback.modes.switches",
    "pullback.tensor.version_counter", "pullback.tensor.autograd_extra", "pullback.tensor.tensor_base",
    "pullback.tensor.tensor", "pullback.tensor.arguments",
    "pullback.graph.node", "pullback.graph.accumulate_grad", "pullback.graph.basic_nodes", "pullback.graph.saved_tensor",
    "pullback.graph.partial_gradient", "pullback.graph.recording", "pullback.graph.views", "pullback.graph.history",
    "pullback.graph.overwriting", "pullback.graph.in_place",
    "pullback.engine.input_buffer", "pullback.engine.ready_queue", "pullback.engine.graph_task",
    "pullback.engine.engine", "pullback.autograd.differentiation",
    "pullback.recording.recorder", "pullback.recording.slow_road",
    *[f"pullback.functions.{family}" for family in FUNCTIONS],
    *[f"pullback.generated.{family}" for family in GENERATED],
)  # fmt: skip
"""What is compiled: where the profile of small operations spends its time."""

TYPED = ("pullback.engine.graph_task", "pullback.engine.engine")
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

# By annotation or by name; a sequence number may need 64 bits without a sign, a version may be half a step off.
_FIELD_TYPES = {
    "bool": "bint", "tuple": "tuple", "changed": "Py_ssize_t", "diverted": "Py_ssize_t", "modes": "Py_ssize_t",
    "keep_graph": "bint", "create_graph": "bint", "dependencies": "dict", "not_ready": "dict", "heap": "list",
}  # fmt: skip
_VIRTUAL = {
    "apply": "self, object grads, tuple edges, bint owned=False", "release_saved_tensors": "self",
    "accumulate_array": "self, object grad, Py_ssize_t owned", "takes_arrays": "self",
    "add": "self, Py_ssize_t index, object grad, Py_ssize_t owned",
    "push": "self, object node, object grads, object owned",
}  # fmt: skip
_PROCESS_ACCESS = re.compile(r"\bprocess\.(changed|diverted|modes)\b(?! [+-]?=)")
_STATE_ACCESS = re.compile(r"(?<![\w.])(?!self\b)([a-z]\w*)\.(_requires_grad\b|_edge\b|_counter\b|_array(?= = ))")
_RULE_ACCESS = (
    (re.compile(r"(?<![\w.])(?!self\b)([a-z]\w*)\._counter\b(?! = )"), r"counter_of(\1)"),
    (re.compile(r"(?<![\w.])(?!self\b)([a-z]\w*)\._array\b(?! = )"), r"array_of(\1)"),
)
_OPERATION_ACCESS = (
    (re.compile(r"\bnew\(Tensor\)"), "TensorBase.__new__(Tensor)"),
    (re.compile(r"\b(\w+_array)\.shape != computed\.shape\b"), r"shapes_differ_between(\1, computed)"),
    (re.compile(r"\b(\w+_array|computed)\.(dtype|shape)\b"), r"\2_of(\1)"),
    (re.compile(r"(?<![\w.])(?!self\b)([a-z]\w*)\._array\.(dtype|shape)\b"), r"\2_of(array_of(\1))"),
    (re.compile(r"(?<![\w.])(?!self\b)([a-z]\w*)\._array\b(?! = )"), r"array_of(\1)"),
)
_PLAIN_ACCESS = (
    (re.compile(r"(?<![\w.])([a-z]\w*)\._array\b(?! [+]?= |\.\w+ = )"), r"array_of(\1)"),
    (re.compile(r"(?<![\w.])([a-z]\w*)\.flags\.(c_contiguous|carray|writeable)\b"), r"\2_of(\1)"),
)
_FIELD_ACCESS = (
    (re.compile(r"(?<![\w.])([a-z]\w*)\.(_requires_grad|_extra|_counter)\b(?! = )"), r"(<TensorBase?>\1).\2"),
)
_ACCESS_IMPORT = "; from pullback.native_access cimport " + (
    "array_of, c_contiguous_of, carray_of, counter_of, dtype_of, shape_of, shapes_differ_between, writeable_of"
)

_OPERATION_IMPORT = _ACCESS_IMPORT + "; from pullback.modes.source_lines import source_line"


_MISSED = (
    re.compile(r"\bnew\(Tensor\)"),
    re.compile(r"(?<![\w.)>])(?!self\b)[a-z]\w*\.(_requires_grad|_edge|_counter|_array)\b"),
)
"""What no line of a generated operation holds once it is translated."""


class TranslationError(Exception):
    """The Python text is not what the translation expects: compiled as it is, it would only be slower."""


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
        self.knows_process = False
        self.generated = ".generated." in module
        self.native: set[str] = set()
        self.matched: set[re.Pattern[str]] = set()

    def run(self) -> NativeSource:
        for statement in self.tree.body:
            if isinstance(statement, ast.ImportFrom):
                self._import(statement)
            elif isinstance(statement, ast.ClassDef) and self._is_native(statement):
                self._class(statement)
            elif isinstance(statement, ast.FunctionDef) and self.generated:
                self._function(statement)
        if self.module in ACCESSING:
            self._access()
        if self.knows_process:
            self.lines = [_PROCESS_ACCESS.sub(r"(<Process?>process).\1", line) for line in self.lines]
        self._refuse_missed()
        declares = any(line.startswith("cdef class") for line in self.declarations)
        return NativeSource("\n".join(self.lines) + "\n", "\n".join(self.declarations) if declares else "")

    def _refuse_missed(self) -> None:
        """Refuse a module in which a class, or an access of an operation, was not found where it should be."""
        missing = [name for name, module in SHARED.items() if module == self.module and name not in self.native]
        if missing:
            raise TranslationError(f"{self.module} has no class {', '.join(missing)}, which SHARED names")
        if not self.generated:
            return
        made = [re.compile(rf"\bnew_node\({name}\)") for name in sorted(self.native)]
        for function in [item for item in self.tree.body if isinstance(item, ast.FunctionDef)]:
            first = function.body[1] if ast.get_docstring(function) and len(function.body) > 1 else function.body[0]
            for number in range(first.lineno, (function.end_lineno or 0) + 1):
                for pattern in (*_MISSED, *made):
                    if found := pattern.search(self.lines[number - 1]):
                        text = self.lines[number - 1].strip()
                        raise TranslationError(f"{self.module}:{number}: {found[0]} was not translated: {text}")

    def _access(self) -> None:
        checked = _FIELD_ACCESS if self.module in CHECKING else ()
        for function in [item for item in ast.walk(self.tree) if isinstance(item, ast.FunctionDef)]:
            self._rewrite(function, (*_PLAIN_ACCESS, *checked))
        for item in self.tree.body:
            if isinstance(item, ast.ImportFrom) and item.module == "__future__":
                self.lines[item.lineno - 1] += _ACCESS_IMPORT

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
            self.knows_process = True
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
        shared = SHARED.get(statement.name) == self.module
        self.native.add(statement.name)
        if not shared:
            self._node(statement)
            return
        number = statement.lineno - 1
        header = "cdef " + self.lines[number]
        self.lines[number] = header
        fields: list[str] = []
        defaults: list[str] = []
        for item in statement.body:
            if isinstance(item, ast.AnnAssign):
                self._field(item, fields, defaults)
            elif isinstance(item, ast.FunctionDef) and item.name in _VIRTUAL:
                signature = f"cpdef object {item.name}({_VIRTUAL[item.name]})"
                self._replace_header(item, f"{signature}:")
                fields.append(signature.replace("=False", "=*"))
        for item in statement.body:
            if isinstance(item, ast.Assign) and ast.unparse(item.targets[0]) == "__slots__":
                fields += _slots(ast.literal_eval(item.value) if isinstance(item.value, ast.Tuple) else ())
                self._replace(item, _initializer(defaults))
                defaults = []
        if defaults:
            self._replace(
                next(item for item in statement.body if isinstance(item, ast.AnnAssign)), _initializer(defaults)
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
            self._field(field, declared, defaults)
        self._replace(assigned["__slots__"], _initializer(defaults))
        methods = [item for item in statement.body if isinstance(item, ast.FunctionDef)]
        for item in methods:
            if item.name in _VIRTUAL:
                signature = f"cpdef object {item.name}({_VIRTUAL[item.name]})"
                self._replace_header(item, f"{signature}:")
                declared.append(signature.replace("=False", "=*"))
                self._rewrite(item, _RULE_ACCESS)
        if tensors:
            released = "; ".join(f"self.saved_{name} = None" for name in tensors)
            signature = "cpdef object release_saved_tensors(self)"
            number = methods[0].lineno - 2
            if self.lines[number].strip():
                raise ValueError(f"{self.module}: no empty line before the first method of {statement.name}")
            self.lines[number] = f"    {signature}: self.released = True; {released}"
            declared.append(signature)
        self.declarations += [header, *[f"    {line}" for line in declared or ["pass"]]]

    def _field(self, item: ast.AnnAssign, fields: list[str], defaults: list[str]) -> None:
        """An annotated attribute: a field of the struct, unless it belongs to the class."""
        name, annotation = ast.unparse(item.target), ast.unparse(item.annotation)
        value = ast.unparse(item.value) if item.value is not None else "None"
        if annotation.startswith("ClassVar"):
            self._replace(item, f"{name} = {value}")
            return
        kind = _FIELD_TYPES.get(name) or _FIELD_TYPES.get(annotation.partition("[")[0], "object")
        fields.append(f"cdef public {kind} {name}")
        if value not in ("None", "False") and kind != "Py_ssize_t":
            defaults.append(f"self.{name} = {value}")
        self._replace(item, "")

    def _function(self, statement: ast.FunctionDef) -> None:
        """In an operation, read the state of tensors as fields (a checked cast: TypeError for anything else)."""
        self._rewrite(statement, _OPERATION_ACCESS)
        self._rewrite(statement, ((_STATE_ACCESS, r"(<TensorBase?>\1).\2"),))
        made = (
            (
                re.compile(rf"node: Any = new_node\(({name})\)$"),
                r"node = <\1>\1.__new__(\1); node.source = source_line()",
            )
            for name in sorted(self.native)
        )
        self._rewrite(statement, tuple(made))

    def _rewrite(self, statement: ast.FunctionDef, changes: tuple[tuple[re.Pattern[str], str], ...]) -> None:
        assert statement.end_lineno is not None
        for number in range(statement.body[0].lineno - 1, statement.end_lineno):
            for pattern, text in changes:
                self.lines[number], count = pattern.subn(text, self.lines[number])
                if count:
                    self.matched.add(pattern)

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


def _slots(names: tuple[str, ...]) -> list[str]:
    """The fields of a class that names its attributes in `__slots__`; only shared classes have such."""
    fields = [f"cdef public {_FIELD_TYPES.get(name, 'object')} {name}" for name in names if not name.startswith("__")]
    return [*fields, "cdef object __weakref__"] if "__weakref__" in names else fields


def translate(module: str, text: str) -> NativeSource:
    """The Cython source of the module whose Python source is `text`."""
    return _Translation(module, text).run()


def translate_all(sources: Path) -> dict[str, NativeSource]:
    """The Cython source of every module of MODULES; TranslationError if a pattern matches in none of them any more."""
    translations = {
        module: _Translation(module, (sources / Path(*module.split("."))).with_suffix(".py").read_text("utf-8"))
        for module in MODULES
    }
    made = {module: translation.run() for module, translation in translations.items()}
    matched = {pattern for translation in translations.values() for pattern in translation.matched}
    changes = (*_RULE_ACCESS, *_OPERATION_ACCESS, *_PLAIN_ACCESS, *_FIELD_ACCESS, (_STATE_ACCESS, ""))
    for pattern, _ in changes:
        if pattern not in matched:
            raise TranslationError(f"nothing matches {pattern.pattern} any more: mend or delete it")
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
    _write(c_file, re.sub(rf'"[^"\n]*{relative}\.pyx"', f'"{relative}.py"', text))
