"""`explain_grad`: why a tensor has no gradient, or a loss no history, and what to do about it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress
from functools import cached_property
from typing import Any

from pullback.autograd.differentiation import make_grads, root_edges
from pullback.backend.array_module import as_array, ones
from pullback.backend.storage_pieces import memory_of
from pullback.engine.stepping import Arrival, run_in_steps
from pullback.facts import fact_of
from pullback.graph.custom_function_node import BackwardCFunction
from pullback.graph.hooks import zeroing_hook
from pullback.graph.node import Node
from pullback.graph.partial_gradient import PartialGradient
from pullback.graph.source_lines import SourceLine, source_line_of, source_line_of_hook
from pullback.inspection.left_out import held_by_optimizers, of_optimizer, unregistered
from pullback.inspection.nodes import held_arrays, is_released, named_leaves, nodes_behind, saved_values
from pullback.inspection.replaying import replayed
from pullback.inspection.statements import goes_to_numpy, names_at, names_in_statement
from pullback.modes.cuts import Cut, cuts
from pullback.modes.kept_gradients import KeptGradients
from pullback.report import lines_html
from pullback.tensor.tensor import Tensor
from pullback.tensor.version_counter import InferenceVersion

__all__ = ["Explanation", "Explanations", "explain_grad"]

_KINDS = ("detach", "data", "new_parameter", "no_grad", "inference_mode", "copy", "to_integer", "numpy", "item")
"""What cuts on purpose comes before what often only logs a value."""
_WITHHELD = "function_returned_none"
_WORDS = {
    "detach": {"detach", "detach_", "detach_copy", "numpy"},
    "data": {"data"},
    "new_parameter": {"Parameter"},
    "item": {"item", "tolist", "float", "int", "complex", "format", "print", "math"},
}
"""The names that stand in a line which cuts by itself; others are inside of functions that cut no gradient of the user's."""
_TO_NUMPY = {"numpy", "asarray", "asanyarray", "ascontiguousarray", "array", "from_numpy"}
"""The names by which values go to NumPy after a `detach()` or `.data`."""

_TEXTS = {
    "has_gradient": ("a gradient arrived: its .grad is not None", "Nothing is to be done."),
    "zero_gradient": (
        "a gradient arrived, and it is zero{node}",
        "Look for a factor of zero, a saturated activation, a mask or a branch that was not taken.",
    ),
    "not_a_leaf": (
        "it is not a leaf: it was computed by {node}, and only leaves keep their gradient",
        "Call retain_grad() on it before backward(), or ask autograd.grad(loss, tensor).",
    ),
    "frozen": (
        "it does not require grad",
        "Call requires_grad_() on it before it is used; of a module: module.requires_grad_(True).",
    ),
    "never_used": (
        "the loss was computed without it",
        "Use it in the forward computation, or leave it out of the optimizer.",
    ),
    "gradient": (
        "it is a gradient that autograd.grad() computed without recording how",
        "Pass create_graph=True to that call: then the gradient has a history.",
    ),
    "not_known": (
        "no gradient arrived, and no line is known that cut it off",
        "Give explain_grad the loss too. Gradients that arrived are gone after zero_grad().",
    ),
    "loss_is_a_leaf": (
        "the loss has no history: it is a leaf, whose requires_grad was set",
        "Compute the loss from what is to be learned; requires_grad_() makes a new leaf of a result, and joins nothing.",
    ),
    "not_registered": (
        "a gradient arrives, but the module does not know it: it is in {operation}, which parameters(), the optimizer, "
        "to() and state_dict() leave out",
        "Hold modules in nn.ModuleList, nn.ModuleDict or attributes, and tensors in nn.Parameter or nn.ParameterList.",
    ),
    "not_in_optimizer": (
        "a gradient arrives, but no optimizer holds it",
        "Make the optimizer after the last parameter was replaced, or give it this one with add_param_group(); what is not "
        "to learn saves time with requires_grad_(False).",
    ),
    "replaced": (
        "the loss was computed with another leaf of its shape, which this optimizer does not hold",
        "Make the optimizer after the parameter was replaced, or write into the parameter: with no_grad(): p.copy_(new).",
    ),
    "zero_rate": (
        "its learning rate is zero, so its steps change nothing",
        "Set lr of the group, or look at the scheduler that set it.",
    ),
    "never_stepped": (
        "step() was not called since the optimizer was made",
        "Call optimizer.step() after backward().",
    ),
    "no_input_requires_grad": (
        "nothing that it was computed from requires grad",
        "Set requires_grad=True on what is to be learned before the computation.",
    ),
    "detach": ("detach() cut it off", "Leave the detach() out where the gradient is to flow."),
    "released": (
        "autograd.graph.release() freed the graph behind it",
        "Call release() after the last backward(), or compute the result anew.",
    ),
    "data": (".data cut it off", "Use the tensor itself in place of its .data."),
    "new_parameter": (
        "nn.Parameter() made a new leaf of it, which has no history",
        "Compute with the tensor itself. A Parameter is made once, of values that nothing is learned behind.",
    ),
    "no_grad": (
        "it was used where recording was off: under no_grad(), or in the forward of a custom Function",
        "Move the computation out of the no_grad() block, or wrap it in enable_grad().",
    ),
    "sample": (
        "sample() draws values that have no history",
        "Use rsample(), through which gradients flow, or the log_prob() of the sample, weighted by what it gained.",
    ),
    "inference_mode": (
        "it was used in inference mode, where nothing is recorded",
        "Move the computation out of inference_mode().",
    ),
    "integer_cast": (
        "it was cast to whole numbers, which have no gradient",
        "Keep a floating-point dtype up to the loss, or use a relaxation of the rounding.",
    ),
    "argmax": (
        "{operation} gives positions, which have no gradient",
        "Use a soft form: softmax, logsumexp, gumbel_softmax, or the loss on the scores themselves.",
    ),
    "comparison": (
        "the comparison {operation} gives truth values, which have no gradient",
        "Use a smooth form of the condition: sigmoid, relu, clamp, or where() on the values themselves.",
    ),
    "non_differentiable": ("{operation} has no derivative", "Use an operation that has one."),
    "item": (
        "its value was taken out as a Python number, which has no history",
        "Compute with the tensor; take .item() only of what is shown.",
    ),
    "numpy": (
        "its values went through NumPy, which records nothing",
        "Use the operation of the same name of this library, or a custom autograd.Function around the NumPy code.",
    ),
    "copy": (
        "torch.tensor() copied its values without their history",
        "Use the tensor itself, clone(), or torch.stack() and torch.cat() to join tensors.",
    ),
    "function_returned_none": (
        "the backward of the custom Function {node} returned None for it",
        "Return the gradient in backward() for every input of which needs_input_grad is True.",
    ),
    "hook_returned_zeros": (
        "the hook {operation} put zeros in the place of its gradient",
        "Let the hook return None to leave the gradient as it is, or the gradient that is meant.",
    ),
    "backward_not_called": (
        "it is part of the loss, and no backward() has run through the loss",
        "Call loss.backward(). After backward(retain_graph=True), read .grad before zero_grad() clears it.",
    ),
    "gradient_gone": (
        "it is part of the loss and backward() ran, but its .grad is None now",
        "Read .grad before zero_grad() or an assignment clears it, and do not leave it out of backward(inputs=...).",
    ),
}


class Explanation:
    """Why a tensor has no gradient.

    `code` is a word to compare with, `sentence` says it, `line` is the user's line that did it (`line.place` is file and
    number), `remedy` what to do. `certain` is False where the tensor that was cut is gone and the line is a guess; `others`
    are further lines that cut the same tensor.
    """

    __slots__ = ("certain", "code", "line", "name", "others", "remedy", "sentence")

    def __init__(self, code: str, line: SourceLine | None = None, *, certain: bool = True, **words: str) -> None:
        sentence, self.remedy = _TEXTS[code]
        self.code = code
        self.sentence = sentence.format(**words)
        self.line = line
        self.certain = certain
        self.name = "the tensor"
        self.others: list[SourceLine] = []

    def __str__(self) -> str:
        doubt = "" if self.certain else " (probably)"
        lines = [f"{self.name}: {self.sentence}{doubt} [{self.code}]"]
        if self.line is not None:
            lines.append(f"  at {self.line.describe_fully()}")
        others = dict.fromkeys(line.describe_fully() for line in self.others)
        if self.line is not None:
            others.pop(self.line.describe_fully(), None)
        return "\n".join([*lines, *[f"  also at {other}" for other in others], f"  {self.remedy}"])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return lines_html(str(self))


class Explanations(dict[str, Explanation]):
    """An explanation for each parameter that will not learn, by name."""

    def __str__(self) -> str:
        return "\n".join(map(str, self.values())) or "every parameter has a gradient"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return "".join(each._repr_html_() for each in self.values()) or lines_html(str(self))


def explain_grad(tensor: Any, loss: Tensor | None = None) -> Explanation | Explanations:
    """Say why `tensor.grad` is None, or why a loss has no grad_fn: a code, a sentence, the line that cut, the remedy.

    With a module: the same for every parameter without a gradient, by name; also for those whose gradient is zero, for what
    the module holds without knowing it (modules in a list), and for what no optimizer holds. With an optimizer: the same for
    what it holds, and whether it ever stepped; with a list or a mapping: for the tensors in it. With `loss` the graph behind
    it is looked at too, and gradients of another loss are told apart. Lines are known where source lines are on
    (`autograd.graph.set_source_lines`).

    >>> import pullback
    >>> w = pullback.ones(2, requires_grad=True)
    >>> loss = (w.detach() * pullback.ones(2, requires_grad=True)).sum()
    >>> loss.backward()
    >>> explain_grad(w, loss).code
    'detach'
    """
    graph = None if loss is None else _Graph(loss)
    if hasattr(tensor, "named_parameters"):
        return _of_module(tensor, graph)
    if hasattr(tensor, "param_groups"):
        return _of_optimizer(tensor, graph)
    if isinstance(tensor, list | tuple | dict):
        return _of_parameters(named_leaves(tensor), graph)
    if not isinstance(tensor, Tensor):
        raise TypeError(
            "explain_grad expects a tensor, or a module, an optimizer, a list or a mapping of tensors, got "
            f"{type(tensor).__name__}"
        )
    return _explain(tensor, graph)


class _Graph:
    """The graph behind a loss, walked once for all tensors that are asked about."""

    def __init__(self, loss: Tensor) -> None:
        self.loss = loss
        self.zeroing: list[Node] = []
        """Nodes that made gradients zero, found for tensors before."""

    @cached_property
    def nodes(self) -> list[Node]:
        return nodes_behind(self.loss)

    @cached_property
    def leaves(self) -> dict[int, Tensor]:
        """By their identities."""
        return {id(node.variable): node.variable for node in self.nodes if hasattr(node, "variable")}

    @cached_property
    def runs_passes(self) -> bool:
        """Whether the backward of a custom Function may run passes of its own, which reach other leaves."""
        return any(isinstance(node, BackwardCFunction) for node in self.nodes)

    @cached_property
    def again(self) -> Tensor | None:
        """The loss with its graph whole: computed again where it was freed, None where it cannot be."""
        if not any(is_released(node) for node in self.nodes):
            return self.loss
        again = replayed(self.nodes).get(self.nodes[0])
        return None if again is None or again.grad_fn is None else again


def _of_module(module: Any, graph: _Graph | None) -> Explanations:
    named = list(module.named_parameters())
    found = _of_parameters(named, graph)
    behind: Collection[int] = () if graph is None else graph.leaves
    held = held_by_optimizers([parameter for _, parameter in named])
    for name, holder, leaf in unregistered(module):
        if (leaf.grad is not None or id(leaf) in behind) and id(leaf) not in (held or ()):
            found[name] = _named(name, Explanation("not_registered", operation=holder))
    for name, parameter in named:
        if held is not None and parameter.grad is not None and id(parameter) not in held and name not in found:
            found[name] = _named(name, Explanation("not_in_optimizer"))
    return found


def _of_optimizer(optimizer: Any, graph: _Graph | None) -> Explanations:
    from pullback.optim.optimizer import have_stepped  # lazy: above this layer

    named = list(of_optimizer(optimizer))
    found = _of_parameters(named, graph)
    held = {id(parameter) for _, parameter in named}
    others = [] if graph is None else [leaf for number, leaf in graph.leaves.items() if number not in held]
    for name, parameter in named:
        if name in found and found[name].code == "never_used" and any(leaf.shape == parameter.shape for leaf in others):
            found[name] = _named(name, Explanation("replaced"))
    for number, group in enumerate(optimizer.param_groups):
        if "lr" in group and not group["lr"]:
            found[f"param_groups[{number}]['lr']"] = _named(f"param_groups[{number}]", Explanation("zero_rate"))
    if optimizer not in have_stepped:
        found["step()"] = _named("the optimizer", Explanation("never_stepped"))
    return found


def _of_parameters(named: list[tuple[str, Tensor]], graph: _Graph | None) -> Explanations:
    found = Explanations()
    for name, parameter in named:
        told = _explain(parameter, graph)
        if told.code != "has_gradient":
            found[name] = _named(name, told)
    return found


def told_cut(tensor: Any) -> str:
    """What an error adds about a tensor without history: the line that cut it off, where one is known."""
    found = _explain(tensor, None) if isinstance(tensor, Tensor) else None
    if found is None or found.line is None or found.code == "frozen" or not found.certain:
        return ""
    return f" Here {found.sentence}, at {found.line.describe_fully()}. {found.remedy}"


def told_unused(tensor: Any) -> str:
    """What an error adds about a tensor that was not reached: the line that cut it off, if there is one alone."""
    found = _of_leaf(tensor, None) if isinstance(tensor, Tensor) and tensor.is_leaf else None
    if found is None or found.line is None or found.others:
        return ""
    return f" Perhaps {found.sentence}, at {found.line.describe_fully()}."


def _named(name: str, explanation: Explanation) -> Explanation:
    explanation.name = name
    return explanation


def _explain(tensor: Tensor, graph: _Graph | None) -> Explanation:
    if graph is not None and tensor is graph.loss:
        graph = None
    if tensor.grad_fn is None or (tensor._extra is not None and tensor._extra.retains_grad):
        if tensor.grad is not None:
            return _of_gradient(tensor, graph)
        if not tensor.requires_grad:
            return _without_history(tensor, tensor.grad_fn is None and graph is None)
        return _of_leaf(tensor, graph)
    return Explanation("not_a_leaf", source_line_of(tensor.grad_fn), node=tensor.grad_fn.name())


def _of_gradient(tensor: Tensor, graph: _Graph | None) -> Explanation:
    """The gradient is there; it may be of another loss, or have been made zero by a node."""
    assert tensor.grad is not None
    if graph is not None and tensor.grad_fn is None and tensor.requires_grad and not _may_reach(graph, tensor):
        found = _of_leaf(tensor, graph)
        found.sentence += "; the gradient that it has is of another loss"
        return found
    if not tensor.grad._array.size or tensor.grad._array.any():
        return Explanation("has_gradient")
    hook = _zeroing_hook(tensor, graph)
    if hook is not None:
        return _of_hook(hook)
    node = None
    if graph is not None:
        node = next((node for node in graph.zeroing if _reaches(node, tensor)), None) or _zeroing_node(graph, tensor)
    if graph is not None and node is not None:
        graph.zeroing.append(node)
        return Explanation("zero_gradient", source_line_of(node), node=f": {node.name()} made it so")
    found = Explanation("zero_gradient", node="")
    found.remedy += " Given the loss after backward(retain_graph=True), the operation is named."
    return found


def _zeroing_hook(tensor: Tensor, graph: _Graph | None) -> Any:
    """The hook on the way from the loss to the tensor that put zeros in the place of a gradient."""
    extras: list[Any] = [tensor._extra]
    if graph is not None:
        extras += [node.extra for node in _nodes_between(graph.nodes, tensor)]
    return next((hook for extra in extras if extra is not None and (hook := zeroing_hook(extra)) is not None), None)


def _of_hook(hook: Any) -> Explanation:
    return Explanation(
        "hook_returned_zeros", source_line_of_hook(hook), operation=getattr(hook, "__name__", repr(hook))
    )


def _zeroing_node(graph: _Graph, leaf: Tensor) -> Node | None:
    """The node on the way to a leaf that made zeros of a gradient, where the graph is there or can be computed again."""
    loss, nodes = graph.again, graph.nodes
    if graph.loss._array.size != 1 or not nodes:
        return None
    if loss is None:
        return next((node for node in _nodes_between(nodes, leaf)[::-1] if _gives_zeros(node)), None)
    between = set(_nodes_between(nodes_behind(loss), leaf))
    arrived: tuple[Any, ...] = ()
    grads = make_grads((loss,), None, is_grads_batched=False)
    with KeptGradients():
        for event in run_in_steps(root_edges((loss,)), grads, keep_graph=True, only_look=True):
            if isinstance(event, Arrival):
                arrived = event.grads
            elif event.node in between and any(_is_something(grad) for grad in arrived):
                sent = [g for e, g in zip(event.edges, event.grads, strict=False) if e is not None and e[0] in between]
                if sent and not any(_is_something(grad) for grad in sent):
                    return event.node
    return None


def _gives_zeros(node: Node) -> bool:
    """Whether a node makes zeros of every gradient, as that of `round` does: one that saves nothing may run again."""
    if (
        hasattr(node, "variable")
        or node.saved_names
        or node.value_names
        or node.output_count != 1
        or node.shape is None
    ):
        return False
    with suppress(Exception):  # what cannot run again is not known
        sent = node.apply([ones(node.shape, node.dtype)], node.next_edges)
        return not any(map(_is_something, sent))
    return False


def _is_something(grad: Any) -> bool:
    return grad is not None and bool(as_array(grad.whole() if isinstance(grad, PartialGradient) else grad).any())


def _without_history(tensor: Tensor, is_result: bool) -> Explanation:
    """The tensor does not require grad: it was frozen, or what made it was not recorded."""
    if isinstance(tensor._counter, InferenceVersion):
        lines = tensor._counter.lines
        return Explanation("inference_mode", lines[0] if lines else None)
    known = cuts()
    for cut in known:
        if cut.result is not None and cut.result() is tensor:
            return _of_cut(cut)
    if is_result and tensor._counter is None:
        for cut in known:
            if cut.kind not in ("frozen", _WITHHELD) and _is_direct(cut) and cut.may_matter():
                found = _of_cut(cut, certain=False)
                found.sentence += ", unless nothing that it was computed from requires grad"
                return found
        frozen = next((cut.line for cut in known if cut.kind == "frozen"), None)
        found = Explanation("no_input_requires_grad", frozen, certain=frozen is None)
        found.sentence += "" if frozen is None else "; the last line that froze a tensor stands below"
        return found
    return Explanation("frozen")


def _of_leaf(leaf: Tensor, graph: _Graph | None) -> Explanation:
    """A leaf requires grad and has none."""
    loss, nodes = (None, []) if graph is None else (graph.loss, graph.nodes)
    if graph is not None and id(leaf) in graph.leaves:
        return _of_part(leaf, nodes)
    left_out = ("frozen",) if loss is not None and loss.grad_fn is None else ("frozen", "gradient")
    found = [cut for cut in cuts() if cut.kind not in left_out and cut.concerns(leaf) and _is_direct(cut)]
    if found:
        memory = {
            id(memory_of(array)) for node in nodes for _, value in saved_values(node) for array in held_arrays(value)
        }
        order = (*_KINDS, _WITHHELD) if loss is not None else (_WITHHELD, *_KINDS)  # of another loss, perhaps
        found.sort(
            key=lambda cut: (not _feeds(cut, memory), order.index(cut.kind) if cut.kind in order else len(order))
        )
        return _of_cut(found[0], found[1:])
    if loss is None:
        return Explanation("not_known")
    if loss.grad_fn is None:
        return Explanation("loss_is_a_leaf") if loss.requires_grad else _without_history(loss, is_result=True)
    return Explanation("never_used")


def _may_reach(graph: _Graph, leaf: Tensor) -> bool:
    """Whether a pass from the loss may give the leaf a gradient."""
    return graph.runs_passes or id(leaf) in graph.leaves


def _of_part(leaf: Tensor, nodes: list[Node]) -> Explanation:
    """A leaf that the graph of the loss leads to."""
    withheld = [node for node in nodes if isinstance(node, BackwardCFunction) and node.withheld]
    if withheld and not _reaches(nodes[0], leaf):
        node = withheld[-1]
        return Explanation("function_returned_none", source_line_of(node), node=node.name())
    between = _nodes_between(nodes, leaf)
    by = [one for node in between if (one := getattr(node, "freed_by", None)) is not None]
    is_whole = any(next(saved_values(node), None) is not None for node in between if not is_released(node))
    if is_whole or not (by or any(is_released(node) for node in between)):
        return Explanation("backward_not_called")  # another loss may have freed what it shares with this one
    return Explanation("gradient_gone", by[0].line if by else None)


def _reaches(root: Node, leaf: Tensor) -> bool:
    """Whether gradients get from `root` to the leaf: not through edges for which a Function returned None."""
    stack, seen = [root], {root}
    while stack:
        node = stack.pop()
        if getattr(node, "variable", None) is leaf:
            return True
        withheld: Iterable[int] = node.withheld if isinstance(node, BackwardCFunction) else ()
        new = [e[0] for i, e in enumerate(node.next_edges) if e is not None and i not in withheld and e[0] not in seen]
        seen.update(new)
        stack.extend(new)
    return False


def _nodes_between(nodes: list[Node], leaf: Tensor) -> list[Node]:
    """Those of the nodes from which gradients get to the leaf, nearest to the leaf first."""
    reaching: set[Node] = set()
    for node in sorted(nodes, key=lambda node: (not hasattr(node, "variable"), node.sequence_nr)):
        if getattr(node, "variable", None) is leaf or any(e is not None and e[0] in reaching for e in node.next_edges):
            reaching.add(node)
    return sorted(reaching, key=lambda node: node.sequence_nr)


def _feeds(cut: Cut, memory: set[int]) -> bool:
    """Whether the loss has kept what was cut off."""
    result = None if cut.result is None else cut.result()
    return isinstance(result, Tensor) and id(memory_of(result._array)) in memory


def _of_cut(cut: Cut, others: Iterable[Cut] = (), *, certain: bool = True) -> Explanation:
    code = _code_of(cut)
    node = getattr(None if cut.result is None else cut.result(), "__name__", "that is called there")
    made = Explanation(code, cut.line, certain=certain, operation=cut.kind, node=node)
    made.others = [other.line for other in others if other.line is not None and other.line is not cut.line]
    return made


def _code_of(cut: Cut) -> str:
    if fact_of(cut.kind, "gives") in ("comparison", "truth"):
        return "comparison"
    if fact_of(cut.kind, "gives") == "positions":
        return "argmax"
    if cut.kind == "to_integer":
        return "integer_cast"
    if cut.kind == "no_grad" and cut.line is not None and "sample" in names_at(cut.line):
        return "sample"
    if cut.kind == "detach" and cut.line is not None and "release" in names_at(cut.line):
        return "released"
    line = cut.line if cut.kind in ("detach", "data") else None
    if line is not None and (_TO_NUMPY & names_in_statement(line) or goes_to_numpy(line)):
        return "numpy"
    return cut.kind if cut.kind in _TEXTS else "non_differentiable"


def _is_direct(cut: Cut) -> bool:
    """Whether the user's own line does it; `state_dict()` detaches too, and cuts nothing."""
    words = _WORDS.get(cut.kind)
    return words is None or cut.line is None or bool(words & names_at(cut.line))
