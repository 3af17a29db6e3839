"""Arguments that fit no signature: the error names what was given and lists the signatures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pullback
from pullback.dispatch.wrong_calls import complaint

from .wrong_calls import is_compiled

torch: Any = pullback  # without the signatures that a type checker knows: wrong calls are what is tested
X: Any = pullback.ones(2)
of_a_function = pytest.mark.skipif(is_compiled("torch.sum(x)"), reason="compiled functions do not know their calls")

CALLS: dict[str, tuple[Callable[[], Any], str, str]] = {
    "method": (lambda: X.sum("a"), "sum", "got (str)"),
    "creation": (lambda: torch.arange(1, 2, 3, 4), "arange", "got (int, int, int, int)"),
    "keyword": (lambda: torch.rand(2, generator=3), "rand", "got (int, generator=int)"),
    "optional": (lambda: torch.where(X, X), "where", "got (Tensor, Tensor)"),
    "conversion": (lambda: X.to(3.5), "to", "got (float)"),
    "number": (lambda: torch.linspace(0, 1, 2.5), "linspace", "got (int, int, float)"),
    "argument": (lambda: X.view("a"), "view", "got (str)"),
}


@pytest.mark.parametrize(("call", "name", "given"), CALLS.values(), ids=CALLS)
def test_an_error_lists_what_was_given_and_the_signatures(call: Callable[[], Any], name: str, given: str) -> None:
    with pytest.raises(TypeError) as raised:
        call()
    lines = str(raised.value).splitlines()
    assert lines[0] == f"{name}() received an invalid combination of arguments - {given}, but expected one of:"
    assert len([line for line in lines if line.startswith(" * (")]) >= 2


@of_a_function
def test_an_error_of_a_function_lists_the_tensor_too() -> None:
    with pytest.raises(TypeError, match=r"^sum\(\) received an invalid combination of arguments - got \(Tensor, str\)"):
        torch.sum(X, "a")


@of_a_function
def test_signatures_have_types_names_and_defaults() -> None:
    with pytest.raises(TypeError) as raised:
        torch.sum(X, "a")
    assert str(raised.value).splitlines()[1:] == [
        " * (Tensor input, *, pullback.dtype dtype = None)",
        " * (Tensor input, tuple of ints dim, bool keepdim = False, *, pullback.dtype dtype = None, Tensor out = None)",
    ]


def test_a_signature_of_as_many_arguments_says_which_do_not_fit() -> None:
    with pytest.raises(TypeError) as raised:
        X.view("a")
    assert str(raised.value).splitlines()[1:] == [
        " * (pullback.dtype dtype)",
        "      didn't match because some of the arguments have invalid types: (!str!)",
        " * (tuple of ints size)",
        "      didn't match because some of the arguments have invalid types: (!str!)",
    ]


def test_a_keyword_that_no_signature_has_is_named() -> None:
    said = str(complaint("hsplit", False, (X,), {"nonsense": 1}))
    assert said.count("didn't match because some of the keywords were incorrect: nonsense") == 2


@of_a_function
def test_a_call_with_stars_is_told_without_its_defaults() -> None:
    with pytest.raises(TypeError, match=r"^sum\(\) received an invalid combination of arguments - got \(Tensor, str\)"):
        torch.sum(*(X, "a"))


def test_a_function_of_one_signature_says_which_argument_is_wrong() -> None:
    with pytest.raises(TypeError, match=r"^add\(\): argument 'other' \(position 2\) must be Tensor, not object$"):
        torch.add(X, object())
