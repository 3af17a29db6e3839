"""Views of complex tensors: their conjugates, turned lazily, and their real and imaginary parts.

Note [Lazy conjugation] in backend/mirror.py explains how a conjugated view shares memory with its base.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pullback.generated as G
from pullback.backend.mirror import Mirror, mirror_of
from pullback.facts import declare
from pullback.generated.arithmetic import ConjugatedNode as ConjBackward0
from pullback.generated.arithmetic import NegBackward0
from pullback.graph.history import adopt_switches, link, set_history
from pullback.graph.node import Node, new_node
from pullback.graph.tangents import carry_tangents, tangents_flow
from pullback.graph.views import make_view
from pullback.modes.interception import intercept, overrides, structured
from pullback.modes.switches import process, switches
from pullback.tensor.sparse_tensor import SparseTensor
from pullback.tensor.tensor import Tensor, new_tensor


class NegViewBackward0(NegBackward0):
    """Gradient of a negated view."""

    __slots__ = ()


@declare(exact=True, complex32=True, same_values=True, structure="elementwise", found="torch and method")
def conj(input: Tensor) -> Any:
    """The complex conjugate, as a view of the same memory; a real tensor itself.

    >>> import pullback
    >>> z = pullback.tensor([1 + 2j])
    >>> z.conj().mul_(2j), z
    (tensor([4.+2.j]), tensor([4.-2.j]))
    """
    if not input.dtype.is_complex:
        return input
    if isinstance(input, SparseTensor) or input._array.dtype.kind != "c":
        return G.conjugated(input)  # no plain memory of complex numbers, which NumPy can conjugate
    return _turned_view(input, ConjBackward0, conj, conj=True)


_conj = conj


@structured("elementwise")
def _neg_view(input: Tensor) -> Any:
    """The negative, as a view of the same memory."""
    return _turned_view(input, NegViewBackward0, _neg_view, neg=True)


def _turned_view(
    input: Tensor, node_type: type[Node], function: Callable[..., Any], *, conj: bool = False, neg: bool = False
) -> Any:
    """A recorded view that shows `input` conjugated or negated; `function` makes it from any tensor."""
    if process.changed and (switches.interceptors or overrides.types):
        taken = intercept(function, (input,))
        if taken is not NotImplemented:
            return taken
    former = _mirror(input)
    source = input._array if former is None else former.behind(input._array)
    if former is not None:
        conj, neg = conj != former.conj, neg != former.neg
    mirror = mirror_of(source, conj=conj, neg=neg) if conj or neg else None
    if mirror is None and (conj or neg):  # the memory is not a plain block, so the turned values get their own
        return G.conjugated(input) if conj else G.neg(input)
    result = new_tensor(source if mirror is None else mirror.shown)
    make_view(result, input, replay=function)
    result._require_extra().mirror = mirror
    if input._requires_grad and (not process.changed or switches.records):
        _record(result, input, node_type)
    if process.changed and switches.dual_level >= 0 and tangents_flow(input):
        carry_tangents(result, lambda result, input, tangent: function(tangent), (input,), (input,))
    return result


def _record(result: Tensor, input: Tensor, node_type: type[Node]) -> None:
    node = new_node(node_type)
    link(node, (input,))
    node.shape, node.dtype = result._array.shape, result._array.dtype
    set_history(result, node)
    if process.changed:
        adopt_switches(node)


def _mirror(input: Tensor) -> Mirror | None:
    extra = input._extra
    return None if extra is None else extra.mirror


@declare(complex32=True, structure="elementwise", found="torch")
def real(input: Tensor) -> Tensor:
    """A view of the real part; a real tensor itself.

    It shares the memory of `input`: a write to it changes the real parts there.

    >>> import pullback
    >>> pullback.real(pullback.tensor([1 + 2j]))
    tensor([1.])
    """
    if input._array.dtype.kind not in "cW":
        return input
    return G.select(G.view_as_real(conj(input) if is_conj(input) else input), -1, 0)


@declare(complex32=True, found="torch")
def imag(input: Tensor) -> Tensor:
    """A view of the imaginary part of a complex tensor.

    It shares the memory of `input`: a write to it changes the imaginary parts there. A real tensor is refused.

    >>> import pullback
    >>> pullback.imag(pullback.tensor([1 + 2j]))
    tensor([2.])
    """
    if input._array.dtype.kind not in "cW":
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    if is_conj(input):
        return G.select(_neg_view(G.view_as_real(conj(input))), -1, 1)
    return G.select(G.view_as_real(input), -1, 1)


@declare(found="torch")
def view_as_real(input: Tensor) -> Tensor:
    """A view of complex numbers as pairs of real ones, along a last dimension of size 2.

    (...) becomes (..., 2): real parts first. Writes to one show in the other.

    >>> import pullback
    >>> pullback.view_as_real(pullback.tensor([1 + 2j]))
    tensor([[1., 2.]])
    """
    if is_conj(input):
        raise RuntimeError(
            "view_as_real doesn't work on unresolved conjugated tensors.  To resolve the conjugate tensor so you can view "
            "it as real, use self.resolve_conj(); however, the result will be a copy: it does not share memory with it."
        )
    return G.view_as_real(input)


def _conj_physical(input: Tensor) -> Any:
    """The complex conjugate in new memory."""
    return G.conj_physical(input)


@declare(complex32=True, structure="elementwise", found="torch and method")
def resolve_conj(input: Tensor) -> Any:
    """The tensor itself, or a copy of a conjugated view that is none."""
    return G.clone(input) if is_conj(input) else input


@declare(complex32=True, structure="elementwise", found="torch and method")
def resolve_neg(input: Tensor) -> Any:
    """The tensor itself, or a copy of a negated view that is none."""
    return G.clone(input) if is_neg(input) else input


@declare(found="torch and method")
def is_conj(input: Tensor) -> bool:
    """Whether the tensor is a conjugated view."""
    mirror = _mirror(input)
    return mirror is not None and mirror.conj


@declare(found="torch and method")
def is_neg(input: Tensor) -> bool:
    """Whether the tensor is a negated view."""
    mirror = _mirror(input)
    return mirror is not None and mirror.neg
