"""Operations on tensors that lie on two ranks, beside the same on whole ones."""

from __future__ import annotations

import os
from typing import Any

import pytest

import pullback
from pullback import nn
from pullback.distributed.fsdp import fully_shard
from pullback.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_module,
    distribute_tensor,
    init_device_mesh,
)
from pullback.distributed.tensor.experimental import implicit_replication, local_map
from pullback.distributed.tensor.parallel import loss_parallel
from pullback.nn import functional as F

RANK = int(os.environ.get("RANK", 0))


def check_parameters_of_sharded_modules_are_whole_to_programs() -> None:
    pullback.manual_seed(0)
    layer = nn.Linear(3, 4)
    expected = layer.weight.detach().norm()
    fully_shard(layer)
    assert isinstance(layer.weight, DTensor)
    norm: Any = layer.weight.norm()  # the first operation on a DTensor, where this check runs alone
    assert isinstance(norm, DTensor)
    assert pullback.allclose(norm.full_tensor(), expected)
    assert pullback.allclose(pullback.stack([norm, norm]).full_tensor()[1], expected)


def _whole() -> Any:
    return pullback.sin(pullback.arange(12.0)).reshape(4, 3)


def _row() -> Any:
    return pullback.cos(pullback.arange(3.0))


def _laid(tensor: Any, placement: Any) -> Any:
    return distribute_tensor(tensor, init_device_mesh("cpu", (2,)), [placement]).requires_grad_()


def _assert_same(function: Any, values: list[Any], placements: list[Any]) -> None:
    """The same result and gradients as on whole tensors."""
    wholes = [value.clone().requires_grad_() for value in values]
    laid = [_laid(value, placement) for value, placement in zip(values, placements, strict=True)]
    expected, actual = function(*wholes), function(*laid)
    assert isinstance(actual, DTensor)
    assert pullback.allclose(actual.full_tensor(), expected, atol=1e-6)
    (expected * expected).sum().backward()
    (actual * actual).sum().backward()
    for one, other in zip(wholes, laid, strict=True):
        assert pullback.allclose(other.grad.full_tensor(), one.grad, atol=1e-5)
        assert other.grad.placements == other.placements


def check_operations_element_by_element() -> None:
    for placement in (Shard(0), Shard(1), Replicate()):
        for other in (Shard(0), Replicate()):
            _assert_same(lambda a, b: a * b + 1, [_whole(), _row()], [placement, other])
            _assert_same(lambda a, b: a / (b + 3), [_whole(), _whole()], [placement, other])
        _assert_same(F.gelu, [_whole()], [placement])
    assert (_laid(_whole(), Shard(0)) * 2).placements == (Shard(0),)


def check_operations_that_need_wholes() -> None:
    _assert_same(lambda a, b: a @ b.t(), [_whole(), _whole()], [Shard(0), Shard(1)])
    _assert_same(lambda a, b: pullback.cat([a, b]), [_whole(), _whole()], [Shard(0), Replicate()])
    for function in (
        lambda a: a.softmax(0), lambda a: a.mean(), lambda a: a.sum(1), lambda a: a.sum(), lambda a: a.norm(),
        lambda a: a.T, lambda a: a[1:3], lambda a: a.reshape(12), lambda a: F.layer_norm(a, (3,)),
    ):  # fmt: skip
        _assert_same(function, [_whole()], [Shard(0)])


def check_operations_in_place() -> None:
    laid = _laid(_whole(), Shard(0))
    with pullback.no_grad():
        laid += _laid(_row(), Replicate())
        assert laid.mul_(2) is laid
        assert pullback.allclose(laid.full_tensor(), (_whole() + _row()) * 2)
        laid.copy_(_laid(_whole(), Shard(1)))
        assert pullback.equal(laid.full_tensor(), _whole())
        nn.init.normal_(laid)
        drawn = laid.redistribute(placements=[Replicate()]).to_local()
        nn.init.trunc_normal_(_laid(_whole(), Replicate()))
    first = DTensor.from_local(drawn.clone(), laid.device_mesh, [Replicate()], run_check=True)
    assert pullback.equal(first.to_local(), drawn)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        laid.add_(1)
    middle = laid * 2
    middle.mul_(3)
    middle.sum().backward()
    assert laid.grad.full_tensor().tolist() == [[6.0] * 3] * 4


def check_values_and_facts_are_those_of_the_whole() -> None:
    laid = _laid(pullback.arange(4.0), Shard(0)).detach()
    assert (len(laid), laid.sum().item(), float(laid.max()), bool((laid > 2).any())) == (4, 6.0, 3.0, True)
    assert laid.double().dtype is pullback.float64
    assert isinstance(laid.data, DTensor)
    assert pullback.equal(laid, laid.clone())
    with pytest.raises(RuntimeError, match=r"\.tolist\(\) is not supported for tensor subclasses, got DTensor"):
        laid.tolist()
    with pytest.raises(RuntimeError, match=r"got mixed torch\.Tensor and DTensor, need to convert all"):
        laid + pullback.ones(4)
    assert (laid + pullback.tensor(1.0)).full_tensor().tolist() == [1, 2, 3, 4]


def check_hooks_and_grad_see_dtensors() -> None:
    laid = _laid(pullback.ones(4), Shard(0))
    seen: list[Any] = []
    laid.register_hook(lambda grad: seen.append(grad.full_tensor().tolist()))
    (laid * 3).sum().backward()
    assert seen == [[3, 3, 3, 3]]
    (found,) = pullback.autograd.grad((laid * 2).sum(), [laid])
    assert found.placements == (Shard(0),)


def check_layers_with_laid_parameters_learn() -> None:
    def divide(name: str, module: Any, mesh: Any) -> None:
        for key, parameter in list(module.named_parameters(recurse=False)):
            module.register_parameter(key, nn.Parameter(distribute_tensor(parameter, mesh, [Shard(0)])))

    pullback.manual_seed(0)
    plain, laid = (nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 2)) for _ in range(2))
    laid.load_state_dict(plain.state_dict())
    distribute_module(laid, init_device_mesh("cpu", (2,)), divide)
    for module, x in ((plain, _whole()), (laid, _laid(_whole(), Replicate()).detach())):
        optimizer = pullback.optim.Adam(module.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            module(x).square().mean().backward()
            optimizer.step()
    for one, other in zip(plain.parameters(), laid.parameters(), strict=True):
        assert pullback.allclose(other.full_tensor(), one, atol=1e-5)


def check_plain_tensors_may_count_as_those_that_every_rank_has() -> None:
    mesh = init_device_mesh("cpu", (2,))
    divided = distribute_tensor(pullback.ones(4, 2), mesh, [Shard(0)])
    plain = pullback.arange(8.0).reshape(4, 2).requires_grad_()
    with implicit_replication():
        mixed = divided * plain
        assert (divided @ plain.T).full_tensor().tolist() == (pullback.ones(4, 2) @ plain.T).tolist()
    assert mixed.full_tensor().tolist() == plain.tolist()
    mixed.full_tensor().sum().backward()
    assert plain.grad.tolist() == [[1.0, 1.0]] * 4
    with pytest.raises(RuntimeError, match=r"got mixed torch\.Tensor and DTensor"):
        divided * plain
    with implicit_replication(), pytest.raises(RuntimeError, match=r"got mixed torch\.Tensor and DTensor"):
        pullback.ones(4, 2).add_(divided)


def check_functions_of_parts() -> None:
    mesh = init_device_mesh("cpu", (2,))
    tensor = distribute_tensor(pullback.arange(8.0).reshape(4, 2), mesh, [Shard(0)])
    own = local_map(lambda part, factor: (part * factor, part.sum()), ([Shard(0)], [Partial()]), ([Shard(0)], None))
    doubled, total = own(tensor, 2.0)
    assert doubled.full_tensor().tolist() == (2.0 * tensor.full_tensor()).tolist()
    assert total.full_tensor().item() == 28.0
    turned = local_map(lambda part: part + 0.0, [Shard(1)], ([Shard(1)],), redistribute_inputs=True)
    assert turned(tensor).placements == (Shard(1),)
    with pytest.raises(ValueError, match="mismatched placements"):
        local_map(lambda part: part, [Shard(1)], ([Shard(1)],))(tensor)


def check_a_loss_of_logits_that_are_divided_along_the_classes() -> None:
    mesh = init_device_mesh("cpu", (2,))
    whole = pullback.arange(32.0).reshape(4, 8).sin().requires_grad_()
    logits = distribute_tensor(whole.detach(), mesh, [Shard(1)]).requires_grad_()
    labels = pullback.tensor([0, 1, 2, 7])
    expected = F.cross_entropy(whole, labels)
    with loss_parallel():
        actual = F.cross_entropy(logits, labels)
        actual.backward()
    expected.backward()
    assert actual.full_tensor().item() == pytest.approx(expected.item())
    assert logits.grad.placements == (Shard(1),)
    assert pullback.allclose(logits.grad.full_tensor(), whole.grad)
