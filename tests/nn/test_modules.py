"""Module: what it registers, iterates, saves and loads."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from collections import OrderedDict
from typing import Any

import pytest

import pullback
from pullback import nn


def make_net() -> Any:
    return nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))


def test_parameters_are_found_by_name_in_all_children() -> None:
    names = [name for name, _ in make_net().named_parameters()]
    assert names == ["0.weight", "0.bias", "2.weight", "2.bias"]


def test_a_parameter_that_occurs_twice_is_iterated_once() -> None:
    layer = nn.Linear(2, 2)
    layer.twin = layer.weight
    assert len(list(layer.parameters())) == 2
    assert len(list(layer.named_parameters(remove_duplicate=False))) == 3


def test_a_tensor_in_place_of_a_parameter_is_refused() -> None:
    layer = nn.Linear(2, 2)
    with pytest.raises(TypeError, match=r"as parameter 'weight' \(torch.nn.Parameter or None expected\)"):
        layer.weight = pullback.ones(2, 2)


def test_a_parameter_before_init_is_refused() -> None:
    class Early(nn.Module):
        def __init__(self) -> None:
            self.weight = nn.Parameter(pullback.ones(1))

    with pytest.raises(AttributeError, match=r"cannot assign parameters before Module.__init__\(\) call"):
        Early()


def test_a_buffer_is_state_without_being_a_parameter() -> None:
    module = nn.Module()
    module.register_buffer("kept", pullback.ones(1))
    module.register_buffer("dropped", pullback.ones(1), persistent=False)
    assert list(module.state_dict()) == ["kept"]
    assert [name for name, _ in module.named_buffers()] == ["kept", "dropped"]
    assert list(module.parameters()) == []


def test_strict_loading_names_every_key_that_does_not_match() -> None:
    net = make_net()
    state = net.state_dict()
    state["extra"] = pullback.ones(1)
    del state["0.bias"]
    state["2.weight"] = pullback.ones(2, 2)
    with pytest.raises(RuntimeError) as caught:
        net.load_state_dict(state)
    lines = str(caught.value).replace("pullback.", "torch.").split("\n\t")
    assert lines == [
        "Error(s) in loading state_dict for Sequential:",
        'Missing key(s) in state_dict: "0.bias". ',
        'Unexpected key(s) in state_dict: "extra". ',
        "size mismatch for 2.weight: copying a param with shape torch.Size([2, 2]) from checkpoint, the shape in current "
        "model is torch.Size([1, 3]).",
    ]


def test_loading_copies_into_the_same_parameters() -> None:
    source, target = make_net(), make_net()
    weight = target[0].weight
    assert str(target.load_state_dict(source.state_dict())) == "<All keys matched successfully>"
    assert target[0].weight is weight
    assert weight.tolist() == source[0].weight.tolist()


def test_conversion_keeps_the_identity_of_parameters_and_converts_their_gradients() -> None:
    net = make_net()
    weight = net[0].weight
    net(pullback.ones(1, 2)).sum().backward()
    net.double()
    assert net[0].weight is weight
    assert weight.dtype is pullback.float64
    assert weight.grad.dtype is pullback.float64


def test_a_deep_copy_is_independent_and_has_no_gradients() -> None:
    net = make_net()
    net(pullback.ones(1, 2)).sum().backward()
    copied = copy.deepcopy(net)
    with pullback.no_grad():
        copied[0].weight.fill_(0.0)
    assert bool((net[0].weight != 0).all())
    assert copied[0].weight.grad is None


def test_a_pickled_module_comes_back_with_parameters() -> None:
    net = make_net()
    loaded = pickle.loads(pickle.dumps(net))
    assert isinstance(loaded[0].weight, nn.Parameter)
    assert loaded[0].weight.tolist() == net[0].weight.tolist()


def test_forward_hooks_replace_arguments_and_results() -> None:
    layer = nn.Identity()
    layer.register_forward_pre_hook(lambda module, args: args[0] + 1)
    handle = layer.register_forward_hook(lambda module, args, output: output * 10)
    assert layer(pullback.tensor(1.0)).item() == 20.0
    handle.remove()
    assert layer(pullback.tensor(1.0)).item() == 2.0


def test_full_backward_hooks_see_and_replace_the_gradients_of_the_module() -> None:
    layer = nn.Linear(2, 1, bias=False)
    nn.init.ones_(layer.weight)
    seen = []
    layer.register_full_backward_hook(lambda module, grad_input, grad_output: seen.append((grad_input, grad_output)))
    layer.register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] * 5,))
    x = pullback.ones(1, 2, requires_grad=True)
    layer(x).sum().backward()
    assert seen[0][0][0].tolist() == [[1.0, 1.0]]
    assert seen[0][1][0].tolist() == [[1.0]]
    assert x.grad.tolist() == [[5.0, 5.0]]


def test_evaluation_mode_reaches_all_children() -> None:
    net = nn.Sequential(nn.Dropout(0.5), nn.BatchNorm1d(2)).eval()
    assert not any(module.training for module in net.modules())
    assert net(pullback.ones(1, 2)).shape == (1, 2)


def test_a_list_shows_equal_neighbours_once() -> None:
    assert (
        repr(nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Tanh()])) == "ModuleList(\n  (0-1): 2 x ReLU()\n  (2): Tanh()\n)"
    )


def test_a_lazy_layer_becomes_an_ordinary_one_on_its_first_call() -> None:
    layer: Any = nn.LazyLinear(3)
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized parameter"):
        _ = layer.weight.shape
    with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter"):
        _ = layer.weight + 1
    layer(pullback.ones(2, 5))
    assert type(layer) is nn.Linear
    assert layer.weight.shape == (3, 5)


def test_importing_modules_leaves_the_fast_road_of_operations_open() -> None:
    program = "import pullback.nn; from pullback.modes.switches import process; print(process.changed)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=_environment()
    )
    assert done.stdout.strip() == "0"


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}


def test_a_parametrized_weight_is_computed_and_assigned_through_the_parametrization() -> None:
    from pullback.nn.utils import parametrize

    class Doubled(nn.Module):
        def forward(self, x: Any) -> Any:
            return x * 2

        def right_inverse(self, x: Any) -> Any:
            return x / 2

    layer: Any = parametrize.register_parametrization(nn.Linear(1, 1, bias=False), "weight", Doubled())
    with pullback.no_grad():
        layer.weight = pullback.tensor([[6.0]])
    assert layer.parametrizations.weight.original.item() == 3.0
    assert layer(pullback.ones(1, 1)).item() == 6.0
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear
    assert isinstance(layer.weight, nn.Parameter)
    assert layer.weight.item() == 6.0


def test_packing_and_padding_undo_each_other() -> None:
    from pullback.nn.utils import rnn

    sequences = [pullback.tensor([1.0, 2.0]), pullback.tensor([3.0]), pullback.tensor([4.0, 5.0, 6.0])]
    packed = rnn.pack_sequence(sequences, enforce_sorted=False)
    assert packed.data.tolist() == [4.0, 1.0, 3.0, 5.0, 2.0, 6.0]
    assert packed.batch_sizes.tolist() == [3, 2, 1]
    assert [s.tolist() for s in rnn.unpack_sequence(packed)] == [s.tolist() for s in sequences]


def test_parameter_dict_sorts_the_keys_of_a_plain_dict() -> None:
    parameters = {"weight": pullback.ones(1), "bias": pullback.zeros(1)}
    assert list(nn.ParameterDict(parameters)) == ["bias", "weight"]
    assert list(nn.ParameterDict(OrderedDict(parameters))) == ["weight", "bias"]


def test_functions_win_over_the_modules_of_their_names() -> None:
    from pullback.nn.utils.spectral_norm import SpectralNorm
    from pullback.nn.utils.weight_norm import WeightNorm

    assert isinstance(SpectralNorm, type)
    assert isinstance(WeightNorm, type)
    assert callable(nn.utils.weight_norm)
    assert callable(nn.utils.spectral_norm)


def test_hooks_that_return_too_many_gradients_are_told_which() -> None:
    x = pullback.ones(2, 3, requires_grad=True)
    layer = pullback.nn.Linear(3, 2)
    handle = layer.register_full_backward_hook(lambda module, grad_input, grad_output: grad_input * 2)
    with pytest.raises(
        RuntimeError, match="Backward hook returned an invalid number of grad_input, got 2, but expected 1"
    ):
        layer(x).sum().backward()
    handle.remove()
    layer.register_full_backward_pre_hook(lambda module, grad_output: ())
    with pytest.raises(RuntimeError, match="Backward pre hook returned an invalid number of grad_output, got 0"):
        layer(x).sum().backward()
