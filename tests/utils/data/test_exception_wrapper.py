"""Exceptions that travel between processes."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from pullback.utils.data.exception_wrapper import ExceptionWrapper


class DemandingError(Exception):
    def __init__(self, first: str, second: str) -> None:
        super().__init__(first, second)


def wrap(exception: Exception) -> ExceptionWrapper:
    try:
        raise exception
    except Exception as error:
        return ExceptionWrapper(error, "in a faraway place")


@pytest.mark.parametrize("exception", [ValueError("text"), IndexError(3), OSError(2, "gone"), StopIteration()])
def test_an_exception_keeps_its_type_and_traceback(exception: Any) -> None:
    wrapper = pickle.loads(pickle.dumps(wrap(exception)))
    with pytest.raises(type(exception)) as caught:
        wrapper.reraise()
    text = str(caught.value)
    assert text.startswith(f"Caught {type(exception).__name__} in a faraway place.\nOriginal Traceback")
    assert "test_exception_wrapper.py" in text


def test_a_key_error_shows_line_breaks() -> None:
    with pytest.raises(KeyError) as caught:
        wrap(KeyError("key")).reraise()
    assert len(str(caught.value).splitlines()) > 2


def test_an_exception_that_needs_more_arguments_becomes_a_runtime_error() -> None:
    with pytest.raises(RuntimeError, match="Caught DemandingError in a faraway place"):
        wrap(DemandingError("a", "b")).reraise()
