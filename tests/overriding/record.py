"""Records what PyTorch tells a Tensor subclass and a function mode: `python -m tests.overriding.record` (needs PyTorch)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.overriding.expressions import IN_MODES, OPERATORS, PROPERTIES_WRITTEN, told, told_to_mode

RECORDED = Path(__file__).parent / "recorded.json"
RECORDED_IN_MODES = Path(__file__).parent / "recorded_in_modes.json"
NAMESPACES = ("torch", "torch.nn.functional", "torch.linalg", "torch.fft", "torch.special")
ARGUMENTS = (
    "", "{}", "0", "2", "1.0", "0, 1", "{}, {}", "0, i, {}", "0, i", "0, i, 1.0", "m, 1.0", "m, {}", "{}, 0", "{}, 1", "0, 0",
    "1, 1, 1", "0, 1, 1", "{}, {}, {}", "i", "i, {}", "m", "0, m.long()", "0, m.long(), {}", "0, m.long(), {}, 'sum'",
    "0, i, {}, 'mean'", "1, 1.0", "i, 2", "(2, 2)", "(1, 1)", "1.0, {}", "{}, 1.0, 2.0", "[{}, {}]", "0.5, True", "(2, 2), 1",
    "{}, {}[0]", "{}[0]", "{}[0], {}[0]", "{}, {}[0], {}[0]", "{}[None], {}[None]", "{}[None], {}[None], {}[None]",
    "{}, 0.5, False", "{}, [2]", "torch.float32", "print", "0, 1, 0", "(2, 2), (2, 1)", "{}[None], 1", "{}[None], (1, 1)",
    "{}[None, None], 1", "{}[None, None], {}[None, None]", "{}, {}, {}, {}", "{}, i", "{}, {}, i", "i, {}, i[:1]",
)  # fmt: skip
LEFT_OUT = frozenset(
    "__class__ __new__ __init__ __init_subclass__ __subclasshook__ __getattribute__ __setattr__ __delattr__ __dir__ "
    "__sizeof__ __getstate__ __reduce__ __reduce_ex__ __torch_function__ __torch_dispatch__ __subclasses__ "
    "__class_getitem__ as_subclass map_ map2_ apply_ share_memory_ cuda xpu ipu pin_memory is_pinned rand randn randint "
    "__setstate__ __delitem__ __contains__ __getitem__ __setitem__ has_torch_function "
    "has_torch_function_unary has_torch_function_variadic handle_torch_function assert_int_or_pair classproperty "
    "prepare_multiprocessing_environment is_vulkan_available cudnn_is_acceptable set_printoptions lp_pool1d lp_pool2d lp_pool3d "
    "fbgemm_linear_quantize_weight fbgemm_pack_gemm_matrix_fp16 fbgemm_pack_quantized_matrix".split()
)
"""What makes or unmakes classes and objects, what other tests call, and what is not a function on tensors."""


def calls(torch: Any) -> Iterator[str]:
    """Every call that is looked at."""
    yield from OPERATORS
    yield from PROPERTIES_WRITTEN
    for name in sorted(dir(torch.Tensor)):
        if name in LEFT_OUT or (name[0] == "_" and name[:2] != "__" and name not in ("_base", "_version")):
            continue
        if callable(getattr(torch.Tensor, name)):
            yield from _fitting(torch, f"s.{name}", f"x.{name}")
        else:
            yield f"s.{name}"
    for namespace in NAMESPACES:
        module = import_module(namespace)
        for name in sorted(dir(module)):
            function = getattr(module, name)
            if name[0] != "_" and callable(function) and not isinstance(function, type) and name not in LEFT_OUT:
                yield from _fitting(torch, f"{namespace}.{name}", f"{namespace}.{name}")


def _fitting(torch: Any, called: str, plainly: str) -> Iterator[str]:
    """The first arguments of which PyTorch tells the subclass something: as first and only, and as last of several."""
    is_method = called.startswith("s.")
    found = 0
    for arguments in ARGUMENTS:
        count = arguments.count("{}")
        if not is_method and not count:
            continue
        first = ["y"] * count if is_method else ["s", *["y"] * (count - 1)]
        call = f"{called}({arguments.format(*first)})"
        answer = told(torch, call)
        if str(answer[-2]).startswith(("raises", "NotImplemented")) or len(answer) < 3:
            continue
        yield call
        if count > (not is_method):
            last = [*["y"] * (count - 1), "t"]
            yield f"{plainly}({arguments.format(*last)})"
        found += 1
        if found == 2:
            return


def record() -> dict[str, list[Any]]:
    """What PyTorch tells a subclass, by call."""
    torch: Any = import_module("torch")
    return {call: told(torch, call) for call in calls(torch)}


def record_in_modes(calls: list[str]) -> dict[str, list[Any]]:
    """What PyTorch tells a function mode, by call."""
    torch: Any = import_module("torch")
    return {call: told_to_mode(torch, call) for call in calls}


def _write(path: Path, answers: dict[str, list[Any]]) -> None:
    lines = [f"{json.dumps(call)}: {json.dumps(answer)}" for call, answer in answers.items()]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    recorded = record()
    _write(RECORDED, recorded)
    _write(RECORDED_IN_MODES, record_in_modes([*recorded, *IN_MODES]))
