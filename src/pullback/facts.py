"""What is declared of operations and functions, asked by name.

# Note [Facts]
A fact is written once, beside what it is about: as an option of the rule of an operation (derivatives/), or with
`@declare` above a composite function, a kernel or a formula. `tools/codegen` reads all of them as syntax and writes
`generated/facts.py`, which is loaded when the first fact is asked for. So no module lists operations by name, and an
operation that is added later is known everywhere at once. A second name for a function (`arccos = G.acos` in functions/)
has the facts of what it computes. `add_facts` declares at run time, for operations from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

_Function = TypeVar("_Function", bound=Callable[..., Any])
Value = str | bool | int

FACTS: dict[str, str] = {
    "again": "a kernel of its name with `_again` differentiates its gradients at once: Note [Gradient nodes]",
    "asks": "it asks foreign arguments itself, and needs no wrapper that does: Note [Foreign arguments]",
    "autocast": "computed in 'lower' precision, in 'float32', in the 'widest' dtype of its operands, or 'stepwise'",
    "bare": "as a method it refuses wrong arguments itself, and needs no wrapper that does: what small programs call most",
    "breaks": "how it comes to a result that is not finite, where inspection/singular_points.py has words for that",
    "complex32": "it takes complex32 as it is: Note [complex32]",
    "count_of_values": "how many results it has depends on values",
    "divides_by": "the operands that decide where it is `infinite`, if not all of them do",
    "domain": "where it is defined, 'least greatest'; it is `infinite` at these ends, others are where an operand is zero",
    "exact": "it rounds nothing",
    "foreach": "`_foreach_<name>` applies it to lists of tensors",
    "found": "where users find it: in 'torch', as a 'method', or 'torch and method'; what is declared nowhere is a helper",
    "found_in_place": "the same of its in-place form, where the parameters do not say it: tools/codegen/public_names.py",
    "fresh": "its array is surely a new one that nobody else holds: Note [Owned gradients]",
    "functional": "`nn.functional` has it too, or has it and what it is 'also in place'",
    "gives": "its results are a 'comparison' of two operands, another 'truth' value, or (the last of them) 'positions'",
    "gradient_nodes": "the nodes that stand for its gradients where they are recorded: Note [Gradient nodes]",
    "in_place_overload": "what ATen calls its in-place form, where that is not its name with an underscore",
    "infinite": "its 'value' and its derivative are infinite somewhere, or its 'derivative' alone",
    "lenient": "it hands its tensors to one that refuses them under other names",
    "loops": "False: a compiled program does not compute it element by element, though its family is of such",
    "loops_on_integers": "a compiled program computes it on integers too",
    "masked": "pullback.masked has it, which its kind does not say; False: has it not, though its kind says so",
    "masked_reduction": "pullback.masked reduces with it, leaving out what is masked",
    "method_alone": "a dispatch mode's call of this name takes the method: the function takes other arguments",
    "moves": "it puts elements elsewhere and computes nothing; views do so anyway",
    "number_first": "it takes a number in the place of its first tensor",
    "out_apart": "it writes results while it still reads: `out=` must not share memory with what it reads",
    "out_dtype": "`out=` must have the result's dtype: the phrase of graph/out_dtypes.py for others, or its words",
    "out_resized": "'silently': a tensor given as `out=` is resized without a warning",
    "product": "a matrix product: of which argument it sums over the last dimension",
    "recurrent": "a recurrent layer: where its two weights begin among the arguments, by which each row is multiplied",
    "profiled": "its name in the profiler, where that is neither the `aten=` of its rule nor its public name",
    "quantized": "quantized tensors compute it, and the result is quantized as its input is",
    "refuses_integers": "its result has the dtype of its first input, and what requires grad is not put into integers",
    "renumbered": "PyTorch numbers its node otherwise where it was in place: `EluBackward1`",
    "returns": "the fields of the named tuple that it returns; True: the `outputs=` of its rule",
    "same_values": "it gives the values of its first argument where shape, dtype and layout stay",
    "shows_memory": "as a method it lets memory out: a recorded program stops there",
    "structure": "which elements a result depends on: of an operation, what its rule says or implies",
    "takes_minus_inf": "its result is finite where some operands are -inf, as masks put it",
    "twin": "why a formula stands beside a kernel of its name: 'recorded', Tensors record more than arrays need; 'passes', "
    "the kernel takes fewer of them; 'kernel', it calls it; compiled kernels need no reason",
    "ufunc": "for floating point numbers its kernel is this one function of NumPy",
    "without_gradient": "a function that is not an operation, whose results have no gradient",
    "writes": "in place, a 'fill' makes elements equal; 'at_positions' and 'after_reading' check memory later; 'unrecorded'",
    "written_in": "PyTorch has it in Python, in torch.'functional', or, though in nn.functional, in 'c'",
}
"""Every fact that may be declared, and what it says."""

OF_THE_NAME = frozenset(
    "asks bare foreach found found_in_place functional lenient method_alone returns written_in".split()
)
"""Facts of what users call, not of what it computes: a second name does not have them."""

_written: dict[str, dict[Value, str]] | None = None
_by_name: dict[str, dict[str, Any]] = {}


def declare(**facts: Value) -> Callable[[_Function], _Function]:
    """Say what is known of a function; it is read as syntax, and the function is left as it is.

    >>> @declare(autocast="float32")
    ... def delicate(input): ...
    """
    return _unchanged


def _unchanged(function: _Function) -> _Function:
    return function


def fact_of(name: str, fact: str) -> Any:
    """The value of a fact for the operation or function of this name, or None.

    >>> fact_of("mm", "autocast"), fact_of("add", "autocast")
    ('lower', None)
    """
    return names_with(fact).get(name)


def names_with(fact: str) -> Mapping[str, Any]:
    """Everything that a fact is declared of, with its value.

    >>> "mm" in names_with("autocast")
    True
    """
    found = _by_name.get(fact)
    if found is None:
        if fact not in FACTS and fact != "alias":
            raise KeyError(f"{fact!r} is not a fact: one of {', '.join(FACTS)}")
        declared = _read()
        found = _by_name[fact] = {
            name: value for value, names in declared.get(fact, {}).items() for name in names.split()
        }
        aliases = {} if fact in OF_THE_NAME else declared.get("alias", {})
        for name, others in aliases.items():
            if name in found:
                found.update(dict.fromkeys(others.split(), found[str(name)]))
    return found


def add_facts(name: str, **facts: Value) -> None:
    """Declare facts of an operation at run time."""
    for fact, value in facts.items():
        names_with(fact)
        _by_name[fact][name] = value


@contextmanager
def facts_from(written: dict[str, dict[Value, str]]) -> Iterator[None]:
    """Answer from these facts inside of the block: the generator has read them anew."""
    global _written, _by_name
    before = _written, _by_name
    _written, _by_name = written, {}
    try:
        yield
    finally:
        _written, _by_name = before


def _read() -> dict[str, dict[Value, str]]:
    global _written
    if _written is None:
        from pullback.generated.facts import DECLARED  # lazy: above this layer, and few programs ask

        _written = DECLARED
    return _written
