"""What runs when an overload of ATen is called: the function of pullback that has its name, or that declares to be it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from pullback import functions
from pullback.dispatch.batch_norm import native_batch_norm_backward
from pullback.dispatch.declarations import backward_lines
from pullback.dispatch.node_classes import node_class, pull_back_alone
from pullback.dispatch.overloads import OpOverload
from pullback.dispatch.templates import Template, template, total_weight
from pullback.facts import fact_of
from pullback.generated.registry import OPERATIONS, Operation
from pullback.nn import functional
from pullback.tensor.tensor import Tensor

Run = Callable[..., Any]


def implementation_of(overload: OpOverload) -> Run:
    """The function to call for an overload; one that raises if there is none."""
    name = overload._opname
    run = _runs.get(name) or _generated(name, overload)
    if run is None and "backward" in name:  # a function of this name may leave out what only PyTorch passes
        run = _declared(name, overload)
    run = run or _public(name) or _declared(name, overload)
    if run is None:
        raise NotImplementedError(
            f"Could not run '{overload.name()}': pullback has no function of this name. `dir(torch.ops.aten)` lists "
            "what it has."
        )
    return _by_position(overload, run)


def _by_position(overload: OpOverload, run: Run) -> Run:
    """A function whose leading arguments may also be named as the schema names them."""
    names = [a.name for a in overload._schema.arguments if not a.kwarg_only]
    if not names:
        return run

    def called(*args: Any, **kwargs: Any) -> Any:
        given = list(args)
        while len(given) < len(names) and names[len(given)] in kwargs:
            given.append(kwargs.pop(names[len(given)]))
        return run(*given, **kwargs)

    return called


@cache
def _by_public_name() -> dict[str, list[Operation]]:
    found: dict[str, list[Operation]] = {}
    for operation in OPERATIONS.values():
        if not operation.aten and not operation.parts:
            found.setdefault(operation.public or operation.name, []).append(operation)
    return found


def _generated(name: str, overload: OpOverload) -> Run | None:
    """The operation that has this name and just these parameters: a public function may take others by the same name."""
    schema = [a for a in overload._schema.arguments if a.name not in ("dtype", "out")]
    names = ["input" if a.name == "self" else a.name for a in schema]
    in_place = name.endswith("_")
    for operation in _by_public_name().get(name.removesuffix("_") if in_place else name, []):
        roles = {p[0]: p[1] for p in operation.parameters}
        fitting = set(roles) == set(names) and all(_takes(roles[n], a.type) for n, a in zip(names, schema, strict=True))
        if fitting and (operation.in_place or not in_place):
            module = import_module(f"pullback.generated.{operation.family}")
            function = getattr(module, operation.name + ("_" if in_place else ""))
            defaults = {n: a.default_value for n, a in zip(names, schema, strict=True) if a.has_default_value()}
            return _with_parameters(function, names, defaults)
    return None


def _takes(role: str, kind: str) -> bool:
    """Whether a parameter of an operation takes what an argument of a schema may be."""
    if kind == "Scalar":
        return role not in ("tensor", "optional tensor", "tensor list")
    wanted = {"Tensor": ("tensor", "tensor or number"), "Tensor?": ("optional tensor",), "Tensor[]": ("tensor list",)}
    return role in wanted[kind] if kind in wanted else "tensor" not in role


def _with_parameters(function: Run, names: list[str], defaults: dict[str, Any]) -> Run:
    def run(*args: Any, **kwargs: Any) -> Any:
        values = {**defaults, **dict(zip(names, args, strict=False)), **kwargs}
        return function(**{k: v for k, v in values.items() if v is not None or k in names})

    return run


def _public(name: str) -> Run | None:
    """The function or method of this name."""
    method = Tensor.__dict__.get(name)
    if name.endswith("_") or fact_of(name, "method_alone"):
        return method if callable(method) else None
    found: Any = getattr(functions, name, None) if functions.module_of(name) is not None else None
    found = found or getattr(functional, name, None) or getattr(import_module("pullback"), name, None)
    found = found if callable(found) else method
    return found if callable(found) and not isinstance(found, type) and not name.startswith("_") else None


@cache
def _declarations() -> tuple[
    dict[str, list[tuple[Operation, Template]]], dict[str, tuple[Operation, str | None, Template]]
]:
    """The operations by the ATen calls that they declare to be, and those whose backward declares to be one."""
    forward: dict[str, list[tuple[Operation, Template]]] = {}
    backward: dict[str, tuple[Operation, str | None, Template]] = {}
    for operation in OPERATIONS.values():
        if operation.aten:
            wanted = template(operation.aten)
            forward.setdefault(wanted.name.partition(".")[0], []).append((operation, wanted))
        for parameter, line in backward_lines(operation):
            if line.call:
                wanted = template(line.call)
                name = wanted.name.partition(".")[0]
                if name not in backward or backward[name][2].told < wanted.told:
                    backward[name] = operation, parameter, wanted
    return forward, backward


def _declared(name: str, overload: OpOverload) -> Run | None:
    forward, backward = _declarations()
    in_place = name.endswith("_") and name[:-1] in forward
    candidates = forward.get(name) or (forward.get(name[:-1]) if in_place else None)
    names = [a.name for a in overload._schema.arguments if not a.kwarg_only]
    if candidates:
        wanted = [c for c in candidates if c[1].name.partition(".")[2] in ("", overload._overloadname)] or candidates
        return _forward_run(*wanted[0], names, "_" if in_place else "", _defaults(overload))
    if name in backward:
        return _backward_run(*backward[name], names, overload)
    return None


def _defaults(overload: OpOverload) -> dict[str, Any]:
    return {a.name: a.default_value for a in overload._schema.arguments if a.has_default_value()}


def _forward_run(
    operation: Operation, wanted: Template, names: list[str], ending: str, defaults: dict[str, Any]
) -> Run:
    function = getattr(import_module(f"pullback.generated.{operation.family}"), operation.name + ending)
    required = [p for p in inspect.signature(function).parameters.values() if p.default is p.empty]

    def run(*args: Any, **kwargs: Any) -> Any:
        given = {**defaults, **dict(zip(names, args, strict=False)), **kwargs}
        values = wanted.solve(names, given)
        for parameter in required:
            values.setdefault(parameter.name, None)
        if (out := kwargs.get("out")) is not None:
            values["out"] = out
        return function(**values)

    return run


def _backward_run(
    operation: Operation, parameter: str | None, wanted: Template, names: list[str], overload: OpOverload
) -> Run:
    defaults = _defaults(overload)

    def run(*args: Any, **kwargs: Any) -> Any:
        given = {**defaults, **dict(zip(names, args, strict=False)), **kwargs}
        solved = wanted.solve(names, given)
        for name, role, _ in operation.parameters:
            if role == "dim" and isinstance(solved.get(name), int) and solved[name] < 0:
                solved[name] += solved["grad"].ndim
        return pull_back_alone(node_class(operation), operation, parameter, solved)

    return run


_runs: dict[str, Run] = {"native_batch_norm_backward": native_batch_norm_backward}
"""Operators that are not functions of pullback's under any name."""


def _private(name: str) -> Callable[[Run], Run]:
    def register(run: Run) -> Run:
        _runs[name] = run
        return run

    return register


@_private("lift")
@_private("lift_fresh")
def _same(input: Any) -> Any:
    return input


@_private("sym_size")
def _size(input: Any, dim: int) -> Any:
    return input.shape[dim]


@_private("lift_fresh_copy")
def _copy(input: Any) -> Any:
    return input.clone()


@_private("_local_scalar_dense")
def _item(input: Any) -> Any:
    return input.item()


@_private("detach")
def _detach(input: Any) -> Any:
    return input.detach()


@_private("log_sigmoid_forward")
def _log_sigmoid_forward(input: Any) -> Any:
    return functional.logsigmoid(input), (-input.abs()).exp()


@_private("_to_copy")
def _to_copy(input: Any, **options: Any) -> Any:
    wanted = {k: v for k, v in options.items() if k in ("dtype", "device", "memory_format") and v is not None}
    return input.to(copy=True, **wanted)


@_private("squeeze")
def _squeeze(input: Any, *dim: Any) -> Any:
    return functions.squeeze(input, *[tuple(d) if isinstance(d, list) else d for d in dim])


@_private("nll_loss_forward")
def _nll_loss_forward(input: Any, target: Any, weight: Any, reduction: int, ignore_index: int) -> Any:
    words = {0: "none", 1: "mean", 2: "sum"}
    loss = functional.nll_loss(input, target, weight, ignore_index=ignore_index, reduction=words[reduction])
    return loss, total_weight(target, weight, ignore_index, input.dtype)


@_private("index")
def _index(input: Any, indices: Any) -> Any:
    return input[tuple([slice(None) if index is None else index for index in indices])]


def _upsampling(name: str) -> Run:
    """An operator that takes scales one by one, of which the operation takes all or none."""

    def run(input: Any, output_size: Any, *rest: Any, **options: Any) -> Any:
        rest = (*rest, *options.values())
        scales = [value for value in rest if value is not None and not isinstance(value, bool)]
        aligned = [value for value in rest if isinstance(value, bool)]
        function = getattr(import_module("pullback.generated"), name)
        return function(input, tuple(output_size), *aligned, scales=tuple(scales) or None)

    return run


def _upsample(kind: str) -> None:
    _private(f"upsample_{kind}")(_upsampling(f"upsample_{kind}"))


for _kind in "nearest1d nearest2d nearest3d linear1d bilinear2d trilinear3d bicubic2d".split():
    _upsample(_kind)
