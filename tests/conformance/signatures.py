"""Compare signatures with PyTorch's: `python -m tests.conformance.signatures [--all] [name ...]`.

For every public function and method, calls that PyTorch takes are drawn from its operator database and from its schemas
and said in other ways: by keyword, by position, with each default written out, under the names NumPy uses, with NumPy's
numbers, tensors for numbers, tuples, lists, sizes and separate ints for shapes. What PyTorch returns (values, dtypes,
strides, shared memory, named tuples, printed form) we must return; what it refuses we must refuse. A line for each
difference; the last line has the counts. `--all` also shows errors of another type.
"""

from __future__ import annotations

import builtins
import collections
import inspect
import itertools
import multiprocessing
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

import pullback
from pullback.backend.naming import set_display_namespace

from .comparison import Measure, Mismatch, compare, memory_of, tensors_in
from .entries import choose, database
from .names import _ASIDE, NAMESPACES
from .signature_calls import Bound, Call, bind, rewordings, seeds
from .signature_schemas import differing_signature, overloads_of
from .translation import Copier, find, values_of

SECONDS = 120  # for one batch of names
BATCH = 10
SEEDS = 1  # from the schemas, for each overload
SAMPLES = 2  # from the database
_LEFT_OUT = {
    # They wait, read files, start other machinery, or say where they are.
    "compile", "import_ir_module", "load", "save", "from_file", "manual_seed", "seed", "initial_seed", "set_num_threads",
    "set_num_interop_threads", "set_default_device", "set_default_dtype", "set_default_tensor_type", "set_flush_denormal",
    "set_printoptions", "use_deterministic_algorithms", "set_deterministic_debug_mode", "set_warn_always", "share_memory_",
    "set_rng_state", "get_rng_state", "get_file_path", "prepare_multiprocessing_environment", "set_anomaly_enabled",
    "data_ptr", "vmap", "cond", "while_loop", "set_autocast_enabled", "set_float32_matmul_precision", "clear_autocast_cache",
    "cuda", "xpu", "to_dlpack", "set_autocast_cpu_dtype", "set_autocast_dtype", "storage", "untyped_storage", "from_dlpack",
    "autocast_increment_nesting", "autocast_decrement_nesting", "set_autocast_cache_enabled", "set_autocast_cpu_enabled",
    "set_autocast_gpu_dtype", "set_autocast_ipu_dtype", "set_autocast_xla_dtype", "typename", "module_load",
}  # fmt: skip
# What a kernel of PyTorch's lacks, or breaks on, is not part of a signature.
_NO_SIGNATURE = ("not implemented", "INTERNAL ASSERT", "not supported", "unsupported", "Expected all tensors to be on")
Difference = tuple[str, str, str]
"""The kind ("refuses", "accepts", "differs", "error"), the call, what differs."""


def public_functions() -> Iterator[str]:
    """The paths of what is called: `torch.sum`, `torch.Tensor.sum`, `torch.nn.functional.relu`."""
    for namespace in NAMESPACES:
        place = find(torch, namespace) if namespace != "torch" else torch
        for name in sorted(getattr(place, "__all__", None) or dir(place)):
            value = getattr(place, name, None)
            if name.startswith("_") or _ASIDE.search(name) or name in _LEFT_OUT or inspect.isclass(value):
                continue
            if callable(value) and not inspect.ismodule(value):
                yield f"{namespace}.{name}"


def calls_of(path: str) -> Iterator[Call]:
    """The calls of one function in all their wordings."""
    function, is_method = find(torch, path), path.startswith("torch.Tensor.")
    overloads = overloads_of(function, path)
    for start in (*_from_database(function, path, overloads), *_from_schemas(function, overloads)):
        yield from rewordings(start, is_method)


def _from_database(function: Any, path: str, overloads: list[Any]) -> Iterator[Bound]:
    name = path.removeprefix("torch.Tensor.").removeprefix("torch.")
    for entry in database():
        same = entry.theirs is function or entry.name.split(" ")[0] == name
        if not same or not entry.dtypes:
            continue
        for sample in choose(list(itertools.islice(entry.samples(entry.dtypes[0], False), 30)), SAMPLES):
            bound = bind(overloads, sample.arguments, sample.options)
            if bound is not None and _is_small(sample.arguments):
                yield bound


def _is_small(arguments: tuple[Any, ...]) -> bool:
    return sum(tensor.numel() for tensor in tensors_in(list(arguments))) < 5000


def _from_schemas(function: Any, overloads: list[Any]) -> Iterator[Bound]:
    for overload in overloads:
        taken = 0
        for start in seeds(overload):
            call = start.call("")
            if call is not None and not isinstance(outcome(function, False, call)[0], Exception):
                taken += 1
                yield start
            if taken == SEEDS:
                break


def outcome(function: Callable[..., Any], to_ours: bool, call: Call) -> tuple[Any, list[Any]]:
    """What a call returns or raises, and the tensors it was given."""
    copier = Copier(to_ours)
    (pullback if to_ours else torch).default_generator.manual_seed(0)  # torch.manual_seed formats a stack each time
    try:
        arguments = [_copied(copier, a) for a in call.arguments]
        options = {k: _copied(copier, v) for k, v in call.options.items()}
        return function(*arguments, **options), tensors_in([arguments, list(options.values())])
    except Exception as error:
        return error, []


def _copied(copier: Copier, value: Any) -> Any:
    if isinstance(value, torch.nn.Parameter):
        return (pullback.nn.Parameter if copier._to_ours else torch.nn.Parameter)(copier.tensor(value.detach()))
    if isinstance(value, torch.Size):
        return (pullback.Size if copier._to_ours else torch.Size)(value)
    return copier.tree(value)


def difference(path: str, ours: Any, call: Call) -> Difference | None:
    """How our outcome of a call differs from PyTorch's."""
    expected, their_inputs = outcome(find(torch, path), False, call)
    actual, our_inputs = outcome(ours, True, call)
    if isinstance(expected, Exception) and any(word in str(expected) for word in _NO_SIGNATURE):
        return None
    if isinstance(actual, Exception):
        if not isinstance(expected, Exception):
            return "refuses", call.what, f"{_short(expected)} | {actual!r:.200}"
        return (
            None
            if isinstance(actual, _builtin(expected))
            else ("error", call.what, f"{expected!r:.150} | {actual!r:.150}")
        )
    if isinstance(expected, Exception):
        return "accepts", call.what, f"{expected!r:.200} | {_short(actual)}"
    found = _differing(path, expected, actual, their_inputs, our_inputs)
    if found is None and call.what in ("as it is", "input: requires grad") and "empty" not in path:
        found = _differing_text(expected, actual)
    return ("differs", call.what, found) if found else None


def _builtin(error: BaseException) -> type[BaseException]:
    return next(c for c in type(error).__mro__ if c.__module__ == builtins.__name__)


def _short(value: Any) -> str:
    return " ".join(repr(value).split())[:120]


def _differing(path: str, expected: Any, actual: Any, their_inputs: list[Any], our_inputs: list[Any]) -> str | None:
    has_values = "empty" not in path and "resize" not in path
    try:
        if type(expected).__name__ != type(actual).__name__:
            return f"type {type(expected).__name__}, not {type(actual).__name__}"
        if "meta" not in {t.device.type for t in tensors_in(expected)}:
            compare(expected, actual, Measure(scaled=True, values=has_values, slack=10.0))
            compare(their_inputs, our_inputs, Measure(scaled=True, values=has_values, slack=10.0), "argument")
            if memory_of(expected, their_inputs) != memory_of(actual, our_inputs):
                return f"memory {memory_of(expected, their_inputs)}, not {memory_of(actual, our_inputs)}"
    except Mismatch as mismatch:
        return str(mismatch)
    for theirs, given in zip(tensors_in(expected), tensors_in(actual), strict=True):
        if (told := _told(theirs)) != (ours := _told(given)):
            return f"{told}, not {ours}"
    return None


def _told(tensor: Any) -> tuple[Any, ...]:
    steps = tuple(s for s, n in zip(tensor.stride(), tensor.shape, strict=True) if n > 1) if tensor.numel() else ()
    return steps, tensor.requires_grad, tensor._is_view(), tensor.grad_fn and tensor.grad_fn.name(), str(tensor.device)


def _differing_text(expected: Any, actual: Any) -> str | None:
    pairs = list(zip(tensors_in(expected), tensors_in(actual), strict=True))
    if all(t.device.type == "cpu" and values_of(t).tobytes() == values_of(a).tobytes() for t, a in pairs):
        theirs, ours = repr(expected), repr(actual)
        if theirs != ours and " at 0x" not in theirs:
            return f"prints {_short(expected)}, not {_short(actual)}"
    return None


def examine(path: str, ours: Any = None) -> tuple[int, list[Difference]]:
    """How many calls of a function were compared, and what differed."""
    if ours is None:
        try:
            ours = find(pullback, path)
        except AttributeError:
            return 1, [("refuses", "the name", "is missing")]
    made, found = 1, []
    if text := differing_signature(find(torch, path), ours):
        found.append(("signature", "inspect.signature", text))
    for call in calls_of(path):
        made += 1
        try:
            differing = difference(path, ours, call)
        except Exception as error:
            differing = ("differs", call.what, f"comparison failed: {error!r:.150}")
        if differing is not None:
            found.append(differing)
    return made, list({(kind, what): (kind, what, text) for kind, what, text in reversed(found)}.values())[::-1]


def _examine_all(paths: list[str]) -> list[tuple[str, int, list[Difference]]]:
    warnings.simplefilter("ignore")
    set_display_namespace("torch")
    torch.set_num_threads(1)
    return [(path, *examine(path)) for path in paths]


def _in_process(paths: list[str]) -> Iterator[tuple[str, int, list[Difference]]]:
    """Examine in another process, since PyTorch crashes on some calls; alone, if a batch did not come back."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        try:
            yield from pool.apply_async(_examine_all, (paths,)).get(SECONDS)
            return
        except Exception as error:
            if len(paths) == 1:
                yield paths[0], 0, [("crashed", "all", repr(error))]
                return
    for path in paths:
        yield from _in_process([path])


def main(names: list[str]) -> int:
    """Compare the functions named (`sum` or `torch.Tensor.sum`), or all of them."""
    shown = ("error",) if "--all" not in names else ()
    names = [name for name in names if not name.startswith("--")]
    paths = [p for p in public_functions() if not names or p in names or p.split(".")[-1] in names]
    counts: collections.Counter[str] = collections.Counter()
    database()
    for start in range(0, len(paths), BATCH):
        for path, made, differences in _in_process(paths[start : start + BATCH]):
            counts.update({"functions": 1, "calls": made})
            for kind, what, text in differences:
                counts[kind] += 1
                if kind not in shown:
                    print(f"{kind}: {path}: {what}: {text}", flush=True)
    print(", ".join(f"{name} {count}" for name, count in counts.items()))
    return int(any(counts[kind] for kind in ("refuses", "accepts", "differs", "signature", "crashed")))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
