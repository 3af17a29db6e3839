"""With `install_as_torch()`, `import torch` and its submodules mean pullback."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src"


def run(program: str, folder: Path | None = None) -> str:
    """Run `program` in a process of its own, and return what it prints or the last line of its traceback."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "-W", "error", "-c", program]
    process = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)
    return process.stdout.strip() if process.returncode == 0 else process.stderr.strip().splitlines()[-1]


def run_as_torch(program: str) -> str:
    return run(f"import pullback\npullback.install_as_torch()\n{program}")


def test_torch_is_the_same_module_object_as_pullback() -> None:
    assert run_as_torch("import torch; print(torch is pullback)") == "True"


@pytest.mark.parametrize("name", ["autograd", "nn", "nn.functional", "optim", "utils.data", "autograd.functional"])
def test_submodule_is_the_same_module_object(name: str) -> None:
    program = f"import torch.{name}, pullback.{name}, sys\n"
    program += f"print(sys.modules['torch.{name}'] is sys.modules['pullback.{name}'])"
    assert run_as_torch(program) == "True"


@pytest.mark.parametrize("prepare", [run, run_as_torch])
@pytest.mark.parametrize("name", ["jit", "jit.archive", "_dynamo.config", "cpu.amp.grad_scaler", "missing_names"])
def test_a_module_of_the_silhouette_is_one_object_under_its_public_name(
    prepare: Callable[[str], str], name: str
) -> None:
    program = f"import sys, pullback.pytorch.{name}, pullback.{name}\nname = 'pullback.{name}'\n"
    program += (
        f"print(sys.modules['pullback.pytorch.{name}'] is sys.modules[name], sys.modules[name].__spec__.name == name)"
    )
    assert prepare(program) == "True True"


def test_a_module_of_the_silhouette_runs_by_its_public_name() -> None:
    program = "import runpy; print(runpy.run_module('pullback.torch_version', run_name='__main__')['__name__'])"
    assert run(program) == "__main__"


def test_modules_keep_their_own_identity() -> None:
    program = "import torch.autograd\nprint(pullback.__name__, torch.autograd.__name__, torch.autograd.__spec__.name)"
    assert run_as_torch(program) == "torch pullback.autograd pullback.autograd"


def test_second_install_does_nothing() -> None:
    assert (
        run_as_torch("import sys; n = len(sys.meta_path); pullback.install_as_torch(); print(len(sys.meta_path) - n)")
        == "0"
    )


def test_install_after_another_torch_was_imported_is_refused(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("", encoding="utf-8")
    program = "import torch, pullback\npullback.install_as_torch()"
    assert run(program, tmp_path).startswith("RuntimeError: install_as_torch() came too late")


def test_installed_torch_is_not_imported(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise SystemError('imported')", encoding="utf-8")
    assert run("import pullback; pullback.install_as_torch(); import torch; print('fine')", tmp_path) == "fine"


def test_version_is_that_of_the_release_followed() -> None:
    assert run_as_torch("import torch; print(torch.__version__, torch.__version__ >= '2.9')") == "2.13.0 True"


def test_reprs_say_torch() -> None:
    assert run_as_torch("import torch; print(torch.float32, torch.Size([2]))") == "torch.float32 torch.Size([2])"


def test_module_that_only_pytorch_has_can_be_imported_and_passed_around() -> None:
    program = "import torch.distributed as dist\nfrom torch.distributed import rpc\nprint(rpc.__name__)"
    assert run_as_torch(program) == "torch.distributed.rpc"


def test_module_that_only_pytorch_has_is_found_without_importing_it() -> None:
    assert run_as_torch("import torch; print(torch.package.__name__)") == "torch.package"


def test_using_a_name_of_a_missing_module_says_what_is_missing() -> None:
    line = run_as_torch("import torch.onnx\ntorch.onnx.export(1)")
    assert "MissingModuleError: torch.onnx.export is not available" in line
    assert "Run this part of the program with PyTorch itself" in line


def test_a_name_of_a_missing_module_can_be_imported_and_raises_at_its_use() -> None:
    program = "from torch.onnx import export\nprint(repr(export))\ntry:\n    export()\nexcept NotImplementedError:\n    print('raised')"
    assert run_as_torch(program).splitlines() == ["<torch.onnx.export, which pullback lacks>", "raised"]


def test_a_missing_class_can_be_named_as_a_base() -> None:
    program = "from torch.jit import RecursiveScriptModule as Base\nclass Mine(Base):\n    x = 1\nprint(Mine().x)"
    assert run_as_torch(program) == "1"


@pytest.mark.parametrize("name", ["no_such_module", "kernels", "nn.no_such_module"])
def test_module_that_pytorch_lacks_is_not_found(name: str) -> None:
    assert run_as_torch(f"import torch.{name}") == f"ModuleNotFoundError: No module named 'torch.{name}'"


def test_attribute_that_pytorch_lacks_is_not_found() -> None:
    assert run_as_torch("import torch; torch.no_such_name").startswith("AttributeError: ")


def test_torchviz_resolves_to_the_graph_picture() -> None:
    program = "from torchviz import make_dot\nimport torch\nx = torch.ones(2, requires_grad=True)\n"
    program += "print('MulBackward0' in make_dot(x * 2, params={'x': x}).source)"
    assert run_as_torch(program) == "True"


def test_torchviz_has_its_module_of_dots() -> None:
    program = "import torchviz.dot\nfrom torchviz import dot\nfrom torchviz.dot import make_dot, make_dot_from_trace\n"
    assert run_as_torch(program + "print(dot.make_dot is torchviz.make_dot is make_dot)") == "True"


def test_a_name_that_a_module_lacks_can_be_imported_and_raises_at_its_use() -> None:
    program = (
        "from torch.nn.functional import relu\nfrom torch.cuda import CUDAPluggableAllocator\nimport torch\n"
        "print(relu(torch.tensor([-1.0, 2.0])).tolist())\n"
        "try:\n    CUDAPluggableAllocator()\nexcept NotImplementedError as error:\n    print('torch.cuda.CUDAPluggableAllocator' in str(error))"
    )
    assert run_as_torch(program).splitlines() == ["[0.0, 2.0]", "True"]


MISSING = [
    ("utils.data", "runtime_validation"),
    ("cuda", "CUDAPluggableAllocator"),
    ("autograd.profiler", "ProfilerConfig"),
]
"""Names that PyTorch has and pullback lacks, in modules of every depth."""


@pytest.mark.parametrize(("module", "name"), MISSING)
def test_a_missing_name_may_stand_in_an_annotation(module: str, name: str) -> None:
    program = f"import torch.{module}\ndef f(x: torch.{module}.{name}) -> None: ...\nprint('fine')"
    assert run_as_torch(program) == "fine"


def test_a_missing_name_is_answered_for_without_importing_its_module() -> None:
    program = "import torch\ndef f(x: torch.cuda.CUDAPluggableAllocator | None) -> None: ...\nprint('fine')"
    assert run_as_torch(program) == "fine"


def test_a_missing_decorator_does_not_keep_a_module_from_being_imported(tmp_path: Path) -> None:
    (tmp_path / "library.py").write_text(
        "from torch.onnx.symbolic_helper import parse_args\n@parse_args('v', 'f')\ndef symbolic(): ...\n"
        "IS_THERE = bool(parse_args.registry.size()) or 'x' in parse_args.registry.names()\n",
        encoding="utf-8",
    )
    program = (
        "import pullback\npullback.install_as_torch()\nimport library\nprint(library.IS_THERE)\n"
        "try:\n    library.symbolic()\nexcept NotImplementedError as error:\n    print(str(error)[:56])"
    )
    assert run(program, tmp_path).splitlines() == ["False", "torch.onnx.symbolic_helper.parse_args()() is not availab"]


def test_a_module_of_what_is_a_package_in_pytorch_only_can_be_imported() -> None:
    assert run_as_torch(
        "from torch.jit.annotations import BroadcastingList2\nprint(repr(BroadcastingList2[int]))"
    ).startswith("<torch.jit.annotations.BroadcastingList2")


def test_torch_is_an_attribute_of_its_modules() -> None:
    assert run_as_torch("import torch\nprint(torch.torch is torch, torch.nn.functional.torch is torch)") == "True True"


def test_a_missing_submodule_is_an_attribute_of_its_package() -> None:
    program = "import torch, torch.distributed\nprint(isinstance(1, torch.distributed.fsdp.FSDPModule))"
    assert run_as_torch(program) == "False"


def test_pullbacks_own_modules_import_each_other_while_the_package_is_called_torch() -> None:
    program = "import torch\nfrom importlib import import_module\nexec('from pullback import coverage', {'__name__': 'pullback.x'})"
    assert run_as_torch(f"{program}\nprint('fine')") == "fine"


@pytest.mark.parametrize(("module", "name"), [*MISSING, ("nn", "no_such_name"), ("onnx", "export")])
def test_a_probe_for_a_missing_name_says_no(module: str, name: str) -> None:
    program = (
        f"import torch.{module}\nmodule = torch.{module}\n"
        f"print(hasattr(module, '{name}'), getattr(module, '{name}', 'absent'))\n"
        f"try:\n    from torch.{module} import {name}\nexcept ImportError:\n    print('provided for')\n"
        f"try:\n    module.{name}\nexcept AttributeError:\n    print('here too')"
    )
    assert run_as_torch(program).splitlines() == ["False absent", "provided for", "here too"]


def test_a_probe_for_a_missing_module_says_no() -> None:
    program = "try:\n    import torch._lazy\nexcept ImportError:\n    print('provided for')"
    assert run_as_torch(program) == "provided for"


def test_a_guard_around_all_of_torch_is_no_probe_for_one_name() -> None:
    program = (
        "try:\n    import torch\n    from torch.cuda import CUDAPluggableAllocator\n    import torch._inductor\n"
        "except ImportError:\n    torch = None\nprint(torch is not None)"
    )
    assert run_as_torch(program) == "True"


@pytest.mark.parametrize("guard", ["with open('/dev/null'):", "try:"])
def test_a_block_that_catches_nothing_is_no_probe(guard: str) -> None:
    ending = "finally:\n    pass\n" if guard == "try:" else ""
    program = f"{guard}\n    from torch.cuda import CUDAPluggableAllocator\n{ending}print('fine')"
    assert run_as_torch(program) == "fine"


@pytest.mark.parametrize(
    "caught", ["(ValueError, ImportError)", "Exception", "ValueError:\n    pass\nexcept ImportError"]
)
def test_any_handler_of_import_errors_is_a_probe(caught: str) -> None:
    program = f"try:\n    from torch.cuda import CUDAPluggableAllocator\nexcept {caught}:\n    print('provided for')"
    assert run_as_torch(program) == "provided for"


def test_a_name_that_pytorch_lacks_as_well_cannot_be_imported() -> None:
    assert run_as_torch("from torch.nn.functional import no_such_name").startswith("ImportError: cannot import name")


@pytest.mark.parametrize(
    ("module", "name"),
    [("distributions.transforms", "broadcast_all"), ("optim.adam", "Optimizer"), ("functional", "einsum")],
)
def test_a_name_that_pytorchs_module_took_from_another_is_found_there(module: str, name: str) -> None:
    assert run_as_torch(f"from torch.{module} import {name}\nprint({name}.__name__)") == name


def test_every_name_that_is_said_to_be_elsewhere_is_there() -> None:
    from importlib import import_module

    from pullback.pytorch.missing_names import _missing_names

    places = {(where, name) for names in _missing_names().values() for name, where in names.items() if where}
    modules = {where: import_module("pullback" if where == "." else f"pullback.{where}") for where, _ in places}
    assert [(where, name) for where, name in sorted(places) if not hasattr(modules[where], name)] == []


def test_classes_print_their_places_in_torch() -> None:
    program = """
import torch
from torch import nn
for kind in (torch.Tensor, nn.Linear, nn.ParameterDict, torch.optim.AdamW, torch.optim.lr_scheduler.StepLR,
             torch.utils.data.DataLoader, torch.distributions.Normal, torch.no_grad, torch.Generator):
    print(kind.__module__)
try:
    torch.linalg.cholesky(-torch.eye(2))
except RuntimeError as error:
    print(type(error), type(error).__name__)
"""
    assert run_as_torch(program).splitlines() == [
        "torch", "torch.nn.modules.linear", "torch.nn.modules.container", "torch.optim.adamw",
        "torch.optim.lr_scheduler", "torch.utils.data.dataloader", "torch.distributions.normal",
        "torch.autograd.grad_mode", "torch._C", "<class 'torch._C._LinAlgError'> _LinAlgError",
    ]  # fmt: skip


def test_annotations_of_renamed_classes_are_read_where_they_were_written() -> None:
    program = "import torch, typing\nclass Own(torch.nn.Module):\n    a: int\nprint(typing.get_type_hints(Own)['a'])"
    assert run_as_torch(program).strip() == "<class 'int'>"


def test_an_installed_torchviz_is_not_shadowed(tmp_path: Path) -> None:
    (tmp_path / "torchviz").mkdir()
    (tmp_path / "torchviz" / "__init__.py").write_text("import torch\nmark = torch.ones(1).sum()\n")
    program = f"import sys\nsys.path.insert(0, {str(tmp_path)!r})\nimport torchviz\nprint(torchviz.mark)"
    assert run_as_torch(program) == "tensor(1.)"


def test_metadata_name_the_release_that_is_followed() -> None:
    program = (
        "import torch\nfrom importlib import metadata\n"
        "print(metadata.version('torch'), [d.version for d in metadata.distributions(name='torch')][0])\n"
        "try:\n    metadata.version('torch-of-nobody')\nexcept metadata.PackageNotFoundError as error:\n    print(error.name)"
    )
    assert run_as_torch(program) == "2.13.0 2.13.0\ntorch-of-nobody"


def test_tensors_do_not_promise_the_array_api_as_pytorchs_do_not() -> None:
    assert run("import pullback; print(hasattr(pullback.Tensor, '__array_namespace__'))") == "False"


def test_scipy_computes_with_tensors_and_their_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("scipy")
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    program = """
import torch
from scipy.special import logsumexp
x = torch.zeros(4, requires_grad=True)
with torch.no_grad():
    print(type(logsumexp(x)) is torch.Tensor)
total = logsumexp(x * 1, axis=0, keepdims=True)
total.sum().backward()
print(tuple(total.shape), x.grad.tolist())
"""
    allowed = "import warnings; warnings.filterwarnings('ignore', message='torch.asarray: unspecified requires_grad')\n"
    assert run_as_torch(allowed + program).splitlines() == ["True", "(1,) [0.25, 0.25, 0.25, 0.25]"]
