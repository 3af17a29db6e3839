"""Function transforms: `grad`, `vmap`, `jvp` and their relatives, which nest in any order."""

from __future__ import annotations

from pullback.func.batch_norm import replace_all_batch_norm_modules_
from pullback.func.functional_call import functional_call, stack_module_state
from pullback.func.functionalize import debug_unwrap, functionalize
from pullback.func.grad import grad, grad_and_value
from pullback.func.jacobians import hessian, jacfwd, jacrev
from pullback.func.jvp import jvp
from pullback.func.linearize import linearize
from pullback.func.make_functional import FunctionalModule as FunctionalModule
from pullback.func.make_functional import FunctionalModuleWithBuffers as FunctionalModuleWithBuffers
from pullback.func.make_functional import combine_state_for_ensemble as combine_state_for_ensemble
from pullback.func.make_functional import make_functional as make_functional
from pullback.func.make_functional import make_functional_with_buffers as make_functional_with_buffers
from pullback.func.rearrange import rearrange
from pullback.func.vjp import vjp
from pullback.func.vmap import vmap
from pullback.func.wrapper_text import describe as _describe  # noqa: F401  (it makes itself known to `repr`)

# PyTorch's list; functorch's older names beside it are found under both names.
__all__ = [
    "debug_unwrap", "functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp",
    "linearize", "rearrange", "replace_all_batch_norm_modules_", "stack_module_state", "vjp", "vmap",
]  # fmt: skip
