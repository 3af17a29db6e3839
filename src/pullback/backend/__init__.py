"""Arrays, dtypes, devices and random numbers: the border to the array library.

`PULLBACK_KEEP_MEMORY=0` in the environment leaves the process's malloc as it is.
"""

import os

import pullback.backend.silent_arithmetic  # noqa: F401 - kernels are silent from here on
from pullback.backend.allocator import keep_freed_memory

if os.environ.get("PULLBACK_KEEP_MEMORY", "1") != "0":
    keep_freed_memory()
