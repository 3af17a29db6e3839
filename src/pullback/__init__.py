"""pullback: PyTorch's tensors and autograd in Python on NumPy.

    import pullback as torch

The public names are PyTorch's. Functions are found in `pullback.functions`, submodules are imported when first used.
"""

from __future__ import annotations

import math as _math
from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

__path__.append(f"{__path__[0]}/pytorch")  # see Note [One folder, public names]

from pullback import creation as _creation  # noqa: E402
from pullback import functions as _functions  # noqa: E402
from pullback.autograd.grad_mode import (  # noqa: E402
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
)
from pullback.backend.device import device  # noqa: E402
from pullback.backend.dtype import (  # noqa: E402
    bfloat16,
    complex32,
    complex64,
    complex128,
    dtype,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
    float16,
    float32,
    float64,
    get_default_dtype,
    int8,
    int16,
    int32,
    int64,
    set_default_dtype,
    uint8,
    uint16,
    uint32,
    uint64,
)
from pullback.backend.dtype import bool_ as bool  # noqa: E402
from pullback.facts import fact_of as _fact_of  # noqa: E402
from pullback.functions.methods import attach_all as _attach_all  # noqa: E402
from pullback.modes.grad_mode import is_grad_enabled, is_inference_mode_enabled  # noqa: E402
from pullback.overrides.overridable_functions import IGNORED as _IGNORED  # noqa: E402
from pullback.overrides.overridable_functions import UNTOLD as _UNTOLD  # noqa: E402
from pullback.tensor.foreign_arguments import explain_errors as _explain_errors  # noqa: E402
from pullback.tensor.foreign_arguments import offer_calls as _offer_calls  # noqa: E402
from pullback.tensor.size import Size  # noqa: E402
from pullback.tensor.tensor import Tensor  # noqa: E402
from pullback.version import __version__  # noqa: E402

# The function takes the name of the folder it is in part defined in: this import stands below all others.
from pullback.creation import tensor  # noqa: E402  isort: skip

if TYPE_CHECKING:
    from pullback.creation import arange, as_tensor, empty, eye, from_numpy, full, linspace, ones, zeros
    from pullback.tensor.formatting import set_printoptions

__all__ = [
    "Size", "Tensor", "__version__", "arange", "as_tensor", "bfloat16", "bool", "complex32", "complex64",
    "complex128", "device", "dtype", "empty", "enable_grad", "eye", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2",
    "float8_e5m2fnuz", "float8_e8m0fnu", "float16", "float32", "float64", "from_numpy", "full", "get_default_dtype",
    "inference_mode", "int8", "int16", "int32", "int64", "is_grad_enabled", "is_inference_mode_enabled", "linspace",
    "no_grad", "ones", "set_default_dtype", "set_grad_enabled", "set_printoptions", "tensor", "uint8", "uint16", "uint32",
    "uint64", "zeros",
]  # fmt: skip

inf, nan, pi, e, newaxis = _math.inf, _math.nan, _math.pi, _math.e, None
half, float, double = float16, float32, float64
short, int, long = int16, int32, int64
chalf, cfloat, cdouble = complex32, complex64, complex128

_MODULES = set(
    "amp autograd backends cuda distributions distributed fft func functional jit library linalg masked "
    "multiprocessing mps nn optim overrides profiler random return_types serialization signal sparse special testing types "
    "utils version xpu onnx cpu compiler hub package export fx quantization _C _dynamo _functorch "
    "_higher_order_ops _inductor _logging _tensor _utils accelerator futures nested quasirandom storage "
    "__future__ __config__".split()
)
# Names that are found in neither functions/ nor creation.py.
_ELSEWHERE = {
    "Generator": "pullback.random",
    "default_generator": "pullback.random",
    "manual_seed": "pullback.random",
    "seed": "pullback.random",
    "initial_seed": "pullback.random",
    "get_rng_state": "pullback.random",
    "set_rng_state": "pullback.random",
    "save": "pullback.serialization",
    "load": "pullback.serialization",
    **dict.fromkeys(
        "quantize_per_tensor quantize_per_tensor_dynamic quantize_per_channel dequantize per_tensor_affine "
        "per_channel_affine _make_per_tensor_quantized_tensor fake_quantize_per_tensor_affine "
        "fake_quantize_per_channel_affine".split(),
        "pullback.quantized_tensors",
    ),
    **dict.fromkeys("_conj _conj_physical _neg_view".split(), "pullback.functions.complex_views"),
    **dict.fromkeys(
        "cond _assert _assert_async _check _check_index _check_is_size _check_not_implemented _check_tensor_all "
        "_check_tensor_all_with _check_type _check_value _check_with".split(),
        "pullback.conditions",
    ),
    "set_printoptions": "pullback.tensor.formatting",
    "install_as_torch": "pullback.as_torch",
    "show_config": "pullback.backend.configuration",
    "OutOfMemoryError": "pullback.errors",
    "Future": "pullback._C",
    **dict.fromkeys("TypedStorage UntypedStorage".split(), "pullback.functions.storages"),
    **dict.fromkeys("finfo iinfo qint8 qint32 quint8".split(), "pullback.backend.dtype"),
    **dict.fromkeys("quint4x2 quint2x4".split(), "pullback.missing_names"),
    **dict.fromkeys(
        "layout strided sparse_coo sparse_csr sparse_csc jagged memory_format contiguous_format preserve_format "
        "legacy_contiguous_format channels_last channels_last_3d".split(),
        "pullback.backend.layout",
    ),
    **dict.fromkeys("is_anomaly_enabled is_anomaly_check_nan_enabled".split(), "pullback.modes.anomaly_mode"),
    "set_anomaly_enabled": "pullback.autograd.anomaly_mode",
    **dict.fromkeys(
        "get_num_threads set_num_threads get_num_interop_threads set_num_interop_threads init_num_threads "
        "use_deterministic_algorithms are_deterministic_algorithms_enabled set_deterministic_debug_mode "
        "is_deterministic_algorithms_warn_only_enabled get_deterministic_debug_mode set_float32_matmul_precision "
        "get_float32_matmul_precision set_flush_denormal".split(),
        "pullback.modes.determinism",
    ),
    **dict.fromkeys("set_warn_always is_warn_always_enabled".split(), "pullback.modes.user_warnings"),
    **dict.fromkeys(
        "get_default_device set_default_device set_default_tensor_type".split(), "pullback.creation.defaults"
    ),
    **dict.fromkeys(
        "sym_int sym_float sym_not sym_max sym_min sym_sqrt sym_sum sym_ite".split(), "pullback.symbolic_numbers"
    ),
    "vmap": "pullback.func",
    "compile": "pullback.compiler",
    "ops": "pullback.library",
    **dict.fromkeys("coverage derivative_coverage program_coverage".split(), "pullback.inspection.coverage"),
    "strict_derivatives": "pullback.inspection.strict_derivatives",
    "used_derivatives": "pullback.inspection.derivative_use",
    "diagnose": "pullback.inspection.diagnosis",
    "explain_grad": "pullback.inspection.explanation",
    "saved_report": "pullback.inspection.saved_memory",
    "graph_page": "pullback.utils.graph_page",
    "watch_backward": "pullback.utils.graph_page",
    "activation_budget": "pullback.inspection.activation_budget",
    "grad_health": "pullback.inspection.gradient_health",
    "summary": "pullback.inspection.model_summary",
    **dict.fromkeys("load_graph save_graph".split(), "pullback.inspection.saved_graphs"),
    **dict.fromkeys("first_difference grad_fingerprint recorded_run".split(), "pullback.inspection.fingerprints"),
    "autocast": "pullback.amp",
    "GradScaler": "pullback.amp",
    **dict.fromkeys(
        "is_autocast_enabled get_autocast_dtype is_autocast_cpu_enabled get_autocast_cpu_dtype set_autocast_cpu_dtype "
        "get_autocast_gpu_dtype set_autocast_gpu_dtype "
        "is_autocast_cache_enabled set_autocast_cache_enabled clear_autocast_cache set_autocast_dtype set_autocast_enabled "
        "set_autocast_cpu_enabled autocast_increment_nesting autocast_decrement_nesting".split(),
        "pullback.amp.autocast_mode",
    ),
    **dict.fromkeys(
        "_standard_gamma _standard_gamma_grad _sample_dirichlet _dirichlet_grad".split(),
        "pullback.functions.gamma_samples",
    ),
    **dict.fromkeys("_weight_norm _weight_norm_interface".split(), "pullback.nn.utils.norm_except_dim"),
}


def __getattr__(name: str) -> _Any:
    """Find a public name where it is defined, on first use."""
    if name in _ELSEWHERE:
        value = getattr(_import_module(_ELSEWHERE[name]), name)
    elif not name.startswith("_") and hasattr(_creation, name):
        value = getattr(_creation, name)
        if name.endswith("_like"):
            value = _offer_calls(value, "pullback", name)
    elif name in _functions.public_names() and _functions.module_of(name) is not None:
        own = f"public_{name}"  # the form of the top-level namespace, where functions here use another
        value = getattr(_functions, own if own in _functions.MODULES else name)
        if own in _functions.MODULES and name not in _functions.MODULES:
            value.__module__, value.__name__, value.__qualname__ = "pullback", name, name
        elif name in _functions.MODULES and _fact_of(name, "asks") is None:
            value = (
                _explain_errors(value, name, is_public=name not in _UNTOLD)
                if name in _IGNORED
                else _offer_calls(value, "pullback", name)
            )
    elif name in _MODULES:
        try:
            return _import_module(f"pullback.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"pullback.{name}":
                raise
            raise AttributeError(f"module 'pullback' has no attribute '{name}'") from None
    elif name.startswith("_foreach_") and (found := _foreach(name)) is not None:
        value = found
    elif name.endswith("Storage") and hasattr(storages := _import_module("pullback.functions.storages"), name):
        value = getattr(storages, name)
    else:
        raise AttributeError(f"module 'pullback' has no attribute '{name}'")
    globals()[name] = value
    return value


def _foreach(name: str) -> _Any:
    """One of PyTorch's functions over lists of tensors."""
    return _import_module("pullback.functions.many_tensors").foreach_function(name)


def __dir__() -> list[str]:
    from pkgutil import iter_modules  # only who lists the package pays for it

    return sorted(
        {
            *globals(),
            *(module.name for module in iter_modules(__path__) if module.name in _MODULES),
            *_ELSEWHERE,
            *(n for n in _functions.public_names() if _functions.module_of(n)),
            *(n for n in vars(_creation) if not n.startswith("_")),
            *_import_module("pullback.functions.storages").NAMES,
        }
    )


_attach_all()
_import_module("pullback.overrides")
