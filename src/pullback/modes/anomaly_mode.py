"""Whether nodes remember where they were recorded, and whether backward looks for NaN."""

from __future__ import annotations

from pullback.modes.switches import process, set_switch, switches


def is_anomaly_enabled() -> bool:
    """Whether this thread is in anomaly mode."""
    return bool(process.changed) and switches.anomaly_mode


def is_anomaly_check_nan_enabled() -> bool:
    """Whether anomaly mode looks for NaN."""
    return switches.anomaly_check_nan


def set_anomaly_mode(enabled: bool, check_nan: bool = True) -> tuple[bool, bool]:
    """Switch anomaly mode for this thread and return the former state."""
    former = (switches.anomaly_mode, switches.anomaly_check_nan)
    set_switch("anomaly_mode", enabled)
    switches.anomaly_check_nan = check_nan
    return former
