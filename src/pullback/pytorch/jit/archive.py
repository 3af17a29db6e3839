"""Saved programs: the graph of a scripted or traced function as data, beside its tensors.

Loading one runs no code from the file: a node names a public function or tensor method of pullback's, or an operator.
The files are pullback's own; TorchScript archives, which hold programs of another language, are refused.
"""

from __future__ import annotations

import builtins
import keyword
import operator
import os
from collections.abc import Iterator
from typing import Any

import pullback
from pullback import creation, generated, serialization
from pullback.backend.device import device
from pullback.backend.dtype import dtype
from pullback.fx import Graph, GraphModule, Node
from pullback.fx.code_text import inplace_methods, magic_methods
from pullback.fx.qualified_names import qualified_name
from pullback.nn.modules.module import Module
from pullback.nn.parameter import Parameter
from pullback.overrides.overridable_functions import get_overridable_functions
from pullback.pytorch.jit.script_module import RecursiveScriptModule, ScriptFunction, TopLevelTracedModule
from pullback.tensor.tensor import Tensor

FORMAT = "pullback.jit 1"


def save(m: Any, f: Any, **kwargs: Any) -> None:
    """Write a scripted or traced function or module to a file.

    >>> import io, pullback
    >>> file = io.BytesIO()
    >>> save(ScriptFunction(lambda x: 2 * x, "doubled"), file)
    >>> _ = file.seek(0)
    >>> load(file)(pullback.ones(1))
    tensor([2.])
    """
    if not isinstance(m, (ScriptFunction, RecursiveScriptModule)):
        raise RuntimeError(f"torch.jit.save expects a scripted or traced program, got {type(m).__name__}")
    program = _program_of(m)
    kinds = {name: _kind_of(part) for name, part in m.named_modules()} if isinstance(m, Module) else {}
    content = {
        "format": FORMAT,
        "name": m.name if isinstance(m, ScriptFunction) else None,
        "kinds": kinds,
        "training": bool(getattr(m, "training", False)),
        "parameters": {name: tensor.detach() for name, tensor in _tensors(m, program, "named_parameters")},
        "buffers": dict(_tensors(m, program, "named_buffers")),
        "nodes": [_written(node) for node in program.graph.nodes],
    }
    serialization.save(content, f)


def _tensors(m: Any, program: Module, method: str) -> Iterator[tuple[str, Tensor]]:
    """The tensors of a module by name, also those that its program does not use, and the program's constants."""
    if isinstance(m, Module):
        yield from getattr(m, method)()
    yield from getattr(program, method)()


def _program_of(m: Any) -> Any:
    """The program as a graph module, which must hold all that the program needs."""
    from pullback.pytorch.jit.tracing import trace_symbolically  # lazy: tracing is needed for scripted programs alone

    if isinstance(m, TopLevelTracedModule):
        return m.__dict__["_program"]
    function = m._function if isinstance(m, ScriptFunction) else m._python
    if isinstance(function, GraphModule):
        return function
    try:
        return trace_symbolically(function)
    except Exception as error:
        raise RuntimeError(
            f"torch.jit.save: {getattr(m, 'name', type(m).__name__)} cannot be written as a graph ({error}). Trace it with "
            "torch.jit.trace on an example, or save its state_dict."
        ) from error


def _kind_of(part: Module) -> str:
    return part.original_name if isinstance(part, RecursiveScriptModule) else type(part).__name__


def _written(node: Node) -> list[Any]:
    target = node.target if isinstance(node.target, str) else qualified_name(node.target)
    return [node.op, node.name, target, _encode(node.args), _encode(node.kwargs)]


def _encode(value: Any) -> Any:
    """An argument as plain data."""
    if isinstance(value, Node):
        return {"node": value.name}
    if isinstance(value, dtype):
        return {"dtype": value.name}
    if isinstance(value, device):
        return {"device": str(value)}
    if isinstance(value, slice):
        return {"slice": [_encode(part) for part in (value.start, value.stop, value.step)]}
    if value is Ellipsis:
        return {"ellipsis": 1}
    if isinstance(value, tuple):
        return {"tuple": [_encode(part) for part in value]}
    if isinstance(value, list):
        return [_encode(part) for part in value]
    if isinstance(value, dict):
        return {"dict": [[key, _encode(part)] for key, part in value.items()]}
    if value is None or isinstance(value, (bool, int, float, complex, str)):
        return value
    raise RuntimeError(f"torch.jit.save: a graph with an argument of type {type(value).__name__} cannot be written")


def load(f: Any, map_location: Any = None, _extra_files: Any = None, **kwargs: Any) -> Any:
    """Read what `save` wrote."""
    if isinstance(f, (str, os.PathLike)) and not os.path.exists(f):
        raise ValueError(f"The provided filename {f} does not exist")
    try:
        content = serialization.load(f, map_location=map_location, weights_only=True)
    except Exception as error:
        raise RuntimeError(_refusal(str(error))) from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise RuntimeError(_refusal("no program was found in it"))
    try:
        return _Reader(content).read()
    except _DAMAGE as error:
        raise RuntimeError(
            f"torch.jit.load: the program in the file is damaged ({type(error).__name__}: {error})"
        ) from None


def _refusal(reason: str) -> str:
    return (
        f"torch.jit.load: this file is not a program that pullback saved ({reason}). TorchScript archives need PyTorch: "
        "save the state_dict there and load that."
    )


_DAMAGE = (KeyError, TypeError, ValueError, AttributeError, IndexError, AssertionError, RecursionError, SyntaxError)
"""What content of another form than `save` writes may end in."""


class _Reader:
    """Builds a program from what a file holds.

    The program becomes Python text, so every name from the file is checked before it gets there.
    """

    def __init__(self, content: dict[str, Any]) -> None:
        self._content = content
        self._nodes: dict[str, Node] = {}
        self._met: set[int] = set()

    def read(self) -> Any:
        """The function or module."""
        root = self._module_tree()
        graph = Graph()
        for op, name, target, args, kwargs in self._content["nodes"]:
            resolved = _function_named(target) if op == "call_function" else _checked(op, target)
            arguments, keywords = self._decode(args), self._keywords(kwargs)
            self._nodes[name] = graph.create_node(op, resolved, arguments, keywords, name)
        program = GraphModule(root, graph)
        if self._content["name"] is not None:
            return ScriptFunction(program, self._content["name"], graph)
        return _LoadedModule(root, program).train(self._content["training"])

    def _module_tree(self) -> Module:
        root = _LoadedPart()
        for path, kind in self._content["kinds"].items():
            _part_at(root, checked_path(path) if path else []).original_name = _checked_name(kind)
        for name, tensor in self._content["parameters"].items():
            *path, last = checked_path(name)
            _part_at(root, path).register_parameter(last, Parameter(tensor))
        for name, tensor in self._content["buffers"].items():
            *path, last = checked_path(name)
            _part_at(root, path).register_buffer(last, tensor)
        return root

    def _keywords(self, value: Any) -> dict[str, Any]:
        keywords = self._decode(value)
        if not isinstance(keywords, dict):
            raise TypeError("keywords that are not a dict")
        return {_checked_name(name): part for name, part in keywords.items()}

    def _decode(self, value: Any) -> Any:
        if value is None or type(value) in (bool, int, float, complex, str):
            return value
        if type(value) not in (list, dict):
            raise TypeError(f"an argument of type {type(value).__name__}")
        if id(value) in self._met:  # parts of parts that occur twice could be more than fit in memory
            raise ValueError("a part of an argument occurs twice")
        self._met.add(id(value))
        if isinstance(value, list):
            return [self._decode(part) for part in value]
        ((kind, inner),) = value.items()
        if kind == "node":
            return self._nodes[inner]
        if kind == "dtype":
            return _named_dtype(inner)
        if kind == "device":
            return device(inner)
        if kind == "slice":
            return slice(*map(self._decode, inner))
        if kind == "tuple":
            return tuple(map(self._decode, inner))
        if kind == "dict":
            return {self._decode(key): self._decode(part) for key, part in inner}
        if kind == "ellipsis":
            return Ellipsis
        raise ValueError(f"an argument of the unknown kind {kind!r:.40}")


def _named_dtype(name: str) -> dtype:
    found = getattr(pullback, name, None)
    if not isinstance(found, dtype):
        raise RuntimeError(f"torch.jit.load: the file names the dtype {name!r}, which is not one")
    return found


class _LoadedPart(Module):
    """A module of a loaded program: its tensors, and the name of the class that it was."""

    original_name = "Module"


class _LoadedModule(TopLevelTracedModule):
    """A loaded program, which prints as PyTorch's do."""

    _wrap, _get_name = RecursiveScriptModule._wrap, Module._get_name


_LoadedModule.__name__ = _LoadedModule.__qualname__ = "RecursiveScriptModule"


def _part_at(root: Module, path: list[str]) -> Any:
    """The module at a path below the root, made where it is not there yet."""
    for name in path:
        if name not in root._modules:
            root.add_module(name, _LoadedPart())
        child = root._modules[name]
        assert child is not None
        root = child
    return root


def _checked_name(name: Any) -> str:
    """A name of Python's; anything else, which could be code, is refused."""
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        raise ValueError(f"{name!r:.80} is not a name")
    return name


def checked_path(path: Any) -> list[str]:
    """The parts of the path to a submodule or tensor: names of Python's, or numbers as those of layers.

    >>> checked_path("layers.0.weight")
    ['layers', '0', 'weight']
    """
    parts = path.split(".") if isinstance(path, str) else [""]
    return [part if part.isascii() and part.isdigit() else _checked_name(part) for part in parts]


_OPERATORS = frozenset(
    {*magic_methods, *inplace_methods, "abs", "concat", "contains", "index", "is_", "is_not", "not_", "truth"}
)
"""The functions of `operator` that a program may call. (`call`, `attrgetter` and `methodcaller` reach any code.)"""
_REFUSED = ("set_", "register_", "from_file", "autocast_", "clear_autocast_cache")
"""Public functions that change the process or read files, by how their names begin."""


def _may_be_called(name: str) -> bool:
    """Whether a saved program may call an overridable function: those that compute, also as operators of Tensor."""
    module, _, last = name.rpartition(".")
    if last.startswith("__") and last.endswith("__") and module == "torch.Tensor":
        return any(bare in _OPERATORS for bare in (last[2:-2], f"{last[2:-2]}_", last[3:-2], f"{last[3:-2]}_"))
    return module.startswith("torch") and not last.startswith(("_", *_REFUSED))


def _function_named(name: str) -> Any:
    """The public function of this name; anything else is refused."""
    module, _, last = name.rpartition(".")
    if _may_be_called(name):
        for candidates in get_overridable_functions().values():
            for function in candidates:
                if qualified_name(function) == name:
                    return function
        if module.startswith("torch.generated.") and hasattr(generated, last):
            return getattr(generated, last)
        if module == "torch" and last in creation.__all__:
            return getattr(creation, last)
    if module in ("operator", "_operator") and last in _OPERATORS:
        return getattr(operator, last)
    if name == "builtins.getattr":
        return _public_attribute
    raise RuntimeError(f"torch.jit.load: the file names the function {name!r:.200}, which a saved program may not call")


def _public_attribute(value: Any, name: str) -> Any:
    """`getattr` of a tensor's public attribute."""
    if not isinstance(value, Tensor) or name.startswith("_"):
        raise RuntimeError(f"torch.jit.load: a saved program may not read the attribute {name!r}")
    return builtins.getattr(value, name)


def _checked(op: str, target: str) -> str:
    """The target of a node that is not a function, refused where it is not public."""
    if op == "call_method" and (target.startswith(("_", "register_")) or not hasattr(Tensor, target)):
        raise RuntimeError(
            f"torch.jit.load: the file names the method {target!r:.200}, which a saved program may not call"
        )
    if op == "get_attr":
        checked_path(target)
    elif op == "placeholder":
        _checked_name(target.removeprefix("*").removeprefix("*"))
    elif op not in ("call_method", "output"):
        raise RuntimeError(f"torch.jit.load: the file has a node of an unknown kind {op!r:.40}")
    return target
