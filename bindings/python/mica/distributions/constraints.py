"""Constraints: the region in which a parameter or a value lies, as an object whose check()
gives a tensor of bools, one for each event."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import mica
from mica._C import Tensor


class Constraint:
    """The base of constraints: a region of values, whose `check()` says which events lie in it.

    As `torch.distributions.constraints.Constraint`.

    Attributes:
        is_discrete (bool): Whether the region is of separate points.
        event_dim (int): Dimensions of one event, from the right: 0 for numbers, 1 for vectors.

    Example:
        >>> mica.distributions.constraints.positive.check(mica.tensor([-1.0, 2.0]))
        tensor([False,  True])
    """

    is_discrete = False
    event_dim = 0

    def check(self, value: Tensor) -> Tensor:
        """Whether each event of `value` lies in the region.

        Args:
            value (Tensor): Values, whose last `event_dim` dimensions are one event.

        Returns:
            Tensor: bool, of the shape of `value` without these dimensions.
        """
        raise NotImplementedError(f"{type(self).__name__} defines no check().")

    def __repr__(self) -> str:
        return type(self).__name__.removeprefix("_") + "()"


class _Dependent(Constraint):
    """A region that depends on other parameters: of a distribution, not of a class."""

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> None:
        self._is_discrete, self._event_dim = is_discrete, event_dim

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        if self._is_discrete is NotImplemented:
            raise NotImplementedError(".is_discrete cannot be determined statically")
        return bool(self._is_discrete)

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        if self._event_dim is NotImplemented:
            raise NotImplementedError(".event_dim cannot be determined statically")
        return int(self._event_dim)

    def __call__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> _Dependent:
        discrete = self._is_discrete if is_discrete is NotImplemented else is_discrete
        dims = self._event_dim if event_dim is NotImplemented else event_dim
        return _Dependent(is_discrete=discrete, event_dim=dims)

    def check(self, value: Tensor) -> Tensor:
        raise ValueError("A dependent constraint can be checked only on an instance of its distribution.")


def is_dependent(constraint: Any) -> bool:
    """Whether a constraint depends on other parameters, so that only a distribution's instance can check it.

    As `torch.distributions.constraints.is_dependent`.

    Args:
        constraint (Constraint): Of a class.

    Returns:
        bool: True for `dependent` and `dependent_property`.

    Example:
        >>> c = mica.distributions.constraints
        >>> c.is_dependent(mica.distributions.Uniform.support), c.is_dependent(c.positive)
        (True, False)
    """
    return isinstance(constraint, _Dependent)


class dependent_property(property, _Dependent):
    """Decorator: a property that gives a constraint which depends on other parameters.

    As `torch.distributions.constraints.dependent_property`. On the class it counts as dependent, on an
    instance it is the constraint that the method returns.

    Args:
        fn (callable, optional): The method. Default: None, for a decorator.
        is_discrete (bool): Whether the constraint is, if it is always the same. Default: not known.
        event_dim (int): That of the constraint, if it is always the same. Default: not known.

    Example:
        >>> class Below(mica.distributions.Distribution):
        ...     def __init__(self, high):
        ...         self.high = high
        ...         super().__init__()
        ...     @mica.distributions.constraints.dependent_property(is_discrete=False, event_dim=0)
        ...     def support(self):
        ...         return mica.distributions.constraints.less_than(self.high)
        >>> Below(2.0).support
        LessThan(upper_bound=2.0)
    """

    def __init__(
        self,
        fn: Callable[..., Any] | None = None,
        *,
        is_discrete: Any = NotImplemented,
        event_dim: Any = NotImplemented,
    ) -> None:
        property.__init__(self, fn)
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def __call__(self, fn: Any) -> Any:  # type: ignore[override]
        return dependent_property(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


class _IndependentConstraint(Constraint):
    """Takes the last dimensions of another constraint's batch for a part of its event: all must lie in it.

    As `torch.distributions.constraints.independent`.

    Args:
        base_constraint (Constraint): Of the parts.
        reinterpreted_batch_ndims (int): How many dimensions, from the right.

    Example:
        >>> c = mica.distributions.constraints
        >>> c.independent(c.positive, 1).check(mica.tensor([[1.0, 2.0], [1.0, -2.0]]))
        tensor([ True, False])
    """

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        result = self.base_constraint.check(value)
        if result.dim() < self.reinterpreted_batch_ndims:
            expected = self.base_constraint.event_dim + self.reinterpreted_batch_ndims
            raise ValueError(f"The value has {value.dim()} dimensions; expected at least {expected}.")
        shape = result.shape[: result.dim() - self.reinterpreted_batch_ndims]
        return result.reshape(*shape, -1).all(-1)

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """The support of a mixture: values that lie in the region of every component.

    As `torch.distributions.constraints.MixtureSameFamilyConstraint`.

    Args:
        base_constraint (Constraint): Support of the components, whose last batch dimension numbers them.

    Example:
        >>> c = mica.distributions.constraints
        >>> c.MixtureSameFamilyConstraint(c.positive).check(mica.tensor([1.0, -1.0]))
        tensor([ True, False])
    """

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint = base_constraint

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return self.base_constraint.event_dim

    def check(self, value: Tensor) -> Tensor:
        spread = value.unsqueeze(-1 - self.event_dim)
        return self.base_constraint.check(spread).all(-1)


class _Bounded(Constraint):
    """Elementwise: `test` of the value and the bounds."""

    def __init__(self, **bounds: Any) -> None:
        self.__dict__.update(bounds)

    def __repr__(self) -> str:
        name = type(self).__name__.removeprefix("_")
        return f"{name}({', '.join(f'{k}={v}' for k, v in self.__dict__.items())})"


class _Real(Constraint):
    def check(self, value: Tensor) -> Tensor:
        return value == value  # false for NaN


class _Boolean(Constraint):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class _OneHot(Constraint):
    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class _IntegerInterval(_Bounded):
    """Whole numbers from `lower_bound` to `upper_bound`, both included.

    As `torch.distributions.constraints.integer_interval`.

    Args:
        lower_bound (int or Tensor): Smallest number.
        upper_bound (int or Tensor): Largest number.

    Example:
        >>> mica.distributions.constraints.integer_interval(0, 2).check(mica.tensor([2.0, 0.5, 3.0]))
        tensor([ True, False, False])
    """

    is_discrete = True
    lower_bound: Any
    upper_bound: Any

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        super().__init__(lower_bound=lower_bound, upper_bound=upper_bound)

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (self.lower_bound <= value) & (value <= self.upper_bound)


class _IntegerLessThan(_Bounded):
    is_discrete = True
    upper_bound: Any

    def __init__(self, upper_bound: Any) -> None:
        super().__init__(upper_bound=upper_bound)

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value <= self.upper_bound)


class _IntegerGreaterThan(_Bounded):
    is_discrete = True
    lower_bound: Any

    def __init__(self, lower_bound: Any) -> None:
        super().__init__(lower_bound=lower_bound)

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value >= self.lower_bound)


class _GreaterThan(_Bounded):
    """Numbers above `lower_bound`.

    As `torch.distributions.constraints.greater_than`.

    Args:
        lower_bound (float or Tensor): The bound, excluded.

    Example:
        >>> mica.distributions.constraints.greater_than(1.0).check(mica.tensor([1.0, 2.0]))
        tensor([False,  True])
    """

    lower_bound: Any

    def __init__(self, lower_bound: Any) -> None:
        super().__init__(lower_bound=lower_bound)

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound < value


class _GreaterThanEq(_GreaterThan):
    """Numbers that are at least `lower_bound`.

    As `torch.distributions.constraints.greater_than_eq`.

    Args:
        lower_bound (float or Tensor): The bound, included.

    Example:
        >>> mica.distributions.constraints.greater_than_eq(1.0).check(mica.tensor([1.0, 0.0]))
        tensor([ True, False])
    """

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound <= value


class _LessThan(_Bounded):
    """Numbers below `upper_bound`.

    As `torch.distributions.constraints.less_than`.

    Args:
        upper_bound (float or Tensor): The bound, excluded.

    Example:
        >>> mica.distributions.constraints.less_than(1.0).check(mica.tensor([1.0, 0.0]))
        tensor([False,  True])
    """

    upper_bound: Any

    def __init__(self, upper_bound: Any) -> None:
        super().__init__(upper_bound=upper_bound)

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound


class _Interval(_Bounded):
    """Numbers from `lower_bound` to `upper_bound`, both included.

    As `torch.distributions.constraints.interval`.

    Args:
        lower_bound (float or Tensor): Smallest number.
        upper_bound (float or Tensor): Largest number.

    Example:
        >>> mica.distributions.constraints.interval(0.0, 2.0).check(mica.tensor([2.0, 3.0]))
        tensor([ True, False])
    """

    lower_bound: Any
    upper_bound: Any

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        super().__init__(lower_bound=lower_bound, upper_bound=upper_bound)

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Interval):
    """Numbers from `lower_bound`, included, to `upper_bound`, excluded.

    As `torch.distributions.constraints.half_open_interval`.

    Args:
        lower_bound (float or Tensor): Smallest number.
        upper_bound (float or Tensor): The upper bound.

    Example:
        >>> mica.distributions.constraints.half_open_interval(0.0, 2.0).check(mica.tensor([0.0, 2.0]))
        tensor([ True, False])
    """

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _Simplex(Constraint):
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(_Bounded):
    """Vectors of counts that are not negative and sum to at most `upper_bound`.

    As `torch.distributions.constraints.multinomial`.

    Args:
        upper_bound (int or Tensor): Largest sum.

    Example:
        >>> mica.distributions.constraints.multinomial(3).check(mica.tensor([[1.0, 2.0], [2.0, 2.0]]))
        tensor([ True, False])
    """

    is_discrete = True
    event_dim = 1
    upper_bound: Any

    def __init__(self, upper_bound: Any) -> None:
        super().__init__(upper_bound=upper_bound)

    def check(self, x: Tensor) -> Tensor:
        return (x >= 0).all(-1) & (x.sum(-1) <= self.upper_bound)


class _Matrix(Constraint):
    event_dim = 2


class _LowerTriangular(_Matrix):
    def check(self, value: Tensor) -> Tensor:
        return (value.tril() == value).reshape(*value.shape[:-2], -1).all(-1)


class _LowerCholesky(_LowerTriangular):
    def check(self, value: Tensor) -> Tensor:
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    def check(self, value: Tensor) -> Tensor:
        tolerance = mica.finfo(value.dtype).eps * value.size(-1) * 10
        rows = (value.square().sum(-1).sqrt() - 1).abs() < tolerance
        return super().check(value) & rows.all(-1)


class _Square(_Matrix):
    def check(self, value: Tensor) -> Tensor:
        return mica.full(value.shape[:-2], value.shape[-2] == value.shape[-1], dtype=mica.bool)


class _Symmetric(_Square):
    def check(self, value: Tensor) -> Tensor:
        square = super().check(value)
        if not square.all():
            return square
        return mica.isclose(value, value.mT, atol=1e-6).all(-2).all(-1)


class _PositiveSemidefinite(_Symmetric):
    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        return mica.linalg.eigvalsh(value).ge(0).all(-1) if symmetric.all() else symmetric


class _PositiveDefinite(_Symmetric):
    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        return mica.linalg.cholesky_ex(value).info.eq(0) if symmetric.all() else symmetric


class _Cat(Constraint):
    """A constraint for each piece of a value along a dimension.

    As `torch.distributions.constraints.cat`.

    Args:
        cseq (sequence of Constraint): One for each piece.
        dim (int): Dimension that is cut. Default: 0.
        lengths (sequence of int, optional): Size of each piece. Default: 1 each.

    Example:
        >>> c = mica.distributions.constraints
        >>> c.cat([c.positive, c.real], lengths=[2, 1]).check(mica.tensor([1.0, -1.0, -1.0]))
        tensor([ True, False,  True])
    """

    def __init__(
        self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None
    ) -> None:
        self.cseq, self.dim = list(cseq), dim
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return max(c.event_dim for c in self.cseq)

    def check(self, value: Tensor) -> Tensor:
        checks, start = [], 0
        for constraint, length in zip(self.cseq, self.lengths):
            checks.append(constraint.check(value.narrow(self.dim, start, length)))
            start += length
        return mica.cat(checks, self.dim)


class _Stack(Constraint):
    """A constraint for each slice of a value along a dimension.

    As `torch.distributions.constraints.stack`.

    Args:
        cseq (sequence of Constraint): One for each slice.
        dim (int): Dimension of the slices. Default: 0.

    Example:
        >>> c = mica.distributions.constraints
        >>> c.stack([c.positive, c.real]).check(mica.tensor([[1.0, -1.0], [1.0, -1.0]]))
        tensor([[ True, False],
                [ True,  True]])
    """

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        self.cseq, self.dim = list(cseq), dim

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        dim = max(c.event_dim for c in self.cseq)
        return dim + 1 if self.dim + dim < 0 else dim

    def check(self, value: Tensor) -> Tensor:
        parts = [value.select(self.dim, i) for i in range(value.size(self.dim))]
        return mica.stack([c.check(v) for c, v in zip(self.cseq, parts)], self.dim)


dependent = _Dependent()
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack

__all__ = [
    "Constraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property", "greater_than",
    "greater_than_eq", "half_open_interval", "independent", "integer_interval", "interval", "is_dependent",
    "less_than", "lower_cholesky", "lower_triangular", "MixtureSameFamilyConstraint", "multinomial",
    "nonnegative", "nonnegative_integer", "one_hot", "positive", "positive_semidefinite", "positive_definite",
    "positive_integer", "real", "real_vector", "simplex", "square", "stack", "symmetric", "unit_interval",
]  # fmt: skip
