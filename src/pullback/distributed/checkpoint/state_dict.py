"""States by the names that parameters have in the plain model, whatever wraps or divides it.

With `full_state_dict=True` they hold whole tensors, and can be loaded with another number of ranks, or with one process.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pullback
from pullback.distributed.object_collectives import broadcast_object_list
from pullback.distributed.process_group import get_rank, is_initialized
from pullback.distributed.tensor.dtensor import DTensor, gather_parts, rows_of
from pullback.nn.parallel.distributed import DistributedDataParallel

__all__ = [
    "StateDictOptions", "get_model_state_dict", "get_optimizer_state_dict", "get_state_dict", "numbered_optimizer_state",
    "own_part", "set_model_state_dict", "set_optimizer_state_dict", "set_state_dict",
]  # fmt: skip

State = dict[str, Any]


@dataclass
class StateDictOptions:
    """Whether states hold whole tensors, and where they come from."""

    full_state_dict: bool = False
    cpu_offload: bool = False
    ignore_frozen_params: bool = False
    keep_submodule_prefixes: bool = True
    strict: bool = True
    broadcast_from_rank0: bool = False
    flatten_optimizer_state_dict: bool = False


def _plain_names(model: Any) -> dict[str, Any]:
    """The parameters by their names in the model that nothing wraps."""
    return {_plain(name, model): parameter for name, parameter in model.named_parameters()}


def _plain(name: str, model: Any) -> str:
    for path, module in model.named_modules():
        if isinstance(module, DistributedDataParallel):
            prefix = f"{path}." if path else ""
            name = name.replace(f"{prefix}module.", prefix, 1) if name.startswith(f"{prefix}module.") else name
    for wrapper in ("_fsdp_wrapped_module.", "_checkpoint_wrapped_module.", "_orig_mod."):
        name = name.replace(wrapper, "")
    return name


def _whole(value: Any, options: StateDictOptions) -> Any:
    if isinstance(value, DTensor) and options.full_state_dict:
        return value.full_tensor()
    return value


def get_model_state_dict(model: Any, *, submodules: Any = None, options: StateDictOptions | None = None) -> State:
    """The state of a model under plain names. With `full_state_dict=True` all ranks must call it.

    >>> import pullback.distributed as dist
    >>> dist.init_process_group("gloo", rank=0, world_size=1)
    >>> model = DistributedDataParallel(pullback.nn.Linear(1, 1))
    >>> list(get_model_state_dict(model))
    ['weight', 'bias']
    >>> dist.destroy_process_group()
    """
    chosen = options or StateDictOptions()
    frozen = {_plain(name, model) for name, parameter in model.named_parameters() if not parameter.requires_grad}
    found = {}
    for name, value in _state_of_parts(model).items():
        plain = _plain(name, model)
        if not (chosen.ignore_frozen_params and plain in frozen):
            found[plain] = _whole(value, chosen)
    return {} if _is_left_out(chosen) else found


def _state_of_parts(model: Any) -> State:
    """The state of a model, in which divided tensors are DTensors."""
    # lazy: that module needs this one
    from pullback.distributed.fsdp import FullyShardedDataParallel, StateDictType

    with FullyShardedDataParallel.state_dict_type(model, StateDictType.SHARDED_STATE_DICT):
        found: State = model.state_dict()
    return found


def _is_left_out(options: StateDictOptions) -> bool:
    """Whether this rank keeps nothing: whole tensors in main memory are wanted on rank 0 alone."""
    return options.full_state_dict and options.cpu_offload and is_initialized() and get_rank() != 0


def _from_rank_0(state: Any, options: StateDictOptions) -> Any:
    if not options.broadcast_from_rank0 or not is_initialized():
        return state
    box = [state if get_rank() == 0 else None]
    broadcast_object_list(box, src=0)
    return box[0]


def own_part(value: Any, like: Any) -> Any:
    """Of a whole tensor, the part that this rank holds."""
    if not isinstance(like, DTensor) or isinstance(value, DTensor) or not isinstance(value, pullback.Tensor):
        return value
    group = like.shard_group()
    if group is None or value.ndim == 0 or list(value.shape) != list(like.shape):
        return value
    dim = like.shard_dim()
    return value.narrow(dim, *rows_of(like.shape[dim], group.size(), group.rank()))


def set_model_state_dict(model: Any, model_state_dict: State, *, options: StateDictOptions | None = None) -> Any:
    """Load a state under plain names, of parts or of whole tensors."""
    chosen = options or StateDictOptions()
    given = _from_rank_0(model_state_dict, chosen)
    current = _state_of_parts(model)
    loaded = {}
    for name, value in current.items():
        plain = _plain(name, model)
        if plain in given:
            part = own_part(given[plain], value)
            loaded[name] = value.like(part._array) if isinstance(value, DTensor) and part is not given[plain] else part
    missing = [name for name in given if name not in {_plain(each, model) for each in current}]
    return model.load_state_dict({**loaded, **{name: given[name] for name in missing}}, strict=chosen.strict)


def _optimizers(optimizers: Any) -> list[Any]:
    return list(optimizers) if isinstance(optimizers, Iterable) else [optimizers]


def get_optimizer_state_dict(
    model: Any, optimizers: Any, *, submodules: Any = None, options: StateDictOptions | None = None
) -> State:
    """The state of an optimizer by plain names of parameters. With `full_state_dict=True` all ranks must call it.

    An optimizer that has made no step gets the state that it begins with, so that there is something to load into.
    """
    chosen = options or StateDictOptions()
    names = {id(parameter): name for name, parameter in _plain_names(model).items()}
    found: State = {"state": {}, "param_groups": []}
    for optimizer in _optimizers(optimizers):
        _begin(optimizer)
        for group in optimizer.param_groups:
            kept = {key: value for key, value in group.items() if key != "params"}
            found["param_groups"].append({**kept, "params": [names[id(each)] for each in group["params"]]})
            for parameter in group["params"]:
                if parameter in optimizer.state:
                    state = optimizer.state[parameter]
                    found["state"][names[id(parameter)]] = {
                        key: _whole_state(value, parameter, chosen) for key, value in state.items()
                    }
    return {} if _is_left_out(chosen) else found


def _begin(optimizer: Any) -> None:
    """Let an optimizer make its state by a step that changes nothing: without gradients, at no speed."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    if optimizer.state or any(parameter.grad is not None for parameter in parameters):
        return
    speeds = [group.get("lr") for group in optimizer.param_groups]
    for parameter in parameters:
        if parameter.requires_grad:
            parameter.grad = pullback.zeros_like(parameter)
    for group in optimizer.param_groups:
        group["lr"] = pullback.tensor(0.0) if isinstance(group.get("lr"), pullback.Tensor) else 0.0
    optimizer.step()
    for group, speed in zip(optimizer.param_groups, speeds, strict=True):
        group["lr"] = speed
    optimizer.zero_grad(set_to_none=True)


def _whole_state(value: Any, parameter: Any, options: StateDictOptions) -> Any:
    """A part of an optimizer's state, made whole, or told to be a part, if it lies as its parameter does."""
    if isinstance(value, DTensor):
        return _whole(value, options)
    is_part = isinstance(parameter, DTensor) and isinstance(value, pullback.Tensor) and value.ndim > 0
    group = parameter.shard_group() if is_part else None
    if group is None or value._array.shape != parameter._array.shape:
        return value
    return (
        gather_parts(value._array, parameter.shape, group, parameter.shard_dim())
        if options.full_state_dict
        else parameter.like(value._array)
    )


def set_optimizer_state_dict(
    model: Any, optimizers: Any, optim_state_dict: State, *, options: StateDictOptions | None = None
) -> None:
    """Load the state of an optimizer by plain names of parameters, of parts or of whole tensors."""
    given = _from_rank_0(optim_state_dict, options or StateDictOptions())
    for optimizer in _optimizers(optimizers):
        optimizer.load_state_dict(numbered_optimizer_state(model, optimizer, given))


def numbered_optimizer_state(model: Any, optimizer: Any, given: State) -> State:
    """What the optimizer's `load_state_dict` takes, of a state by plain names, of parts or of whole tensors."""
    names = {id(parameter): name for name, parameter in _plain_names(model).items()}
    groups = {tuple(group["params"]): group for group in given["param_groups"]}
    numbered: State = {"state": {}, "param_groups": []}
    start = 0
    for group in optimizer.param_groups:
        own = [names[id(each)] for each in group["params"]]
        numbers = list(range(start, start + len(own)))
        start += len(own)
        known = groups.get(tuple(own))
        if known is None:
            raise RuntimeError(f"The state has no parameter group of {own}: make the optimizer as the saved one was")
        numbered["param_groups"].append({**known, "params": numbers})
        for number, name, parameter in zip(numbers, own, group["params"], strict=True):
            if name in given["state"]:
                numbered["state"][number] = {
                    key: value.to_local() if isinstance(value, DTensor) else own_part(value, parameter)
                    for key, value in given["state"][name].items()
                }
    return numbered


def get_state_dict(
    model: Any, optimizers: Any, *, submodules: Any = None, options: StateDictOptions | None = None
) -> tuple[State, State]:
    """The states of a model and its optimizer."""
    return get_model_state_dict(model, options=options), get_optimizer_state_dict(model, optimizers, options=options)


def set_state_dict(
    model: Any, optimizers: Any, *, model_state_dict: State, optim_state_dict: State,
    options: StateDictOptions | None = None,
) -> Any:  # fmt: skip
    """Load the states of a model and its optimizer."""
    result = set_model_state_dict(model, model_state_dict, options=options)
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return result
