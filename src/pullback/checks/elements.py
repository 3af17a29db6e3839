"""What kernels raise after a look at elements: the reasons that neither shapes nor dtypes nor numbers tell.

A kernel raises nothing else (tests/kernels/test_checks.py), and `make size` counts its raises by these reasons.
"""

from __future__ import annotations

from pullback.errors import LinAlgError


def position_out_of_range(message: str, error: type[Exception] = IndexError) -> Exception:
    """A position names nothing: an index, a class or a row that is not there."""
    return error(message)


def value_out_of_range(message: str, error: type[Exception] = RuntimeError) -> Exception:
    """A value is not one that the operation is defined for, or there are more than there is room for."""
    return error(message)


def division_by_zero() -> Exception:
    """An integer is divided by zero."""
    return RuntimeError("ZeroDivisionError")


def failed_factorization(message: str) -> LinAlgError:
    """A matrix is singular, not positive definite or not finite, or its algorithm did not converge."""
    return LinAlgError(message)
