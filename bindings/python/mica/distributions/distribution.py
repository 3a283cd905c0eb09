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
    """The base of all distributions: a batch of independent random events, with draws and densities.

    As `torch.distributions.Distribution`. Draws have the shape `sample_shape + batch_shape + event_shape`;
    `log_prob` and `entropy` give one number for each event. A family names its parameters with their
    ranges in `arg_constraints` and defines what it can of the methods; the others raise
    NotImplementedError.

    Args:
        batch_shape (tuple of int): Shape of the independent events. Default: ().
        event_shape (tuple of int): Shape of one event. Default: ().
        validate_args (bool, optional): Check parameters and the values of `log_prob`. Default: True, or what
            `set_default_validate_args` says.

    Attributes:
        arg_constraints (dict): The range of each parameter, a constraint by its name.
        support (Constraint): The range of the values.
        has_rsample (bool): Whether `rsample` exists: draws that carry gradients.
        has_enumerate_support (bool): Whether `enumerate_support` exists.

    Raises:
        ValueError: A parameter is outside of its range.

    Example:
        >>> d = mica.distributions.Normal(mica.zeros(3), 1.0)
        >>> d.batch_shape, d.event_shape, d.sample((2,)).shape
        (mica.Size([3]), mica.Size([]), mica.Size([2, 3]))
        >>> d.log_prob(mica.tensor([0.0, 1.0, 2.0]))
        tensor([-0.9189, -1.4189, -2.9189])
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__
    # Parameters with more dimensions than the batch: how many they have of their own.
    _own_dims: dict[str, int] = {}
    arg_constraints: Any = {}
    support: Any = None

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Sets whether distributions check parameters and values unless told otherwise.

        Args:
            value (bool): The new default of `validate_args` of all distributions.

        Raises:
            ValueError: `value` is neither True nor False.
        """
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
        """The same distribution over a larger batch, whose parameters are views.

        Args:
            batch_shape (tuple of int): Shape that the present batch broadcasts to.

        Returns:
            Distribution: Of the same class.

        Raises:
            RuntimeError: The batch does not broadcast to `batch_shape`.
        """
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
        """Shape of the independent events."""
        return self._batch_shape

    @property
    def event_shape(self) -> Any:
        """Shape of one event; empty for a number."""
        return self._event_shape

    def _missing(self, what: str) -> NotImplementedError:
        return NotImplementedError(f"The distribution {type(self).__name__} has no {what}.")

    @property
    def mean(self) -> Tensor:
        """The expected value, of shape `batch_shape + event_shape`."""
        raise self._missing("mean")

    @property
    def mode(self) -> Tensor:
        """The most probable value, of shape `batch_shape + event_shape`."""
        raise self._missing("mode")

    @property
    def variance(self) -> Tensor:
        """The variance of each element, of shape `batch_shape + event_shape`."""
        raise self._missing("variance")

    @property
    def stddev(self) -> Tensor:
        """The standard deviation of each element, of shape `batch_shape + event_shape`."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Draws without gradients, with the default generator.

        Args:
            sample_shape (tuple of int): How many draws. Default: (), one.

        Returns:
            Tensor: `sample_shape + batch_shape + event_shape`.
        """
        with mica.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Draws through which gradients reach the parameters.

        Args:
            sample_shape (tuple of int): How many draws. Default: (), one.

        Returns:
            Tensor: `sample_shape + batch_shape + event_shape`.

        Raises:
            NotImplementedError: `has_rsample` is False.
        """
        raise self._missing("rsample()")

    def sample_n(self, n: int) -> Tensor:
        """Draws `n` times: `sample((n,))` under its old name, with a warning.

        Args:
            n (int): How many draws.

        Returns:
            Tensor: `(n,) + batch_shape + event_shape`.
        """
        warnings.warn("sample_n will be deprecated. Use .sample((n,)) instead", UserWarning, stacklevel=2)
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """The natural logarithm of the density, or of the probability of discrete values.

        Args:
            value (Tensor): Values that broadcast with `batch_shape + event_shape`.

        Returns:
            Tensor: One number for each event: the broadcast shape without `event_shape`.

        Raises:
            ValueError: `value` is no Tensor, has another shape, or lies outside of `support`, where the
                distribution validates.
        """
        raise self._missing("log_prob()")

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of values that are at most these.

        Args:
            value (Tensor): Values that broadcast with the batch.

        Returns:
            Tensor: Probabilities in [0, 1].

        Raises:
            NotImplementedError: The family has none.
        """
        raise self._missing("cdf()")

    def icdf(self, value: Tensor) -> Tensor:
        """The quantile: the value below which a draw lies with this probability.

        Args:
            value (Tensor): Probabilities in [0, 1] that broadcast with the batch.

        Returns:
            Tensor: Values.

        Raises:
            NotImplementedError: The family has none.
        """
        raise self._missing("icdf()")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values of a discrete distribution, along dimension 0.

        Args:
            expand (bool): Repeat them over the batch; else its dimensions have size 1. Default: True.

        Returns:
            Tensor: `(values,) + batch_shape + event_shape`.

        Raises:
            NotImplementedError: The family has no finite support.
        """
        raise self._missing("finite support to enumerate")

    def entropy(self) -> Tensor:
        """The entropy in nats, of shape `batch_shape`."""
        raise self._missing("entropy()")

    def perplexity(self) -> Tensor:
        """The exponential of the entropy, of shape `batch_shape`."""
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
    """The base of families whose density is `exp(<parameters, statistics(x)> - normalizer)`.

    As `torch.distributions.ExponentialFamily`, a mark for such families: it adds nothing to `Distribution`.

    Args:
        batch_shape (tuple of int): Shape of the independent events. Default: ().
        event_shape (tuple of int): Shape of one event. Default: ().
        validate_args (bool, optional): Check parameters and the values of `log_prob`. Default: True.

    Example:
        >>> isinstance(mica.distributions.Gamma(1.0, 1.0), mica.distributions.ExponentialFamily)
        True
    """
