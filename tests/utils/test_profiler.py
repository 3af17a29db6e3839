"""The profiler's names, and the schedule of its steps."""

from __future__ import annotations

import pullback
from pullback import nn
from pullback.profiler import profile, schedule


def test_a_layer_appears_under_the_name_of_its_operation() -> None:
    layer, inputs = nn.Linear(2, 3), pullback.ones(1, 2)
    with profile() as recorded:
        layer(inputs)
    assert [event.key for event in recorded.key_averages()] == ["aten::linear"]


def test_a_trace_is_handed_over_after_its_last_step() -> None:
    seen: list[int] = []
    with profile(
        schedule=schedule(wait=1, warmup=1, active=2), on_trace_ready=lambda prof: seen.append(prof.step_num)
    ) as recorded:
        for _ in range(5):
            recorded.step()
    assert seen == [4]
