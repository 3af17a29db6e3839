"""The base of all distributions: shapes, validation, and what to do when a quantity is not defined."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pullback import creation, functions
from pullback.autograd.grad_mode import no_grad
from pullback.distributions import constraints
from pullback.distributions.utils import lazy_property
from pullback.functions.value_checks import are_all_true
from pullback.modes.cuts import excuse
from pullback.modes.user_warnings import warn_user
from pullback.tensor.size import Size
from pullback.tensor.tensor import Tensor

__all__ = ["Distribution"]

Shape = Any
"""A Size, tuple or list of ints."""


class Distribution:
    """A batch of independent distributions: samples have shape `sample_shape + batch_shape + event_shape`.

    A subclass gives `arg_constraints`, `support` and, if it is expanded by expanding its parts, three tables: its
    parameters, each with the number of dimensions that belong to an event, the distributions that it is made of, and
    what is taken over as it is. Without a table of parameters of its own it must define `expand`.
    """

    has_rsample: Any = False
    has_enumerate_support: Any = False
    _validate_args: bool = __debug__
    _event_dims_of_parameters: ClassVar[Mapping[str, int]] = {}
    _nested: ClassVar[tuple[str, ...]] = ()
    _taken_over: ClassVar[tuple[str, ...]] = ()

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Switch the checks of parameters and values on or off for all distributions made from now on."""
        if value not in (True, False):
            raise ValueError(f"set_default_validate_args expects a bool, got {value!r}")
        Distribution._validate_args = value

    def __init__(self, batch_shape: Shape = (), event_shape: Shape = (), validate_args: bool | None = None) -> None:
        self._batch_shape = Size(batch_shape)
        self._event_shape = Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()

    def _check_parameters(self) -> None:
        try:
            arg_constraints = self.arg_constraints
        except NotImplementedError:
            warn_user(f"{type(self)} does not define `arg_constraints`. Define it, or pass validate_args=False.")
            return
        for name, constraint in arg_constraints.items():
            is_derived = name not in self.__dict__ and isinstance(getattr(type(self), name, None), lazy_property)
            if constraints.is_dependent(constraint) or is_derived:
                continue
            value = getattr(self, name)
            former = excuse((value,))  # to compare it with its constraint takes no gradient from the program
            try:
                is_valid = are_all_true(constraint.check(value))
            finally:
                excuse(former)
            if not is_valid:
                raise ValueError(
                    f"Expected parameter {name} ({_describe(value)}) of distribution {self!r} to satisfy the "
                    f"constraint {constraint!r}, but found invalid values:\n{value}"
                )

    def expand(self, batch_shape: Shape, _instance: Any = None) -> Any:
        """Return the distribution with its batch expanded to `batch_shape`; parameters become views."""
        owner = next(c for c in type(self).__mro__ if "_event_dims_of_parameters" in vars(c))
        if owner is Distribution:
            raise NotImplementedError(f"{type(self).__name__} has no expand")
        new = self._get_checked_instance(owner, _instance)
        self._expand_parts(new, Size(batch_shape))
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _expand_parts(self, new: Any, batch_shape: Size) -> None:
        for name, event_dims in self._event_dims_of_parameters.items():
            if name in self.__dict__:
                value = self.__dict__[name]
                trailing = value.shape[value.ndim - event_dims :]
                setattr(new, name, value.expand((*batch_shape, *trailing)))
        for name in self._nested:
            setattr(new, name, getattr(self, name).expand(batch_shape))
        for owner in type(self).__mro__:
            for name in vars(owner).get("_taken_over", ()):
                setattr(new, name, getattr(self, name))

    @property
    def batch_shape(self) -> Size:
        """The shape of the batch of distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one sample of one distribution."""
        return self._event_shape

    @property
    def arg_constraints(self) -> Any:
        """The constraint that each parameter satisfies, by name."""
        raise NotImplementedError

    @property
    def support(self) -> Any:
        """The constraint that samples satisfy."""
        raise NotImplementedError

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        result: Tensor = self.variance.sqrt()
        return result

    def sample(self, sample_shape: Shape = ()) -> Tensor:
        """Draw samples that no gradient flows through."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Shape = ()) -> Tensor:
        """Draw samples that are differentiable functions of the parameters."""
        raise NotImplementedError

    def sample_n(self, n: int) -> Tensor:
        """Draw n samples; use `sample((n,))`."""
        warn_user("sample_n will be deprecated. Use .sample((n,)) instead")
        return self.sample(Size((n,)))

    def log_prob(self, value: Any) -> Tensor:
        """The logarithm of the density or probability at `value`."""
        raise NotImplementedError

    def cdf(self, value: Any) -> Tensor:
        """The cumulative probability up to `value`."""
        raise NotImplementedError

    def icdf(self, value: Any) -> Tensor:
        """The value at which the cumulative probability is `value`."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values of a discrete distribution, along a new first dimension."""
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """The entropy, in nats."""
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """The exponential of the entropy."""
        return functions.exp(self.entropy())

    def _extended_shape(self, sample_shape: Shape = ()) -> Size:
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _check_sample(self, value: Any) -> None:
        if self._validate_args:
            self._validate_sample(value)

    def _validate_sample(self, value: Any) -> None:
        """Raise ValueError unless `value` could be a sample: its shape fits and it lies within the support."""
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        if value.ndim < len(self._event_shape) or tuple(value.shape[value.ndim - len(self._event_shape) :]) != tuple(
            self._event_shape
        ):
            raise ValueError(
                f"The right-most size of value must match event_shape: {value.shape} vs {self._event_shape}."
            )
        whole = Size((*self._batch_shape, *self._event_shape))
        for given, own in zip(reversed(value.shape), reversed(whole), strict=False):
            if given != 1 and own != 1 and given != own:
                raise ValueError(f"Value is not broadcastable with batch_shape+event_shape: {value.shape} vs {whole}.")
        try:
            support = self.support
        except NotImplementedError:
            warn_user(f"{type(self)} does not define `support`. Define it, or pass validate_args=False.")
            return
        if not are_all_true(support.check(value)):
            raise ValueError(
                f"Expected value argument ({_describe(value)}) to be within the support ({support!r}) of the "
                f"distribution {self!r}, but found invalid values:\n{value}"
            )

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """An uninitialised object of this type, for `expand`."""
        if _instance is None and getattr(type(self), "__init__") is not getattr(cls, "__init__"):  # noqa: B009
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method "
                "must also define a custom .expand() method."
            )
        return type(self).__new__(type(self)) if _instance is None else _instance

    def __repr__(self) -> str:
        names = [name for name in self.arg_constraints if name in self.__dict__]
        values = ((name, self.__dict__[name]) for name in names)
        return f"{type(self).__name__}({', '.join(f'{name}: {_brief(value)}' for name, value in values)})"


def _brief(value: Any) -> Any:
    return value if value.numel() == 1 else value.size()


def _describe(value: Any) -> str:
    return f"{type(value).__name__} of shape {tuple(value.shape)}"


def as_batch_shape(parameter: Tensor, *values: Any) -> Size:
    """The batch shape of a distribution whose parameters were given as `values`: none where all are numbers."""
    from pullback.distributions.utils import is_number

    return Size() if all(is_number(v) for v in values) else parameter.size()


def of_base(name: str, doc: str) -> Any:
    """A property that is the base distribution's."""
    return property(lambda self: getattr(self.base_dist, name), doc=doc)


def parameter(name: str, doc: str | None = None) -> Any:
    """A statistic that is a parameter."""
    return property(lambda self: getattr(self, name), doc=doc)


def zeros_of(like: Tensor, shape: Any) -> Tensor:
    """Zeros in the dtype and on the device of a parameter."""
    return creation.zeros(shape, dtype=like.dtype, device=like.device)
