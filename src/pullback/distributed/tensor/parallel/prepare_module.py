"""Placing the inputs and outputs of any module, as its divided parts want them."""

from __future__ import annotations

from typing import Any

from pullback.distributed.device_mesh import DeviceMesh
from pullback.distributed.tensor.parallel.style import ParallelStyle, hand_over, place
from pullback.distributed.tensor.placement_types import Placement
from pullback.tensor.tensor import Tensor

__all__ = ["PrepareModuleInput", "PrepareModuleInputOutput", "PrepareModuleOutput"]

Layouts = Placement | tuple[Placement | None, ...] | None


def _several(layouts: Any) -> Any:
    return (layouts,) if isinstance(layouts, Placement) else layouts


def _laid(value: Any, mesh: DeviceMesh, layout: Placement | None, desired: Placement | None, as_local: bool) -> Any:
    if layout is None or not isinstance(value, Tensor):
        return value
    return hand_over(place(value, mesh, layout, layout if desired is None else desired), as_local)


class PrepareModuleInput(ParallelStyle):
    """Lays the inputs of a module.

    >>> from pullback.distributed.tensor import Replicate, Shard
    >>> PrepareModuleInput(input_layouts=Shard(1), desired_input_layouts=Replicate()).input_layouts
    (Shard(dim=1),)
    """

    def __init__(
        self, *, input_layouts: Layouts = None, desired_input_layouts: Layouts = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None, use_local_output: bool = False,
    ) -> None:  # fmt: skip
        self.input_layouts = _several(input_layouts)
        self.desired_input_layouts = _several(desired_input_layouts)
        self.input_kwarg_layouts = input_kwarg_layouts or {}
        self.desired_input_kwarg_layouts = desired_input_kwarg_layouts or {}
        self.use_local_output = use_local_output
        if self.input_layouts is not None:
            assert self.desired_input_layouts is not None, "desired module inputs should not be None!"
            assert len(self.input_layouts) == len(self.desired_input_layouts), (
                "input_layouts and desired_input_layouts should have same length!"
            )

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        module.register_forward_pre_hook(_Inputs(self, device_mesh), with_kwargs=True)
        return module

    def __repr__(self) -> str:
        return (
            f"PrepareModuleInput(input_layouts={self.input_layouts}, desired_input_layouts={self.desired_input_layouts}, "
            f"input_kwarg_layouts={self.input_kwarg_layouts}, "
            f"desired_input_kwarg_layouts={self.desired_input_kwarg_layouts}, use_local_output={self.use_local_output})"
        )


class _Inputs:
    def __init__(self, style: PrepareModuleInput, mesh: DeviceMesh) -> None:
        self._style, self._mesh = style, mesh

    def __call__(self, module: Any, args: Any, kwargs: Any) -> Any:
        style, mesh = self._style, self._mesh
        if style.input_layouts is not None:
            if len(args) != len(style.input_layouts):
                raise ValueError("module inputs and input_layouts should have same length!")
            wanted = zip(args, style.input_layouts, style.desired_input_layouts, strict=True)
            args = tuple([_laid(value, mesh, old, new, style.use_local_output) for value, old, new in wanted])
        layouts, desired = style.input_kwarg_layouts, style.desired_input_kwarg_layouts
        laid = {
            name: _laid(value, mesh, layouts.get(name), desired.get(name), style.use_local_output)
            for name, value in kwargs.items()
        }
        return args, laid


class PrepareModuleOutput(ParallelStyle):
    """Lays the outputs of a module."""

    def __init__(
        self, *, output_layouts: Layouts, desired_output_layouts: Layouts, use_local_output: bool = True
    ) -> None:
        self.output_layouts = _several(output_layouts)
        self.desired_output_layouts = _several(desired_output_layouts)
        self.use_local_output = use_local_output
        assert len(self.output_layouts) == len(self.desired_output_layouts), (
            "output_layouts and desired_output_layouts should have same length!"
        )

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        module.register_forward_hook(_Outputs(self, device_mesh))
        return module

    def __repr__(self) -> str:
        return (
            f"PrepareModuleOutput(output_layouts={self.output_layouts}, "
            f"desired_output_layouts={self.desired_output_layouts}, use_local_output={self.use_local_output})"
        )


class _Outputs:
    def __init__(self, style: PrepareModuleOutput, mesh: DeviceMesh) -> None:
        self._style, self._mesh = style, mesh

    def __call__(self, module: Any, inputs: Any, outputs: Any) -> Any:
        style = self._style
        given = outputs if isinstance(outputs, tuple) else (outputs,)
        if len(given) != len(style.output_layouts):
            raise ValueError("module outputs and output_layouts should have same length!")
        wanted = zip(given, style.output_layouts, style.desired_output_layouts, strict=True)
        laid = [_laid(value, self._mesh, old, new, style.use_local_output) for value, old, new in wanted]
        return laid[0] if len(laid) == 1 else tuple(laid)


class PrepareModuleInputOutput(ParallelStyle):
    """Lays the inputs and the outputs of a module."""

    def __init__(
        self, *, input_layouts: Layouts = None, desired_input_layouts: Layouts = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None, use_local_input: bool = False,
        output_layouts: Layouts, desired_output_layouts: Layouts, use_local_output: bool = True,
    ) -> None:  # fmt: skip
        self.prepare_module_input = PrepareModuleInput(
            input_layouts=input_layouts, desired_input_layouts=desired_input_layouts,
            input_kwarg_layouts=input_kwarg_layouts, desired_input_kwarg_layouts=desired_input_kwarg_layouts,
            use_local_output=use_local_input,
        )  # fmt: skip
        self.prepare_module_output = PrepareModuleOutput(
            output_layouts=output_layouts,
            desired_output_layouts=desired_output_layouts,
            use_local_output=use_local_output,
        )

    def _apply(self, module: Any, device_mesh: DeviceMesh) -> Any:
        self.prepare_module_input._apply(module, device_mesh)
        return self.prepare_module_output._apply(module, device_mesh)
