"""A tenth of all operations' samples inside of a compiled function; `make compiled-operations` runs them all."""

from __future__ import annotations

import pytest

import pullback
from pullback.compiling import recorder
from tests.compiling.operations import compare
from tests.derivatives.sampling import Sample, normal
from tests.derivatives.test_derivatives import SAMPLES


@pytest.mark.parametrize("sample", SAMPLES[::10], ids=lambda sample: sample.name)
def test_operation_gives_the_same_compiled(sample: Sample) -> None:
    compare(sample)


def test_a_program_that_misses_a_write_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def written(whole: object, *args: object, **options: object) -> object:
        return whole

    def write(x: pullback.Tensor) -> pullback.Tensor:
        y = x * 1
        y[0] = 0.0
        return y * y

    monkeypatch.setattr(recorder, "written", written)
    with pytest.raises(AssertionError):
        compare(Sample("write", write, (normal(3),)))
