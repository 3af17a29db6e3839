"""Bits are the same for any number of threads, with hooks, checkpoints and compile, or it is said that they may not be.

`python -m tests.inspection.test_bits` runs all samples; the tests take a part of them.
"""

from __future__ import annotations

import ast
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pullback
from pullback import linalg
from pullback.backend.unpromised_bits import ARRIVAL, COMPILE, LOOKING, THREADS, UnpromisedBits
from pullback.inspection.fingerprints import grad_fingerprint
from pullback.native import compiled_kernels
from pullback.nn import functional as F
from pullback.utils.checkpoint import checkpoint
from tests.derivatives.checks import cotangents, leaves, outputs_of
from tests.derivatives.sampling import Sample
from tests.derivatives.test_derivatives import SAMPLES

WAYS = {
    "threads": THREADS,
    "hooks": None,
    "checkpoint": None,
    "compile": COMPILE,
    "looking": LOOKING,
    "packing": LOOKING,
}
"""How a program may be run, and what a difference is to be put down to."""


def gradients(call: Any, arrays: Any, way: str = "") -> list[bytes]:
    """The bits of a call's results and of its gradients, computed in one of the ways."""
    run = call
    if way == "checkpoint":
        run = lambda *tensors: checkpoint(call, *tensors, use_reentrant=False)  # noqa: E731
    elif way == "compile":
        run = pullback.compile(call)
    elif way == "packing":
        run = lambda *tensors: _packed(call, tensors)  # noqa: E731
    threads = pullback.get_num_threads()
    pullback.set_num_threads(2 if way == "threads" else 1)
    try:
        for _ in range(3 if way == "compile" else 1):  # from the third call on Python is skipped
            pullback.manual_seed(0)
            tensors = leaves(arrays)
            if way == "hooks":
                for tensor in tensors:
                    tensor.register_hook(lambda grad: None if grad is None else grad.clone())
            outputs = outputs_of(run, tensors)
            for output in [o for o in outputs if way == "looking" and o.grad_fn is not None]:
                output.grad_fn.register_hook(lambda grads, arrived: None)
                _ = output.grad_fn.next_functions
            pullback.autograd.backward(outputs, cotangents(outputs), inputs=tensors)
    finally:
        pullback.set_num_threads(threads)
    found = [output.detach() for output in outputs] + [tensor.grad for tensor in tensors if tensor.grad is not None]
    return [t.resolve_conj().resolve_neg().contiguous().numpy().tobytes() for t in found]


def _packed(call: Any, tensors: Any) -> Any:
    with pullback.autograd.graph.saved_tensors_hooks(lambda tensor: tensor.clone(), lambda tensor: tensor):
        return call(*tensors)


def differing(call: Any, arrays: Any, way: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return gradients(call, arrays) != gradients(call, arrays, way)


def unsaid(call: Any, arrays: Any, way: str) -> bool:
    """Whether bits differ in a way that the process was not told of."""
    UnpromisedBits.found.clear()
    return differing(call, arrays, way) and all(depends_on != WAYS[way] for depends_on, _ in UnpromisedBits.found)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("sample", SAMPLES[1::9], ids=lambda sample: sample.name)
def test_bits_are_the_same_or_it_is_said(sample: Sample, way: str) -> None:
    assert not unsaid(sample.call, sample.arrays(), way)


@pytest.mark.parametrize("way", ["hooks", "checkpoint"])
@pytest.mark.parametrize("sample", SAMPLES[5::30], ids=lambda sample: sample.name)
def test_hooks_and_checkpoints_change_no_bit(sample: Sample, way: str) -> None:
    assert not differing(sample.call, sample.arrays(), way)


def square(size: int, dtype: Any) -> Any:
    return pullback.randn(size, size, dtype=dtype)


def positive(size: int, dtype: Any) -> Any:
    x = square(size, dtype)
    return x @ x.mH + size * pullback.eye(size, dtype=dtype)


LARGE: dict[str, tuple[Callable[..., Any], Callable[[Any], list[Any]]]] = {
    "product": (lambda a, b: a @ b, lambda d: [square(160, d), square(160, d)]),
    "product with itself": (lambda a: a @ a.mT, lambda d: [pullback.randn(200, 309, dtype=d)]),
    "products": (lambda a, b: a @ b, lambda d: [pullback.randn(2, 160, 160, dtype=d), square(160, d)]),
    "product with a vector": (lambda a, b: a @ b, lambda d: [square(200, d), pullback.randn(200, dtype=d)]),
    "scalar product": (pullback.vdot, lambda d: [pullback.randn(50_003, dtype=d), pullback.randn(50_003, dtype=d)]),
    "linear": (F.linear, lambda d: [square(160, d), square(160, d), pullback.randn(160, dtype=d)]),
    "linear of three dimensions": (
        F.linear,
        lambda d: [pullback.randn(8, 20, 160, dtype=d), square(160, d), pullback.randn(160, dtype=d)],
    ),
    "linear without bias": (F.linear, lambda d: [pullback.randn(8, 20, 160, dtype=d), square(160, d)]),
    "rms_norm": (lambda x, w: F.rms_norm(x, (160,), w), lambda d: [square(160, d), pullback.randn(160, dtype=d)]),
    "linear, transposed": (
        lambda x, w, b: F.linear(x.transpose(0, 1), w, b),
        lambda d: [pullback.randn(64, 8, 64, dtype=d), pullback.randn(50, 64, dtype=d), pullback.randn(50, dtype=d)],
    ),
    "outer": (pullback.outer, lambda d: [pullback.randn(160, dtype=d), pullback.randn(160, dtype=d)]),
    "convolution": (
        F.conv2d,
        lambda d: [pullback.randn(4, 16, 12, 12, dtype=d), pullback.randn(32, 16, 3, 3, dtype=d)],
    ),
    "distances": (pullback.cdist, lambda d: [pullback.randn(200, 64, dtype=d), pullback.randn(200, 64, dtype=d)]),
    "cholesky": (linalg.cholesky, lambda d: [positive(160, d)]),
    "solve": (linalg.solve, lambda d: [square(160, d), square(160, d)]),
    "inv": (linalg.inv, lambda d: [square(160, d)]),
    "slogdet": (lambda a: linalg.slogdet(a)[1], lambda d: [square(160, d)]),
    "det": (linalg.det, lambda d: [square(160, d) / 8]),
    "qr": (lambda a: linalg.qr(a)[1], lambda d: [square(160, d)]),
    "svdvals": (linalg.svdvals, lambda d: [square(130, d)]),
    "eigvalsh": (linalg.eigvalsh, lambda d: [positive(160, d)]),
    "eigh": (lambda a: linalg.eigh(a)[1].abs(), lambda d: [positive(160, d)]),
    "eigvals": (lambda a: linalg.eigvals(a).abs(), lambda d: [square(130, d)]),
    "lu": (lambda a: linalg.lu(a)[2], lambda d: [square(160, d)]),
    "triangular": (
        lambda a, b: linalg.solve_triangular(a, b, upper=True),
        lambda d: [positive(160, d), square(160, d)],
    ),
    "matrix_exp": (pullback.matrix_exp, lambda d: [square(130, d) / 50]),
    "pinv": (linalg.pinv, lambda d: [pullback.randn(150, 100, dtype=d)]),
    "lstsq": (
        lambda a, b: linalg.lstsq(a, b)[0],
        lambda d: [pullback.randn(150, 100, dtype=d), pullback.randn(150, 30, dtype=d)],
    ),
    "fft": (lambda a: pullback.fft.fft2(a).abs(), lambda d: [square(200, d)]),
    "sum": (lambda a: a.sum(), lambda d: [square(600, d)]),
    "norm": (lambda a: a.norm(), lambda d: [square(600, d)]),
    "variance": (lambda a: a.var(0), lambda d: [square(600, d)]),
    "cumsum": (lambda a: a.cumsum(0), lambda d: [square(400, d)]),
}
DTYPES = (pullback.float32, pullback.float64, pullback.complex64, pullback.complex128)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", LARGE)
def test_threads_change_no_bit_of_large_operations_or_it_is_said(name: str, dtype: Any) -> None:
    if name in ("distances", "rms_norm") and dtype.is_complex:
        pytest.skip("it does not exist for complex numbers")
    call, make = LARGE[name]
    pullback.manual_seed(1)
    arrays = [tensor.numpy() for tensor in make(dtype)]
    assert not unsaid(call, arrays, "threads")


@pytest.mark.parametrize("way", ["hooks", "checkpoint", "looking", "packing"])
@pytest.mark.parametrize("dtype", DTYPES[:2], ids=str)
@pytest.mark.parametrize(
    "name", [name for name in LARGE if "linear" in name or name in ("product", "outer", "rms_norm")]
)
def test_looking_changes_no_bit_of_layers_or_it_is_said(name: str, dtype: Any, way: str) -> None:
    call, make = LARGE[name]
    pullback.manual_seed(1)
    assert not unsaid(call, [tensor.numpy() for tensor in make(dtype)], way)
    assert name in ("rms_norm", "outer", "linear, transposed") or not any(
        depends_on == LOOKING for depends_on, _ in UnpromisedBits.found
    )


@pytest.mark.parametrize("name", ["product with itself", "solve", "eigh", "lstsq"])
def test_deterministic_algorithms_leave_nothing_to_say(name: str) -> None:
    call, make = LARGE[name]
    pullback.use_deterministic_algorithms(True)
    try:
        pullback.manual_seed(1)
        arrays = [tensor.numpy() for tensor in make(pullback.float64)]
        assert not differing(call, arrays, "threads")
    finally:
        pullback.use_deterministic_algorithms(False)
    assert not UnpromisedBits.found


def leaf_after(run: Callable[[Any], Any]) -> Any:
    pullback.manual_seed(0)
    x = square(200, pullback.float64).requires_grad_()
    run(x).sum().backward()
    return x


@pytest.mark.skipif(not compiled_kernels(), reason="without compiled kernels every product is by BLAS")
def test_a_fingerprint_says_nothing_of_what_it_can_promise() -> None:
    x = leaf_after(lambda x: (x @ x.exp()).relu())
    assert grad_fingerprint([x]).unpromised == ()


def test_a_fingerprint_names_what_depends_on_threads() -> None:
    x = leaf_after(lambda x: linalg.eigvals(x).abs())
    with pytest.warns(UserWarning, match="eig depends on the number of threads"):
        found = grad_fingerprint([x])
    assert any("the number of threads" in text and f"{__file__}:" in text for text in found.unpromised)


def test_a_fingerprint_names_what_depends_on_compile() -> None:
    def scaled(x: Any) -> Any:
        return x * 2.5 + 1.1

    compiled = pullback.compile(scaled)
    for _ in range(3):
        x = leaf_after(compiled)
    with pytest.warns(UserWarning, match="the compiled scaled depends on compile"):
        found = grad_fingerprint([x])
    assert f"{__file__}:{scaled.__code__.co_firstlineno}" in found.unpromised[0]


def test_a_fingerprint_names_the_lines_of_compiled_modules() -> None:
    class Scaled(pullback.nn.Module):
        def forward(self, x: Any) -> Any:
            return x * 2.5 + 1.1

    places: list[str] = []
    for module in (Scaled(), pullback.nn.Sequential(pullback.nn.Tanh(), pullback.nn.Sigmoid())):
        UnpromisedBits.found.clear()
        compiled = pullback.compile(module)
        for _ in range(3):
            x = leaf_after(lambda x: compiled(x))  # noqa: B023  # called at once
        with pytest.warns(UserWarning, match="depends on compile"):
            places += grad_fingerprint([x]).unpromised
    assert f"{__file__}:{Scaled.forward.__code__.co_firstlineno}" in places[0]
    assert len(places) == 2
    assert f"{__file__}:" in places[1]  # its forward is pullback's own: the line that called it


def test_a_fingerprint_names_passes_of_several_threads() -> None:
    x = pullback.ones(3, requires_grad=True)
    both = threading.Barrier(2)

    def run() -> None:
        y = x * 2
        y.register_hook(lambda grad: (both.wait(60), None)[1])
        y.sum().backward()

    others = [threading.Thread(target=run) for _ in range(2)]
    for thread in others:
        thread.start()
    for thread in others:
        thread.join()
    assert {depends_on for depends_on, _ in UnpromisedBits.found} == {ARRIVAL}


# Which kernels must say it: read from their text, so that a new one is not forgotten.

LIBRARY = ("np.matmul", "np.linalg.", "lapack.")
HARMLESS = ("np.linalg.LinAlgError", "np.linalg.norm", "lapack.serves", "lapack.finds_routines")
SPARED = {"scramble_directions": "BLAS multiplies no integers"}


def leaves_work_to_blas(node: ast.AST) -> bool:
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.MatMult)
    name = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
    return name.startswith(LIBRARY) and not name.startswith(HARMLESS)


def kernels_that_say_nothing(folder: Path) -> set[str]:
    functions = {
        function.name: function
        for path in folder.glob("*.py")
        for function in ast.parse(path.read_text("utf-8")).body
        if isinstance(function, ast.FunctionDef)
    }
    calls = {
        name: {node.func.id for node in ast.walk(function) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
        for name, function in functions.items()
    }  # fmt: skip
    says = {name for name, called in calls.items() if called & {"note_product", "note_factorization"}}
    # A function also says it if one that it calls does, or if all that call it do.
    while True:
        more = {name for name, called in calls.items() if called & says & calls.keys()} - says
        more |= {
            name for name in calls
            if name not in says and name.startswith("_") and (by := {other for other in calls if name in calls[other]} - {name})
            and by <= says
        }  # fmt: skip
        if not more:
            break
        says |= more
    return {name for name, function in functions.items() if any(map(leaves_work_to_blas, ast.walk(function)))} - says


def test_every_kernel_that_leaves_work_to_blas_says_so() -> None:
    folder = Path(pullback.__file__).parent / "kernels"
    assert kernels_that_say_nothing(folder) == SPARED.keys()


def test_a_kernel_that_says_nothing_is_found(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(
        "def product(a, b):\n    return a @ b\n\n\ndef solve(a, b):\n    note_factorization(a)\n    return np.linalg.solve(a, b)\n"
    )
    assert kernels_that_say_nothing(tmp_path) == {"product"}


def main() -> int:
    """Run all samples in all ways, and say which differ, and which do so unsaid."""
    said, wrong = [], []
    for sample in SAMPLES:
        for way in WAYS:
            arrays = sample.arrays()
            try:
                if unsaid(sample.call, arrays, way):
                    wrong.append(f"{sample.name} {way}")
                elif UnpromisedBits.found and differing(sample.call, arrays, way):
                    said.append(f"{sample.name} {way}")
            except Exception as error:
                print(f"{sample.name} {way}: {type(error).__name__}: {str(error)[:100]}")
    print(f"{len(SAMPLES)} samples in {len(WAYS)} ways; {len(said)} differ and say so: {', '.join(said)}")
    print(f"{len(wrong)} differ unsaid: {', '.join(wrong)}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
