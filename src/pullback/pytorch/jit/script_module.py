"""What `torch.jit.script` and `torch.jit.trace` return: the Python itself, in PyTorch's classes."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from pullback.fx import Graph
from pullback.nn.modules.module import Module

__all__ = ["RecursiveScriptModule", "ScriptFunction", "ScriptModule", "TopLevelTracedModule"]


class ScriptFunction:
    """A scripted or traced function: calling it runs the Python, or the graph that was traced."""

    def __init__(self, function: Callable[..., Any], name: str, graph: Graph | None = None) -> None:
        self._function = function
        self._traced = graph
        self.name = name
        self.__name__ = "ScriptFunction"
        self.__doc__ = function.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        return self._function

    @property
    def graph(self) -> Graph:
        """The program as a graph of `torch.fx`."""
        return self._traced if self._traced is not None else _traced_program(self._function).graph

    @property
    def code(self) -> str:
        """The program as text."""
        return _text_of(self._function, self._traced)

    def save(self, f: Any, **kwargs: Any) -> None:
        """Write the function to a file, as `torch.jit.save` does."""
        from pullback.pytorch.jit.archive import save  # lazy: an archive holds these classes

        save(self, f)


class ScriptModule(Module):
    """The base of scripted modules; older programs derive from it and mark methods with `script_method`."""

    def save(self, f: Any, **kwargs: Any) -> None:
        """Write the module to a file, as `torch.jit.save` does."""
        from pullback.pytorch.jit.archive import save  # lazy: an archive holds these classes

        save(self, f)


class RecursiveScriptModule(ScriptModule):
    """A scripted module: it has the parameters of the original, and a training flag of its own."""

    _python: Any

    def __init__(self, module: Module | None = None) -> None:
        super().__init__()
        if module is None:
            return
        own = _without_children(module)
        children = {name: child and self._wrap(child) for name, child in module._modules.items()}
        own._modules = {name: child and child._python for name, child in children.items()}
        vars(self).update(_python=own, _parameters=own._parameters, _buffers=own._buffers, _modules=children)

    def _wrap(self, child: Module) -> RecursiveScriptModule:
        return child if isinstance(child, RecursiveScriptModule) else RecursiveScriptModule(child)

    @property
    def training(self) -> bool:
        """Whether the module is in training mode."""
        python = self.__dict__.get("_python")
        return True if python is None else bool(python.training)

    @training.setter
    def training(self, mode: bool) -> None:
        if "_python" in self.__dict__:
            self._python.training = mode

    @property
    def original_name(self) -> str:
        """The name of the class that was scripted."""
        return str(getattr(self._python, "original_name", type(self._python).__name__))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the original's `forward`."""
        return self._python.forward(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if "_python" not in self.__dict__:
                raise
            return getattr(self._python, name)

    def __getitem__(self, index: Any) -> Any:
        return self._modules[index] if isinstance(index, str) else list(self._modules.values())[index]

    def __len__(self) -> int:
        return len(self._python)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def __bool__(self) -> bool:
        return True

    def extra_repr(self) -> str:
        return f"original_name={self.original_name}"

    @property
    def graph(self) -> Graph:
        """The program as a graph of `torch.fx`."""
        return _traced_program(self._python).graph

    inlined_graph = graph

    @property
    def code(self) -> str:
        """The text of `forward`."""
        return _text_of(self._python.forward, None)


class TracedModule(RecursiveScriptModule):
    """A part of a traced module, printed under the name of what was traced."""

    def _wrap(self, child: Module) -> RecursiveScriptModule:
        return child if isinstance(child, RecursiveScriptModule) else TracedModule(child)

    def _get_name(self) -> str:
        return self.original_name


class TopLevelTracedModule(TracedModule):
    """A traced module: calling it runs the graph that was recorded."""

    def __init__(self, module: Module, program: Any) -> None:
        super().__init__(module)
        self.__dict__["_program"] = program

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the traced graph."""
        return self.__dict__["_program"](*args, **kwargs)

    @property
    def graph(self) -> Graph:
        """The traced graph."""
        return self.__dict__["_program"].graph

    @property
    def code(self) -> str:
        """The traced graph as text."""
        return str(self.__dict__["_program"].code)


def _without_children(module: Module) -> Any:
    """A module with the same parameters and attributes, to be given children of its own."""
    own = copy.copy(module)
    own.__dict__ = dict(vars(module))
    own._parameters, own._buffers = dict(module._parameters), dict(module._buffers)
    return own


def _traced_program(function: Any) -> Any:
    from pullback.pytorch.jit.tracing import trace_symbolically  # lazy: tracing makes these classes

    return trace_symbolically(function)


def _text_of(function: Any, graph: Graph | None) -> str:
    if graph is not None:
        return graph.python_code("self").src
    try:
        return inspect.getsource(function)
    except (OSError, TypeError):
        return str(_traced_program(function).code)
