"""What kernels that are not elementwise mean in steps, a file per family.

Each function has the arguments of the kernel of its name, with places for arrays; what it does not cover raises
NotLowered, and the kernel is called as it is. One that gives None leaves an elementwise kernel to its own text.
"""

from pullback.compiling.lowered import assembled_gradients, casts, joining, losses, products, reductions, softmaxes
from pullback.compiling.lowered.lowering_table import LOWERINGS
from pullback.compiling.lowered.numpy_functions import BY_FUNCTION, lower_ufunc

__all__ = [
    "BY_FUNCTION",
    "LOWERINGS",
    "assembled_gradients",
    "casts",
    "joining",
    "losses",
    "lower_ufunc",
    "products",
    "reductions",
    "softmaxes",
]
