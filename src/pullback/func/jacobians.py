"""jacrev, jacfwd and hessian: whole Jacobians, many products at once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from pullback import functions
from pullback.creation import zeros
from pullback.func.arguments import Argnums, checked_argnums, chosen, replaced, without
from pullback.func.jvp import jvp
from pullback.func.transform_level import enter
from pullback.func.vjp import vjp_with_argnums
from pullback.func.vmap import vmap
from pullback.modes.switches import switches
from pullback.progress import track
from pullback.tensor.tensor import Tensor
from pullback.utils._pytree import tree_flatten, tree_unflatten


def jacrev(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """A function that computes the Jacobian of `func` by reverse mode; `chunk_size` rows at a time where it is given.

    >>> import pullback
    >>> jacrev(pullback.sin)(pullback.zeros(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        numbers = checked_argnums(argnums, len(args))
        _check_real(tree_flatten(chosen(args, numbers))[0], "jacrev", "inputs")
        answer = vjp_with_argnums(lambda *given: func(*given, **kwargs), numbers, args, has_aux)
        output, vjp_fn = answer[0], answer[1]
        outputs, output_spec = tree_flatten(output)
        _check_real(outputs, "jacrev", "outputs")
        inputs, input_spec = tree_flatten(chosen(args, numbers))
        rows = _products(lambda *v: vjp_fn(tree_unflatten(v, output_spec)), outputs, "error", chunk_size)
        blocks = [
            [_shaped(row, o, x) for row, x in zip(tree_flatten(part)[0], inputs, strict=True)]
            for part, o in zip(_split(rows, outputs), outputs, strict=True)
        ]
        result = tree_unflatten([tree_unflatten(block, input_spec) for block in blocks], output_spec)
        return (result, answer[2]) if has_aux else result

    return jacobian


def _check_real(values: Sequence[Any], name: str, what: str) -> None:
    for index, value in enumerate(values):
        if isinstance(value, Tensor) and value._array.dtype.kind == "c":
            raise RuntimeError(
                f"{name}: Expected all {what} to be real but received complex tensor at flattened {what[:-1]} idx: {index}"
            )


def _products(product: Callable[..., Any], like: list[Any], randomness: str, chunk_size: int | None) -> Any:
    """A product with every unit vector, flat over all tensors of `like`: leaves with the vectors along dimension 0."""
    basis = unit_vectors(like)
    total = sum(x._array.size for x in like)
    if chunk_size == 1:
        rows = track(range(total), total, "rows of the Jacobian")
        results = [product(*[functions.select(b, 0, row) for b in basis]) for row in rows]
        flats = [tree_flatten(r)[0] for r in results]
        spec = tree_flatten(results[0])[1]
        return tree_unflatten([functions.stack(list(parts), 0) for parts in zip(*flats, strict=True)], spec)
    return vmap(product, randomness=randomness, chunk_size=chunk_size)(*basis)


def unit_vectors(like: Sequence[Any]) -> list[Any]:
    """For each tensor, its part of the identity matrix over the elements of all of them."""
    total = sum(x._array.size for x in like)
    basis, start = [], 0
    for tensor in like:
        count = tensor._array.size
        part = zeros(total, count, dtype=tensor.dtype, device=tensor.device)
        functions.fill_(functions.diagonal(part if count == total else functions.narrow(part, 0, start, count)), 1)
        basis.append(functions.reshape(part, (total, *tensor._array.shape)))
        start += count
    return basis


def _split(rows: Any, outputs: list[Any]) -> list[Any]:
    """The rows that belong to each output."""
    if len(outputs) == 1:
        return [rows]
    leaves, spec = tree_flatten(rows)
    sizes = [o._array.size for o in outputs]
    parts, start = [], 0
    for size in sizes:
        parts.append(tree_unflatten([functions.narrow(leaf, 0, start, size) for leaf in leaves], spec))
        start += size
    return parts


def _shaped(row: Any, output: Any, input: Any) -> Any:
    return functions.reshape(row, (*output._array.shape, *input._array.shape))


def jacfwd(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable[..., Any]:
    """A function that computes the Jacobian of `func` by forward mode.

    >>> import pullback
    >>> jacfwd(pullback.sin)(pullback.zeros(2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    @functools.wraps(func)
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        numbers = checked_argnums(argnums, len(args))
        inputs, input_spec = tree_flatten(chosen(args, numbers))
        _check_real(inputs, "jacfwd", "inputs")

        def along(*tangents: Any) -> Any:
            def only_chosen(*values: Any) -> Any:
                others = enter(without(args, numbers), switches.transform)
                given = replaced(others, numbers, tree_unflatten(values, input_spec))
                return func(*given, **enter(kwargs, switches.transform))

            answer = jvp(only_chosen, tuple(inputs), tangents, has_aux=has_aux)
            _check_real(tree_flatten(answer[0])[0], "jacfwd", "outputs")
            return answer[1:]

        pushed = vmap(along, randomness=randomness)(*unit_vectors(inputs))
        leaves, output_spec = tree_flatten(pushed[0])
        blocks = [_columns(leaf, inputs) for leaf in leaves]
        result = tree_unflatten([tree_unflatten(block, input_spec) for block in blocks], output_spec)
        return (result, _first(pushed[1])) if has_aux else result

    return jacobian


def _first(tree: Any) -> Any:
    leaves, spec = tree_flatten(tree)
    return tree_unflatten([functions.select(leaf, 0, 0) for leaf in leaves], spec)


def _columns(pushed: Any, inputs: list[Any]) -> list[Any]:
    """The Jacobian of one output with respect to each input, from the tangents along all unit vectors."""
    shape = pushed._array.shape[1:]
    moved = functions.movedim(pushed, 0, -1)
    blocks, start = [], 0
    for tensor in inputs:
        size = tensor._array.size
        blocks.append(functions.reshape(functions.narrow(moved, -1, start, size), (*shape, *tensor._array.shape)))
        start += size
    return blocks


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """A function that computes the Hessian of `func`: forward over reverse mode.

    >>> import pullback
    >>> hessian(lambda x: (x ** 3).sum())(pullback.ones(2))
    tensor([[6., 0.],
            [0., 6.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
