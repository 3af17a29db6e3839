"""DataParallel: a batch spread over several GPUs, by copies of the module in threads."""

from __future__ import annotations

from itertools import chain
from typing import Any

import pullback
from pullback.backend.device import usable_device
from pullback.nn.modules.module import Module
from pullback.nn.parallel.parallel_apply import parallel_apply
from pullback.nn.parallel.replicate import replicate
from pullback.nn.parallel.scatter_gather import gather, scatter_kwargs

__all__ = ["DataParallel", "data_parallel"]


def _chosen(device_ids: Any, output_device: Any) -> tuple[list[Any], Any]:
    """The GPUs to use, all of them unless some are named, and that of the result; none where there is no GPU."""
    if not pullback.cuda.is_available():
        return [], None
    named = range(pullback.cuda.device_count()) if device_ids is None else device_ids
    places = [usable_device(device) for device in named]
    if not places:
        return [], None
    return places, places[0] if output_device is None else usable_device(output_device)


def _check_place(module: Any, place: Any) -> None:
    for tensor in chain(module.parameters(), module.buffers()):
        if tensor.device != place:
            raise RuntimeError(
                f"module must have its parameters and buffers on device {place} (device_ids[0]) but found one of them on "
                f"device: {tensor.device}"
            )


class DataParallel(Module):
    """Splits a batch along `dim`, runs a copy of the module on each GPU, and joins the results on the first.

    Gradients are added up in the module, which must lie on the first of `device_ids`. Without a GPU it calls the module.
    """

    def __init__(self, module: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0) -> None:
        super().__init__()
        places, self._output_place = _chosen(device_ids, output_device)
        self._places = places
        self.module = module
        self.dim = dim
        self.device_ids = [place.index for place in places]
        self.output_device = None if self._output_place is None else self._output_place.index
        if len(places) == 1:
            self.module.to(places[0])

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        if not self._places:
            return self.module(*inputs, **kwargs)
        _check_place(self.module, self._places[0])
        rows, named = self.scatter(inputs, kwargs, self._places)
        if not rows:  # a module without arguments
            rows, named = ((),), ({},)
        if len(self._places) == 1:
            return self.module(*rows[0], **named[0])
        used = self._places[: len(rows)]
        results = self.parallel_apply(self.replicate(self.module, used), rows, named, used)
        return self.gather(results, self._output_place)

    # A program may put something of its own in the place of these.

    def replicate(self, module: Any, device_ids: Any) -> list[Any]:
        """Copies of a module, one for each GPU."""
        return replicate(module, device_ids, not pullback.is_grad_enabled())

    def scatter(self, inputs: Any, kwargs: Any, device_ids: Any) -> Any:
        """The arguments of each GPU."""
        return scatter_kwargs(inputs, kwargs, device_ids, self.dim)

    def parallel_apply(self, replicas: Any, inputs: Any, kwargs: Any, device_ids: Any) -> list[Any]:
        """The results of each GPU."""
        return parallel_apply(replicas, inputs, kwargs, device_ids)

    def gather(self, outputs: Any, output_device: Any) -> Any:
        """The results as one."""
        return gather(outputs, output_device, self.dim)


def data_parallel(
    module: Any, inputs: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0, module_kwargs: Any = None
) -> Any:
    """Run a module once as `DataParallel` does.

    >>> import pullback
    >>> data_parallel(pullback.nn.ReLU(), pullback.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    arguments = inputs if isinstance(inputs, tuple) else () if inputs is None else (inputs,)
    parallel = DataParallel(module, device_ids, output_device, dim)
    return parallel(*arguments, **(module_kwargs or {}))
