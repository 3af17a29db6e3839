"""The few names of PyTorch's compiled module that programs reach for."""

from __future__ import annotations

from enum import Enum
from importlib import import_module
from typing import Any

from pullback.autograd.execution_engine import (
    _EngineBase,
    current_graph_task_execution_order,
    current_graph_task_id,
    node_class,
    will_engine_execute_node,
)
from pullback.autograd.grad_mode import set_grad_enabled
from pullback.autograd.graph import increment_version
from pullback.backend.device import device
from pullback.backend.random.generator import Generator
from pullback.errors import LinAlgError as _LinAlgError
from pullback.func.vmap_level import active_levels
from pullback.graph.custom_function_node import _FunctionBase
from pullback.graph.history import current_node
from pullback.graph.saved_tensor import SavedTensor
from pullback.modes.saved_tensor_hooks import current_hooks, disable_hooks, pop_hooks, push_hooks, restore_hooks
from pullback.modes.switches import switches
from pullback.nn.modules.module_conversion import _parse_to as parse_to
from pullback.overrides import DisableTorchFunction, DisableTorchFunctionSubclass
from pullback.pytorch.futures import FutureBase as Future
from pullback.tensor.size import Size
from pullback.tensor.tensor import Tensor, TensorBase, _disabled_torch_function_impl
from pullback.tensor.version_counter import VersionCounter

__all__ = [
    "DisableTorchFunction",
    "DisableTorchFunctionSubclass",
    "Future",
    "Generator",
    "Size",
    "TensorBase",
    "_EngineBase",
    "_FunctionBase",
    "_LinAlgError",
    "_current_autograd_node",
    "_disabled_torch_function_impl",
]


def _is_multithreading_enabled() -> bool:
    """Whether backward may use threads of its own."""
    return switches.multithreading


class _NodeClasses(type):
    """Classes of nodes by the name they show."""

    def __getattr__(cls, name: str) -> Any:
        return node_class(name)


class _functions(metaclass=_NodeClasses):
    """The classes of all nodes, as PyTorch's compiled module groups them."""


def _set_grad_enabled(enabled: bool) -> None:
    """Switch recording in this thread on or off."""
    set_grad_enabled(enabled)


def _increment_version(tensors: Any) -> None:
    """Tell autograd that the memory of tensors was modified by other means."""
    increment_version(tensors)


def _current_autograd_node() -> Any:
    """The node that backward evaluates in this thread."""
    return current_node()


def _log_api_usage_once(event: str) -> None:
    """Accepted: nothing is logged."""


def _get_tracing_state() -> None:
    """The tracer that records this call: none."""


def _is_tracing() -> bool:
    """Whether a tracer records this call: never."""
    return False


def _are_functorch_transforms_active() -> bool:
    """Whether this runs inside of `grad`, `vjp`, `jvp` or `vmap`."""
    return bool(switches.transforms) or bool(active_levels())


class _Functions(type):
    """Classes whose attributes are functions of one of the public namespaces."""

    def __getattr__(cls, name: str) -> Any:
        module, prefix = cls.namespace, cls.prefix
        return getattr(import_module(module), name.removeprefix(prefix))


class _linalg(metaclass=_Functions):
    """Linear algebra, as PyTorch's compiled module groups it."""

    namespace, prefix = "pullback.linalg", "linalg_"


class _fft(metaclass=_Functions):
    """Fourier transforms, as PyTorch's compiled module groups them."""

    namespace, prefix = "pullback.fft", "fft_"


class _special(metaclass=_Functions):
    """Special functions, as PyTorch's compiled module groups them."""

    namespace, prefix = "pullback.special", "special_"


class _nn(metaclass=_Functions):
    """Functions of networks, as PyTorch's compiled module groups them."""

    namespace, prefix = "pullback.nn.functional", ""

    @staticmethod
    def _parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
        """What the arguments of `to()` ask for: device, dtype, whether not to wait, memory format."""
        wanted, place = parse_to(args, kwargs)
        flags = [value for value in args if isinstance(value, bool)]
        waits_not = kwargs.get("non_blocking", flags[0] if flags else False)
        return None if place is None else device(place), wanted, waits_not, kwargs.get("memory_format")


class _autograd:
    """Hooks on saved tensors and versions, as PyTorch's compiled module groups them."""

    SavedTensor = SavedTensor

    @staticmethod
    def _push_saved_tensors_default_hooks(pack_hook: Any, unpack_hook: Any) -> None:
        """Apply a pair of hooks to what is saved from now on."""
        push_hooks(pack_hook, unpack_hook)

    @staticmethod
    def _pop_saved_tensors_default_hooks() -> None:
        """Drop the innermost pair of hooks."""
        pop_hooks()

    @staticmethod
    def _top_saved_tensors_default_hooks(ignore_is_tracing: bool) -> Any:
        """The innermost pair of hooks."""
        return current_hooks()

    @staticmethod
    def _saved_tensors_hooks_is_enabled() -> bool:
        """Whether hooks may be pushed."""
        return switches.saved_tensor_hooks_disabled is None

    @staticmethod
    def _saved_tensors_hooks_disable(error_message: str) -> None:
        """Refuse hooks with a message."""
        disable_hooks(error_message)

    @staticmethod
    def _saved_tensors_hooks_enable() -> None:
        """Take hooks again."""
        restore_hooks(None)

    @staticmethod
    def _saved_tensors_hooks_get_disabled_error_message() -> str | None:
        """What is said to hooks that are refused."""
        return switches.saved_tensor_hooks_disabled

    @staticmethod
    def _unsafe_set_version_counter(tensors: Any, versions: Any) -> None:
        """Write the versions of tensors."""
        for tensor, version in zip(tensors, versions, strict=True):
            if tensor._counter is None:
                tensor._counter = VersionCounter()
            tensor._counter.value = version


DispatchKey = Enum(
    "DispatchKey",
    "Undefined CPU CUDA XPU MPS Meta BackendSelect Python FuncTorchBatched ADInplaceOrView AutogradOther AutogradCPU "
    "AutogradCUDA AutogradXPU AutogradMeta AutocastCPU AutocastCUDA AutocastXPU Autograd CompositeImplicitAutograd "
    "CompositeExplicitAutograd Functionalize",
)
DispatchKey.__doc__ = """The names under which PyTorch keeps implementations of one operator."""


class DispatchKeySet:
    """A set of dispatch keys. Nothing is dispatched by them here."""

    def __init__(self, *keys: Any) -> None:
        self._keys = frozenset(keys)

    def has(self, key: Any) -> bool:
        """Whether the key is in the set."""
        return key in self._keys

    def add(self, key: Any) -> DispatchKeySet:
        """The set with one more key."""
        return DispatchKeySet(*self._keys, key)

    def remove(self, key: Any) -> DispatchKeySet:
        """The set without the key."""
        return DispatchKeySet(*(self._keys - {key}))

    def __or__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*self._keys, *other._keys)

    def __and__(self, other: DispatchKeySet) -> DispatchKeySet:
        return DispatchKeySet(*(self._keys & other._keys))


class _ExcludeDispatchKeyGuard:
    """Accepted: there is no implementation to leave out."""

    def __init__(self, keys: DispatchKeySet) -> None:
        self.keys = keys

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        return None


_current_graph_task_id = current_graph_task_id
_current_graph_task_execution_order = current_graph_task_execution_order
_will_engine_execute_node = will_engine_execute_node
_TensorBase = Tensor
