"""A module whose forward is the text of a graph."""

from __future__ import annotations

import copy
import itertools
from typing import Any

from pullback.fx.code_text import PythonCode
from pullback.fx.graph import Graph
from pullback.fx.pytree_code import PyTreeCodeGen
from pullback.nn.modules.module import Module
from pullback.nn.parameter import Parameter
from pullback.source_text import run_text
from pullback.tensor.tensor import Tensor

__all__ = ["GraphModule", "reduce_graph_module"]

_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"
"""Where `meta` names attributes that copies keep."""

_numbers = itertools.count()


def _forward_from_src(src: str, scope: dict[str, Any]) -> Any:
    """The function of a text, whose lines tracebacks can show."""
    file = f"<eval_with_key>.{next(_numbers)}"
    return run_text(src, file, dict(scope))["forward"]


class _CodeOnlyModule(Module):
    """A module of given attributes, for a graph to take from."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__.update(body)


def reduce_graph_module(body: dict[str, Any], import_block: str) -> Any:
    """A GraphModule from what was pickled of it: the graph is traced anew."""
    name = body.pop("_graphmodule_cls_name", "GraphModule")
    body.pop("_graph", None)
    scope: dict[str, Any] = {}
    exec(import_block, scope)
    forward = _forward_from_src(body["_code"], {**scope})
    from pullback.fx._symbolic_trace import Tracer  # lazy: tracing makes GraphModules

    class Rebuilt(_CodeOnlyModule):
        pass

    Rebuilt.forward = forward

    class KeepModules(Tracer):
        def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
            return True

    rebuilt = Rebuilt(body)
    return GraphModule(rebuilt, KeepModules().trace(rebuilt), name)


def _copy_attr(source: Any, target: Module, path: str) -> None:
    """Put what `source` has at a path there in `target` too; containers on the way become plain modules."""
    *parents, name = path.split(".")
    for part in parents:
        source = getattr(source, part)
        if not hasattr(target, part):
            target.add_module(part, Module())
        elif getattr(target, part) is source:
            return
        target = getattr(target, part)
    value = getattr(source, name)
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        target.register_buffer(name, value)
    else:
        setattr(target, name, value)


def _assign_attr(value: Any, target: Module, path: str) -> None:
    *parents, name = path.split(".")
    for part in parents:
        if not hasattr(target, part):
            target.add_module(part, Module())
        target = getattr(target, part)
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        target.register_buffer(name, value)
    else:
        setattr(target, name, value)


class GraphModule(Module):
    """A module made of a graph and of the submodules, parameters and buffers that its nodes name."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Give each instance a class of its own, which holds its forward."""
        own = next(c for c in cls.__mro__ if c.__qualname__ != "GraphModule.__new__.<locals>.GraphModuleImpl")

        class GraphModuleImpl(own):  # type: ignore[misc,valid-type]
            pass

        return super().__new__(GraphModuleImpl)

    def __init__(self, root: Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule") -> None:
        super().__init__()
        self.__class__.__name__ = class_name
        if isinstance(root, Module):
            self.training = getattr(root, "training", True)
            for node in graph.nodes:
                if node.op in ("get_attr", "call_module"):
                    _copy_attr(root, self, str(node.target))
        elif isinstance(root, dict):
            self._take(root, graph)
        else:
            raise RuntimeError(f"Unsupported type {root} passed for root!")
        self._set_graph(graph)
        self._tracer_cls = graph._tracer_cls
        self.meta: dict[str, Any] = {}

    def _take(self, root: dict[str, Any], graph: Graph) -> None:
        """Take the attributes that nodes name out of a dict, outer ones first."""
        targets = [str(node.target) for node in graph.nodes if node.op in ("get_attr", "call_module")]
        for target in targets:
            if target not in root:
                raise RuntimeError(f"Node references target {target} but that target was not provided in `root`!")
        for target in sorted(set(targets), key=lambda path: path.count(".")):
            _assign_attr(root[target], self, target)

    @property
    def graph(self) -> Graph:
        """The graph; assigning one writes forward anew."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        self._set_graph(g)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "graph":
            self._set_graph(value)
        else:
            super().__setattr__(name, value)

    def _set_graph(self, graph: Graph) -> None:
        if not isinstance(graph, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(graph)}")
        self.__dict__["_graph"] = graph
        graph.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The text of forward."""
        if "_code" not in self.__dict__:
            raise RuntimeError("Code has not been generated! Please report a bug to PyTorch")
        return str(self._code)

    def recompile(self) -> PythonCode:
        """Write forward anew after the graph has changed."""
        python_code = self._graph.python_code(root_module="self")
        if isinstance(self._graph._codegen, PyTreeCodeGen):
            info = self._graph._codegen.pytree_info
            self.__dict__.update(_in_spec=info.in_spec, _out_spec=info.out_spec)
        self.__dict__["_code"] = python_code.src
        cls: Any = type(self)
        cls.forward = _forward_from_src(python_code.src, python_code.globals)
        return python_code

    def add_submodule(self, target: str, m: Module) -> bool:
        """Add a submodule at a path, with the modules that lead there."""
        module: Any = self
        *parents, name = target.split(".")
        for part in parents:
            if not hasattr(module, part):
                setattr(module, part, Module())
            module = getattr(module, part)
            if not isinstance(module, Module):
                return False
        module.add_module(name, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Delete the submodule at a path; False if there is none."""
        module: Any = self
        *parents, name = target.split(".")
        for part in parents:
            if not isinstance(getattr(module, part, None), Module):
                return False
            module = getattr(module, part)
        if not isinstance(getattr(module, name, None), Module):
            return False
        delattr(module, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Delete the submodules that no node names."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op in ("get_attr", "call_module"):
                parts = str(node.target).split(".")
                used.update(".".join(parts[: i + 1]) for i in range(len(parts)))
                if node.op == "call_module":
                    inner = self.get_submodule(str(node.target))
                    used.update(f"{node.target}.{name}" for name, _ in inner.named_modules())
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    def print_readable(self, print_output: bool = True, **options: Any) -> str:
        """The text of forward as that of a class, with dtypes and sizes where nodes know them."""
        name = type(self).__name__
        told = self._graph.python_code(root_module="self", verbose=True).src
        inner = told.strip("\n ").replace("\n", "\n    ")
        text = f"class {name}(torch.nn.Module):\n    {inner}\n"
        if print_output:
            print(text)
        return text

    def to_folder(self, folder: Any, module_name: str = "FxModule") -> None:
        """Not kept: save the state_dict and the code instead."""
        raise NotImplementedError("GraphModule.to_folder is not provided: save `module.code` and the state_dict")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return super().__call__(*args, **kwargs)

    def __deepcopy__(self, memo: Any) -> GraphModule:
        state = {k: v for k, v in self.__dict__.items() if k != "_graph"}
        holder = _CodeOnlyModule(copy.deepcopy(state, memo))
        copied: GraphModule = GraphModule(holder, copy.deepcopy(self._graph), "GraphModule")
        for name in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_state_dict_hooks"):
            if name in holder.__dict__:
                copied.__dict__[name] = holder.__dict__[name]
        copied.meta = dict(self.meta)
        memo[id(self)] = copied
        return copied

    def __copy__(self) -> GraphModule:
        copied = GraphModule(self, self.graph)
        copied.meta = self.meta
        return copied

    def __reduce__(self) -> Any:
        state = self.__dict__.copy()
        del state["_graph"]
        state["_graphmodule_cls_name"] = "GraphModule"
        state["_tracer_cls"] = None
        python_code = self._graph.python_code(root_module="self")
        return reduce_graph_module, (state, _imports(python_code))

    def __str__(self) -> str:
        note = "# To see more debug info, please use `graph_module.print_readable()`"
        return "\n".join([super().__repr__(), self._code, note])


def _imports(code: PythonCode) -> str:
    """Statements that bind what a text refers to."""
    lines = [
        "from math import inf, nan",
        "NoneType = type(None)",
        "import pullback as torch",
        "from pullback import device",
    ]
    for name, value in code.globals.items():
        module = getattr(value, "__module__", None)
        if name not in ("inf", "nan", "NoneType", "torch", "device", "pytree", "fx_pytree") and module is not None:
            lines.append(f"from {module} import {value.__name__} as {name}")
    return "\n".join(lines)
