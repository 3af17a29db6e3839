"""Settings of PyTorch's compiler that programs change.

`recompile_limit` says for how many kinds of arguments a function is compiled, where it is more than pullback's own limit;
`disable` lets compiled functions run as they are. All others are kept, without effect.
"""

from typing import Any

from pullback.pytorch.compiler.settings import make_settings

__all__: list[str] = []


def _set_limit(limit: Any) -> None:
    from pullback.compiling.compiled_function import Limits  # lazy: above this layer

    Limits.wanted = limit or 0


def _set_disabled(disable: Any) -> None:
    from pullback.compiling.stances import Stance  # lazy: above this layer

    Stance.other = "force_eager" if disable else None


make_settings(__name__, "_dynamo", recompile_limit=_set_limit, disable=_set_disabled)
