"""An exception in the middle of `load_state_dict` leaves the module as it was; what does not fit is told at the end."""

from __future__ import annotations

from typing import Any

import pytest

import pullback
from pullback import nn


def _model() -> Any:
    pullback.manual_seed(0)
    return nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Linear(2, 1))


def _state() -> Any:
    return {name: pullback.full_like(tensor, 7) for name, tensor in _model().state_dict().items()}


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt()])
@pytest.mark.parametrize("assign", [False, True])
def test_a_hook_that_raises_leaves_the_values_and_the_tensors(error: BaseException, assign: bool) -> None:
    model = _model()

    def refuse(*_: Any) -> None:
        raise error

    model[2]._register_load_state_dict_pre_hook(refuse)
    before = {name: (tensor, tensor.clone(), tensor.requires_grad) for name, tensor in model.named_parameters()}
    buffers = {name: (tensor, tensor.clone()) for name, tensor in model.named_buffers()}

    with pytest.raises(type(error)):
        model.load_state_dict(_state(), assign=assign)

    for name, tensor in model.named_parameters():
        assert tensor is before[name][0]
        assert pullback.equal(tensor, before[name][1])
        assert tensor.requires_grad is before[name][2]
    for name, tensor in model.named_buffers():
        assert tensor is buffers[name][0]
        assert pullback.equal(tensor, buffers[name][1])


def test_a_module_that_cannot_take_its_state_leaves_the_others() -> None:
    class Refusing(nn.Linear):
        def set_extra_state(self, state: Any) -> None:
            raise TypeError("not this one")

        def get_extra_state(self) -> Any:
            return 1

    model = nn.Sequential(nn.Linear(2, 2), Refusing(2, 1))
    state = {name: value if name.endswith("_extra_state") else value + 1 for name, value in model.state_dict().items()}
    before = model[0].weight.clone()

    with pytest.raises(TypeError, match="not this one"):
        model.load_state_dict(state)

    assert pullback.equal(model[0].weight, before)


def test_what_fits_is_loaded_where_other_shapes_do_not() -> None:
    model, state = _model(), _state()
    state["2.weight"] = pullback.zeros(5, 5)

    with pytest.raises(RuntimeError, match=r"size mismatch for 2\.weight"):
        model.load_state_dict(state)

    assert (model[0].weight == 7).all()
