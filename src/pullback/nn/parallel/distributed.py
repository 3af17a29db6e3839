"""DistributedDataParallel: the same module on every rank, with gradients averaged while backward runs.

The averaging itself is in `pullback.distributed.reducer`; this class keeps modules alike and says when to average.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, get_origin

from pullback.modes.grad_mode import is_grad_enabled
from pullback.modes.user_warnings import warn_user
from pullback.nn.modules.module import Module
from pullback.nn.modules.sparse import Embedding, EmbeddingBag
from pullback.nn.parameter import UninitializedParameter
from pullback.pytorch.futures import Future

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """Trains a module on the ranks of a process group, each with its own part of the data.

    Parameters and buffers begin as those of rank 0. `find_unused_parameters` is for modules that leave parameters out in
    some passes, `static_graph` for those that always do the same. `gradient_as_bucket_view` saves the memory of one copy
    of all gradients.

    >>> import pullback
    >>> import pullback.distributed as dist
    >>> dist.init_process_group("gloo", rank=0, world_size=1)
    >>> module = DistributedDataParallel(pullback.nn.Linear(2, 1, bias=False))
    >>> module(pullback.ones(1, 2)).sum().backward()
    >>> module.module.weight.grad
    tensor([[1., 1.]])
    >>> list(module.state_dict())
    ['module.weight']
    >>> dist.destroy_process_group()
    """

    def __init__(
        self, module: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0,
        broadcast_buffers: bool | None = None, init_sync: bool = True, process_group: Any = None,
        bucket_cap_mb: float | None = None, find_unused_parameters: bool = False, check_reduction: bool = False,
        gradient_as_bucket_view: bool = False, static_graph: bool = False, delay_all_reduce_named_params: Any = None,
        param_to_hook_all_reduce: Any = None, mixed_precision: Any = None, device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False, bucket_cap_mb_list: Any = None, batched_grad_copy: bool = False,
        forward_sync_buffers: bool | None = None,
    ) -> None:  # fmt: skip
        from pullback.distributed.algorithms.join import JoinConfig  # lazy: processes are above this layer
        from pullback.distributed.process_group import group_of  # lazy: the same

        super().__init__()
        if mixed_precision is not None:
            raise NotImplementedError(
                "DistributedDataParallel(mixed_precision=...) is not supported: run forward under torch.autocast, or use "
                "fully_shard with a MixedPrecisionPolicy"
            )
        if device_mesh is not None and process_group is not None:
            raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
        if device_mesh is not None:
            process_group = device_mesh.get_group()
        self.process_group = group_of(process_group)
        if any(isinstance(parameter, UninitializedParameter) for parameter in module.parameters()):
            raise RuntimeError(
                "Modules with uninitialized parameters can't be used with `DistributedDataParallel`. Run a dummy forward "
                "pass to correctly initialize the modules"
            )
        places = {parameter.device for parameter in module.parameters()}
        if device_ids and len(device_ids) > 1:
            raise ValueError(
                f"device_ids can only be None or contain a single element. {device_ids} has {len(device_ids)}: each process "
                "trains on one device."
            )
        if device_ids and (len(places) > 1 or any(place.type == "cpu" for place in places)):
            raise ValueError(
                "DistributedDataParallel device_ids and output_device arguments only work with modules on one GPU, but got "
                f"device_ids {device_ids} and parameters on {', '.join(map(str, places))}. Leave device_ids out."
            )
        self._join_config = JoinConfig.disabled()
        self.module = module
        self.dim = dim
        self.device = next(iter(module.parameters())).device if any(True for _ in module.parameters()) else None
        self.device_type = None if self.device is None else self.device.type
        self.is_multi_device_module = len(places) > 1
        self.device_ids = list(device_ids) if device_ids else None
        self.output_device = output_device if output_device is not None or not device_ids else device_ids[0]
        self.find_unused_parameters = find_unused_parameters
        self.broadcast_buffers = True if broadcast_buffers is None else broadcast_buffers
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = static_graph
        self.mixed_precision = mixed_precision
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self.parameters_to_ignore = ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        named = self._named_to_average()
        if not named:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient."
            )
        if init_sync:
            self._check_same_module(named)
            state = module.state_dict(keep_vars=True)
            self._broadcast([value for name, value in state.items() if _is_sent(value, name, ignored)])
        total = sum(p.numel() * p.element_size() for _, p in named)
        # What is sent last is not hidden by anything: small modules get several buckets too, of 1 MB at least.
        megabytes = min(max(total / 8 / 1024**2, 1.0), 25.0) if bucket_cap_mb is None else bucket_cap_mb
        self.bucket_bytes_cap = int(megabytes * 1024 * 1024)
        self.bucket_bytes_cap_default = bucket_cap_mb is None
        self._prepare()

    def _named_to_average(self) -> list[tuple[str, Any]]:
        """The parameters whose gradients are averaged."""
        ignored = self.parameters_to_ignore
        return [(name, p) for name, p in self.module.named_parameters() if p.requires_grad and name not in ignored]

    def _prepare(self) -> None:
        """Make what belongs to this process and is not copied with the module."""
        from pullback.distributed.reducer import Reducer  # lazy: processes are above this layer

        named = self._named_to_average()
        self._buffers_to_sync = [
            (name, buffer) for name, buffer in self.module.named_buffers() if name not in self.parameters_to_ignore
        ]
        cap = self.bucket_bytes_cap
        self.reducer = Reducer(
            [p for _, p in named], [name for name, _ in named], self.process_group, cap,
            min(cap, 1024 * 1024) if self.bucket_bytes_cap_default else cap, self.find_unused_parameters,
            self.gradient_as_bucket_view, self.static_graph, _sparse_places(self.module, [p for _, p in named]),
        )  # fmt: skip

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the group and the buckets, which belong to this process: a copy makes its own."""
        from pullback.distributed.process_group import group  # lazy: processes are above this layer

        if self.process_group is not group.WORLD:
            raise RuntimeError(
                "DDP Pickling/Unpickling are only supported when using DDP with the default process group: this module "
                f"has the group of ranks {self.process_group.ranks}. Copy or save `module.module` instead."
            )
        left_out = ("process_group", "reducer", "_buffers_to_sync")
        return {name: value for name, value in self.__dict__.items() if name not in left_out}

    def __setstate__(self, state: dict[str, Any]) -> None:
        from pullback.distributed.process_group import group_of  # lazy: processes are above this layer

        super().__setstate__(state)
        self.process_group = group_of(None)
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self._prepare()

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(module: Any, params_and_buffers_to_ignore: Any) -> None:
        """Leave parameters and buffers of these names alone when `module` is wrapped."""
        module._ddp_params_and_buffers_to_ignore = params_and_buffers_to_ignore

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        """What PyTorch's logger says of a wrapped module, as far as there is something to say."""
        named = self._named_to_average()
        return {
            "world_size": self.process_group.size(),
            "rank": self.process_group.rank(),
            "module_name": type(self.module).__name__,
            "backend_name": self.process_group.name(),
            "bucket_cap_bytes": self.bucket_bytes_cap,
            "broadcast_buffers": int(self.broadcast_buffers),
            "find_unused_parameters": int(self.find_unused_parameters),
            "gradient_as_bucket_view": int(self.gradient_as_bucket_view),
            "static_graph": int(self.static_graph),
            "num_parameter_tensors": len(named),
            "total_parameter_size_bytes": sum(p.numel() * p.element_size() for _, p in named),
        }

    def _check_same_module(self, named: list[tuple[str, Any]]) -> None:
        """Refuse modules that differ between ranks before their parameters are mixed."""
        from pullback.distributed.object_collectives import all_gather_object  # lazy: processes are above this layer

        own = [(list(p.shape), str(p.dtype)) for _, p in named]
        found: list[Any] = [None] * self.process_group.size()
        all_gather_object(found, own, self.process_group)
        for rank, other in enumerate(found):
            if len(other) != len(found[0]):
                raise RuntimeError(
                    f"DDP expects same model across all ranks, but Rank {self.process_group.ranks[0]} has {len(found[0])} "
                    f"params, while rank {self.process_group.ranks[rank]} has inconsistent {len(other)} params."
                )
            for index, (expected, actual) in enumerate(zip(found[0], other, strict=True)):
                if expected != actual:
                    raise RuntimeError(
                        f"DDP expects same model across all ranks: params[{index}] in this process with sizes "
                        f"{expected[0]} appears not to match sizes of the same param: it is {expected[1]} {expected[0]} on "
                        f"rank {self.process_group.ranks[0]} and {actual[1]} {actual[0]} on rank "
                        f"{self.process_group.ranks[rank]}."
                    )

    def _broadcast(self, tensors: list[Any], source: int = 0) -> None:
        """Copy the tensors of one rank to all, those of one dtype in one message."""
        from pullback.distributed.coalescing import broadcast_together  # lazy: processes are above this layer

        broadcast_together(tensors, self.process_group, source)

    # A pass.

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        synchronises = is_grad_enabled() and self.require_backward_grad_sync
        source = self._tell_joined_ranks(synchronises) if self._join_config.enable else 0
        if synchronises:
            self.reducer.prepare_for_forward(source)
        if self.will_sync_module_buffers():
            self._broadcast([buffer for _, buffer in self._buffers_to_sync], source)
        output = self.module(*inputs, **kwargs)
        self.require_forward_param_sync = synchronises
        return self.reducer.prepare_for_backward(output) if synchronises else output

    def will_sync_module_buffers(self) -> bool:
        """Whether the next forward begins with the buffers of rank 0."""
        return self.require_forward_param_sync and self.broadcast_buffers and bool(self._buffers_to_sync)

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Only add gradients up on each rank; the first pass outside averages what has come together."""
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def register_comm_hook(self, state: Any, hook: Callable[..., Any]) -> None:
        """Let `hook(state, bucket)` average the buckets; it returns a Future of the flat result."""
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        _check_hook(hook)
        self.reducer.register_hook(state, hook)

    def _register_builtin_comm_hook(self, comm_hook_type: Any) -> None:
        from pullback.distributed.algorithms.ddp_comm_hooks import default_hooks  # lazy: processes are above this layer

        named = {"ALLREDUCE": default_hooks.allreduce_hook, "FP16_COMPRESS": default_hooks.fp16_compress_hook}
        self.reducer.register_hook(self.process_group, named[comm_hook_type.name])

    def _set_static_graph(self) -> None:
        warn_user("pass static_graph=True to DistributedDataParallel instead")
        self.static_graph = self.reducer.static_graph = True

    # Uneven inputs.

    def join(
        self, divide_by_initial_world_size: bool = True, enable: bool = True, throw_on_early_termination: bool = False
    ) -> Any:
        """A block in which ranks may run out of data at different times; those that did add zeros for the others."""
        from pullback.distributed.algorithms.join import Join  # lazy: processes are above this layer

        return Join(
            [self], enable, throw_on_early_termination, divide_by_initial_world_size=divide_by_initial_world_size
        )

    def join_hook(self, **kwargs: Any) -> Any:
        """What a rank without data does in every pass of the others."""
        from pullback.distributed.algorithms.join import DdpJoinHook  # lazy: processes are above this layer

        return DdpJoinHook(self, kwargs.get("divide_by_initial_world_size", True))

    @property
    def join_device(self) -> Any:
        """Where the ranks count themselves."""
        return self.device

    @property
    def join_process_group(self) -> Any:
        """The ranks that take part."""
        return self.process_group

    def _tell_joined_ranks(self, synchronises: bool) -> int:
        """Tell ranks without data what this pass communicates; return the rank whose values count for all."""
        from pullback.distributed.algorithms.join import Join, Pass  # lazy: processes are above this layer

        active = Join.notify_join_context(self)
        self.reducer.divisor = self.process_group.size() if self._join_config.divides_by_all else active
        rebuilds = synchronises and self.reducer.will_rebuild
        return Pass(True, synchronises, rebuilds, self.will_sync_module_buffers()).agree(self.process_group).source


def _check_hook(hook: Callable[..., Any]) -> None:
    """Refuse a hook whose signature says that it is none."""
    from pullback.distributed.grad_bucket import GradBucket  # lazy: processes are above this layer

    signature = inspect.signature(hook)
    if len(signature.parameters) != 2:
        raise ValueError("Communication hook: must take two arguments, the state and a GradBucket")
    bucket, result = list(signature.parameters.values())[1].annotation, signature.return_annotation
    if bucket not in (inspect.Parameter.empty, GradBucket) and not isinstance(bucket, str):
        raise ValueError(f"Communication hook: bucket annotation should be dist.GradBucket. It is {bucket}.")
    if result is not inspect.Signature.empty and not isinstance(result, str) and _kind(result) is not Future:
        raise ValueError(
            f"Communication hook: return annotation should be torch.futures.Future[torch.Tensor]. It is {result}."
        )


def _kind(annotation: Any) -> Any:
    return get_origin(annotation) or annotation


def _is_sent(value: Any, name: str, ignored: set[str]) -> bool:
    return hasattr(value, "numel") and name not in ignored


def _sparse_places(module: Any, parameters: list[Any]) -> list[int]:
    """Which parameters are tables of embeddings whose gradients are sparse."""
    tables = [each.weight for each in module.modules() if isinstance(each, Embedding | EmbeddingBag) and each.sparse]
    return [index for index, parameter in enumerate(parameters) if any(parameter is table for table in tables)]
