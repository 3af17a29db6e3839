"""What libraries written for PyTorch ask of it, beyond what its documentation says: each was found by running one."""

from __future__ import annotations

import copy
import importlib
import io
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

import pullback
from pullback.backend.configuration import describe_config
from pullback.distributions import Normal, kl_divergence, register_kl
from pullback.utils import _pytree


def test_numpy_needs_no_detach_while_nothing_is_recorded() -> None:
    x = pullback.ones(2, requires_grad=True)
    with pullback.no_grad():
        assert x.numpy().tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="requires grad"):
        x.numpy()


def test_divergences_are_registered_for_classes_of_any_base() -> None:
    class Own:
        pass

    class OwnNormal(Own, Normal):
        pass

    @register_kl(OwnNormal, Own)
    def _(p: Own, q: Own) -> float:
        return 7.0

    assert kl_divergence(OwnNormal(0.0, 1.0), OwnNormal(1.0, 1.0)) == 7.0


def test_the_compilers_front_end_leaves_what_functions_do() -> None:
    from pullback import _dynamo as dynamo

    def function() -> int:
        return 1

    assert dynamo.disable(function)() == 1
    assert dynamo.optimize("inductor")(function)() == 1
    assert not dynamo.is_compiling()
    assert not isinstance(pullback.nn.Linear(1, 1), dynamo.OptimizedModule)


def test_arguments_of_to_can_be_parsed() -> None:
    parse = pullback._C._nn._parse_to
    assert parse("cpu", pullback.float64)[:2] == (pullback.device("cpu"), pullback.float64)
    assert parse(dtype=pullback.float16, non_blocking=True)[:3] == (None, pullback.float16, True)


def test_trees_tell_the_type_of_a_node() -> None:
    assert _pytree._get_node_type([1]) is list
    assert _pytree._get_node_type(1) not in _pytree.SUPPORTED_NODES


def test_a_library_of_operators_is_defined_piece_by_piece() -> None:
    library = pullback.library.Library("found_by_libraries", "DEF")
    library.define("scaled(Tensor x, float factor) -> Tensor")
    with pytest.raises(NotImplementedError, match="no implementation for the CPU"):
        pullback.ops.found_by_libraries.scaled(pullback.ones(1), 2.0)
    library.impl("scaled", lambda x, factor: x * factor, "CPU")
    assert pullback.ops.found_by_libraries.scaled(pullback.ones(1), 2.0).tolist() == [2.0]
    library._destroy()


def test_pytorchs_own_operators_are_found_by_their_names() -> None:
    mm = pullback.ops.aten.mm
    assert mm.default.overloadpacket is mm
    assert mm(pullback.ones(1, 2), pullback.ones(2, 1)).tolist() == [[2.0]]
    assert not hasattr(pullback.ops.aten, "no_such_operator")
    named = pullback.ops.aten._no_such_operator.default
    with pytest.raises(NotImplementedError, match="aten::_no_such_operator"):
        named(1)


def test_compiled_operators_are_refused_as_a_file_that_cannot_be_loaded() -> None:
    with pytest.raises(OSError, match="cannot be loaded"):
        pullback.ops.load_library("library.so")


def test_hub_loads_models_of_a_local_folder(tmp_path: Path) -> None:
    (tmp_path / "hubconf.py").write_text("def model(size=1):\n    'A model.'\n    return size\n", encoding="utf-8")
    folder = str(tmp_path)
    assert pullback.hub.list(folder) == ["model"]
    assert pullback.hub.help(folder, "model") == "A model."
    assert pullback.hub.load(folder, "model", size=3, source="local") == 3


def test_hub_fetches_a_file_once_and_checks_it(tmp_path: Path) -> None:
    pullback.save({"w": pullback.ones(2)}, tmp_path / "weights.pt")
    address = (tmp_path / "weights.pt").as_uri()
    folder = tmp_path / "kept"
    assert pullback.hub.load_state_dict_from_url(address, str(folder))["w"].tolist() == [1.0, 1.0]
    assert (folder / "weights.pt").exists()
    with pytest.raises(RuntimeError, match="invalid hash value"):
        pullback.hub.download_url_to_file(address, str(folder / "other.pt"), hash_prefix="00000000")
    assert [path.name for path in folder.iterdir()] == ["weights.pt"]


def test_final_annotations_take_a_type() -> None:
    assert pullback.jit.Final[bool] == Final[bool]


def test_a_program_can_ask_whether_a_transform_runs() -> None:
    inside = []

    def function(x: pullback.Tensor) -> pullback.Tensor:
        inside.append(pullback._C._are_functorch_transforms_active())
        return x.sum()

    pullback.func.grad(function)(pullback.ones(2))
    pullback.vmap(function)(pullback.ones(2, 1))
    function(pullback.ones(2))
    assert inside == [True, True, False]


def test_the_configuration_is_where_pytorch_has_it() -> None:
    assert pullback.__config__.show() == describe_config()


def test_asynchronous_assertions_are_checked_at_once() -> None:
    pullback._assert_async(pullback.tensor(True), "fine")
    with pytest.raises(RuntimeError, match="out of range"):
        pullback._assert_async(pullback.tensor(False), "out of range")


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("add", (0.5, pullback.tensor([4.0])), 3.0),
        ("add_", (0.5, pullback.tensor([4.0])), 3.0),
        ("sub_", (0.5, pullback.tensor([4.0])), -1.0),
        ("addcmul", (0.5, pullback.tensor([4.0]), pullback.tensor([3.0])), 7.0),
        ("addcmul_", (0.5, pullback.tensor([4.0]), pullback.tensor([3.0])), 7.0),
        ("addcdiv", (0.5, pullback.tensor([4.0]), pullback.tensor([2.0])), 2.0),
        ("addcdiv_", (0.5, pullback.tensor([4.0]), pullback.tensor([2.0])), 2.0),
    ],
)
def test_the_factor_may_come_first_as_in_older_programs(name: str, arguments: tuple[Any, ...], expected: float) -> None:
    with pytest.warns(UserWarning, match=f"This overload of {name} is deprecated"):
        assert getattr(pullback.tensor([1.0]), name)(*arguments).tolist() == [expected]


def test_a_missing_dtype_is_named_as_pytorch_names_it() -> None:
    from pullback.pytorch.missing_names import MissingName

    assert str(MissingName("torch.qint32")) == "torch.qint32"


def test_quantized_dtypes_can_be_listed() -> None:
    assert str(pullback.qint32) == "pullback.qint32"


def test_the_line_search_is_there_in_pytorchs_form() -> None:
    from pullback.optim.lbfgs import _cubic_interpolate, _strong_wolfe

    def objective(x: Any, t: float, d: Any) -> tuple[Any, Any]:
        moved = x + t * d
        return (moved * moved).sum().item(), 2 * moved

    x = pullback.tensor([2.0])
    loss, grad, t, evaluations = _strong_wolfe(objective, x, 1.0, -2 * x, 4.0, 2 * x, -16.0)
    assert (loss, grad.tolist(), t, evaluations) == (0.0, [0.0], 0.5, 2)
    assert _cubic_interpolate(0.0, 4.0, -16.0, 1.0, 4.0, 16.0) == 0.5


def test_the_older_vmap_lets_none_pass() -> None:
    from pullback.pytorch._vmap_internals import _vmap

    x = pullback.tensor([1.0, 2.0])
    assert _vmap(lambda t: t * 2)(x).tolist() == [2.0, 4.0]
    doubled, absent = _vmap(lambda t: (t * 2, None), allow_none_pass_through=True)(x)
    assert (doubled.tolist(), absent) == ([2.0, 4.0], None)


def test_a_tensor_made_of_a_tensor_keeps_its_history() -> None:
    class Labelled(pullback.Tensor):
        pass

    x = pullback.ones(2, requires_grad=True)
    made = Labelled(x * 2)
    assert (type(made), str(made.grad_fn)[1:15]) == (Labelled, "AliasBackward0")
    made.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    assert pullback.Tensor(pullback.tensor([1, 2])).dtype is pullback.int64


def test_plain_pickles_of_pytorch_are_read() -> None:
    from pullback.pytorch import _utils, storage

    file = io.BytesIO()
    pullback.save(pullback.arange(6.0).storage(), file)
    memory = storage._load_from_bytes(file.getvalue())
    tensor = _utils._rebuild_tensor_v2(memory, 1, (2, 2), (3, 1), False, None)
    assert tensor.tolist() == [[1.0, 2.0], [4.0, 5.0]]
    parameter = _utils._rebuild_parameter_with_state(tensor, True, None, {"tag": "weight"})
    assert (parameter.requires_grad, parameter.tag) == (True, "weight")


def test_the_group_of_all_processes_has_a_name() -> None:
    assert pullback.distributed.group.WORLD is None


def test_a_function_can_ask_whether_all_gradients_are_computed() -> None:
    answers = []

    class Asking(pullback.autograd.Function):
        @staticmethod
        def forward(ctx: Any, input: Any) -> Any:
            return input * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            answers.append(pullback.autograd._is_checkpoint_valid())
            return grad * 2

    x = pullback.ones(2, requires_grad=True)
    Asking.apply(x).sum().backward()
    pullback.autograd.grad(Asking.apply(x).sum(), x)
    assert answers == [True, False]


def test_tensors_are_joined_and_taken_apart() -> None:
    from pullback.pytorch._utils import _flatten_dense_tensors, _unflatten_dense_tensors

    tensors = [pullback.ones(2, 2), pullback.zeros(3)]
    flat = _flatten_dense_tensors(tensors)
    assert flat.tolist() == [1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    assert [t.shape for t in _unflatten_dense_tensors(flat, tensors)] == [t.shape for t in tensors]


def test_the_attributes_of_a_tensor_are_those_of_users() -> None:
    x: Any = pullback.ones(2)
    y: Any = pullback.zeros(3)
    x.tag = "first"
    assert dict(x.__dict__) == {"tag": "first"}
    y.__dict__ = copy.deepcopy(x.__dict__)
    y.__dict__.update(more=1)
    assert (y.tag, y.more, y.tolist()) == ("first", 1, [0.0, 0.0, 0.0])
    y.__dict__.pop("tag")
    assert not hasattr(y, "tag")


def test_sizes_to_broadcast_to_may_be_given_one_by_one() -> None:
    x = pullback.ones(1, 3)
    assert x.broadcast_to(2, 3).shape == x.broadcast_to((2, 3)).shape == x.broadcast_to(size=(2, 3)).shape == (2, 3)


def test_the_processor_tells_its_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ATEN_CPU_CAPABILITY", raising=False)
    assert pullback.backends.cpu.get_cpu_capability() in {"DEFAULT", "AVX2", "AVX512"}
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "avx2")
    assert pullback.backends.cpu.get_cpu_capability() == "AVX2"


def test_a_tensor_shares_the_bytes_of_a_storage() -> None:
    storage = pullback.UntypedStorage([0, 0, 0, 1])
    shared = pullback.asarray(storage[1:4], dtype=pullback.uint8)
    storage[1] = 7
    assert shared.tolist() == [7, 0, 1]


def test_norms_of_many_tensors_take_their_order_by_name() -> None:
    tensors = [pullback.tensor([3.0, -4.0]), pullback.tensor([[1.0]])]
    assert [n.item() for n in pullback._foreach_norm(tensors)] == [5.0, 1.0]
    assert [n.item() for n in pullback._foreach_norm(tensors, ord=1)] == [7.0, 1.0]
    assert pullback._foreach_norm(tensors, 2, dtype=pullback.float64)[0].dtype is pullback.float64


def test_an_optimizer_that_does_not_call_the_constructor_gets_its_hooks() -> None:
    class Wrapper(pullback.optim.Optimizer):
        def __init__(self) -> None:
            self.__dict__.update(_optimizer_step_pre_hooks={}, _optimizer_step_post_hooks={})
            self._patch_step_function()

        def step(self, closure: Any = None) -> Any:
            return 3

    assert Wrapper().step() == 3
    assert Wrapper.step.hooked  # type: ignore[attr-defined]


def test_the_old_place_of_downloads_has_a_progress_bar() -> None:
    from pullback.utils.model_zoo import _NoProgress, tqdm

    with tqdm(total=2, disable=True) as bar:
        bar.update(1)
    assert list(tqdm([1, 2], disable=True)) == list(_NoProgress([1, 2])) == [1, 2]


def test_switches_of_backends_may_be_set_everywhere() -> None:
    with vars(pullback.backends)["__allow_nonbracketed_mutation"]():
        pullback.backends.cudnn.benchmark = False
    pullback.backends.disable_global_flags()
    assert not pullback.backends.flags_frozen()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: pullback.prod(x, axis=5, keepdims=True), IndexError, "Dimension out of range"),
        (lambda x: x.cumsum(axis=5), IndexError, "Dimension out of range"),
        (lambda x: pullback.softmax(x, axis=5), IndexError, "Dimension out of range"),
        (lambda x: pullback.std(x.long(), axis=0), RuntimeError, "only support floating point"),
        (lambda x: pullback.linalg.vector_norm(x.long(), axis=0), RuntimeError, "Expected a floating point"),
        (lambda x: pullback.sort(x * 1j, dim=0, stable=True), RuntimeError, "does not support complex"),
        (lambda x: pullback.cumsum(x, axis="a"), TypeError, "argument 'dim' must be int, not str"),
        (lambda x: pullback.prod(x, axis=0, keepdims="a"), TypeError, "argument 'keepdim' must be bool, not str"),
        (lambda x: pullback.prod(x, axis="a"), TypeError, r"got \(Tensor, axis=str\)"),
    ],
)  # fmt: skip
def test_errors_of_calls_in_numpys_words_are_about_what_is_wrong(call: Any, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        call(pullback.ones(2, 3))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: pullback.finfo(x), TypeError, "argument 'type' .* must be torch.dtype, not Tensor"),
        (lambda x: pullback.iinfo(x), TypeError, "argument 'type' .* must be torch.dtype, not Tensor"),
        (lambda x: pullback.iinfo(pullback.bool), TypeError, "torch.bool is not supported by torch.iinfo"),
        (lambda x: pullback.linalg.solve(pullback.eye(2), x), RuntimeError, "B must have at least 2 dimensions"),
        (lambda x: pullback.searchsorted(x, pullback.ones(2)), RuntimeError, "should have positive dimension"),
        (lambda x: pullback.searchsorted(pullback.ones(2, 2), x), RuntimeError, "scalar only when"),
        (lambda x: pullback.searchsorted(pullback.ones(2), x * 1j), NotImplementedError, "ComplexFloat"),
        (lambda x: pullback.fft.fftfreq(5, dtype=pullback.int32), RuntimeError, "^fftfreq requires a floating point"),
        (lambda x: pullback.fft.rfftfreq(5, dtype=pullback.bool), RuntimeError, "^rfftfreq requires a floating point"),
        (lambda x: pullback.linspace(0, 1j, 1, dtype=pullback.float64), RuntimeError, "passed dtype Double"),
        (lambda x: pullback.logspace(0, 1, 3, dtype=pullback.bool), NotImplementedError, "logspace_cpu"),
    ],
)  # fmt: skip
def test_arguments_that_array_libraries_try_are_refused(call: Any, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        call(pullback.tensor(1.0))


def test_complex_numbers_become_booleans() -> None:
    assert pullback.tensor([0j, 1j], dtype=pullback.bool).tolist() == [False, True]
    assert pullback.asarray(1j, dtype=pullback.bool).item() is True
    assert pullback.zeros(2, dtype=pullback.bool).fill_(1j).tolist() == [True, True]


# Bits, resolution, eps, max and smallest normal number, as PyTorch 2.13 gives them.
LIMITS = {
    "bfloat16": (16, 0.01, 0.0078125, 3.3895313892515355e38, 1.1754943508222875e-38),
    "float16": (16, 0.001, 0.0009765625, 65504.0, 6.103515625e-05),
    "complex32": (16, 0.001, 0.0009765625, 65504.0, 6.103515625e-05),
    "float8_e4m3fn": (8, 1.0, 0.125, 448.0, 0.015625),
    "float8_e4m3fnuz": (8, 1.0, 0.125, 240.0, 0.0078125),
    "float8_e5m2": (8, 1.0, 0.25, 57344.0, 6.103515625e-05),
    "float8_e5m2fnuz": (8, 1.0, 0.125, 57344.0, 3.0517578125e-05),
    "float8_e8m0fnu": (8, 1.0, 1.0, 1.7014118346046923e38, 5.877471754111438e-39),
}


def test_limits_of_short_floats_need_no_other_package() -> None:
    """transformers asks for them while it is imported."""
    names = ("bits", "resolution", "eps", "max", "smallest_normal")
    program = f"""
import sys
sys.modules["ml_dtypes"] = None
import pullback
limits = {{}}
for name in {list(LIMITS)}:
    info = pullback.finfo(getattr(pullback, name))
    limits[name] = tuple(getattr(info, fact) for fact in {names})
print(limits)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert eval(ran.stdout) == LIMITS
    here = {name: pullback.finfo(getattr(pullback, name)) for name in LIMITS}
    assert {name: tuple(getattr(info, fact) for fact in names) for name, info in here.items()} == LIMITS
    assert all(info.tiny == info.smallest_normal for info in here.values())
    assert here["float8_e5m2"].min == -57344.0
    assert here["float8_e8m0fnu"].min == 2.0**-127


def test_a_scrambled_sobol_sequence_without_a_seed_is_drawn_from_the_default_generator() -> None:
    """botorch repeats its starting points by `manual_seed`; the numbers are PyTorch's."""
    pullback.manual_seed(1)
    points = pullback.quasirandom.SobolEngine(2, scramble=True).draw(2)
    assert [round(value, 4) for value in points.flatten().tolist()] == [0.2677, 0.3618, 0.8434, 0.9918]
    assert round(pullback.rand(()).item(), 4) == 0.4351


def test_libraries_are_told_what_a_tensor_is_to_the_transforms_around_it() -> None:
    """tensordict asks for these names of PyTorch's compiled module while it is imported; expected is what they answer there."""
    _functorch: Any = importlib.import_module("pullback._C._functorch")

    seen: list[Any] = []

    def look(v: Any) -> Any:
        seen.append(
            (
                _functorch.is_batchedtensor(v),
                _functorch.is_gradtrackingtensor(v),
                _functorch.is_functorch_wrapped_tensor(v),
                _functorch.maybe_get_level(v),
                _functorch.maybe_get_bdim(v),
                _functorch.maybe_current_level(),
                tuple(_functorch.get_unwrapped(v).shape),
            )
        )
        return v.sum()

    x = pullback.ones(3, 4)
    pullback.vmap(look)(x)
    pullback.vmap(look, in_dims=1)(x)
    pullback.func.grad(look)(x)
    pullback.vmap(pullback.func.grad(look))(x)
    pullback.func.grad(lambda v: pullback.vmap(look)(v).sum())(x)
    pullback.func.jvp(look, (x,), (x,))
    assert seen == [
        (True, False, True, 1, 0, 1, (3, 4)),
        (True, False, True, 1, 1, 1, (3, 4)),
        (False, True, True, 1, -1, 1, (3, 4)),
        (False, True, True, 2, -1, 2, (4,)),
        (True, False, True, 2, 0, 2, (3, 4)),
        (False, True, True, 1, -1, 1, (3, 4)),
    ]
    assert not _functorch.is_functorch_wrapped_tensor(x)
    assert (_functorch.maybe_get_level(x), _functorch.maybe_current_level()) == (-1, None)
    with pytest.raises(RuntimeError, match="No wrappers present"):
        _functorch.get_unwrapped(x)
    with pytest.raises(RuntimeError, match="no current level"):
        _functorch.current_level()
