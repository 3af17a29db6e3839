"""The namespace torch.nn.functional: functions on tensors that layers are made of.

Functions whose arguments differ from those of the top-level function of the same name are defined in the files of this
folder; all others are those of `pullback`. A file is imported when one of its names is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from pullback import functions
from pullback.facts import fact_of, names_with
from pullback.nn.functional.namespace import FILES
from pullback.overrides.overridable_functions import is_built_in
from pullback.tensor.foreign_arguments import explain_errors, offer_calls

_HERE = {name: f"pullback.nn.functional.{file}" for file, names in FILES.items() for name in names.split()}
_COMMON = frozenset(names_with("functional")) | {
    f"{name}_" for name, how in names_with("functional").items() if how == "also in place"
}
"""The same functions as `pullback.<name>`."""

__all__ = sorted({*_HERE, *_COMMON})


def __getattr__(name: str) -> Any:
    if name in _HERE:
        value = getattr(import_module(_HERE[name]), name)
        if not isinstance(value, type):
            value = explain_errors(value, name) if name.startswith("upsample") else offer_calls(value, __name__, name)
    elif name in _COMMON:
        value = _common(name)
    elif name == "_Reduction":
        value = import_module("pullback.nn._reduction")
    else:
        raise AttributeError(f"module 'pullback.nn.functional' has no attribute '{name}'")
    globals()[name] = value
    return value


def _common(name: str) -> Any:
    """A function of `pullback.functions`. See Note [Foreign arguments]."""
    own = f"functional_{name}"
    known = own if functions.module_of(own) is not None else name
    function = getattr(functions, known)
    if is_built_in(name) and name in functions.public_names():
        return getattr(import_module("pullback"), name)
    return (
        function if fact_of(known, "asks") or known not in functions.MODULES else offer_calls(function, __name__, name)
    )


def __dir__() -> list[str]:
    return __all__
