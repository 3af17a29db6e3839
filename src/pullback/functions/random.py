"""Random tensors: the numbers of PyTorch's CPU generator from the same seed."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from pullback.backend import random as draw
from pullback.backend.device import device_of
from pullback.backend.device_array import DeviceArray
from pullback.backend.dtype import default_float, from_numpy_dtype, int64, is_float_or_complex, scalar_type_name
from pullback.backend.meta_array import is_meta
from pullback.backend.random import Generator
from pullback.creation import _sizes, empty, empty_like, wrap
from pullback.creation.options import dtype_option, made_on
from pullback.errors import not_a_bool, wrong_type
from pullback.facts import declare
from pullback.functions.grids import broadcast_shapes
from pullback.graph.basic_nodes import attach_unimplemented
from pullback.graph.history import bump_version, check_in_place, gradient_edge, rebase_history
from pullback.graph.in_place import check_overlap, write_out
from pullback.graph.tangents import levels_of, set_tangent, tangent_at, zeros_like_input
from pullback.graph.zero_gradient import attach_zero_node, zero_node
from pullback.modes.cuts import note_cut
from pullback.modes.interception import draws, interceptable, overridable
from pullback.modes.switches import process, switches
from pullback.tensor.arguments import as_int, as_numpy_dtype, plain_number, refuse_unknown
from pullback.tensor.tensor import Tensor, new_tensor

_OPTIONS = frozenset(
    {"out", "dtype", "layout", "device", "requires_grad", "pin_memory", "generator", "memory_format", "names"}
)


def _made(name: str, array: Any, options: dict[str, Any]) -> Tensor:
    """A new tensor with the options that all these functions share."""
    if not options:
        return wrap(array)
    for option in options:
        if option not in _OPTIONS:
            raise TypeError(f"{name}() got an unexpected keyword argument '{option}'")
    requires_grad = options.get("requires_grad", False)
    if requires_grad is not True and requires_grad is not False and requires_grad is not None:
        raise not_a_bool(name, "requires_grad", requires_grad)
    result = wrap(array, requires_grad is True, options.get("device"))
    out = options.get("out")
    return result if out is None else write_out(name, out, result)


def _drawn(shape: tuple[int, ...], dtype: Any, options: dict[str, Any], draw_on_cpu: Any, fill: Any) -> Any:
    """New numbers on the device that is asked for: on another than the CPU memory is filled there."""
    place = made_on(options.get("device"))
    if place is None:
        return draw_on_cpu()
    array = empty(shape, dtype=from_numpy_dtype(dtype), device=place)._array
    fill(array)
    return array


def _is_plain(options: dict[str, Any]) -> bool:
    """Whether numbers are asked for on the CPU, in the default dtype."""
    return not options and not (process.changed and switches.new_device is not None)


def _shape(function: str, size: tuple[Any, ...], options: dict[str, Any]) -> tuple[int, ...]:
    return _sizes(_one(options.pop("size")) if "size" in options else size, function)


def _one(size: Any) -> tuple[Any, ...]:
    return tuple(size) if isinstance(size, (tuple, list)) else (size,)


@draws("size")
@interceptable
@declare(out_resized="silently", found="torch")
def rand(*size: Any, **options: Any) -> Tensor:
    """Uniform numbers from [0, 1).

    `size` is given as numbers or as one tuple; `generator` is the source of the numbers, `manual_seed` its start.

    >>> import pullback
    >>> _ = pullback.manual_seed(0)
    >>> pullback.rand(3)
    tensor([0.4963, 0.7682, 0.0885])
    """
    if _is_plain(options):
        return wrap(draw.uniform(_sizes(size, "rand"), default_float()))
    shape = _shape("rand", size, options)
    dtype = dtype_option("rand", options.get("dtype"), options.get("out")) or default_float()
    generator = options.get("generator")
    array = _drawn(
        shape,
        dtype,
        options,
        lambda: draw.uniform(shape, dtype, generator=generator),
        lambda made: draw.uniform_(made, generator=generator),
    )
    return _made("rand", array, options)


@draws("size")
@interceptable
@declare(out_resized="silently", found="torch")
def randn(*size: Any, **options: Any) -> Tensor:
    """Standard normal numbers.

    `size` is given as numbers or as one tuple; `generator` is the source of the numbers, `manual_seed` its start.
    Mean 0, variance 1.

    >>> import pullback
    >>> _ = pullback.manual_seed(0)
    >>> pullback.randn(3)
    tensor([ 1.5410, -0.2934, -2.1788])
    """
    if _is_plain(options):
        return wrap(draw.normal(_sizes(size, "randn"), default_float()))
    shape = _shape("randn", size, options)
    dtype = dtype_option("randn", options.get("dtype"), options.get("out")) or default_float()
    if not is_float_or_complex(dtype):
        raise NotImplementedError(f"\"normal_kernel_cpu\" not implemented for '{scalar_type_name(dtype)}'")
    generator = options.get("generator")
    array = _drawn(
        shape,
        dtype,
        options,
        lambda: draw.normal(shape, dtype, generator=generator),
        lambda made: draw.normal_(made, generator=generator),
    )
    return _made("randn", array, options)


@declare(found="torch")
@draws("size")
@interceptable
def randint(*args: Any, **options: Any) -> Tensor:
    """Integers from [low, high): `randint(high, size)` or `randint(low, high, size)`.

    `size` is a tuple; the result is int64 unless `dtype` is given. `low` is 0 unless given, and `high` is not among
    the numbers.
    """
    low, high = options.pop("low", 0), options.pop("high", None)
    size = options.pop("size", None)
    rest = list(args)
    if size is None:
        if not rest:
            raise TypeError('randint() missing 2 required positional argument: "high", "size"')
        size = rest.pop()
    if len(rest) == 2:
        low, high = rest
    elif len(rest) == 1 and high is None:
        high = rest[0]
    elif len(rest) == 1:
        low = rest[0]
    if isinstance(size, int) or high is None:
        raise wrong_type("randint", "size", 2, "tuple of ints", size)
    shape = _sizes(_one(size), "randint")
    dtype = as_numpy_dtype(options.get("dtype"))
    generator = options.get("generator")
    wanted = int64.numpy_dtype if dtype is None else dtype
    array = _drawn(
        shape,
        wanted,
        options,
        lambda: draw.randint(as_int(low), as_int(high), shape, wanted, generator),
        lambda made: draw.random_(made, as_int(low), as_int(high), generator),
    )
    return _made("randint", array, options)


@declare(found="torch")
@draws("permutation")
@interceptable
def randperm(n: int, **options: Any) -> Tensor:
    """A random permutation of 0 .. n-1.

    An int64 vector (n,) unless `dtype` is given; `generator` draws it, or the default one (`manual_seed`).

    >>> import pullback
    >>> pullback.randperm(4).sort().values
    tensor([0, 1, 2, 3])
    """
    dtype = as_numpy_dtype(options.get("dtype"))
    generator = options.get("generator")
    array = draw.randperm(n, generator=generator) if dtype is None else draw.randperm(n, dtype, generator)
    return _made("randperm", array, options)


@draws("input")
@overridable
@declare(without_gradient=True, structure="elementwise", found="torch")
def rand_like(input: Tensor, **options: Any) -> Tensor:
    """Uniform numbers in the shape of `input`.

    Drawn from [0, 1); `dtype`, `device` and `requires_grad` replace what `input` has.

    >>> import pullback
    >>> pullback.rand_like(pullback.ones(2, 3)).shape
    pullback.Size([2, 3])
    """
    made = empty_like(input, dtype=options.get("dtype"), memory_format=options.get("memory_format"))
    draw.uniform_(made._array, generator=options.get("generator"))
    return _made("rand_like", made._array, options)


@draws("input")
@overridable
@declare(without_gradient=True, structure="elementwise", found="torch")
def randn_like(input: Tensor, **options: Any) -> Tensor:
    """Standard normal numbers in the shape of `input`.

    Of mean 0 and variance 1; `dtype`, `device` and `requires_grad` replace what `input` has.

    >>> import pullback
    >>> pullback.randn_like(pullback.ones(2, 3)).shape
    pullback.Size([2, 3])
    """
    made = empty_like(input, dtype=options.get("dtype"), memory_format=options.get("memory_format"))
    draw.normal_(made._array, generator=options.get("generator"))
    return _made("randn_like", made._array, options)


@draws("input")
@overridable
@declare(without_gradient=True, found="torch")
def randint_like(input: Tensor, *bounds: Any, **options: Any) -> Tensor:
    """Integers from [low, high) in the shape and dtype of `input`.

    Called with (input, high) or (input, low, high); `low` is 0 if not given.

    >>> import pullback
    >>> pullback.randint_like(pullback.zeros(2, 3), 10).shape
    pullback.Size([2, 3])
    """
    low = options.pop("low", 0)
    high = options.pop("high", None)
    low, high = (low, bounds[0]) if len(bounds) == 1 else bounds if bounds else (low, high)
    made = empty_like(input, dtype=options.get("dtype"))
    draw.random_(made._array, as_int(low), as_int(high), options.get("generator"))
    return _made("randint_like", made._array, options)


@declare(found="torch")
@draws("parameters")
@interceptable
def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, **options: Any) -> Tensor:
    """Normal numbers with given means and standard deviations.

    Both are tensors, which have one number of elements, or one is a number; two numbers need a `size`.

    >>> import pullback
    >>> pullback.normal(0.0, 1.0, size=(2, 3)).shape
    pullback.Size([2, 3])
    """
    generator = options.pop("generator", None)
    if size is not None:
        dtype = as_numpy_dtype(options.get("dtype")) or default_float()
        return _made("normal", draw.normal(_sizes(_one(size)), dtype, mean, std, generator), options)
    arrays = [v._array if isinstance(v, Tensor) else v for v in (mean, std)]
    tensors = [a for a in arrays if hasattr(a, "dtype")]
    if not tensors:
        raise TypeError("normal() needs a tensor for mean or std, or size=")
    if hasattr(arrays[1], "dtype") and arrays[1].size and arrays[1].dtype.kind != "c" and (arrays[1] < 0).any():
        raise RuntimeError(f"normal expects all elements of std >= 0.0, but found minimum {arrays[1].min()}")
    if len(tensors) == 2:
        shape = tuple(broadcast_shapes(tensors[0].shape, tensors[1].shape))
    else:
        shape = tensors[0].shape
    if isinstance(tensors[0], DeviceArray):
        drawn = empty(shape, dtype=from_numpy_dtype(tensors[0].dtype), device=device_of(tensors[0]))._array
        draw.normal_(drawn, 0.0, 1.0, generator)
        result = _made("normal", drawn * arrays[1] + arrays[0], options)
    else:
        result = _made("normal", draw.normal(shape, tensors[0].dtype, arrays[0], arrays[1], generator), options)
    given = [v for v in (mean, std) if isinstance(v, Tensor) and v._requires_grad]
    if given and (not process.changed or switches.records):
        number = 3 if len(tensors) == 2 else 1 if isinstance(mean, Tensor) else 2
        attach_zero_node(result, f"NormalBackward{number}", given)
    return _without_slope(result, mean, std)


@draws("parameters")
@interceptable
@declare(out_resized="silently", found="torch and method")
def bernoulli(input: Tensor, p: Any = None, *, generator: Generator | None = None, out: Any = None) -> Tensor:
    """Zeros and ones, with `input` as the probability of a one.

    The result has the shape and dtype of `input`, whose elements lie between 0 and 1; `p` is one probability for all of
    them instead. Its gradient is zero.

    >>> import pullback
    >>> pullback.bernoulli(pullback.tensor([0.0, 1.0, 1.0]))
    tensor([0., 1., 1.])
    """
    if p is not None:
        result = empty_like(input)
        draw.bernoulli_(result._array, plain_number(p), generator)
    else:
        result = new_tensor(draw.bernoulli(input._array, generator))
    if input._requires_grad and (not process.changed or switches.records):
        attach_zero_node(result, "BernoulliBackward0", (input,))
    return _without_slope(result, input) if out is None else write_out("bernoulli", out, result)


@draws("rows")
@interceptable
@declare(out_resized="silently", gives="positions", found="torch and method")
def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None, out: Any = None
) -> Tensor:
    """Indices drawn with the probabilities in each row of `input`.

    `input` is (n,) or (m, n): weights that need not sum to one. The result is int64, (num_samples,) or (m, num_samples). A
    row gives an index at most once unless `replacement`.

    >>> import pullback
    >>> pullback.multinomial(pullback.tensor([[0.0, 2.0, 0.0], [0.0, 0.0, 5.0]]), 1)
    tensor([[1],
            [2]])
    """
    result = new_tensor(draw.multinomial(input._array, num_samples, replacement, generator))
    if input._requires_grad:
        note_cut("multinomial", result, input)
    if out is not None and out._array.dtype != result._array.dtype:
        raise RuntimeError(f"multinomial expects Long tensor out, got: {scalar_type_name(out._array.dtype)}")
    return result if out is None else write_out("multinomial", out, result)


@declare(found="torch")
@draws("parameters")
@interceptable
def poisson(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Poisson numbers with the rates in `input`.

    In the shape and dtype of `input`, whose elements are not negative; their gradient is zero.

    >>> import pullback
    >>> pullback.poisson(pullback.zeros(2))
    tensor([0., 0.])
    """
    result = new_tensor(draw.poisson(input._array, generator))
    if input._requires_grad and (not process.changed or switches.records):
        attach_zero_node(result, "PoissonBackward0", (input,))
    return _without_slope(result, input)


@declare(found="torch")
@draws("parameters")
@interceptable
def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """Numbers of successes among `count` trials."""
    if process.changed and levels_of((count, prob)):
        raise NotImplementedError("Trying to use forward AD with aten::binomial that does not support it.")
    result = new_tensor(draw.binomial(count._array, prob._array, generator))
    attach_unimplemented("binomial", (result,), (count, prob))
    return result


# In-place: the tensor is filled, and the gradient of what it was is zero.


def _fill(input: Tensor, node_name: str, fill: Callable[[Any], Any]) -> Tensor:
    records = input._requires_grad and (not process.changed or switches.records)
    operation = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", node_name.partition("Backward")[0]).lower()
    check_in_place(input, operation, records=records)
    check_overlap(input)
    node = None
    if records:
        node = zero_node(node_name)
        node.next_edges = (gradient_edge(input),)
    if not is_meta(input._array):
        fill(input._array)
    bump_version(input)
    if node is not None:
        rebase_history(input, node)
    if process.changed:
        for level in levels_of(input):
            tangent_at(input, level).zero_()
    return input


def _without_slope(result: Tensor, *parameters: Any) -> Tensor:
    """What was drawn, whose tangents are zero where its parameters have some."""
    if process.changed:
        for level in levels_of(parameters):
            set_tangent(result, level, zeros_like_input(result))
    return result


def _plain(value: Any) -> Any:
    return value._array if isinstance(value, Tensor) else value


@declare(found="method")
@draws("fill")
@interceptable
def normal_(input: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with normal numbers.

    `mean` and `std` are numbers; `generator` gives the numbers, or the default one.

    >>> import pullback
    >>> pullback.empty(1000).normal_(5.0, 0.1).mean().round()
    tensor(5.)
    """
    return _fill(input, "NormalBackward0", lambda a: draw.normal_(a, mean, std, generator))


@declare(found="method")
@draws("fill")
@interceptable
def uniform_(
    input: Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Generator | None = None, **bounds: float
) -> Tensor:
    """Fill with uniform numbers.

    Drawn from [`from`, `to`), 0 and 1 unless given.

    >>> import pullback
    >>> pullback.empty(2, 3).uniform_().shape
    pullback.Size([2, 3])
    """
    refuse_unknown("uniform_", bounds, ("from", "a", "b"))
    low = bounds.get("from", bounds.get("a", from_))
    return _fill(input, "UniformBackward0", lambda a: draw.uniform_(a, low, bounds.get("b", to), generator))


@declare(found="method")
@draws("fill")
@interceptable
def random_(input: Tensor, *bounds: Any, generator: Generator | None = None, **named: Any) -> Tensor:
    """Fill with integers: of the dtype's whole range, below `to`, or from [from, to)."""
    refuse_unknown("random_", named, ("from", "to"))
    low, high = named.get("from"), named.get("to")
    if len(bounds) == 1:
        low, high = (0, bounds[0]) if high is None else (bounds[0], high)
    elif len(bounds) == 2:
        low, high = bounds
    return _fill(input, "RandomBackward0", lambda a: draw.random_(a, low, high, generator))


@declare(found="method")
@draws("fill")
@interceptable
def bernoulli_(input: Tensor, p: Any = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill with zeros and ones."""
    return _fill(input, "BernoulliBackward1", lambda a: draw.bernoulli_(a, _plain(p), generator))


@declare(found="method")
@draws("fill")
@interceptable
def exponential_(input: Tensor, lambd: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with exponentially distributed numbers."""
    return _fill(input, "ExponentialBackward0", lambda a: draw.exponential_(a, lambd, generator))


@declare(found="method")
@draws("fill")
@interceptable
def cauchy_(input: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with Cauchy numbers."""
    return _fill(input, "CauchyBackward0", lambda a: draw.cauchy_(a, median, sigma, generator))


@declare(found="method")
@draws("fill")
@interceptable
def log_normal_(input: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None) -> Tensor:
    """Fill with log-normal numbers."""
    return _fill(input, "LogNormalBackward0", lambda a: draw.log_normal_(a, mean, std, generator))


@declare(found="method")
@draws("fill")
@interceptable
def geometric_(input: Tensor, p: float, *, generator: Generator | None = None) -> Tensor:
    """Fill with geometrically distributed numbers."""
    return _fill(input, "GeometricBackward0", lambda a: draw.geometric_(a, p, generator))
