"""A device that is not the CPU: making, moving, mixing and printing tensors, and what stands on them."""

from __future__ import annotations

import numpy as np
import pytest

import pullback
from pullback.func import grad, jvp, vmap
from pullback.utils.checkpoint import checkpoint
from tests.devices.fake_library import HostRead, library


def test_tensors_are_made_on_the_device_and_say_so() -> None:
    x = pullback.tensor([1.0, 2.0], device="fake")
    assert x.device == pullback.device("fake", 0)
    assert str(x) == "tensor([1., 2.], device='fake:0')"
    assert pullback.zeros_like(x).device == x.device
    assert x.new_ones(3).device == x.device
    assert x.get_device() == 0


def test_default_device_and_blocks_make_tensors_there() -> None:
    with pullback.device("fake"):
        assert pullback.arange(3).device.type == "fake"
        assert pullback.rand(2).device.type == "fake"
    assert pullback.arange(3).device.type == "cpu"


def test_moving_is_recorded_and_the_gradient_comes_back() -> None:
    x = pullback.tensor([1.0, 2.0], requires_grad=True)
    y = (x.to("fake") ** 2).sum()
    y.cpu().backward()
    assert x.grad.device.type == "cpu"
    assert x.grad.tolist() == [2.0, 4.0]
    assert x.to("fake").grad_fn.name() == "ToCopyBackward0"


def test_moving_to_where_it_is_returns_the_tensor() -> None:
    x = pullback.ones(2, device="fake")
    assert x.to("fake") is x
    assert x.to("fake:0") is x
    assert x.cpu().device.type == "cpu"


def test_tensors_of_two_devices_do_not_mix() -> None:
    with pytest.raises(
        RuntimeError, match="Expected all tensors to be on the same device, but found at least two devices"
    ):
        pullback.ones(2, device="fake") + pullback.ones(2)
    with pytest.raises(RuntimeError, match="fake:0 and cpu"):
        pullback.ones(2) @ pullback.ones(2, device="fake")


def test_numbers_of_the_cpu_mix_with_tensors_of_a_device() -> None:
    result = pullback.ones(2, device="fake") * pullback.tensor(3.0)
    assert result.device.type == "fake"
    assert result.tolist() == [3.0, 3.0]


def test_nothing_becomes_a_numpy_array_by_accident() -> None:
    x = pullback.ones(2, device="fake")
    with pytest.raises(TypeError, match="can't convert fake:0 device type tensor to numpy"):
        np.asarray(x)
    with pytest.raises(TypeError, match="can't convert fake:0 device type tensor to numpy"):
        x.numpy()
    with library.strict(), pytest.raises(HostRead):
        float(x[0])


def test_indices_may_lie_on_the_cpu() -> None:
    x = pullback.arange(4, device="fake")
    assert x[pullback.tensor([0, 2])].tolist() == [0, 2]


def network(device: str) -> pullback.nn.Module:
    pullback.manual_seed(0)
    return pullback.nn.Sequential(
        pullback.nn.Conv2d(1, 4, 3, padding=1), pullback.nn.BatchNorm2d(4), pullback.nn.ReLU(), pullback.nn.MaxPool2d(2),
        pullback.nn.Flatten(), pullback.nn.Linear(64, 8), pullback.nn.LayerNorm(8), pullback.nn.GELU(), pullback.nn.Linear(8, 3),
    ).to(device)  # fmt: skip


def train(device: str) -> list[float]:
    model = network(device)
    optimizer = pullback.optim.AdamW(model.parameters(), lr=0.01)
    pullback.manual_seed(1)
    images, labels = pullback.randn(6, 1, 8, 8).to(device), pullback.tensor([0, 1, 2, 0, 1, 2]).to(device)
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        loss = pullback.nn.functional.cross_entropy(model(images), labels)
        loss.backward()
        pullback.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_a_network_trains_as_on_the_cpu() -> None:
    np.testing.assert_allclose(train("fake"), train("cpu"), rtol=1e-4)


def test_a_model_that_is_moved_has_its_parameters_there() -> None:
    model = network("fake")
    assert {p.device.type for p in model.parameters()} == {"fake"}
    assert {b.device.type for b in model.buffers()} == {"fake"}


def test_state_is_saved_and_loaded_with_map_location(tmp_path: object) -> None:
    state = network("fake").state_dict()
    path = f"{tmp_path}/model.pt"
    pullback.save(state, path)
    loaded = pullback.load(path, map_location="cpu")
    assert {value.device.type for value in loaded.values()} == {"cpu"}
    np.testing.assert_array_equal(loaded["0.weight"].numpy(), state["0.weight"].cpu().numpy())


def test_hooks_see_gradients_on_the_device() -> None:
    seen = []

    def hook(gradient: pullback.Tensor) -> pullback.Tensor:
        seen.append(gradient.device.type)
        return gradient * 10

    x = pullback.ones(2, device="fake", requires_grad=True)
    y = x * 2
    y.register_hook(hook)
    y.sum().backward()
    assert seen == ["fake"]
    assert x.grad.tolist() == [20.0, 20.0]


def test_saved_tensors_are_offloaded_to_the_cpu_and_come_back() -> None:
    x = pullback.tensor([1.0, 2.0], device="fake", requires_grad=True)
    for pin_memory in (False, True):
        with pullback.autograd.graph.save_on_cpu(pin_memory=pin_memory):
            y = x * x
        y.sum().backward()
        assert x.grad.tolist() == [2.0, 4.0]
        x.grad = None


def test_checkpoint_double_backward_forward_mode_and_vmap() -> None:
    x = pullback.tensor([0.5, 1.0], device="fake", requires_grad=True)
    checkpoint(lambda t: t.sin() * t, x, use_reentrant=False).sum().backward()
    expected = x.detach().cos() * x.detach() + x.detach().sin()
    np.testing.assert_allclose(x.grad.tolist(), expected.tolist(), rtol=1e-6)
    (first,) = pullback.autograd.grad((x**3).sum(), x, create_graph=True)
    (second,) = pullback.autograd.grad(first.sum(), x)
    np.testing.assert_allclose(second.tolist(), [3.0, 6.0], rtol=1e-6)
    tangent = jvp(lambda t: t.exp(), (x.detach(),), (pullback.ones_like(x.detach()),))[1]
    np.testing.assert_allclose(tangent.tolist(), np.exp([0.5, 1.0]), rtol=1e-6)
    rows = vmap(grad(lambda t: (t**2).sum()))(pullback.ones(3, 2, device="fake"))
    assert rows.device.type == "fake"
    assert rows.tolist() == [[2.0, 2.0]] * 3


def test_values_are_copied_into_tensors_of_another_device() -> None:
    x = pullback.zeros(2, 3, device="fake")
    assert x.copy_(pullback.arange(3.0)).tolist() == [[0.0, 1.0, 2.0]] * 2
    assert pullback.zeros(2, 3).copy_(x).tolist() == x.tolist()
    y = pullback.ones(3, requires_grad=True)
    (pullback.zeros(2, 3, device="fake").copy_(y) * 2).sum().backward()
    assert y.grad.tolist() == [4.0, 4.0, 4.0]
    model = network("fake")
    model.load_state_dict(network("cpu").state_dict())
    assert {p.device.type for p in model.parameters()} == {"fake"}


def test_gradients_lie_where_their_tensors_do() -> None:
    x = pullback.ones(2, device="fake", requires_grad=True)
    with pytest.raises(RuntimeError, match="a gradient with device type 'cpu' to a tensor with device type 'fake:0'"):
        x.grad = pullback.ones(2)
    for y in (x, x * 2):
        with pytest.raises(RuntimeError, match="invalid gradient at index 0 - expected device fake:0 but got cpu"):
            y.backward(pullback.ones(2))
    x.sum().backward(pullback.tensor(3.0))  # a number goes where it is wanted
    assert x.grad.device.type == "fake"
    assert x.grad.tolist() == [3.0, 3.0]


def test_a_failed_factorization_is_told_in_numbers() -> None:
    matrices = pullback.stack([pullback.eye(2), -pullback.eye(2)]).to("fake")
    words = r"linalg.cholesky: \(Batch element 1\): .* \(the leading minor of order 1 is not positive-definite\)"
    with pytest.raises(pullback.linalg.LinAlgError, match=words):
        pullback.linalg.cholesky(matrices)


def test_gradients_of_custom_functions_are_on_the_device() -> None:
    class Two(pullback.autograd.Function):
        @staticmethod
        def forward(ctx: object, x: pullback.Tensor, answer: object) -> tuple[pullback.Tensor, pullback.Tensor]:
            vars(ctx)["answer"] = answer
            return x * 2, x * 3

        @staticmethod
        def backward(ctx: object, first: pullback.Tensor, second: pullback.Tensor) -> tuple[object, None]:
            assert first.device == second.device == pullback.device("fake", 0)
            answer = vars(ctx)["answer"]
            return first * 2 + second if answer is None else answer, None

    x = pullback.ones(2, device="fake", requires_grad=True)
    Two.apply(x, None)[0].sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    words = "Function TwoBackward returned an invalid gradient at index 0 - expected device fake:0 but got cpu"
    with pytest.raises(RuntimeError, match=words):
        Two.apply(x, pullback.ones(2))[0].sum().backward()


def test_cuda_is_not_there_without_cupy_and_says_what_to_install() -> None:
    if pullback.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(AssertionError, match=r"Torch not compiled with CUDA enabled.*(pip install|nvidia-smi)"):
        pullback.ones(2).cuda()
