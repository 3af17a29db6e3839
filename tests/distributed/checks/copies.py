"""What is copied or saved of a wrapped module, on two ranks."""

from __future__ import annotations

import copy
import io
import os
from typing import Any

import pytest

import pullback
from pullback import distributed as dist
from pullback import nn
from pullback.nn.parallel import DistributedDataParallel

RANK = int(os.environ.get("RANK", 0))


def _wrapped() -> Any:
    layer = nn.Linear(2, 1)
    with pullback.no_grad():
        layer.weight.fill_(1.0)
        layer.bias.fill_(0.0)
    return DistributedDataParallel(layer)


def _gradient(module: Any) -> Any:
    module(pullback.full((1, 2), float(RANK + 1))).sum().backward()
    return module.module.weight.grad.tolist()


def check_a_deep_copy_averages_its_own_gradients() -> None:
    module = _wrapped()
    copied = copy.deepcopy(module)
    assert _gradient(copied) == [[1.5, 1.5]]
    assert module.module.weight.grad is None
    assert _gradient(module) == [[1.5, 1.5]]


def check_a_saved_module_averages_gradients_when_it_is_loaded() -> None:
    file = io.BytesIO()
    pullback.save(_wrapped(), file)
    file.seek(0)
    assert _gradient(pullback.load(file, weights_only=False)) == [[1.5, 1.5]]


def check_a_module_with_another_group_is_not_copied() -> None:
    module = DistributedDataParallel(nn.Linear(2, 1), process_group=dist.new_group([0, 1]))
    with pytest.raises(
        RuntimeError, match="DDP Pickling/Unpickling are only supported when using DDP with the default"
    ):
        copy.deepcopy(module)


def check_parameters_that_are_left_alone() -> None:
    layer = nn.Linear(2, 1)
    DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(layer, ["weight"])
    module = DistributedDataParallel(layer)
    assert _gradient(module) == [[RANK + 1.0, RANK + 1.0]]
    assert layer.bias.grad.tolist() == [1.0]


def check_what_a_wrapped_module_says_of_itself() -> None:
    module = _wrapped()
    assert (module.device_ids, module.output_device, module.device_type) == (None, None, "cpu")
    facts = module._get_ddp_logging_data()
    assert (facts["world_size"], facts["rank"], facts["module_name"]) == (2, RANK, "Linear")
    assert facts["total_parameter_size_bytes"] == 12


def check_mixed_precision_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="mixed_precision"):
        DistributedDataParallel(nn.Linear(2, 1), mixed_precision=pullback.bfloat16)
