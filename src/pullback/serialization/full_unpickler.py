"""Python's own unpickler for files that are trusted (`weights_only=False`), with PyTorch's names leading to pullback.

It runs whatever code the file contains. PyTorch itself is never imported: what pullback has no counterpart of raises.
"""

from __future__ import annotations

import importlib
import pickle
from collections.abc import Callable
from typing import Any, NoReturn

from pullback.backend.random.generator import Generator
from pullback.serialization.vocabulary import Vocabulary

_MOVED = {
    "torch._C": "torch",
    "torch._tensor": "torch",
    "torch._C._autograd": "torch.autograd",
    "torch._C._nn": "torch.nn.functional",
}
"""Where names of PyTorch's private modules are public."""


def make_unpickler(
    pickle_module: Any,
    source: Any,
    vocabulary: Vocabulary,
    persistent_load: Callable[[Any], object] | None,
    **options: Any,
) -> pickle.Unpickler:
    """An unpickler of `pickle_module` that knows PyTorch's names."""
    load_persistent = persistent_load or _no_persistent_ids

    class CheckpointUnpickler(pickle_module.Unpickler):  # type: ignore[misc]  # the base is the caller's choice
        def find_class(self, module: str, name: str) -> Any:
            if module.partition(".")[0] != "torch":
                return super().find_class(module, name)
            if name == "Generator":
                return _StoredGenerator
            found = vocabulary.find(module, name)
            return resolve_torch_name(module, name) if found is None else found

        def persistent_load(self, identifier: Any) -> object:
            return load_persistent(identifier)

    unpickler: pickle.Unpickler = CheckpointUnpickler(source, **options)
    return unpickler


class _StoredGenerator(Generator):
    """A Generator until it has its state: PyTorch's files hold the seed, an offset and the state as a tensor."""

    def __setstate__(self, state: Any) -> None:
        self.__class__ = Generator  # type: ignore[assignment]  # it differs only in this method
        self.unpack_state(state[2]._array)


def _no_persistent_ids(identifier: object) -> NoReturn:
    raise pickle.UnpicklingError("a persistent id where the format has none")


def resolve_torch_name(module: str, name: str) -> Any:
    """Pullback's counterpart of a class or function of PyTorch.

    The same module is tried first, then its parents: `torch.nn.modules.linear.Linear` is found as `pullback.nn.Linear`.
    """
    candidate = "pullback" + _MOVED.get(module, module).removeprefix("torch")
    while candidate:
        found = _attribute(candidate, name)
        if found is not None:
            return found
        candidate = candidate.rpartition(".")[0]
    raise pickle.UnpicklingError(
        f"the file needs {module}.{name}, which has no counterpart in pullback. "
        "Save the model's state_dict() instead of the model, and load that."
    )


def _attribute(module: str, name: str) -> Any:
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError):
        return None
    return found
