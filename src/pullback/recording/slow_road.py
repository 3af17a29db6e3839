"""The road of calls that are not plain: interception, `out=`, foreign and wrong arguments, tangents, inference mode.

It is one text for all operations and reads their records. See Note [Fast path].
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

from pullback import kernels
from pullback.checks import explain_failure
from pullback.errors import not_a_bool
from pullback.facts import fact_of
from pullback.graph.history import adopt_switches, gradient_edge
from pullback.graph.in_place import write_out
from pullback.graph.tangents import carry_tangents, tangents_flow
from pullback.modes.function_modes import is_told
from pullback.modes.interception import intercept, overrides
from pullback.modes.switches import process, switches
from pullback.recording.rendered import tangent_of
from pullback.tensor.arguments import as_tensor_argument, missing_arguments, shapes_differ
from pullback.tensor.foreign_arguments import ask_foreign, is_foreign
from pullback.tensor.refusals import refused
from pullback.tensor.tensor import Tensor, TensorBase

if TYPE_CHECKING:
    from pullback.generated.registry import Operation

PROCEED = object()
"""What `divert` answers where the fast path may go on."""

Given: TypeAlias = "tuple[Any, ...] | dict[str, Any]"
"""The arguments of an operation, in order, or its local variables: shorter text where there are many arguments."""


class _Road:
    """What the slow road needs of one operation, worked out on its first use."""

    def __init__(self, operation: Operation) -> None:
        self.operation = operation
        self.name = operation.name
        self.public = operation.message_name
        self.function = getattr(import_module(f"pullback.generated.{operation.family}"), operation.name)
        names = self.names = tuple([name for name, _, _ in operation.parameters])
        roles = [role for _, role, _ in operation.parameters]
        self.positional = sum(not keyword_only for _, _, keyword_only in operation.parameters)
        self.keywords = names[self.positional :]
        self.tensors = tuple([place for place, role in enumerate(roles) if role == "tensor"])
        self.optional = tuple([place for place, role in enumerate(roles) if role == "optional tensor"])
        self.bools = tuple([place for place, kind in enumerate(operation.annotations) if kind == "bool"])
        self.looks_further = bool(self.optional or self.bools)
        self.required = tuple([names.index(name) for name in operation.left_open])
        self.takes_number_second = len(roles) > 1 and roles[1] == "tensor or number"
        self.inputs = tuple([names.index(name) for name in operation.differentiable_inputs])
        read = operation.tensors if fact_of(self.name, "out_apart") else ()
        self.view = operation.view
        self.takes_out = operation.takes_out
        self.read = tuple([names.index(name) for name in read])
        self.schema = [
            (name, annotation, keyword_only)
            for (name, _, keyword_only), annotation in zip(operation.parameters, operation.annotations, strict=True)
        ]

    def values_of(self, given: Given) -> tuple[Any, ...]:
        """The arguments, in the order of the signature."""
        return given if type(given) is tuple else tuple([given[name] for name in self.names])  # type: ignore[call-overload]

    def arguments(self, values: tuple[Any, ...], out: Any) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
        """The function, its positional and its keyword arguments, for whoever is asked to take the call over."""
        keywords = dict(zip(self.keywords, values[self.positional :], strict=True)) if self.keywords else {}
        if self.takes_out:
            keywords["out"] = out
        return self.function, values[: self.positional], keywords

    def kernel_call(self, values: tuple[Any, ...]) -> tuple[Any, list[Any], dict[str, Any]]:
        """The kernel, its positional and its keyword arguments."""
        arrays = [value._array if isinstance(value, TensorBase) else value for value in values]
        kernel = getattr(kernels, self.name, None)  # a user's operation has none there
        return kernel, arrays[: self.positional], dict(zip(self.keywords, arrays[self.positional :], strict=True))

    def call(self, values: tuple[Any, ...]) -> Any:
        """Call the operation again, without `out=`."""
        keywords = dict(zip(self.keywords, values[self.positional :], strict=True))
        return self.function(*values[: self.positional], **keywords)


_roads: dict[str, _Road] = {}


def _road_of(name: str) -> _Road:
    from pullback.generated.registry import OPERATIONS  # lazy: above this layer, and plain programs need no record

    road = _roads[name] = _Road(OPERATIONS[name])
    return road


def divert(name: str, given: Given, out: Any = None) -> Any:
    """Look at a call that may not be plain: the result, if it was computed otherwise, or PROCEED."""
    road = _roads.get(name) or _road_of(name)
    values: Any = given if type(given) is tuple else road.values_of(given)
    if process.modes and is_told():
        return ask_foreign(*road.arguments(values, out))
    if process.diverted and (overrides.types or switches.interceptors):
        if road.required:
            _require(road, values)
        taken = intercept(*road.arguments(values, out))
        if taken is not NotImplemented:
            return taken
    return check_arguments(name, values, out)


def check_arguments(name: str, values: tuple[Any, ...], out: Any = None) -> Any:
    """As `divert`, after all who may take over the call were asked."""
    road = _roads.get(name) or _road_of(name)
    if road.required:
        _require(road, values)
    if out is not None:
        read = [tensor for place in road.read for tensor in _each(values[place])]
        return write_out(road.public, out, road.call(values), *read)
    for place in road.tensors:
        if not isinstance(values[place], TensorBase):
            return _with_tensor(road, values, place, out)
    return _look_further(road, values, out) if road.looks_further else PROCEED


def _require(road: _Road, values: tuple[Any, ...]) -> None:
    for place in road.required:
        if values[place] is None:
            raise missing_arguments(road.public, road.names[place])


def _look_further(road: _Road, values: tuple[Any, ...], out: Any) -> Any:
    """Look at tensors that may be left out, and at switches."""
    for place in road.optional:
        if values[place] is not None and not isinstance(values[place], TensorBase):
            return _with_tensor(road, values, place, out)
    for place in road.bools:
        if type(values[place]) is not bool:
            raise not_a_bool(road.public, road.names[place], values[place])
    return PROCEED


def _with_tensor(road: _Road, values: tuple[Any, ...], place: int, out: Any) -> Any:
    """The result of a call in which an argument is not a tensor: a foreign one answers, a number may become one."""
    if is_foreign(values[place]):
        return ask_foreign(*road.arguments(values, out))
    beside = values[1] if place == 0 and road.takes_number_second else None
    tensor = as_tensor_argument(road.public, road.names[place], place + 1, values[place], beside)
    return road.call((*values[:place], tensor, *values[place + 1 :]))


def _each(value: Any) -> Any:
    return value if isinstance(value, (list, tuple)) else (value,)


def ask_foreign_of(name: str, given: Given, out: Any = None) -> Any:
    """Ask foreign arguments about the operation. See Note [Foreign arguments]."""
    road = _roads.get(name) or _road_of(name)
    return ask_foreign(*road.arguments(road.values_of(given), out))


def finish(name: str, result: Any, given: Given) -> Any:
    """Do to a new result what this thread's switches ask for: mark its node, carry tangents, mark inference tensors."""
    road = _roads.get(name) or _road_of(name)
    state = switches.__dict__  # one look-up of the thread's own dictionary instead of one per switch
    inference = state["inference_mode"]
    if not inference and (state["saved_tensor_hooks"] or state["anomaly_mode"] or state["stream"] is not None):
        node = _recorded_node(result) if road.inputs else None
        if node is not None:
            adopt_switches(node)
    # A view belongs where its base does, in inference mode and in transforms: make_view has seen to it.
    if not road.view:
        for tensor in result if type(result) is tuple else (result,):
            if inference:
                tensor._become_inference()
            else:
                tensor._made_in = state["transform"]  # see Note [Captured tensors]
    if state["dual_level"] >= 0 and road.inputs:
        values = road.values_of(given)
        inputs = [values[place] for place in road.inputs]
        if tangents_flow(*inputs):
            carry_tangents(result, tangent_of(name), values, inputs)
    return result


def _recorded_node(result: Any) -> Any:
    """Return the new node of `result`, if the operation was recorded."""
    for tensor in result if isinstance(result, tuple) else (result,):
        edge, extra = tensor._edge, tensor._extra
        if edge is None and extra is not None and extra.view is not None:
            edge = extra.view.edge
        if edge is not None:
            return edge[0]
    return None


def refuse(name: str, error: Exception, given: Given) -> Exception:
    """Make the error that the operation raises after `error`. See Note [Refusals]."""
    road = _roads.get(name) or _road_of(name)
    values = road.values_of(given)
    explained = _explain(road, error, values)
    if not isinstance(explained, TypeError) and (not process.changed or switches.records):
        for place in road.inputs:
            for tensor in _each(values[place]):
                if isinstance(tensor, Tensor):
                    gradient_edge(tensor)  # a view that may not be used any more is refused before shapes are
    return explained


def _explain(road: _Road, error: Exception, values: tuple[Any, ...]) -> Exception:
    """Explain what is wrong with the arguments, in PyTorch's words."""
    try:
        explain_failure(*road.kernel_call(values))
    except Exception as explained:
        error = explained
    if road.operation.broadcasts and isinstance(error, ValueError):
        error = shapes_differ(error, *[value._array for value in values if isinstance(value, TensorBase)])
        if road.operation.only_tensors:
            return error
    return refused(error, road.public, road.schema, values)
