"""Ways of dividing a layer among ranks.

# Note [Divided layers]
A style lays a layer's parameters on the mesh as DTensors. The layer itself computes with what this rank holds of them, and
of its input, as plain tensors; the style places inputs and outputs around it. Where ranks with the same input compute
different parts of the output, each has a summand of the input's gradient, and the other way round for parameters that
every rank has: `to_local(grad_placements=[Partial()])` adds them up in backward.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from pullback import functions
from pullback.distributed.device_mesh import DeviceMesh
from pullback.distributed.tensor.dtensor import DTensor, lay_again, lay_local, lay_tensor, normalized
from pullback.distributed.tensor.factories import replicate
from pullback.distributed.tensor.operations import answer_operations
from pullback.distributed.tensor.placement_types import Partial, Placement, Replicate, Shard
from pullback.distributed.tensor.redistribution import Redistribute, rows_of
from pullback.nn.functional import embedding
from pullback.nn.modules.linear import Linear
from pullback.nn.modules.sparse import Embedding
from pullback.nn.parameter import Parameter

__all__ = ["ColwiseParallel", "ParallelStyle", "RowwiseParallel", "SequenceParallel", "place"]


def place(value: Any, mesh: DeviceMesh, layout: Placement, desired: Placement) -> DTensor:
    """A tensor that lies as `layout` says, or a DTensor, laid as desired."""
    placed = value if isinstance(value, DTensor) else lay_local(value, mesh, normalized([layout], mesh, value.ndim))
    how = normalized([desired], mesh, value.ndim)
    return placed if placed.placements == how else lay_again(placed, how)


def hand_over(placed: DTensor, as_local: bool) -> Any:
    """The part, or the DTensor, with which the program may compute."""
    if as_local:
        return placed.to_local()
    answer_operations()
    return placed


def with_parts(module: Any, forward: Callable[..., Any], input: Any, grads: Sequence[Placement] | None = None) -> Any:
    """Run a layer with what this rank has of its parameters."""
    parameters = module._parameters
    laid = {name: value for name, value in parameters.items() if isinstance(value, DTensor)}
    parameters.update({name: value.to_local(grad_placements=grads) for name, value in laid.items()})
    try:
        return forward(input)
    finally:
        parameters.update(laid)


class ParallelStyle(ABC):
    """A way of dividing a module among the ranks of a mesh."""

    src_data_rank: int | None = 0

    @abstractmethod
    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any: ...

    def _lay(self, module: Any, mesh: DeviceMesh, placements: dict[str, Placement]) -> None:
        """Let the parameters of a layer lie on the mesh."""
        for name, placement in placements.items():
            parameter = module._parameters.get(name)
            if parameter is not None:
                laid = lay_tensor(parameter.detach(), mesh, [placement], self.src_data_rank)
                module.register_parameter(name, Parameter(laid, parameter.requires_grad))
        replicate(module, mesh)


def wrap_forward(module: Any, run: Callable[..., Any]) -> None:
    """Let `run(forward, *inputs)` take the place of `forward(*inputs)`."""
    module.forward = _Wrapped(run, module.forward)


class _Wrapped:
    """An object, not a function inside of one, so that the module can be copied and saved."""

    def __init__(self, run: Callable[..., Any], forward: Callable[..., Any]) -> None:
        self._run, self._forward = run, forward

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        return self._run(self._forward, *inputs, **kwargs)


class _LayerStyle(ParallelStyle):
    """Divides a layer with one input and one output."""

    _name: str

    def __init__(
        self, input_layouts: Placement | None, output_layouts: Placement | None, use_local_output: bool,
        default_input: Placement, default_output: Placement,
    ) -> None:  # fmt: skip
        self.input_layouts = (input_layouts or default_input,)
        self.output_layouts = (output_layouts or default_output,)
        self.use_local_output = use_local_output

    def _leave(self, output: Any, mesh: DeviceMesh, lies: Placement) -> Any:
        return hand_over(place(output, mesh, lies, self.output_layouts[0]), self.use_local_output)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(input_layouts={self.input_layouts}, output_layouts={self.output_layouts}, "
            f"use_local_output={self.use_local_output})"
        )


class ColwiseParallel(_LayerStyle):
    """Every rank computes some of the outputs of a Linear layer, or some columns of an Embedding.

    >>> ColwiseParallel().output_layouts
    (Shard(dim=-1),)
    """

    def __init__(
        self, *, input_layouts: Placement | None = None, output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(input_layouts, output_layouts, use_local_output, Replicate(), Shard(-1))

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        if isinstance(module, Linear):
            self._lay(module, device_mesh, {"weight": Shard(0), "bias": Shard(0)})
            columns = module.out_features
        elif isinstance(module, Embedding):
            self._lay(module, device_mesh, {"weight": Shard(1)})
            columns = module.embedding_dim
        else:
            raise NotImplementedError("ColwiseParallel currently only support nn.Linear and nn.Embedding!")
        wrap_forward(module, _Columns(self, device_mesh, module, columns))
        return module


class _Columns:
    def __init__(self, style: ColwiseParallel, mesh: DeviceMesh, module: Any, columns: int) -> None:
        self._style, self._mesh, self._module, self._columns = style, mesh, module, columns

    def __call__(self, forward: Callable[..., Any], input: Any) -> Any:
        style, mesh = self._style, self._mesh
        whole = place(input, mesh, style.input_layouts[0], Replicate())
        output = with_parts(self._module, forward, whole.to_local(grad_placements=[Partial()]))
        size = (*output.shape[:-1], self._columns)
        lies = lay_local(output, mesh, normalized([Shard(-1)], mesh, output.ndim), size)
        return style._leave(lies, mesh, Shard(-1))


class RowwiseParallel(_LayerStyle):
    """Every rank sees some of the inputs of a Linear layer, or has some rows of an Embedding; results are added up.

    >>> RowwiseParallel().input_layouts
    (Shard(dim=-1),)
    """

    def __init__(
        self, *, input_layouts: Placement | None = None, output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(input_layouts, output_layouts, use_local_output, Shard(-1), Replicate())

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        if isinstance(module, Linear):
            self._lay(module, device_mesh, {"weight": Shard(1), "bias": Replicate()})
            wrap_forward(module, _RowsOfLinear(self, device_mesh, module))
        elif isinstance(module, Embedding):
            if module.max_norm is not None or module.sparse or module.scale_grad_by_freq:
                raise NotImplementedError("RowwiseParallel: an Embedding with max_norm, sparse or scale_grad_by_freq")
            self._lay(module, device_mesh, {"weight": Shard(0)})
            wrap_forward(module, _RowsOfEmbedding(self, device_mesh, module))
        else:
            raise NotImplementedError("RowwiseParallel currently only support nn.Linear and nn.Embedding!")
        return module


class _RowsOfLinear:
    def __init__(self, style: RowwiseParallel, mesh: DeviceMesh, module: Any) -> None:
        self._style, self._mesh, self._module = style, mesh, module

    def __call__(self, forward: Callable[..., Any], input: Any) -> Any:
        style, mesh, module = self._style, self._mesh, self._module
        placed = place(input, mesh, style.input_layouts[0], Shard(input.ndim - 1))
        summand = functions.matmul(placed.to_local(), module.weight.to_local().t())
        if module.bias is not None:  # of which every rank adds its share
            summand = summand + Redistribute.apply(
                module.bias, tuple(module.bias.shape), mesh, module.bias.placements, (Partial(),)
            )
        return style._leave(summand, mesh, Partial())


class _RowsOfEmbedding:
    def __init__(self, style: RowwiseParallel, mesh: DeviceMesh, module: Any) -> None:
        self._style, self._mesh, self._module = style, mesh, module

    def __call__(self, forward: Callable[..., Any], input: Any) -> Any:
        style, mesh, module = self._style, self._mesh, self._module
        indices = place(input, mesh, style.input_layouts[0], Replicate()).to_local()
        start, rows = rows_of(module.num_embeddings, mesh.size(), mesh.get_local_rank())
        own = indices - start
        elsewhere = (own < 0) | (own >= rows)
        pad = module.padding_idx
        own_pad = None if pad is None or not 0 <= pad - start < rows else pad - start
        found = embedding(own.masked_fill(elsewhere, 0), module.weight.to_local(), own_pad)
        return style._leave(found.masked_fill(elsewhere.unsqueeze(-1), 0.0), mesh, Partial())


class SequenceParallel(ParallelStyle):
    """Every rank has some positions of a sequence, and all of the parameters: LayerNorm, RMSNorm, Dropout.

    >>> SequenceParallel().sequence_sharding
    (Shard(dim=1),)
    """

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        self.sequence_sharding = (Shard(sequence_dim),)
        self.use_local_output = use_local_output

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        replicate(module, device_mesh)
        wrap_forward(module, _Positions(self, device_mesh, module))
        return module

    def __repr__(self) -> str:
        return (
            f"SequenceParallel(sequence_dim={self.sequence_sharding[0].dim}, use_local_output={self.use_local_output})"
        )


class _Positions:
    def __init__(self, style: SequenceParallel, mesh: DeviceMesh, module: Any) -> None:
        self._style, self._mesh, self._module = style, mesh, module

    def __call__(self, forward: Callable[..., Any], input: Any) -> Any:
        style, mesh = self._style, self._mesh
        placed = place(input, mesh, style.sequence_sharding[0], style.sequence_sharding[0])
        output = with_parts(self._module, forward, placed.to_local(), [Partial()])
        if style.use_local_output:
            return output
        return hand_over(lay_local(output, mesh, placed.placements, placed.shape), as_local=False)
