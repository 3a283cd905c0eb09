"""Distribution: the base class. A family names its parameters with their constraints and event
dimensions; shapes, expand(), validation and the defaults of all methods follow from that."""

from __future__ import annotations

import warnings
from typing import Any

import mica
from mica._C import Tensor
from mica.distributions import constraints
from mica.distributions.utils import lazy_property

Size = mica.Size


class Distribution:
    """A distribution of a batch of independent events: shapes are sample, batch, event."""

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__
    # Parameters with more dimensions than the batch: how many they have of their own.
    _own_dims: dict[str, int] = {}
    arg_constraints: Any = {}
    support: Any = None

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions check parameters and values unless told otherwise."""
        if value not in (True, False):
            raise ValueError(f"The value ({value}) is neither True nor False.")
        Distribution._validate_args = value

    def __init__(
        self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None
    ) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()

    def _check_parameters(self) -> None:
        for name, constraint in self.arg_constraints.items():
            if constraints.is_dependent(constraint):
                continue
            lazy = any(isinstance(c.__dict__.get(name), lazy_property) for c in type(self).__mro__)
            if lazy and name not in self.__dict__:
                continue  # computed from another parameter, which is checked
            value = getattr(self, name)
            valid = constraint.check(value)
            if not valid.all():
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of "
                    f"distribution {self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n{value}"
                )

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The same distribution over a larger batch, whose parameters are views."""
        shape = Size(batch_shape)
        new = type(self).__new__(type(self)) if _instance is None else _instance
        new.__dict__.update({k: v for k, v in self.__dict__.items() if k not in new.__dict__})
        for name in (*self.arg_constraints, *self._own_dims):
            value = self.__dict__.get(name)
            if isinstance(value, Tensor):
                own = self._own_dims.get(name, 0)
                new.__dict__[name] = value.expand(shape + value.shape[value.dim() - own :])
            elif isinstance(value, Distribution):
                new.__dict__[name] = value.expand(shape)
        new._batch_shape = shape
        return new

    @property
    def batch_shape(self) -> Any:
        return self._batch_shape

    @property
    def event_shape(self) -> Any:
        return self._event_shape

    def _missing(self, what: str) -> NotImplementedError:
        return NotImplementedError(f"The distribution {type(self).__name__} has no {what}.")

    @property
    def mean(self) -> Tensor:
        raise self._missing("mean")

    @property
    def mode(self) -> Tensor:
        raise self._missing("mode")

    @property
    def variance(self) -> Tensor:
        raise self._missing("variance")

    @property
    def stddev(self) -> Tensor:
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws without gradients."""
        with mica.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws through which gradients reach the parameters."""
        raise self._missing("rsample()")

    def sample_n(self, n: int) -> Tensor:
        """sample((n,)), as it was called once."""
        warnings.warn("sample_n will be deprecated. Use .sample((n,)) instead", UserWarning, stacklevel=2)
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """The log of the density or probability at a value."""
        raise self._missing("log_prob()")

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of what is at most the value."""
        raise self._missing("cdf()")

    def icdf(self, value: Tensor) -> Tensor:
        """The inverse of cdf()."""
        raise self._missing("icdf()")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values of a discrete distribution, along dimension 0."""
        raise self._missing("finite support to enumerate")

    def entropy(self) -> Tensor:
        """The entropy in nats."""
        raise self._missing("entropy()")

    def perplexity(self) -> Tensor:
        return mica.exp(self.entropy())

    def _extended_shape(self, sample_shape: Any = ()) -> Any:
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _validate_sample(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        events = value.dim() - len(self._event_shape)
        if tuple(value.shape[events:]) != tuple(self._event_shape):
            raise ValueError(
                f"The right-most size of value must match event_shape: {tuple(value.shape)} vs {tuple(self._event_shape)}."
            )
        wanted = (*self._batch_shape, *self._event_shape)
        for i, j in zip(reversed(value.shape), reversed(wanted)):
            if i != 1 and j != 1 and i != j:
                raise ValueError(
                    f"Value is not broadcastable with batch_shape+event_shape: {tuple(value.shape)} vs {wanted}."
                )
        support = self.support
        if support is not None and not constraints.is_dependent(support) and not support.check(value).all():
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the "
                f"support ({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        if _instance is None and type(self).__init__ != cls.__init__:  # type: ignore[misc]
            raise NotImplementedError(f"The class {type(self).__name__} defines __init__() and no expand().")
        return type(self).__new__(type(self)) if _instance is None else _instance

    def __repr__(self) -> str:
        names = [k for k in self.arg_constraints if k in self.__dict__]
        shown = (
            f"{n}: {self.__dict__[n] if self.__dict__[n].numel() == 1 else self.__dict__[n].shape}"
            for n in names
        )
        return f"{type(self).__name__}({', '.join(shown)})"


class ExponentialFamily(Distribution):
    """A family exp(<natural parameters, statistics> - log normalizer)."""
