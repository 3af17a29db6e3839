"""What PyTorch's users ask the engine while it runs, and its own call under its former name.

`torch._C` shows the functions here; `Variable._execution_engine` is the `_EngineBase`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

from pullback.autograd.differentiation import run_engine
from pullback.engine.engine import engine
from pullback.engine.graph_task import GraphTask
from pullback.engine.passes import current_graph_task
from pullback.generated import MODULES
from pullback.graph.accumulate_grad import AccumulateGrad
from pullback.graph.custom_function_node import BackwardCFunction
from pullback.graph.gradient_edge import GradientEdge
from pullback.graph.node import Node
from pullback.modes.switches import switches
from pullback.tensor.tensor import Tensor


def current_graph_task_id() -> int:
    """The number of the backward pass that runs in this thread, -1 outside of one.

    >>> current_graph_task_id()
    -1
    """
    task = current_graph_task()
    return -1 if task is None else task.id


def current_graph_task_execution_order() -> list[Node]:
    """The nodes of the pass that runs in this thread, in the order in which it runs them.

    As in PyTorch, threads of the engine's own must be switched off, as with `set_multithreading_enabled(False)`.
    """
    task = _running("_current_graph_task_execution_order")
    if switches.multithreading:
        raise RuntimeError(
            "get_current_graph_task_execution_order expects the current backward to be executed with multithreading "
            "disabled: call it inside of `with autograd.set_multithreading_enabled(False):`."
        )
    return task.execution_order()


def will_engine_execute_node(node: Any) -> bool:
    """Whether the pass that runs in this thread runs `node` (a single root is not counted, as in PyTorch)."""
    task = _running("_get_should_execute_nodes")
    if not isinstance(node, Node):
        raise RuntimeError(f"_will_engine_execute_node expects an grad_fn, but got {type(node).__name__}")
    roots = task.root.next_edges if task.root is not None else ()
    if len(roots) == 1 and roots[0] is not None and roots[0][0] is node:
        return False
    if isinstance(node, AccumulateGrad) and task.captures_at(node):
        raise RuntimeError(
            "A leaf node was passed to _will_engine_execute_node but we are currently running autograd.grad(). This is "
            "currently not supported: its gradient is returned, and the node does not run."
        )
    return task.will_execute(node)


def _running(asked: str) -> GraphTask:
    task = current_graph_task()
    if task is None:
        raise RuntimeError(f"{asked} should only be called during the backward pass")
    return task


class _EngineBase:
    """The engine as old programs call it."""

    def queue_callback(self, callback: Callable[[], None]) -> None:
        """Run `callback` when the current backward pass ends."""
        engine.queue_callback(callback)

    def is_checkpoint_valid(self) -> bool:
        """Whether the pass that runs computes all gradients."""
        task = current_graph_task()
        return task is None or task.exec_info is None

    def run_backward(
        self,
        tensors: tuple[Any, ...],
        grad_tensors: tuple[Any, ...],
        keep_graph: bool,
        create_graph: bool,
        inputs: tuple[Any, ...] = (),
        allow_unreachable: bool = False,
        accumulate_grad: bool = False,
    ) -> tuple[Any, ...] | None:
        """Run backward: `backward` where `accumulate_grad`, else `grad`, without their checks and defaults.

        >>> import pullback
        >>> x = pullback.tensor(3.0, requires_grad=True)
        >>> run = pullback.autograd.Variable._execution_engine.run_backward
        >>> run((x * x,), (pullback.tensor(1.0),), False, False, (x,))
        (tensor(6.),)
        """
        for name, value in (("tensors", tensors), ("grad_tensors", grad_tensors)):
            if not isinstance(value, tuple):
                raise RuntimeError(f"{name} argument is expected to be a tuple, but got {type(value).__name__}")
        if len(tensors) != len(grad_tensors):
            raise RuntimeError(f"got {len(tensors)} tensors and {len(grad_tensors)} gradients")
        for index, (root, grad) in enumerate(zip(tensors, grad_tensors, strict=True)):
            _check_root(index, root, grad)
        return run_engine(
            tensors, grad_tensors, inputs, keep_graph, create_graph, allow_unused=allow_unreachable,
            accumulate=accumulate_grad,
        )  # fmt: skip


def _check_root(index: int, root: Any, grad: Any) -> None:
    if not isinstance(root, (Tensor, GradientEdge)):
        raise RuntimeError(f"element {index} of tensors tuple is neither a Tensor nor a GradientEdge")
    if grad is None:
        raise RuntimeError(f"element {index} of gradients tuple is None, but the corresponding Tensor requires grad")
    if not isinstance(grad, Tensor):
        raise RuntimeError(f"element {index} of gradients tuple is not a Tensor or None")


def node_class(name: str) -> Any:
    """The class of the nodes called `name`, as `torch._C._functions` shows it."""
    found = _node_classes().get(name)
    if found is None:
        raise AttributeError(f"no node is called '{name}'")
    return found


def _node_classes() -> dict[str, type[Node]]:
    """Every class of nodes by the name it shows; all families of operations are loaded for it."""
    for module in sorted(set(MODULES.values())):
        import_module(module)
    classes: dict[str, type[Node]] = {}
    waiting: Sequence[type[Node]] = [Node]
    while waiting:
        kinds = [kind for parent in waiting if parent is not BackwardCFunction for kind in parent.__subclasses__()]
        for kind in kinds:
            if not kind.__name__.startswith("_"):
                classes.setdefault(kind.__name__, kind)
        waiting = kinds
    return classes
