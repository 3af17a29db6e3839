"""Jacobians, Hessians and their products with vectors, of functions of tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback import functions
from pullback.autograd.batched_rows import rows_at_once
from pullback.autograd.differentiation import grad as _grad
from pullback.autograd.grad_mode import enable_grad
from pullback.autograd.symmetric_hessian import are_finite, has_symmetric_hessian
from pullback.creation import ones, zeros, zeros_like
from pullback.modes.grad_mode import is_grad_enabled
from pullback.progress import track
from pullback.tensor.tensor import Tensor

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def _as_tuple(value: Any, argument: str, function: str) -> tuple[bool, tuple[Any, ...]]:
    """Whether `value` was a tuple, and it as one; anything but tensors is refused."""
    is_tuple = isinstance(value, tuple)
    values = value if is_tuple else (value,)
    name = "outputs of the user-provided function" if argument == "outputs" else argument
    for index, item in enumerate(values):
        if not isinstance(item, Tensor):
            which = f"value at index {index}" if is_tuple else f"given {name}"
            raise TypeError(
                f"The {name} given to {function} must be either a Tensor or a tuple of Tensors but the {which} has type "
                f"{type(item)}."
            )
    return is_tuple, values


def _prepare(inputs: tuple[Any, ...], create_graph: bool, need_graph: bool) -> tuple[Any, ...]:
    """The inputs as fresh tensors whose history is kept only with create_graph."""
    prepared = []
    for tensor in inputs:
        if create_graph and tensor.requires_grad:
            prepared.append(tensor.view_as(tensor))
        else:
            prepared.append(tensor.detach().requires_grad_(need_graph))
    return tuple(prepared)


def _finish(results: Any, create_graph: bool) -> Any:
    if isinstance(results, tuple):
        return tuple(_finish(r, create_graph) for r in results)
    return results if create_graph or results is None else results.detach()


def _unwrap(values: tuple[Any, ...], is_tuple: bool) -> Any:
    return values if is_tuple else values[0]


def _check_requires_grad(values: Sequence[Any], kind: str, strict: bool) -> None:
    if not strict:
        return
    for index, value in enumerate(values):
        if value is None:
            raise RuntimeError(_STRICT_NONE[kind].format(index))
        if not value.requires_grad:
            raise RuntimeError(_STRICT_CONSTANT[kind].format(index))


_STRICT_NONE = {
    "outputs": "The output of the user-provided function is independent of input {}. This is not allowed in strict mode.",
    "jacobian": "The jacobian of the user-provided function is independent of input {}. This is not allowed in strict mode.",
    "hessian": "The hessian of the user-provided function is independent of input {}. This is not allowed in strict mode.",
}
_STRICT_CONSTANT = {
    "outputs": "Output {} of the user-provided function does not require gradients. The outputs must be computed in a "
    "differentiable manner from the input when running in strict mode.",
    "product": "The jacobian of the user-provided function is independent of input {}. This is not allowed in strict mode "
    "when create_graph=True.",
    "jacobian": "While computing the hessian, found that the jacobian of the user-provided function with respect to input "
    "{} is independent of the input. This is not allowed in strict mode: the second derivative would be zero.",
    "hessian": "The hessian of the user-provided function with respect to input {} is independent of the inputs of the "
    "user-provided function. This is not allowed in strict mode.",
}


def _gradients(
    outputs: Sequence[Any],
    inputs: Sequence[Any],
    vectors: Sequence[Any] | None,
    *,
    create_graph: bool,
    keep: bool = True,
) -> tuple[Any, ...]:
    """grad() that passes over outputs without history and gives None for what is unused."""
    vectors = [None] * len(outputs) if vectors is None else vectors
    pairs = [(o, v) for o, v in zip(outputs, vectors, strict=True) if o is not None and o.requires_grad]
    if not pairs:
        return (None,) * len(inputs)
    return _grad(
        [o for o, _ in pairs], inputs, [v for _, v in pairs], retain_graph=keep or create_graph,
        create_graph=create_graph, allow_unused=True,
    )  # fmt: skip


def _filled(values: Sequence[Any], like: Sequence[Any], strict: bool, kind: str) -> tuple[Any, ...]:
    """Zeros where there is no gradient, which strict mode refuses."""
    filled = []
    for index, (value, reference) in enumerate(zip(values, like, strict=True)):
        if value is None:
            if strict:
                raise RuntimeError(_STRICT_NONE[kind].format(index))
            value = zeros_like(reference)
        filled.append(value)
    return tuple(filled)


_SINGLE = {
    "output of": "the user-provided function returns",
    "input to": "the input to the user-provided function is",
}


def _check_vector(v: Any, like: Sequence[Any], function: str, of: str) -> tuple[Any, ...]:
    """The vector of a product, with the shapes of what it is multiplied with."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(
                f"The vector v can only be None if {_SINGLE.get(of, of)} a single Tensor with a single element."
            )
        return tuple(_ones_like(x) for x in like)
    _, vectors = _as_tuple(v, "v", function)
    if len(vectors) != len(like):
        raise RuntimeError(
            f"v is a tuple of invalid length: should be {len(like)} but got {len(vectors)}."
            if len(like) > 1
            else "The given v should contain a single Tensor."
        )
    for index, (vector, reference) in enumerate(zip(vectors, like, strict=True)):
        if vector.size() != reference.size():
            prefix = f"Entry {index} in " if len(vectors) > 1 else ""
            raise RuntimeError(f"{prefix}v has invalid size: should be {reference.size()} but got {vector.size()}.")
    return vectors


def _construct_standard_basis_for(tensors: tuple[Any, ...], tensor_numels: tuple[int, ...]) -> tuple[Any, ...]:
    """The identity matrix over the elements of all tensors, as columns for each: `chunk[row]` is part of a unit vector."""
    if len(tensors) != len(tensor_numels):
        raise AssertionError(
            "Expected tensors and tensor_numels to have the same length, but got "
            f"{len(tensors)} and {len(tensor_numels)}"
        )
    if not tensors:
        raise AssertionError("Expected at least one tensor")
    start, total, chunks = 0, sum(tensor_numels), []
    for tensor, size in zip(tensors, tensor_numels, strict=True):
        chunk = zeros(total, size, dtype=tensor.dtype, device=tensor.device)
        functions.fill_(functions.diagonal(functions.narrow(chunk, 0, start, size)), 1)
        chunks.append(chunk)
        start += size
    return tuple(chunks)


def _ones_like(tensor: Any) -> Any:
    """Ones in the shape and dtype of a tensor."""
    return ones(tuple(tensor.shape), dtype=tensor.dtype, device=tensor.device)


def vjp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The outputs of `func`, and the product of a vector with its Jacobian.

    >>> import pullback
    >>> vjp(lambda x: x * x, pullback.tensor([1.0, 2.0]), pullback.ones(2))[1]
    tensor([2., 4.])
    """
    with enable_grad():
        is_tuple, values = _as_tuple(inputs, "inputs", "vjp")
        values = _prepare(values, create_graph, True)
        outputs_are_tuple, outputs = _as_tuple(func(*values), "outputs", "vjp")
        _check_requires_grad(outputs, "outputs", strict)
        vectors = _check_vector(v, outputs, "vjp", "output of")
    keep = True if create_graph else is_grad_enabled()
    with enable_grad():
        products = _gradients(outputs, values, vectors, create_graph=create_graph, keep=keep)
        products = _filled(products, values, strict, "outputs")
        _check_requires_grad(products, "product", strict and create_graph)
    return (
        _unwrap(_finish(outputs, create_graph), outputs_are_tuple),
        _unwrap(_finish(products, create_graph), is_tuple),
    )


def jvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The outputs of `func`, and the product of its Jacobian with a vector.

    >>> import pullback
    >>> jvp(lambda x: x * x, pullback.tensor([1.0, 2.0]), pullback.ones(2))[1]
    tensor([2., 4.])
    """
    with enable_grad():
        is_tuple, values = _as_tuple(inputs, "inputs", "jvp")
        values = _prepare(values, create_graph, True)
        vectors = _check_vector(v, values, "jvp", "input to")
        outputs_are_tuple, outputs = _as_tuple(func(*values), "outputs", "jvp")
        _check_requires_grad(outputs, "outputs", strict)
        dummies = tuple(zeros_like(o).requires_grad_() for o in outputs)
        pulled = _gradients(outputs, values, dummies, create_graph=True)
        pulled = _filled(pulled, values, strict, "outputs")
        products = _gradients(pulled, dummies, vectors, create_graph=create_graph)
        products = _filled(products, outputs, strict, "outputs")
        _check_requires_grad(products, "product", strict and create_graph)
    del is_tuple
    return (
        _unwrap(_finish(outputs, create_graph), outputs_are_tuple),
        _unwrap(_finish(products, create_graph), outputs_are_tuple),
    )


def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian of `func`: for each output and input, a tensor of both shapes joined.

    >>> import pullback
    >>> jacobian(lambda x: x * x, pullback.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more outputs than '
            'inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use "reverse-mode".'
        )
    if strategy == "forward-mode":
        return _forward_jacobian(func, inputs, create_graph, strict, vectorize)
    with enable_grad():
        is_tuple, values = _as_tuple(inputs, "inputs", "jacobian")
        values = _prepare(values, create_graph, True)
        outputs_are_tuple, outputs = _as_tuple(func(*values), "outputs", "jacobian")
        _check_requires_grad(outputs, "outputs", strict)
        if vectorize and strict:
            raise RuntimeError(
                "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. Please "
                "either set `strict=False` or `vectorize=False`."
            )
        rows = tuple(
            _rows(output, number, values, create_graph, strict, vectorize) for number, output in enumerate(outputs)
        )
    rows = _finish(rows, create_graph)
    per_output = tuple(row if is_tuple else row[0] for row in rows)
    return per_output if outputs_are_tuple else per_output[0]


def _rows(
    output: Any, number: int, inputs: tuple[Any, ...], create_graph: bool, strict: bool, vectorize: bool
) -> tuple[Any, ...]:
    """The Jacobian of one output: the gradients of its elements, many at once (see Note [Batched rows])."""
    count = output.numel()
    if not output.requires_grad or count == 0:
        return tuple(zeros((*output.shape, *x.shape), dtype=x.dtype, device=output.device) for x in inputs)
    if vectorize:
        basis = functions.reshape(_eye(count, output.dtype), (count, *output.shape))
        stacked = _grad(
            output,
            inputs,
            basis,
            retain_graph=True,
            create_graph=create_graph,
            allow_unused=True,
            is_grads_batched=True,
        )
        return tuple(
            zeros((*output.shape, *x.shape), dtype=x.dtype, device=x.device)
            if g is None
            else g.reshape((*output.shape, *x.shape))
            for g, x in zip(stacked, inputs, strict=True)
        )
    batch = None if count == 1 else rows_at_once(output, inputs, create_graph=create_graph)
    if batch is None:
        batch = _row_by_row(output, number, inputs, create_graph, strict)
    else:
        for index, grad in enumerate(batch):
            _check_row(grad, number, index, create_graph, strict)
    return tuple(
        zeros((*output.shape, *x.shape), dtype=x.dtype, device=x.device)
        if g is None
        else g.reshape((*output.shape, *x.shape))
        for g, x in zip(batch, inputs, strict=True)
    )


def _row_by_row(output: Any, number: int, inputs: tuple[Any, ...], create_graph: bool, strict: bool) -> list[Any]:
    """For each input, the gradients of the elements of an output, each by a pass of its own."""
    columns: list[list[Any]] = [[] for _ in inputs]
    flat = output.reshape(-1)
    for position in track(range(output.numel()), output.numel(), "rows of the Jacobian"):
        grads = _gradients([flat[position]], inputs, None if not output.is_complex() else [_ones_like(flat[0])],
                           create_graph=create_graph)  # fmt: skip
        for index, (grad, x) in enumerate(zip(grads, inputs, strict=True)):
            _check_row(grad, number, index, create_graph, strict)
            columns[index].append(zeros_like(x) if grad is None else grad)
    return [functions.stack(column, 0) for column in columns]


def _check_row(grad: Any, number: int, index: int, create_graph: bool, strict: bool) -> None:
    """Refuse what strict mode does: an input that an output, or its gradient, is independent of."""
    if not strict:
        return
    if grad is None:
        raise RuntimeError(
            f"Output {number} of the user-provided function is independent of input {index}. This is not "
            "allowed in strict mode."
        )
    if create_graph and not grad.requires_grad:
        raise RuntimeError(
            "The jacobian of the user-provided function is independent of input "
            f"{index}. This is not allowed in strict mode when create_graph=True."
        )


def _eye(n: int, dtype: Any) -> Any:
    from pullback.creation import eye

    return eye(n, dtype=dtype)


def _forward_jacobian(func: Callable[..., Any], inputs: Any, create_graph: bool, strict: bool, vectorize: bool) -> Any:
    """Columns of the Jacobian by forward mode, all at once."""
    if strict:
        raise RuntimeError(
            'torch.autograd.functional.jacobian: `strict=True` and `strategy="forward-mode"` are not supported together '
            '(yet). Please either set `strict=False` or `strategy="reverse-mode"`.'
        )
    if not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian is only implemented for `vectorize=True`."
        )
    if create_graph:
        raise NotImplementedError(
            'torch.autograd.functional.jacobian: `create_graph=True` and `strategy="forward-mode"` are not supported '
            'together (yet). Please either set `create_graph=False` or `strategy="reverse-mode"`.'
        )
    from pullback.func import jacfwd  # lazy: transforms are above autograd

    is_tuple, values = _as_tuple(inputs, "inputs", "jacobian")
    values = tuple(v.detach() for v in values)
    result = jacfwd(func, argnums=tuple(range(len(values))))(*values)
    probe = func(*values)
    outputs_are_tuple = isinstance(probe, (tuple, list))
    rows = result if outputs_are_tuple else (result,)
    per_output = tuple(tuple(row) if is_tuple else row[0] for row in rows)
    return per_output if outputs_are_tuple else per_output[0]


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The Hessian of a function with a single number as its result.

    >>> import pullback
    >>> hessian(lambda x: (x ** 3).sum(), pullback.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    is_tuple, values = _as_tuple(inputs, "inputs", "hessian")
    if outer_jacobian_strategy not in ("forward-mode", "reverse-mode"):
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')

    def scalar(*arguments: Any) -> Any:
        outputs_are_tuple, outputs = _as_tuple(func(*arguments), "outputs", "hessian")
        _check_requires_grad(outputs, "outputs", strict)
        if outputs_are_tuple or not isinstance(outputs[0], Tensor):
            raise RuntimeError("The function given to hessian should return a single Tensor")
        if outputs[0].numel() != 1:
            raise RuntimeError("The Tensor returned by the function given to hessian should contain a single element")
        return outputs[0].squeeze()

    def gradient(*arguments: Any) -> Any:
        if outer_jacobian_strategy == "forward-mode":
            arguments = tuple(_requiring_grad(a) for a in arguments)
        result = jacobian(scalar, arguments, create_graph=True)
        _check_requires_grad(result, "jacobian", strict)
        return result

    result = jacobian(
        gradient,
        values,
        create_graph=create_graph,
        strict=strict,
        vectorize=vectorize,
        strategy=outer_jacobian_strategy,
    )
    return result if is_tuple else result[0][0]


def _requiring_grad(tensor: Any) -> Any:
    """The tensor as one that operations on are recorded, also inside of a transform."""
    tensor._set_requires_grad(True)
    return tensor


def vhp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The result of `func`, and the product of a vector with its Hessian.

    >>> import pullback
    >>> vhp(lambda x: (x ** 3).sum(), pullback.tensor([1.0, 2.0]), pullback.ones(2))[1]
    tensor([ 6., 12.])
    """
    return _hessian_product("vhp", func, inputs, v, create_graph, strict)


def hvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The result of `func`, and the product of its Hessian with a vector.

    >>> import pullback
    >>> hvp(lambda x: (x ** 3).sum(), pullback.tensor([1.0, 2.0]), pullback.ones(2))[1]
    tensor([ 6., 12.])
    """
    return _hessian_product("hvp", func, inputs, v, create_graph, strict)


def _hessian_product(
    name: str, func: Callable[..., Any], inputs: Any, v: Any, create_graph: bool, strict: bool
) -> tuple[Any, Any]:
    with enable_grad():
        is_tuple, values = _as_tuple(inputs, "inputs", name)
        values = _prepare(values, create_graph, True)
        vectors = _check_vector(v, values, name, "input to")
        outputs_are_tuple, outputs = _as_tuple(func(*values), "outputs", name)
        _check_requires_grad(outputs, "outputs", strict)
        if outputs_are_tuple:
            raise RuntimeError(f"The function given to {name} should return a single Tensor")
        if outputs[0].numel() != 1:
            raise RuntimeError(f"The Tensor returned by the function given to {name} should contain a single element")
        first = _gradients(outputs, values, None, create_graph=True)
        first = _filled(first, values, strict, "outputs")
        _check_requires_grad(first, "jacobian", strict)
        # See Note [Symmetric Hessians].
        is_symmetric = not strict and not create_graph and has_symmetric_hessian(outputs[0], values)
        products: Any = None
        if name == "vhp" or is_symmetric:
            products = _gradients(first, values, vectors, create_graph=create_graph)
        if name == "hvp" and not (is_symmetric and are_finite(products)):
            products = _product_from_the_right(first, values, vectors, create_graph, strict)
        products = _filled(products, values, strict, "hessian")
    return _finish(outputs[0], create_graph), _unwrap(_finish(products, create_graph), is_tuple)


def _product_from_the_right(
    first: Sequence[Any], values: Sequence[Any], vectors: Sequence[Any], create_graph: bool, strict: bool
) -> tuple[Any, ...]:
    """The Jacobian of the gradient times a vector: the gradient of a product with a dummy, with respect to the dummy."""
    dummies = tuple(zeros_like(x).requires_grad_() for x in values)
    inner = _gradients(first, values, dummies, create_graph=True)
    inner = _filled(inner, values, strict, "hessian")
    return _gradients(inner, dummies, vectors, create_graph=create_graph)
