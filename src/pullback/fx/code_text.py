"""The Python text of a graph: what `GraphModule.code` shows and runs."""

from __future__ import annotations

import builtins
import operator
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from pullback.backend.dtype import dtype as Dtype
from pullback.backend.layout import layout as Layout
from pullback.backend.layout import memory_format as MemoryFormat
from pullback.fx.name_space import KNOWN_GLOBALS, Namespace
from pullback.fx.node import Node, nodes_in
from pullback.fx.qualified_names import is_from_torch, qualified_name, type_name
from pullback.tensor.tensor import Tensor

if TYPE_CHECKING:
    from pullback.fx.graph import Graph

reflectable_magic_methods = {
    "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "floordiv": "{} // {}", "truediv": "{} / {}", "div": "{} / {}",
    "mod": "{} % {}", "pow": "{} ** {}", "lshift": "{} << {}", "rshift": "{} >> {}", "and_": "{} & {}", "or_": "{} | {}",
    "xor": "{} ^ {}", "getitem": "{}[{}]", "matmul": "{} @ {}",
}  # fmt: skip
"""Operators with two operands, of which either may be the traced one; `getitem` is among them for its text only."""
magic_methods = {
    **reflectable_magic_methods,
    "eq": "{} == {}", "ne": "{} != {}", "lt": "{} < {}", "gt": "{} > {}", "le": "{} <= {}", "ge": "{} >= {}",
    "pos": "+{}", "neg": "-{}", "invert": "~{}",
}  # fmt: skip
inplace_methods = {
    "iadd": "{} += {}", "iand": "{} &= {}", "ifloordiv": "{} //= {}", "ilshift": "{} <<= {}", "imod": "{} %= {}",
    "imul": "{} *= {}", "imatmul": "{} @= {}", "ior": "{} |= {}", "ipow": "{} **= {}", "irshift": "{} >>= {}",
    "isub": "{} -= {}", "itruediv": "{} /= {}", "ixor": "{} ^= {}", "setitem": "{}[{}] = {}",
}  # fmt: skip

_ABSENT = object()


@dataclass
class PythonCode:
    """The text, and the objects that it refers to by name."""

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] | None = field(default=None)
    _prologue_start: int = 0


class CodeGen:
    """Writes the function of a graph."""

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """The line with the function's name and parameters."""
        parameters = free_vars if free_vars and free_vars[0] == "self" else ["self", *free_vars]
        return f"def forward({', '.join(parameters)}){maybe_return_annotation}:"

    def generate_output(self, output_args: Any) -> str:
        """The statement that returns."""
        return f"return {output_args!r}"

    def process_inputs(self, *args: Any) -> Any:
        """The inputs of the graph from those of the function."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """What the function returns from the graph's outputs."""
        return outputs

    def _gen_python_code(self, nodes: Any, root_module: str, namespace: Namespace, **options: Any) -> PythonCode:
        writer = _Writer(root_module, namespace, tells_forms=options.get("verbose", False))
        writer.note_last_uses(list(nodes))
        for node in nodes:
            writer.write(node, self)
        body = "".join(writer.body) or "pass\n"
        head = self.gen_fn_def(writer.parameters, writer.returns)
        wraps = "\n".join(f'torch.fx._symbolic_trace.wrap("{name}")' for name in writer.wrapped)
        indented = "\n".join(f"    {line}" for line in body.split("\n"))
        return PythonCode(f"\n{wraps}\n\n{head}\n{indented}", {**KNOWN_GLOBALS, **_modules(), **writer.globals})


def _modules() -> dict[str, Any]:
    return {
        "torch": import_module("pullback"),
        "pytree": import_module("pullback.utils._pytree"),
        "fx_pytree": import_module("pullback.fx._pytree"),
    }


class _Writer:
    """The lines of one function."""

    def __init__(self, root_module: str, namespace: Namespace, *, tells_forms: bool = False) -> None:
        self.root = root_module
        self._tells_forms = tells_forms
        self.namespace = namespace
        self.body: list[str] = []
        self.parameters: list[str] = []
        self.returns = ""
        self.globals: dict[str, Any] = {}
        self.wrapped: dict[str, None] = {}
        self._last_uses: dict[Node, list[Node]] = {}

    def note_last_uses(self, nodes: list[Node]) -> None:
        """Find after which node each value is needed no more."""
        seen: set[Node] = set()
        for user in reversed(nodes):
            for node in nodes_in((user.args, user.kwargs)):
                if node not in seen:
                    seen.add(node)
                    self._last_uses.setdefault(user, []).append(node)

    def write(self, node: Node, generator: CodeGen) -> None:
        """Write the line of a node."""
        if node.op == "placeholder":
            self._write_parameter(node)
            return
        if node.op == "output":
            if node.type is not None:
                self.returns = f" -> {self._annotation(node.type)}"
            self.body.append(f"{generator.generate_output(_Written(node.args[0], self))}\n")
            return
        self.body.append(self._statement(node))
        released = [*self._last_uses.get(node, []), *([] if node.users else [node])]
        self.body.append(f";  {' = '.join([*map(repr, released), 'None'])}\n" if released else "\n")

    def _write_parameter(self, node: Node) -> None:
        target = str(node.target)
        default = f" = {self.argument(node.args[0])}" if node.args else ""
        self.parameters.append(f"{target}{self._typed(node)}{default}")
        raw = target.replace("*", "")
        if raw != repr(node):
            self.body.append(f"{node!r} = {raw}\n")

    def _typed(self, node: Node) -> str:
        form = form_of(node) if self._tells_forms else ""
        if form:
            return f': "{form}"'
        return "" if node.type is None else f" : {self._annotation(node.type)}"

    def _annotation(self, kind: Any) -> str:
        if kind is None or kind is type(None):
            return "None"
        text = type_name(kind)
        if isinstance(kind, str):
            return self._global(text, kind)
        if isinstance(kind, type) and not is_from_torch(kind) and kind.__module__ != "builtins":
            return self._global(text, kind)
        if text.startswith("typing."):
            self.globals["typing"] = import_module("typing")
        return text

    def _statement(self, node: Node) -> str:
        left = f"{node!r}{self._typed(node)} = "
        if node.op == "get_attr":
            return left + path_text(self.root, str(node.target))
        if node.op == "call_module":
            return f"{left}{path_text(self.root, str(node.target))}({self._arguments(node.args, node.kwargs)})"
        if node.op == "call_method":
            receiver = self._receiver(node.args[0])
            return f"{left}{receiver}.{node.target}({self._arguments(node.args[1:], node.kwargs)})"
        return self._function_statement(node, left)

    def _receiver(self, value: Any) -> str:
        text = self.argument(value)
        return f"({text})" if isinstance(value, int) else text

    def _function_statement(self, node: Node, left: str) -> str:
        target: Any = node.target
        name = getattr(target, "__name__", "")
        of_operator = getattr(operator, name, None) is target
        arguments = [self.argument(a) for a in node.args]
        if of_operator and name in magic_methods and not node.kwargs:
            return left + magic_methods[name].format(*arguments)
        if of_operator and name in inplace_methods:
            return f"{inplace_methods[name].format(*arguments)};  {left}{arguments[0]}"
        if target is getattr and len(node.args) == 2 and isinstance(node.args[1], str) and node.args[1].isidentifier():
            return f"{left}{path_text(arguments[0], node.args[1])}"
        name = self._global(qualified_name(target), target)
        if node.meta.get("is_wrapped", False):
            self.wrapped[name] = None
        return f"{left}{name}({self._arguments(node.args, node.kwargs)})"

    def _arguments(self, args: Any, kwargs: Any) -> str:
        return ", ".join([*map(self.argument, args), *[f"{k} = {self.argument(v)}" for k, v in kwargs.items()]])

    def argument(self, value: Any) -> str:
        """The text of an argument."""
        if isinstance(value, Node):
            return repr(value)
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            name = self._global(qualified_name(type(value)), type(value))
            return f"{name}({', '.join(map(self.argument, value))})"
        if isinstance(value, (tuple, list)):
            inner = ", ".join(map(self.argument, value))
            if isinstance(value, list):
                return f"[{inner}]"
            return f"({inner},)" if len(value) == 1 else f"({inner})"
        if isinstance(value, dict):
            return "{" + ", ".join(f"{k!r}: {self.argument(v)}" for k, v in value.items()) + "}"
        if isinstance(value, slice):
            return f"slice({', '.join(map(self.argument, (value.start, value.stop, value.step)))})"
        if isinstance(value, (Dtype, MemoryFormat, Layout)):
            return repr(value).replace("pullback.", "torch.")
        if isinstance(value, type) or (
            callable(value) and hasattr(value, "__name__") and not isinstance(value, Tensor)
        ):
            return self._global(qualified_name(value), value)
        return repr(value)

    def _global(self, name: str, value: Any) -> str:
        """The name of an object in the text: its own where it is torch's, else one under which it is passed along."""
        if name.startswith("torch.") and is_from_torch(value) and _is_found(name):
            return name
        own = str(getattr(value, "__name__", ""))
        if getattr(builtins, own, _ABSENT) is value:
            return own
        unique = self.namespace.create_name(name.replace("operator.", "_operator.").replace(".", "_"), value)
        self.globals[unique] = value
        return unique


def _is_found(name: str) -> bool:
    """Whether a name below `torch` is there for all: functions of modules that only show another name are not."""
    place: Any = import_module("pullback")
    for part in name.split(".")[1:]:
        place = getattr(place, part, None)
        if place is None:
            return False
    return True


_SHORT = {"bool": "b8", "bfloat16": "bf16", "complex": "c", "float": "f", "uint": "u", "int": "i"}


def form_of(node: Node) -> str:
    """The dtype and the sizes of a node's tensor, if its meta knows them.

    >>> import pullback
    >>> from pullback.fx.experimental.proxy_tensor import make_fx
    >>> graph = make_fx(lambda x: x > 0)(pullback.ones(2, 3)).graph
    >>> [form_of(node) for node in graph.nodes]
    ['f32[2, 3]', 'b8[2, 3]', '']
    """
    known = node.meta.get("val", node.meta.get("tensor_meta"))
    dtype, shape = getattr(known, "dtype", None), getattr(known, "shape", None)
    if dtype is None or shape is None:
        return ""
    name = str(dtype).rpartition(".")[2]
    kind = next((kind for kind in _SHORT if name.startswith(kind)), name)
    return f"{_SHORT.get(kind, kind)}{name.removeprefix(kind)}[{', '.join(map(str, shape))}]"


class _Written:
    """An argument whose repr is its text in the code."""

    def __init__(self, value: Any, writer: _Writer) -> None:
        self.value = value
        self._writer = writer

    def __repr__(self) -> str:
        return self._writer.argument(self.value)


def path_text(base: str, path: str) -> str:
    """Attribute access, by getattr for names that are not identifiers.

    >>> path_text("self", "blocks.0.conv")
    'getattr(self.blocks, "0").conv'
    """
    for part in path.split("."):
        quoted = f'"{part}"' if part.isalnum() else repr(part)
        base = f"{base}.{part}" if part.isidentifier() else f"getattr({base}, {quoted})"
    return base


def write_code(graph: Graph, root_module: str, namespace: Namespace, **options: Any) -> PythonCode:
    """The Python text of a graph."""
    return graph._codegen._gen_python_code(graph.nodes, root_module, namespace, **options)
