"""ZeroRedundancyOptimizer: every rank keeps the optimizer's state of its share of the parameters, and updates those.

After a step each rank sends its share to all others. Momenta and their like take 1 / ranks of the memory.
"""

from __future__ import annotations

from typing import Any

from pullback.autograd.grad_mode import no_grad
from pullback.distributed.algorithms.join import Join, Joinable, JoinConfig, JoinHook
from pullback.distributed.coalescing import broadcast_together
from pullback.distributed.object_collectives import gather_object
from pullback.distributed.process_group import group_of
from pullback.optim.optimizer import Optimizer

__all__ = ["ZeroRedundancyOptimizer"]


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """Shares an optimizer's state among the ranks of a group.

    `consolidate_state_dict(to)`, called on all ranks, brings the whole state to one, where `state_dict()` is then the one
    that `optimizer_class` itself would have: it can be loaded with any number of ranks.

    >>> import pullback
    >>> import pullback.distributed as dist
    >>> dist.init_process_group("gloo", rank=0, world_size=1)
    >>> x = pullback.tensor([1.0], requires_grad=True)
    >>> optimizer = ZeroRedundancyOptimizer([x], pullback.optim.SGD, lr=0.5)
    >>> (x * x).sum().backward()
    >>> optimizer.step()
    >>> x
    tensor([0.], requires_grad=True)
    >>> dist.destroy_process_group()
    """

    def __init__(
        self, params: Any, optimizer_class: type[Optimizer], process_group: Any = None,
        parameters_as_bucket_view: bool = False, overlap_with_ddp: bool = False, **defaults: Any,
    ) -> None:  # fmt: skip
        if overlap_with_ddp:
            raise NotImplementedError("overlap_with_ddp=True is not supported: the step runs after backward")
        self._is_ready = False
        self._group = group_of(process_group)
        self._optimizer_class = optimizer_class
        self._shares: list[list[Any]] = [[] for _ in range(self._group.size())]
        self._collected: list[Any] | None = None
        params = list(params)
        if not params:
            raise ValueError("ZeroRedundancyOptimizer got an empty parameter list")
        Optimizer.__init__(self, params, dict(defaults))
        self._join_config = JoinConfig.disabled()
        self._divide()
        self.optim: Any = self._make_own(defaults)
        for group, own in zip(self.param_groups, self.optim.param_groups, strict=True):
            for name, value in own.items():
                group.setdefault(name, value) if name != "params" else None
        self.defaults = self.optim.defaults
        self._is_ready = True

    def _divide(self) -> None:
        """Give every parameter to a rank: the largest first, each to the rank that has least so far."""
        self._shares = [[] for _ in range(self._group.size())]
        sizes = [0] * self._group.size()
        self._owner: dict[int, int] = {}
        for group in self.param_groups:
            for parameter in sorted(group["params"], key=lambda each: -each.numel()):
                rank = sizes.index(min(sizes))
                sizes[rank] += parameter.numel()
                self._owner[id(parameter)] = rank
        for group in self.param_groups:
            for parameter in group["params"]:
                self._shares[self._owner[id(parameter)]].append(parameter)

    def _own(self, group: dict[str, Any]) -> dict[str, Any]:
        mine = [each for each in group["params"] if self._owner[id(each)] == self._group.rank()]
        return {**group, "params": mine}

    def _make_own(self, defaults: dict[str, Any]) -> Any:
        return self._optimizer_class([self._own(group) for group in self.param_groups], **defaults)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Take more parameters; shares are divided anew, and only the new ones change their rank."""
        super().add_param_group(param_group)
        if not self._is_ready:
            return
        added = self.param_groups[-1]
        sizes = [sum(each.numel() for each in share) for share in self._shares]
        for parameter in sorted(added["params"], key=lambda each: -each.numel()):
            rank = sizes.index(min(sizes))
            sizes[rank] += parameter.numel()
            self._owner[id(parameter)] = rank
            self._shares[rank].append(parameter)
        self.optim.add_param_group(self._own(added))

    def step(self, closure: Any = None, **kwargs: Any) -> Any:
        """Update the own share, then send it to all other ranks and receive theirs."""
        if self._join_config.enable:
            Join.notify_join_context(self)
        self._pass_options_on()
        loss = self.optim.step(closure, **kwargs) if closure is not None else self.optim.step(**kwargs)
        with no_grad():
            for rank, share in enumerate(self._shares):
                if share:
                    broadcast_together(share, self._group, rank)
        return loss

    def _pass_options_on(self) -> None:
        """Let the own optimizer follow what schedulers and users changed in `param_groups`."""
        for group, own in zip(self.param_groups, self.optim.param_groups, strict=True):
            own.update({name: value for name, value in group.items() if name != "params"})

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Bring the states of all ranks to rank `to`. All ranks must call it."""
        self._pass_options_on()
        receives = self._group.global_rank() == to
        found: list[Any] | None = [None] * self._group.size() if receives else None
        gather_object(self.optim.state_dict(), found, dst=to, group=self._group)
        self._collected = found

    def state_dict(self) -> dict[str, Any]:
        """The whole state, on the rank that `consolidate_state_dict` brought it to."""
        if self._collected is None:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. Please call `consolidate_state_dict(to="
                f"{self._group.global_rank()})` on all ranks beforehand if you meant to save the global state."
            )
        state, groups, start = {}, [], 0
        for index, group in enumerate(self.param_groups):
            own_first = self._collected[0]["param_groups"][index]
            groups.append({**own_first, "params": list(range(start, start + len(group["params"])))})
            for place, parameter in enumerate(group["params"]):
                found = self._collected[self._owner[id(parameter)]]
                number = self._number_of(parameter, index, found)
                if number in found["state"]:
                    state[start + place] = found["state"][number]
            start += len(group["params"])
        return {"state": state, "param_groups": groups}

    def _number_of(self, parameter: Any, group: int, found: dict[str, Any]) -> int:
        """The number that a parameter has in the state of the rank that owns it."""
        owner = self._owner[id(parameter)]
        mine = [each for each in self.param_groups[group]["params"] if self._owner[id(each)] == owner]
        place = next(index for index, each in enumerate(mine) if each is parameter)
        return int(found["param_groups"][group]["params"][place])

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a whole state, of which this rank keeps its share."""
        self._collected = None
        state, groups, number = {}, [], 0
        for group, loaded in zip(self.param_groups, state_dict["param_groups"], strict=True):
            options = {name: value for name, value in loaded.items() if name != "params"}
            group.update(options)
            own = []
            for parameter, old in zip(group["params"], loaded["params"], strict=True):
                if self._owner[id(parameter)] != self._group.rank():
                    continue
                if old in state_dict["state"]:
                    state[number] = state_dict["state"][old]
                own.append(number)
                number += 1
            groups.append({**options, "params": own})
        self.optim.load_state_dict({"state": state, "param_groups": groups})

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What a rank without data does: a step without gradients of its own."""
        return _ZeroJoinHook(self)

    @property
    def join_process_group(self) -> Any:
        """The ranks that take part."""
        return self._group


class _ZeroJoinHook(JoinHook):
    def __init__(self, optimizer: ZeroRedundancyOptimizer) -> None:
        self._optimizer = optimizer

    def main_hook(self) -> None:
        config, self._optimizer._join_config = self._optimizer._join_config, JoinConfig.disabled()
        self._optimizer.step()
        self._optimizer._join_config = config
