"""`fully_shard`: a module whose parameters, gradients and optimizer state are divided among ranks.

See Note [Fully sharded] in parameter_group.py.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any

import pullback
from pullback.distributed.device_mesh import DeviceMesh, init_device_mesh
from pullback.distributed.fsdp.parameter_group import ParameterGroup, saved_tensors_of
from pullback.distributed.fsdp.policies import MixedPrecisionPolicy, OffloadPolicy
from pullback.distributed.process_group import get_world_size
from pullback.nn.modules.container import ModuleDict, ModuleList
from pullback.nn.modules.module import Module
from pullback.utils._pytree import tree_map

__all__ = ["FSDPModule", "ShardedModule", "fully_shard", "register_fsdp_forward_method", "share_comm_ctx", "unclaimed"]


class _Running(threading.local):
    """How many fully sharded modules are in their forward, one inside of the other."""

    depth = 0


_running = _Running()


class UnshardHandle:
    """What `unshard(async_op=True)` returns: parameters are there already."""

    def wait(self) -> None:
        """Do nothing."""


class ShardedModule:
    """What runs a module with its parameters gathered."""

    _fsdp_group: ParameterGroup
    _fsdp_reshards: bool | None

    def _fsdp_run(self, method: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        group = self._fsdp_group
        is_root = _running.depth == 0
        policy = group.policy
        if policy.cast_forward_inputs and policy.param_dtype is not None:
            args, kwargs = tree_map(lambda value: _cast(value, policy.param_dtype), (args, kwargs))
        group.unshard()
        _running.depth += 1
        try:
            with saved_tensors_of([group]):
                output = method(*args, **kwargs)
        finally:
            _running.depth -= 1
        reshards = not is_root if self._fsdp_reshards is None else self._fsdp_reshards
        if reshards or not pullback.is_grad_enabled():
            group.reshard()
        if policy.output_dtype is not None:
            output = tree_map(lambda value: _cast(value, policy.output_dtype), output)
        return output


class FSDPModule(ShardedModule):
    """What a module can do once it is fully sharded."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Gather the parameters, run the module, and let them go."""
        return self._fsdp_run(super().forward, args, kwargs)  # type: ignore[misc]  # the class that was sharded is next

    def _fsdp_modules(self, recurse: bool) -> list[FSDPModule]:
        if not recurse:
            return [self]
        return [module for module in self.modules() if isinstance(module, FSDPModule)]  # type: ignore[attr-defined]

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Gather the parameters now."""
        self._fsdp_group.unshard()
        return UnshardHandle() if async_op else None

    def reshard(self) -> None:
        """Let the whole parameters go."""
        self._fsdp_group.reshard()

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *, recurse: bool = True) -> None:
        """Whether gradients are reduced, or only added up on each rank: for several passes before a step."""
        for module in self._fsdp_modules(recurse):
            module._fsdp_group.synchronises = requires_gradient_sync

    set_requires_all_reduce = set_requires_gradient_sync

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Whether to let parameters go between forward and backward."""
        for module in self._fsdp_modules(recurse):
            module._fsdp_reshards = reshard_after_forward

    def set_gradient_divide_factor(self, factor: float) -> None:
        """Divide the sums of gradients by this, not by the number of ranks."""
        self._fsdp_group.divisor = factor

    set_reduce_scatter_divide_factor = set_gradient_divide_factor

    def set_all_reduce_hook(self, hook: Callable[[Any], Any], *, stream: Any = None) -> None:
        """Call `hook` with the sums of gradients, all parts of this rank in one tensor, before they become `.grad`."""
        self._fsdp_group.all_reduce_hook = hook

    def reset_iter_state(self) -> None:
        """Forget a pass that failed, with its gradients, so that the next one begins as the first did."""
        for module in self._fsdp_modules(True):
            module._fsdp_group.reset()

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Accepted: every pass ends with its gradients in place."""

    def set_reshard_after_backward(self, reshard_after_backward: bool, *, recurse: bool = True) -> None:
        """Accepted: parameters are let go after backward."""

    def set_modules_to_forward_prefetch(self, modules: Any) -> None:
        """Accepted: parameters are gathered when they are needed."""

    set_modules_to_backward_prefetch = set_modules_to_forward_prefetch

    def set_unshard_in_backward(self, unshard_in_backward: bool) -> None:
        """Accepted: parameters are gathered in backward only when something that needs them runs."""

    def set_force_sum_reduction_for_comms(self, enable: bool) -> None:
        """Accepted: gradients are summed, and divided apart from that, in any case."""

    def set_separate_reduce_scatter_group(self, enable: bool = True, *, recurse: bool = True) -> None:
        """Accepted: MPI keeps gathering and scattering apart in one group."""

    def set_reduce_scatter_max_input_buffers(self, max_input_buffers: int, *, recurse: bool = True) -> None:
        """Accepted: every group has one message of gradients on its way at most."""

    def set_reduce_scatter_unused_params(self, reduce_scatter_unused_params: bool, *, recurse: bool = True) -> None:
        """Accepted: parameters without a gradient are not sent."""


def _cast(value: Any, dtype: Any) -> Any:
    is_float = isinstance(value, pullback.Tensor) and value.is_floating_point()
    return value.to(dtype) if is_float else value


def fully_shard(
    module: Any, *, mesh: DeviceMesh | None = None, reshard_after_forward: bool | int | None = None,
    shard_placement_fn: Callable[[Any], Any] | None = None, mp_policy: MixedPrecisionPolicy | None = None,
    offload_policy: OffloadPolicy | None = None, ignored_params: set[Any] | None = None, dp_mesh_dims: Any = None,
) -> Any:  # fmt: skip
    """Divide the parameters of a module among ranks; they are gathered for its forward and backward only.

    Call it on the parts first, layer by layer, then on the whole: what no part took belongs to the whole. Every rank must
    hold the same parameters before. A mesh of two dimensions divides along the second and keeps copies along the first.
    Make the optimizer afterwards: its state is divided too. `shard_placement_fn(parameter)` may return `Shard(dim)` for
    another dimension than the first; the ranks must divide it evenly.

    >>> import pullback
    >>> import pullback.distributed as dist
    >>> dist.init_process_group("gloo", rank=0, world_size=1)
    >>> layer = fully_shard(pullback.nn.Linear(2, 1, bias=False))
    >>> layer(pullback.ones(1, 2)).sum().backward()
    >>> layer.weight.grad.full_tensor()
    tensor([[1., 1.]])
    >>> dist.destroy_process_group()
    """
    if isinstance(module, list | tuple):
        for each in module:
            fully_shard(
                each, mesh=mesh, reshard_after_forward=reshard_after_forward, shard_placement_fn=shard_placement_fn,
                mp_policy=mp_policy, offload_policy=offload_policy, ignored_params=ignored_params,
                dp_mesh_dims=dp_mesh_dims,
            )  # fmt: skip
        return module
    if isinstance(module, FSDPModule):
        raise AssertionError(
            "Each distinct composable distributed API can only be applied to a module once. fully_shard was called twice on "
            f"the same {type(module).__name__}."
        )
    if not isinstance(module, Module):
        raise TypeError(f"fully_shard expects a Module, not {type(module).__name__}")
    if isinstance(module, ModuleList | ModuleDict) and type(module).forward is Module.forward:
        raise ValueError(f"fully_shard does not support containers that do not implement forward: {module}")
    if dp_mesh_dims is not None:
        raise NotImplementedError(
            "dp_mesh_dims is not supported: pass the part of the mesh that divides the parameters"
        )
    ignored = {id(parameter) for parameter in ignored_params or ()}
    used_mesh = mesh or init_device_mesh("cpu", (get_world_size(),))
    for parameter in module.parameters():
        if id(parameter) not in ignored and getattr(parameter, "device_mesh", used_mesh) != used_mesh:
            raise NotImplementedError(
                f"fully_shard of parameters that lie on another mesh ({parameter.device_mesh}), such as those that "
                "parallelize_module divided, is not supported: pass them as ignored_params and average their gradients"
            )
    named = [entry for entry in unclaimed(module) if id(entry[2]) not in ignored]
    if type(reshard_after_forward) is int and used_mesh.size(-1) % max(reshard_after_forward, 1):
        raise ValueError(
            f"If passing reshard_after_forward as an int, it should be a factor of {used_mesh.size(-1)}, not "
            f"{reshard_after_forward}"
        )
    reshards = None if reshard_after_forward is None else bool(reshard_after_forward)
    policy = mp_policy or MixedPrecisionPolicy()
    module._fsdp_group = ParameterGroup(named, used_mesh, policy, bool(reshards), shard_placement_fn)
    module._fsdp_reshards = reshards
    module.__class__ = type(f"FSDP{type(module).__name__}", (FSDPModule, type(module)), {})
    return module


def register_fsdp_forward_method(module: Any, method_name: str) -> None:
    """Let a method gather the parameters as forward does; of a module that is not fully sharded it stays as it is.

    >>> register_fsdp_forward_method(pullback.nn.Linear(2, 1), "extra_repr")
    """
    if not isinstance(module, FSDPModule):
        return
    method = getattr(module, method_name, None)
    if method is None:
        raise ValueError(f"{type(module)} does not have a method {method_name}")

    @functools.wraps(method)
    def run(self: FSDPModule, *args: Any, **kwargs: Any) -> Any:
        return self._fsdp_run(method, args, kwargs)

    setattr(module, method_name, MethodType(run, module))


def share_comm_ctx(modules: Sequence[Any]) -> None:
    """Accept the wish that modules share their streams: messages of all of them are helped along by one thread."""


def unclaimed(module: Any) -> list[tuple[Any, str, Any]]:
    """The parameters of a module and its parts that no part has divided already."""
    if isinstance(module, ShardedModule):
        return []
    own = [(module, name, parameter) for name, parameter in module._parameters.items() if parameter is not None]
    taken = [entry for child in module.children() for entry in unclaimed(child)]
    return [entry for entry in own + taken if not hasattr(entry[2], "device_mesh")]
