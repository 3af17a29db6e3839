"""Infinities and nan arise without a word, as in PyTorch, whatever filters of warnings a program sets.

# Note [Silent arithmetic]
NumPy warns (or raises, where a program says so) when 1/0 or an overflow happens in its loops; PyTorch's arithmetic never
does. What NumPy does stands in a context variable. It is set to "nothing" while a NumPy kernel runs, by the decorators of
kernels (`@native`, `@by_device`, `@by_element`), and around the few functions outside of kernels/ that compute with arrays
(`@silent`). A backward pass sets it once, and gives users' hooks and Functions the program's own setting back;
unpack hooks, which run in the middle of a rule, are as silent as it is. Compiled kernels do not look at the flags and cost
nothing; a NumPy kernel costs about 60 ns more. Setting the variable once for a thread would be cheaper, but it would also
silence the program's own use of NumPy, and other threads would not have it; a filter of warnings is lost when a program
sets its own.
"""

from __future__ import annotations

from contextvars import ContextVar, copy_context
from typing import Any

import numpy as np

from pullback.native import ignore_errors


def _find_error_variable() -> tuple[ContextVar[Any], Any]:
    """NumPy's variable of what floating-point errors do, and its value for: nothing."""
    context = copy_context()
    former = dict(context)
    context.run(np.seterr, all="ignore")
    return next((variable, value) for variable, value in context.items() if former.get(variable) is not value)


error_variable, ignoring = _find_error_variable()
ignore_errors(error_variable, ignoring)
