"""What the generator knows of an operation: typed, and independent of how it was read or will be written."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import Path


class Refusal(Exception):
    """A rule or kernel that the generator cannot take, with the place and the remedy."""

    def __init__(self, path: Path, line: int, message: str) -> None:
        super().__init__(f"{path}:{line}: {message}")


TENSOR, OPTIONAL_TENSOR, TENSOR_OR_NUMBER, TENSOR_LIST = "tensor", "optional tensor", "tensor or number", "tensor list"
DIM, DIMS, PLAIN = "dim", "dims", "plain"


@dataclass(frozen=True)
class Parameter:
    """One parameter of a kernel."""

    name: str
    role: str
    annotation: str
    default: str | None = None
    keyword_only: bool = False

    @property
    def is_tensor(self) -> bool:
        return self.role in (TENSOR, OPTIONAL_TENSOR, TENSOR_OR_NUMBER, TENSOR_LIST)


@dataclass(frozen=True)
class Kernel:
    """A kernel function: its signature is the operation's schema."""

    name: str
    module: str
    parameters: tuple[Parameter, ...]
    doc: str
    path: Path
    line: int
    has_check: bool = False
    """Whether a function of checks/ looks at the arguments first, called by the operation. See Note [Checks]."""
    explains_failure: bool = False
    """Whether a function of checks/ words the error where the kernel failed."""

    def parameter(self, name: str) -> Parameter | None:
        return next((p for p in self.parameters if p.name == name), None)

    @property
    def tensors(self) -> tuple[Parameter, ...]:
        return tuple(p for p in self.parameters if p.is_tensor)


@dataclass
class Line:
    """The gradient of one input: its expression, or why there is none."""

    parameter: str
    expression: ast.expr
    not_implemented: str | None = None


@dataclass
class Rule:
    """One rule of derivatives/: kind, options, lines."""

    name: str
    kind: str
    module: str
    path: Path
    line: int
    parameters: tuple[str, ...]
    outputs: tuple[str, ...]
    grads: tuple[str, ...]
    assignments: list[tuple[str, ast.expr]] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    options: dict[str, object] = field(default_factory=dict)
    tangent: TangentRule | None = None

    @property
    def view(self) -> bool:
        return bool(self.options.get("view"))

    @property
    def in_place(self) -> bool:
        return bool(self.options.get("in_place"))

    @property
    def promote(self) -> str:
        """How operands are promoted: "common", "float" (integers become the default float), "none", and for products and
        quotients, where a number stays as it is beside 16 bits, "product" and "quotient"."""
        given = self.options.get("promote")
        return str(given) if given else ("common" if self.kind == "elementwise" else "none")

    @property
    def node_name(self) -> str:
        given = self.options.get("node")
        return (
            str(given) if given else "".join(part[:1].upper() + part[1:] for part in self.name.split("_")) + "Backward0"
        )

    @property
    def class_name(self) -> str:
        """The identifier of the node class: its own where another operation shows the same node name."""
        if "node" not in self.options:
            return self.node_name
        return "".join(part[:1].upper() + part[1:] for part in self.name.split("_")) + "Node"

    @property
    def unimplemented(self) -> str | None:
        """PyTorch's name of an operation that has no derivative there (`aten::...`), None for all others."""
        reasons = {line.not_implemented for line in self.lines}
        reason = reasons.pop() if len(reasons) == 1 else None
        return reason if reason is not None and reason.startswith("aten::") else None

    @property
    def output_names(self) -> tuple[str, ...]:
        """The names of the results; a single one is `result`."""
        given = self.options.get("outputs")
        return tuple(str(n) for n in given) if isinstance(given, tuple) else ("result",)

    @property
    def differentiable_outputs(self) -> tuple[bool, ...]:
        given = self.options.get("differentiable")
        if isinstance(given, tuple):
            return tuple(bool(d) for d in given)
        return (True,) * len(self.output_names)


@dataclass
class TangentRule:
    """An explicit forward-mode rule: an expression over inputs, their tangents and the outputs."""

    path: Path
    line: int
    parameters: tuple[str, ...]
    tangents: tuple[str, ...]
    outputs: tuple[str, ...]
    assignments: list[tuple[str, ast.expr]]
    expression: ast.expr


@dataclass(frozen=True, eq=False)
class Operation:
    """A kernel with its rule."""

    kernel: Kernel
    rule: Rule

    @property
    def name(self) -> str:
        return self.rule.name

    @property
    def differentiable(self) -> bool:
        return self.rule.kind != "non_differentiable"

    @property
    def structure(self) -> str:
        """Which elements of its tensors a result element depends on: a fact of its own, beside how it is differentiated.

        Where the rule does not say it, the kind and the parameters do.
        """
        given = self.rule.options.get("structure")
        if given:
            return str(given)
        if self.rule.kind == "elementwise":
            return "elementwise"
        if len(self.kernel.tensors) == 1 and any(p.role in (DIM, DIMS) for p in self.kernel.parameters):
            return "view" if self.rule.view or self.rule.options.get("multi_view") else "along"
        return "general"

    @property
    def inputs(self) -> tuple[Parameter, ...]:
        """The tensor parameters that have a line, in the order of the node's edges."""
        by_name = {p.name: p for p in self.kernel.tensors}
        return tuple(by_name[line.parameter] for line in self.rule.lines)

    @property
    def takes_out(self) -> bool:
        return bool(
            not self.rule.view and not self.rule.options.get("multi_view") and self.rule.options.get("out", True)
        )

    @property
    def public(self) -> str:
        """The function's name in messages: that of the overloaded function, where the operation is one of its forms."""
        return str(self.rule.options.get("public", self.name))

    @property
    def only_tensors(self) -> bool:
        """Whether it takes nothing that could be of a wrong type but tensors and switches."""
        return all(p.is_tensor or p.annotation == "bool" for p in self.kernel.parameters)

    @property
    def broadcasts(self) -> bool:
        """Whether the shapes of its tensors are broadcast: logical operations take any two dtypes as they are."""
        return (
            len(self.kernel.tensors) > 1
            and len(self.rule.output_names) == 1
            and not self.rule.options.get("multi_view")
            and (self.rule.promote != "none" or self.name.startswith("logical_"))
        )
