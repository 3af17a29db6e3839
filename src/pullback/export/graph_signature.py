"""What the inputs and outputs of an exported graph stand for."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

__all__ = [
    "ConstantArgument", "ExportGraphSignature", "InputKind", "InputSpec", "OutputKind", "OutputSpec", "TensorArgument",
]  # fmt: skip


class InputKind(Enum):
    """What an input of the graph is."""

    USER_INPUT = auto()
    PARAMETER = auto()
    BUFFER = auto()
    CONSTANT_TENSOR = auto()


class OutputKind(Enum):
    """What an output of the graph is."""

    USER_OUTPUT = auto()


@dataclass(frozen=True)
class TensorArgument:
    """A tensor, by the name of its node."""

    name: str


@dataclass(frozen=True)
class ConstantArgument:
    """A plain value."""

    name: str
    value: Any = None


@dataclass(frozen=True)
class InputSpec:
    """One input: its kind, its node, and which parameter, buffer or constant of the module it is."""

    kind: InputKind
    arg: TensorArgument | ConstantArgument
    target: str | None = None
    persistent: bool | None = None

    def __str__(self) -> str:
        target = "" if self.target is None else f" target={self.target!r}"
        persistent = "" if self.persistent is None else f" persistent={self.persistent}"
        return f"{self.arg.name}: {self.kind.name}{target}{persistent}"


@dataclass(frozen=True)
class OutputSpec:
    """One output: its kind and its node."""

    kind: OutputKind
    arg: TensorArgument | ConstantArgument
    target: str | None = None

    def __str__(self) -> str:
        return f"{self.arg.name}: {self.kind.name}"


@dataclass
class ExportGraphSignature:
    """The inputs and the outputs of an exported graph, in order."""

    input_specs: list[InputSpec] = field(default_factory=list)
    output_specs: list[OutputSpec] = field(default_factory=list)

    def _targets(self, kind: InputKind) -> dict[str, str]:
        return {s.arg.name: s.target for s in self.input_specs if s.kind is kind and s.target is not None}

    @property
    def inputs_to_parameters(self) -> dict[str, str]:
        """Parameters by the names of inputs."""
        return self._targets(InputKind.PARAMETER)

    @property
    def inputs_to_buffers(self) -> dict[str, str]:
        """Buffers by the names of inputs."""
        return self._targets(InputKind.BUFFER)

    @property
    def inputs_to_lifted_tensor_constants(self) -> dict[str, str]:
        """Constants by the names of inputs."""
        return self._targets(InputKind.CONSTANT_TENSOR)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters."""
        return tuple(self.inputs_to_parameters.values())

    @property
    def buffers(self) -> tuple[str, ...]:
        """The names of the buffers."""
        return tuple(self.inputs_to_buffers.values())

    @property
    def non_persistent_buffers(self) -> tuple[str, ...]:
        """The names of the buffers that a state_dict leaves out."""
        return tuple([str(s.target) for s in self.input_specs if s.persistent is False])

    @property
    def lifted_tensor_constants(self) -> tuple[str, ...]:
        """The names of the constants."""
        return tuple(self.inputs_to_lifted_tensor_constants.values())

    @property
    def user_inputs(self) -> tuple[Any, ...]:
        """The arguments: names of tensors, other values as they are."""
        return tuple([_shown(s.arg) for s in self.input_specs if s.kind is InputKind.USER_INPUT])

    @property
    def user_outputs(self) -> tuple[Any, ...]:
        """The results: names of tensors, other values as they are."""
        return tuple([_shown(s.arg) for s in self.output_specs])

    @property
    def buffers_to_mutate(self) -> dict[str, str]:
        """Always empty: graphs write to buffers in place, and do not return new ones."""
        return {}

    @property
    def user_inputs_to_mutate(self) -> dict[str, str]:
        """Always empty: graphs write to arguments in place."""
        return {}

    def __str__(self) -> str:
        inputs, outputs = ("".join(f"{spec}\n" for spec in specs) for specs in (self.input_specs, self.output_specs))
        return f"\n# inputs\n{inputs}\n# outputs\n{outputs}"


def _shown(argument: TensorArgument | ConstantArgument) -> Any:
    return argument.name if isinstance(argument, TensorArgument) else argument.value
