"""The seldom used forms of rules, rendered from the rule's text on first use: on Tensors, in float32, as tangents.

A node's `apply` on arrays stands in generated/. What only second derivatives, half precision and forward mode need is
written when one of them asks for it: the rule is read from derivatives/, as the generator reads it, and compiled under a
name of its own, so that tracebacks and debuggers show its lines.
"""

from __future__ import annotations

import ast
import functools
import threading
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path as FilePath
from typing import Any

from pullback.backend.dtype import widen_half
from pullback.backend.halves import rounded
from pullback.engine.double_pullback import double_pullback
from pullback.errors import derivative_not_implemented
from pullback.facts import fact_of
from pullback.graph.node import Node
from pullback.graph.partial_gradient import PartialGradient
from pullback.graph.recording import zero_grad_array, zero_grad_tensor
from pullback.graph.saved_tensor import as_saved, raise_stale, unpack_list
from pullback.graph.source_lines import freed
from pullback.graph.tangents import conjugate, connected, forward_not_implemented, sum_of_terms, zeros_like_input
from pullback.kernels.broadcasting import sum_to_like
from pullback.native.locks import process_lock
from pullback.recording import array_formulas
from pullback.source_text import run_text

_SCOPE = {
    "__name__": __name__,
    "PartialGradient": PartialGradient,
    "conjugate": conjugate,
    "connected": connected,
    "derivative_not_implemented": derivative_not_implemented,
    "double_pullback": double_pullback,
    "forward_not_implemented": forward_not_implemented,
    "as_saved": as_saved,
    "raise_stale": raise_stale,
    "rounded": rounded,
    "sum_of_terms": sum_of_terms,
    "sum_to_like": sum_to_like,
    "unpack_list": unpack_list,
    "widen_half": widen_half,
    "zero_grad_array": zero_grad_array,
    "zero_grad_tensor": zero_grad_tensor,
    "zeros_like_input": zeros_like_input,
}
"""What rendered rules call beside `F`."""


def _once(make: Callable[[str], Callable[..., Any]]) -> Callable[[str], Callable[..., Any]]:
    """Make each operation's function once. Python's syntax trees must not be made by two threads at the same time."""
    made: dict[str, Callable[..., Any]] = {}

    @functools.wraps(make)
    def find(name: str) -> Callable[..., Any]:
        function = made.get(name)
        if function is None:
            # Who imports a family may wait for `reading` to write it: nobody who holds that must wait for the import.
            import_module(f"pullback.generated.{operation_record(name).family}")
            with reading:
                function = made[name] = made.get(name) or make(name)
        return function

    return find


reading = process_lock(threading.RLock)
"""Held while rules are read or written: two threads must not make syntax trees at the same time."""


@_once
def differentiable_rule(name: str) -> Callable[..., Any]:
    """The rule of an operation on Tensors, as a function of (node, grads, edges)."""
    from pullback import generated  # lazy: above this layer
    from pullback.rules.emit_apply import Path, emit_body

    operation = read_operation(name)
    body = emit_body(operation, Path(on_arrays=False))
    rule = _compiled(f"{name}_on_tensors", body, {"F": generated}, f"the rule of {name} on Tensors")
    if nodes := fact_of(name, "gradient_nodes"):
        from pullback.recording.gradient_node import with_gradient_nodes  # lazy: few operations have such nodes

        return with_gradient_nodes(rule, nodes, [p.name for p in operation.inputs], name)
    if operation.rule.options.get("fused"):
        from pullback.recording.fused_gradient import shown_by_steps  # lazy: few operations are fused

        return shown_by_steps(rule)
    return rule


def apply_rarely(node: Node, grads: Sequence[Any], edges: Any) -> Any:
    """Refuse to run a node whose saved tensors are gone, or compute its gradients in float32 and round each once.

    Several steps in half precision would round too often.
    """
    if node.released:
        refuse_freed(node, edges)
        return node.apply(grads, edges)
    return _rule_in_float32(node.operation)(node, grads, edges)


def refuse_freed(node: Node, edges: Any) -> None:
    """Raise if a gradient that is wanted of a released node reads a saved tensor; if none does, the node may run again."""
    reads = _reads_saved(node.operation)()
    if reads is None or any(edge is not None and read for edge, read in zip(edges, reads, strict=True)):
        raise freed(node)
    node.released = False


@_once
def _reads_saved(name: str) -> Callable[[], tuple[bool, ...] | None]:
    """Whether the gradient of each input reads a saved tensor; None where an input is a list."""
    from pullback.rules.emit_apply import has_list
    from pullback.rules.saved_values import saved_values

    operation = read_operation(name)
    saved = saved_values(operation)
    readers = {reader for tensor in saved.tensors() for reader in saved.readers(tensor)}
    reads = None if has_list(operation) else tuple(p.name in readers for p in operation.inputs)
    return lambda: reads


@_once
def _rule_in_float32(name: str) -> Callable[..., Any]:
    from pullback.rules.emit_apply import Path, emit_body, line_function_name

    operation = read_operation(name)
    family = vars(import_module(f"pullback.generated.{operation_record(name).family}"))
    lines = [line_function_name(operation, line) for line in operation.rule.lines]
    native = {line: family[line] for line in lines if line in family}
    body = emit_body(operation, Path(on_arrays=True, native_lines=set(native), widened=True))
    return _compiled(f"{name}_in_float32", body, {"F": array_formulas, **native}, f"the rule of {name} in float32")


@_once
def tangent_of(name: str) -> Callable[..., Any]:
    """The forward-mode function of an operation: it takes the results, the arguments and the inputs' tangents."""
    from pullback import generated  # lazy: above this layer
    from pullback.rules.emit_tangents import emit_tangent

    text = "\n".join(emit_tangent(read_operation(name)))
    made: Callable[..., Any] = run_text(text, f"the tangent of {name}", {**_SCOPE, "F": generated})[f"{name}_tangent"]
    return made


def _compiled(name: str, body: list[str], scope: dict[str, Any], title: str) -> Callable[..., Any]:
    text = "\n".join([f"def {name}(self, grads, edges):", *["    " + line for line in body], ""])
    made: Callable[..., Any] = run_text(text, title, {**_SCOPE, "refuse_freed": refuse_freed, **scope})[name]
    return made


def operation_record(name: str) -> Any:
    """What the registry has of an operation."""
    from pullback.generated.registry import OPERATIONS  # lazy: above this layer

    return OPERATIONS[name]


def read_operation(name: str) -> Any:
    """The operation as the generator knows it: its record, and its rule read again."""
    from pullback.rules.model import Kernel, Parameter
    from pullback.rules.read_rules import read_rules_of

    record = operation_record(name)
    parameters = tuple(
        Parameter(parameter, role, annotation, None, keyword_only)
        for (parameter, role, keyword_only), annotation in zip(record.parameters, record.annotations, strict=True)
    )
    path, tree = read_family(record.family)
    kernel = Kernel(name, "", parameters, "", path, 0)
    wanted = [s for s in tree.body if isinstance(s, ast.FunctionDef) and s.name in (name, f"{name}_tangent")]
    return read_rules_of(wanted, path, {name: kernel})[name]


families: dict[str, tuple[FilePath, ast.Module]] = {}
"""The rules that were read, by family; extension.py adds those that are declared outside of the package."""


def read_family(family: str) -> tuple[FilePath, ast.Module]:
    """The file of a family of rules, and its text as syntax."""
    found = families.get(family)
    if found is None:
        found = families[family] = _read_family(family)
    return found


def _read_family(family: str) -> tuple[FilePath, ast.Module]:
    path = FilePath(__file__).parents[1] / "derivatives" / f"{family}.py"
    return path, ast.parse(path.read_text(encoding="utf-8"), str(path))
