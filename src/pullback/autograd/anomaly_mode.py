"""Anomaly mode: where a NaN was made, and which forward line a failing backward came from."""

from __future__ import annotations

from pullback.errors import wrong_type
from pullback.modes.anomaly_mode import is_anomaly_check_nan_enabled, is_anomaly_enabled, set_anomaly_mode
from pullback.modes.guards import guarded, undone_by
from pullback.modes.user_warnings import warn_user

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class detect_anomaly:
    """Record forward tracebacks, and raise where backward makes a NaN.

    >>> import pullback, warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     with pullback.autograd.detect_anomaly():
    ...         x = pullback.tensor(0.0, requires_grad=True)
    ...         try:
    ...             (x.sqrt() * 0).backward()
    ...         except RuntimeError as error:
    ...             print(error)
    Function 'SqrtBackward0' returned nan values in its 0th output.
    """

    def __init__(self, check_nan: bool = True) -> None:
        self.check_nan = check_nan
        warn_user(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
            "debugging."
        )

    @guarded
    def __exit__(self, *exception: object) -> None:
        set_anomaly_mode(*self._former)

    @undone_by(__exit__)
    def __enter__(self) -> None:
        self._former = (is_anomaly_enabled(), is_anomaly_check_nan_enabled())
        set_anomaly_enabled(True, self.check_nan)


class set_detect_anomaly:
    """Switch anomaly mode on or off: at once, or until the end of a `with` block."""

    def _undo(self, mode: bool, check_nan: bool = True) -> None:
        set_anomaly_mode(*self._former)

    @undone_by(_undo)
    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._former = (is_anomaly_enabled(), is_anomaly_check_nan_enabled())
        set_anomaly_enabled(mode, check_nan)

    @guarded
    def __exit__(self, *exception: object) -> None:
        set_anomaly_mode(*self._former)

    @undone_by(__exit__)
    def __enter__(self) -> None:
        pass


def set_anomaly_enabled(enabled: bool, check_nan: bool = True) -> None:
    """Switch anomaly mode; see `autograd.set_detect_anomaly`."""
    for position, (name, value) in enumerate((("enabled", enabled), ("check_nan", check_nan)), 1):
        if not isinstance(value, bool):
            raise wrong_type("set_anomaly_enabled", name, position, "bool", value)
    set_anomaly_mode(enabled, check_nan)
