"""GradScaler: scales the loss so that small gradients survive in low precision, and undoes it before the step."""

from __future__ import annotations

from collections import defaultdict
from enum import Enum
from typing import Any

from pullback.backend.device import device_of, find_library, in_use
from pullback.creation import tensor
from pullback.graph.history import bump_version
from pullback.kernels.many_arrays import scale_arrays
from pullback.modes.user_warnings import warn_user
from pullback.tensor.sparse_tensor import SparseTensor
from pullback.tensor.tensor import Tensor

__all__ = ["GradScaler", "OptState"]


class OptState(Enum):
    """Where an optimizer stands between two updates."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _refresh_per_optimizer_state() -> dict[str, Any]:
    """What PyTorch's scaler starts with for an optimizer; its pickles name this function."""
    return {"stage": OptState.READY, "found_inf_per_device": {}}


def _by_device(arrays: list[Any]) -> list[list[Any]]:
    """Arrays in lists, one for each device."""
    parts: dict[Any, list[Any]] = {}
    for array in arrays:
        parts.setdefault(device_of(array), []).append(array)
    return list(parts.values())


class GradScaler:
    """Scale losses by a factor that grows while gradients are finite and shrinks when they are not.

    >>> import pullback
    >>> scaler = GradScaler("cpu", init_scale=4.0)
    >>> scaler.scale(pullback.tensor(2.0))
    tensor(8.)
    """

    def __init__(
        self, device: str = "cuda", init_scale: float = 2.0**16, growth_factor: float = 2.0, backoff_factor: float = 0.5,
        growth_interval: int = 2000, enabled: bool = True,
    ) -> None:  # fmt: skip
        self._device = device
        self._enabled = enabled
        if enabled and device == "cuda" and find_library("cuda") is None:
            warn_user("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.")
            self._enabled = False
        if self._enabled:
            if growth_factor <= 1.0:
                raise AssertionError("The growth factor must be > 1.0.")
            if backoff_factor >= 1.0:
                raise AssertionError("The backoff factor must be < 1.0.")
        self._scale = init_scale
        self._factor: tuple[float, Any] | None = None
        """The scale and the tensor of it: most losses are scaled as the one before."""
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._growth_tracker = 0
        self._states: dict[int, tuple[OptState, bool]] = {}

    def scale(self, outputs: Any) -> Any:
        """The outputs times the scale; a tensor or an iterable of them."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            if self._factor is None or self._factor[0] != self._scale:
                self._factor = (self._scale, tensor(self._scale))  # a number of the CPU: it meets any device
            return outputs * self._factor[1]
        if isinstance(outputs, (list, tuple)):
            return type(outputs)(self.scale(o) for o in outputs)
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def _check_scaled(self, function: str) -> None:
        if self._factor is None:
            raise AssertionError(
                f"Attempted {function} but _scale is None.  This may indicate your script did not use scaler.scale(loss or "
                "outputs) earlier in the iteration."
            )

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer's parameters by the scale."""
        if not self._enabled:
            return
        self._check_scaled("unscale_")
        state, _ = self._states.get(id(optimizer), (OptState.READY, False))
        if state is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        grads = [p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None]
        arrays = [g._sparse.values if isinstance(g, SparseTensor) else g._array for g in grads]
        found = [scale_arrays(part, 1.0 / self._scale) for part in (_by_device(arrays) if in_use else [arrays])]
        for grad in grads:
            bump_version(grad)
        self._states[id(optimizer)] = (OptState.UNSCALED, all(found))

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Unscale where that was not done, and step unless a gradient is infinite or NaN."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_scaled("step")
        state, _ = self._states.get(id(optimizer), (OptState.READY, False))
        if state is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if state is OptState.READY:
            self.unscale_(optimizer)
        _, finite = self._states[id(optimizer)]
        result = optimizer.step(*args, **kwargs) if finite else None
        self._states[id(optimizer)] = (OptState.STEPPED, finite)
        return result

    def update(self, new_scale: Any = None) -> None:
        """Let the scale follow what the gradients were, or set it."""
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale = float(new_scale)
        elif not self._states:
            raise AssertionError("No inf checks were recorded prior to update.")
        elif all(finite for _, finite in self._states.values()):
            self._growth_tracker += 1
            if self._growth_tracker == self._growth_interval:
                self._scale *= self._growth_factor
                self._growth_tracker = 0
        else:
            self._scale *= self._backoff_factor
            self._growth_tracker = 0
        self._states.clear()

    def get_scale(self) -> float:
        """The present scale, 1.0 if disabled."""
        return self._scale if self._enabled else 1.0

    def get_growth_factor(self) -> float:
        """By what the scale grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set by what the scale grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """By what the scale shrinks."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set by what the scale shrinks."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """After how many finite steps the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set after how many finite steps the scale grows."""
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        """Whether this scaler does anything."""
        return self._enabled

    def __getstate__(self) -> dict[str, Any]:
        """The attributes that PyTorch's scaler has before its first step, so that either reads the other's pickles."""
        if self._states:
            raise AssertionError("A GradScaler instance may only be pickled at the beginning of an iteration.")
        kept = ("_device", "_enabled", "_growth_factor", "_backoff_factor", "_growth_interval")
        return {
            **{name: getattr(self, name) for name in kept}, "_init_scale": self._scale, "_scale": None,
            "_init_growth_tracker": self._growth_tracker, "_growth_tracker": None,
            "_per_optimizer_states": defaultdict(_refresh_per_optimizer_state),
        }  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        left_out = ("_init_scale", "_scale", "_init_growth_tracker", "_growth_tracker", "_per_optimizer_states")
        self.__dict__.update({name: value for name, value in state.items() if name not in left_out})
        self._scale, self._growth_tracker = state["_init_scale"], state["_init_growth_tracker"]
        self._factor, self._states = None, {}

    def state_dict(self) -> dict[str, Any]:
        """What `load_state_dict` takes back; empty if disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self._scale, "growth_factor": self._growth_factor, "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval, "_growth_tracker": self._growth_tracker,
        }  # fmt: skip

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take the state of another scaler."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._scale = state_dict["scale"]
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._growth_tracker = state_dict["_growth_tracker"]
