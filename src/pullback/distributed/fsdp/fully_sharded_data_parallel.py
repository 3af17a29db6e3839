"""FullyShardedDataParallel: the older spelling of `fully_shard`, a module around the one whose parameters it divides.

Parameters are divided one by one, as `fully_shard` does (Note [Fully sharded] in parameter_group.py), where PyTorch joins
those of a module to a flat one: a rank sees the names and shapes of the plain module, whatever `use_orig_params` is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import Enum, auto
from typing import Any

import pullback
from pullback.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_optimizer_state_dict,
    numbered_optimizer_state,
    own_part,
)
from pullback.distributed.coalescing import broadcast_together
from pullback.distributed.device_mesh import DeviceMesh
from pullback.distributed.fsdp import api
from pullback.distributed.fsdp.api import ShardingStrategy, StateDictSettings, StateDictType
from pullback.distributed.fsdp.fsdp_module import ShardedModule, unclaimed
from pullback.distributed.fsdp.parameter_group import ParameterGroup
from pullback.distributed.fsdp.policies import MixedPrecisionPolicy
from pullback.distributed.fsdp.wrap import wrap_parts
from pullback.distributed.process_group import get_rank, group_of
from pullback.distributed.tensor.dtensor import DTensor
from pullback.nn.modules.module import Module
from pullback.nn.utils.clip_grad import clip_grad_norm_

__all__ = ["FullyShardedDataParallel", "OptimStateKeyType"]

_WRAPPED = "_fsdp_wrapped_module"
_PREFIX = _WRAPPED + "."
_CONFIGS: dict[StateDictType, tuple[type[Any], type[Any]]] = {
    StateDictType.FULL_STATE_DICT: (api.FullStateDictConfig, api.FullOptimStateDictConfig),
    StateDictType.LOCAL_STATE_DICT: (api.LocalStateDictConfig, api.LocalOptimStateDictConfig),
    StateDictType.SHARDED_STATE_DICT: (api.ShardedStateDictConfig, api.ShardedOptimStateDictConfig),
}


class OptimStateKeyType(Enum):
    """Whether the keys of an optimizer's state are names or numbers of parameters."""

    PARAM_NAME = auto()
    PARAM_ID = auto()


class FullyShardedDataParallel(ShardedModule, Module):
    """A module whose parameters, gradients and optimizer state are divided among ranks.

    `auto_wrap_policy` chooses the parts that are gathered by themselves. Make the optimizer afterwards.

    >>> import pullback.distributed as dist
    >>> dist.init_process_group("gloo", rank=0, world_size=1)
    >>> model = FullyShardedDataParallel(pullback.nn.Linear(2, 1, bias=False))
    >>> model(pullback.ones(1, 2)).sum().backward()
    >>> model.clip_grad_norm_(1.0)
    tensor(1.4142)
    >>> list(model.state_dict())
    ['weight']
    >>> dist.destroy_process_group()
    """

    def __init__(
        self, module: Module, process_group: Any = None, sharding_strategy: ShardingStrategy | None = None,
        cpu_offload: api.CPUOffload | None = None, auto_wrap_policy: Any = None,
        backward_prefetch: api.BackwardPrefetch | None = api.BackwardPrefetch.BACKWARD_PRE,
        mixed_precision: api.MixedPrecision | None = None, ignored_modules: Iterable[Module] | None = None,
        param_init_fn: Callable[[Module], None] | None = None, device_id: Any = None, sync_module_states: bool = False,
        forward_prefetch: bool = False, limit_all_gathers: bool = True, use_orig_params: bool = False,
        ignored_states: Iterable[Any] | None = None, device_mesh: DeviceMesh | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        strategy = sharding_strategy or ShardingStrategy.FULL_SHARD
        mesh = _mesh_of(process_group, device_mesh, strategy)
        parts = [*(ignored_modules or ()), *(each for each in ignored_states or () if isinstance(each, Module))]
        ignored = {id(each) for part in parts for each in part.parameters()}
        ignored |= {id(each) for each in ignored_states or () if not isinstance(each, Module)}
        _materialize(module, param_init_fn)
        if device_id is not None:
            module.to(device_id if not isinstance(device_id, int) else f"cuda:{device_id}")
        if auto_wrap_policy is not None:
            left = [each for part in parts for each in part.modules()]
            wrap_parts(
                module, auto_wrap_policy, FullyShardedDataParallel, only_children=True, ignored=left,
                sharding_strategy=strategy, device_mesh=mesh, cpu_offload=cpu_offload, mixed_precision=mixed_precision,
                sync_module_states=sync_module_states, ignored_states=[p for part in parts for p in part.parameters()],
            )  # fmt: skip
        named = [entry for entry in unclaimed(module) if id(entry[2]) not in ignored]
        if sync_module_states:
            held = [*{id(entry[2]): entry[2] for entry in named}.values(), *module.buffers()]
            for dim in range(mesh.ndim):
                broadcast_together([tensor.detach() for tensor in held], mesh.get_group(dim))
        self.sharding_strategy = strategy
        self.mixed_precision = mixed_precision or api.MixedPrecision()
        chosen = self.mixed_precision
        policy = MixedPrecisionPolicy(chosen.param_dtype, chosen.reduce_dtype, None, chosen.cast_root_forward_inputs)
        reshards = strategy in (ShardingStrategy.FULL_SHARD, ShardingStrategy.HYBRID_SHARD)
        self._fsdp_wrapped_module = module
        self._fsdp_group = ParameterGroup(named, mesh, policy, reshards)
        self._fsdp_reshards = None if reshards else False
        self._is_summoned = False
        self._settings = StateDictSettings()
        self._buffer_dtypes: dict[str, Any] = {}
        if chosen.buffer_dtype is not None:
            self._buffer_dtypes = {name: b.dtype for name, b in module.named_buffers() if b.is_floating_point()}
            _cast_buffers(module, chosen.buffer_dtype)
        self.register_state_dict_pre_hook(_let_parts_be_there)
        self._register_state_dict_hook(_give_state)
        self._register_load_state_dict_pre_hook(_take_state, with_module=True)

    # The module inside.

    @property
    def module(self) -> Module:
        """The module inside."""
        return self._fsdp_wrapped_module

    @property
    def process_group(self) -> Any:
        """The ranks among which the parameters are divided."""
        return self._fsdp_group.shard_group

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__(_WRAPPED), name)

    def __getitem__(self, key: Any) -> Any:
        return self._fsdp_wrapped_module[key]  # type: ignore[index]  # of a Sequential, say

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Gather the parameters, run the module, and let them go."""
        if self._is_summoned:
            return self._fsdp_wrapped_module(*args, **kwargs)
        return self._fsdp_run(self._fsdp_wrapped_module, args, kwargs)

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        """The parameters; inside of `summon_full_params` by the names of the plain module."""
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield (name.replace(_PREFIX, "") if self._is_summoned else name), parameter

    def named_buffers(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        """The buffers; inside of `summon_full_params` by the names of the plain module."""
        for name, buffer in super().named_buffers(*args, **kwargs):
            yield (name.replace(_PREFIX, "") if self._is_summoned else name), buffer

    def apply(self, fn: Callable[[Module], None]) -> FullyShardedDataParallel:
        """Call `fn` on every module, whose parameters are whole meanwhile."""
        if self._is_summoned:
            return super().apply(fn)
        with FullyShardedDataParallel.summon_full_params(self, recurse=False):
            return super().apply(fn)

    @staticmethod
    def fsdp_modules(module: Module, root_only: bool = False) -> list[FullyShardedDataParallel]:
        """The modules of this kind in a module; with `root_only` those that are in no other one."""
        found = [each for each in module.modules() if isinstance(each, FullyShardedDataParallel)]
        inner = {id(each) for outer in found for each in outer.modules() if each is not outer}
        return [each for each in found if not (root_only and id(each) in inner)]

    def check_is_root(self) -> bool:
        """Whether this is the outermost one: true of every one that was not called by another."""
        return True

    # Training.

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Only add gradients up on each rank; the first pass outside reduces what has come together."""
        groups = [each._fsdp_group for each in FullyShardedDataParallel.fsdp_modules(self)]
        before = [group.synchronises for group in groups]
        for group in groups:
            group.synchronises = False
        try:
            yield
        finally:
            for group, value in zip(groups, before, strict=True):
                group.synchronises = value

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Any:
        """Scale the gradients so that their norm, of all ranks together, is `max_norm` at most; the norm before."""
        norm = clip_grad_norm_(list(self.parameters()), max_norm, norm_type)
        return norm.to_local() if isinstance(norm, DTensor) else norm

    def register_comm_hook(self, state: Any, hook: Callable[..., Any]) -> None:
        """Refused: gradients are reduced in one message per module."""
        raise NotImplementedError(
            "FullyShardedDataParallel has no communication hooks: use mixed_precision.reduce_dtype"
        )

    # Whole parameters.

    @staticmethod
    @contextmanager
    def summon_full_params(
        module: Module, recurse: bool = True, writeback: bool = True, rank0_only: bool = False,
        offload_to_cpu: bool = False, with_grads: bool = False,
    ) -> Iterator[None]:  # fmt: skip
        """A block in which parameters are whole. With `writeback` the parts of what it wrote are kept."""
        if rank0_only and writeback:
            raise NotImplementedError("writeback=True and rank0_only=True is not supported")
        roots = FullyShardedDataParallel.fsdp_modules(module, root_only=True)
        chosen = FullyShardedDataParallel.fsdp_modules(module) if recurse else roots
        if any(each._is_summoned for each in chosen):
            raise AssertionError("Cannot manually unshard parameters: they are whole inside of summon_full_params")
        for each in chosen:
            each._fsdp_group.summon(with_grads)
            each._is_summoned = True
        try:
            yield
        finally:
            for each in chosen:
                each._is_summoned = False
                each._fsdp_group.dismiss(writeback, with_grads)

    # States.

    @staticmethod
    def set_state_dict_type(
        module: Module, state_dict_type: StateDictType, state_dict_config: api.StateDictConfig | None = None,
        optim_state_dict_config: api.OptimStateDictConfig | None = None,
    ) -> StateDictSettings:  # fmt: skip
        """Say how states look from now on; the settings before."""
        kind, optimizer_kind = _CONFIGS[state_dict_type]
        for given, wanted in ((state_dict_config, kind), (optim_state_dict_config, optimizer_kind)):
            if given is not None and type(given) is not wanted:
                raise RuntimeError(f"Expected state_dict_config of type {wanted} but got {type(given)}")
        before = FullyShardedDataParallel.get_state_dict_type(module)
        made = StateDictSettings(
            state_dict_type, state_dict_config or kind(), optim_state_dict_config or optimizer_kind()
        )
        for each in FullyShardedDataParallel.fsdp_modules(module):
            each._settings = made
        return before

    @staticmethod
    def get_state_dict_type(module: Module) -> StateDictSettings:
        """How states look."""
        found = FullyShardedDataParallel.fsdp_modules(module)
        return found[0]._settings if found else StateDictSettings()

    @staticmethod
    @contextmanager
    def state_dict_type(
        module: Module, state_dict_type: StateDictType, state_dict_config: api.StateDictConfig | None = None,
        optim_state_dict_config: api.OptimStateDictConfig | None = None,
    ) -> Iterator[None]:  # fmt: skip
        """A block in which states look so."""
        before = FullyShardedDataParallel.set_state_dict_type(
            module, state_dict_type, state_dict_config, optim_state_dict_config
        )
        try:
            yield
        finally:
            for each in FullyShardedDataParallel.fsdp_modules(module):
                each._settings = before

    @staticmethod
    def optim_state_dict(
        model: Module, optim: Any, optim_state_dict: dict[str, Any] | None = None, group: Any = None
    ) -> dict[str, Any]:
        """The state of an optimizer by the names of the plain model. All ranks must call it."""
        settings = FullyShardedDataParallel.get_state_dict_type(model)
        whole = settings.state_dict_type is StateDictType.FULL_STATE_DICT
        found = get_optimizer_state_dict(model, optim, options=StateDictOptions(full_state_dict=whole))
        if whole and getattr(settings.optim_state_dict_config, "rank0_only", False) and get_rank() != 0:
            return {}
        return found

    @staticmethod
    def optim_state_dict_to_load(
        model: Module, optim: Any, optim_state_dict: dict[str, Any], is_named_optimizer: bool = False,
        load_directly: bool = False, group: Any = None,
    ) -> dict[str, Any]:  # fmt: skip
        """What `optim.load_state_dict` takes, of a state by names that holds whole tensors or parts."""
        made = numbered_optimizer_state(model, optim, optim_state_dict)
        if load_directly:
            optim.load_state_dict(made)
        return made

    @staticmethod
    def full_optim_state_dict(
        model: Module, optim: Any, optim_input: Any = None, rank0_only: bool = True, group: Any = None
    ) -> dict[str, Any]:
        """The whole state of an optimizer by names, on the first rank or on all."""
        found = get_optimizer_state_dict(model, optim, options=StateDictOptions(full_state_dict=True))
        return {} if rank0_only and get_rank() != 0 else found

    @staticmethod
    def sharded_optim_state_dict(model: Module, optim: Any, group: Any = None) -> dict[str, Any]:
        """The parts of an optimizer's state by names."""
        return get_optimizer_state_dict(model, optim)

    @staticmethod
    def shard_full_optim_state_dict(
        full_optim_state_dict: dict[str, Any], model: Module, optim_input: Any = None, optim: Any = None
    ) -> dict[str, Any]:
        """What `optim.load_state_dict` takes, of a whole state that every rank has."""
        return numbered_optimizer_state(model, optim, full_optim_state_dict)


def _mesh_of(process_group: Any, mesh: DeviceMesh | None, strategy: ShardingStrategy) -> DeviceMesh:
    """The mesh whose last dimension divides and whose first one, of two, keeps copies."""
    is_hybrid = strategy in (ShardingStrategy.HYBRID_SHARD, ShardingStrategy._HYBRID_SHARD_ZERO2)
    if mesh is not None:
        if is_hybrid and mesh.ndim != 2:
            raise ValueError(f"{strategy} needs a device_mesh of two dimensions, not {mesh}")
        return mesh
    if is_hybrid:
        raise ValueError(f"{strategy} needs a device_mesh of two dimensions: the copies, and the parts of each copy")
    ranks = pullback.tensor(list(group_of(process_group).ranks))
    if strategy is ShardingStrategy.NO_SHARD:
        return DeviceMesh("cpu", ranks.reshape(-1, 1))
    return DeviceMesh("cpu", ranks, _groups=[group_of(process_group)])


def _materialize(module: Module, init: Callable[[Module], None] | None) -> None:
    """Give memory and first values to modules that were made on the device `meta`."""
    for part in module.modules():
        own = [*part.parameters(recurse=False), *part.buffers(recurse=False)]
        if not any(tensor.is_meta for tensor in own):
            continue
        if init is not None:
            init(part)
            continue
        part.to_empty(device="cpu", recurse=False)
        part.reset_parameters()


def _cast_buffers(module: Module, dtype: Any) -> None:
    for part in module.modules():
        for name, buffer in part._buffers.items():
            if buffer is not None and buffer.is_floating_point():
                part._buffers[name] = buffer.to(dtype)


def _let_parts_be_there(module: Any, prefix: str, keep_vars: bool) -> None:
    """Let whole parameters go that a forward without a backward left."""
    if not module._is_summoned:
        module._fsdp_group.reshard()


def _give_state(module: Any, state: dict[str, Any], prefix: str, *rest: Any) -> None:
    """Name tensors as in the plain module, and make them whole if that is wanted."""
    settings = module._settings
    is_full = settings.state_dict_type is StateDictType.FULL_STATE_DICT
    drops = is_full and getattr(settings.state_dict_config, "rank0_only", False) and get_rank() != 0
    for key in [key for key in state if key.startswith(prefix)]:
        value = state.pop(key)
        if is_full and isinstance(value, DTensor):
            value = value.full_tensor()
        name = key[len(prefix) :].removeprefix(_PREFIX)
        if name in module._buffer_dtypes:
            value = value.to(module._buffer_dtypes[name])
        if not drops:
            state[prefix + name] = value


def _take_state(module: Any, state: dict[str, Any], prefix: str, *rest: Any) -> None:
    """The reverse: name tensors as they are inside, and take the part of this rank."""
    if not module._is_summoned:
        module._fsdp_group.reshard()
    for key in [key for key in state if key.startswith(prefix) and not key.startswith(prefix + _PREFIX)]:
        state[f"{prefix}{_PREFIX}{key[len(prefix) :]}"] = state.pop(key)
    for name, parameter in module.named_parameters():
        key = f"{prefix}{name}"
        if isinstance(parameter, DTensor) and key in state and not isinstance(state[key], DTensor):
            part = own_part(state[key], parameter)
            if part is not state[key] or parameter.shard_group() is None:
                state[key] = parameter.like(part._array)
