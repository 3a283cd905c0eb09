"""Transforms: invertible maps with the log of the Jacobian's determinant."""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from typing import Any

import mica
from mica._C import Tensor
from mica.distributions import constraints
from mica.distributions.utils import (
    _sum_rightmost,
    broadcast_all,
)

__all__ = [
    "AbsTransform", "AffineTransform", "ComposeTransform", "ExpTransform", "IndependentTransform", "PowerTransform",
    "SigmoidTransform", "SoftplusTransform", "TanhTransform", "Transform", "identity_transform",
]  # fmt: skip


class Transform:
    """The base of transforms: maps from `domain` to `codomain` with the log of the Jacobian's determinant.

    As `torch.distributions.Transform`. Call one for `y = f(x)`, and `inv` for the way back. A subclass
    defines `domain`, `codomain`, `bijective`, `_call(x)`, `_inverse(y)` and `log_abs_det_jacobian(x, y)`.

    Args:
        cache_size (int): 1 keeps the last input with its output, for an exact inverse; 0 keeps none.
            Default: 0.

    Attributes:
        domain (Constraint): Where inputs lie.
        codomain (Constraint): Where outputs lie.
        bijective (bool): Whether the inverse brings every input back.

    Raises:
        ValueError: `cache_size` is neither 0 nor 1.

    Example:
        >>> f = mica.distributions.ExpTransform()
        >>> y = f(mica.tensor(2.0))
        >>> y, f.inv(y), f.log_abs_det_jacobian(mica.tensor(2.0), y)
        (tensor(7.3891), tensor(2.), tensor(2.))
    """

    bijective = False
    domain: Any
    codomain: Any

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._inv: Any = None
        self._cached: tuple[Any, Any] = (None, None)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_inv": None}

    @property
    def event_dim(self) -> int:
        """Number of dimensions of one event, where input and output have the same."""
        if self.domain.event_dim == self.codomain.event_dim:
            return int(self.domain.event_dim)
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self) -> Any:
        """The inverse transform, with `domain` and `codomain` swapped."""
        inverse = self._inv() if self._inv is not None else None
        if inverse is None:
            inverse = _InverseTransform(self)
            self._inv = weakref.ref(inverse)
        return inverse

    @property
    def sign(self) -> Any:
        """1 where the map increases, -1 where it decreases; for maps of one number."""
        raise NotImplementedError(f"The transform {type(self).__name__} has no sign.")

    def with_cache(self, cache_size: int = 1) -> Any:
        """The same transform with a cache of this size.

        Args:
            cache_size (int): 0 or 1. Default: 1.

        Returns:
            Transform: `self` if its cache has this size.

        Raises:
            NotImplementedError: The class has a constructor of its own and no `with_cache`.
        """
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    def __call__(self, x: Tensor) -> Tensor:
        if self._cache_size == 0:
            return self._call(x)
        if x is self._cached[0]:
            return self._cached[1]  # type: ignore[no-any-return]
        y = self._call(x)
        self._cached = x, y
        return y

    def _inv_call(self, y: Tensor) -> Tensor:
        if self._cache_size == 0:
            return self._inverse(y)
        if y is self._cached[1]:
            return self._cached[0]  # type: ignore[no-any-return]
        x = self._inverse(y)
        self._cached = x, y
        return x

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"The transform {type(self).__name__} defines no _call().")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"The transform {type(self).__name__} has no inverse.")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The logarithm of `abs(det(dy / dx))`, by which densities change.

        Args:
            x (Tensor): Inputs.
            y (Tensor): Their outputs.

        Returns:
            Tensor: One number for each event.

        Raises:
            NotImplementedError: The transform has none.
        """
        raise NotImplementedError(f"The transform {type(self).__name__} has no Jacobian determinant.")

    def __repr__(self) -> str:
        return type(self).__name__ + "()"

    def forward_shape(self, shape: Any) -> Any:
        """The shape of the output for an input of a shape.

        Args:
            shape (tuple of int): Shape of the input.

        Returns:
            Size: Shape of the output.
        """
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """The shape of the input for an output of a shape.

        Args:
            shape (tuple of int): Shape of the output.

        Returns:
            Size: Shape of the input.
        """
        return shape


class _InverseTransform(Transform):
    """The inverse of a transform."""

    def __init__(self, transform: Transform) -> None:
        super().__init__(cache_size=transform._cache_size)
        self._inv: Any = transform

    inv = property(lambda self: self._inv)  # type: ignore[assignment]
    domain = property(lambda self: self._inv.codomain)
    codomain = property(lambda self: self._inv.domain)
    bijective = property(lambda self: self._inv.bijective)  # type: ignore[assignment]
    sign = property(lambda self: self._inv.sign)  # type: ignore[assignment]

    def with_cache(self, cache_size: int = 1) -> Any:
        return self._inv.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    __hash__ = object.__hash__

    def __call__(self, x: Tensor) -> Tensor:
        return self._inv._inv_call(x)  # type: ignore[no-any-return]

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._inv.log_abs_det_jacobian(y, x)  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._inv!r})"

    def forward_shape(self, shape: Any) -> Any:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._inv.forward_shape(shape)


class ComposeTransform(Transform):
    """Transforms one after the other: `parts[-1](... parts[0](x))`.

    As `torch.distributions.ComposeTransform`.

    Args:
        parts (list of Transform): Applied in this order; none is the identity.
        cache_size (int): 1 keeps the last input with its output, for an exact inverse; 0 keeps none.
            Default: 0.

    Example:
        >>> t = mica.distributions
        >>> f = t.ComposeTransform([t.AffineTransform(0.0, 2.0), t.ExpTransform()])
        >>> f(mica.tensor(1.0)), f.inv(f(mica.tensor(1.0)))
        (tensor(7.3891), tensor(1.))
    """

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else list(parts)
        super().__init__(cache_size=cache_size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = object.__hash__

    @property
    def domain(self) -> Any:  # type: ignore[override]
        if not self.parts:
            return constraints.real
        domain = self.parts[0].domain
        dims = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            dims = max(dims + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim)
        return constraints.independent(domain, dims - domain.event_dim) if dims > domain.event_dim else domain

    @property
    def codomain(self) -> Any:  # type: ignore[override]
        if not self.parts:
            return constraints.real
        codomain = self.parts[-1].codomain
        dims = self.parts[0].domain.event_dim
        for part in self.parts:
            dims = max(dims + part.codomain.event_dim - part.domain.event_dim, part.codomain.event_dim)
        more = dims - codomain.event_dim
        return constraints.independent(codomain, more) if more > 0 else codomain

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        return all(part.bijective for part in self.parts)

    @property
    def sign(self) -> Any:
        return math.prod(part.sign for part in self.parts)

    @property
    def inv(self) -> Any:
        return ComposeTransform([part.inv for part in reversed(self.parts)])

    def with_cache(self, cache_size: int = 1) -> Any:
        return self if self._cache_size == cache_size else ComposeTransform(self.parts, cache_size)

    def __call__(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def _inv_call(self, y: Tensor) -> Tensor:
        for part in reversed(self.parts):
            y = part._inv_call(y)
        return y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if not self.parts:
            return mica.zeros_like(x)
        values = [x]
        for part in self.parts[:-1]:
            values.append(part(values[-1]))
        values.append(y)
        dims = self.domain.event_dim
        total: Any = 0
        for part, before, after in zip(self.parts, values[:-1], values[1:]):
            term = part.log_abs_det_jacobian(before, after)
            total = total + _sum_rightmost(term, dims - part.domain.event_dim)
            dims += part.codomain.event_dim - part.domain.event_dim
        return total  # type: ignore[no-any-return]

    def forward_shape(self, shape: Any) -> Any:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        lines = [repr(p) for p in self.parts]
        return type(self).__name__ + "(\n    " + ",\n    ".join(lines) + "\n)"


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """Takes the last dimensions of a transform's batch for a part of its event.

    As `torch.distributions.IndependentTransform`: values stay, and `log_abs_det_jacobian` is summed over
    these dimensions.

    Args:
        base_transform (Transform): The transform whose dimensions become part of an event.
        reinterpreted_batch_ndims (int): How many dimensions, from the right.
        cache_size (int): 1 keeps the last input with its output, for an exact inverse; 0 keeps none.
            Default: 0.

    Raises:
        ValueError: When called with an input of fewer dimensions.

    Example:
        >>> f = mica.distributions.IndependentTransform(mica.distributions.ExpTransform(), 1)
        >>> x = mica.ones(2, 3)
        >>> f.log_abs_det_jacobian(x, f(x))
        tensor([3., 3.])
    """

    def __init__(
        self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size=cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def with_cache(self, cache_size: int = 1) -> Any:
        if self._cache_size == cache_size:
            return self
        return IndependentTransform(self.base_transform, self.reinterpreted_batch_ndims, cache_size)

    domain = property(lambda s: constraints.independent(s.base_transform.domain, s.reinterpreted_batch_ndims))
    codomain = property(
        lambda s: constraints.independent(s.base_transform.codomain, s.reinterpreted_batch_ndims)
    )
    bijective = property(lambda self: self.base_transform.bijective)  # type: ignore[assignment]
    sign = property(lambda self: self.base_transform.sign)  # type: ignore[assignment]

    def _call(self, x: Tensor) -> Tensor:
        if x.dim() < self.domain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform(x)  # type: ignore[no-any-return]

    def _inverse(self, y: Tensor) -> Tensor:
        if y.dim() < self.codomain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform.inv(y)  # type: ignore[no-any-return]

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return _sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"

    def forward_shape(self, shape: Any) -> Any:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self.base_transform.inverse_shape(shape)


class _Elementwise(Transform):
    """An increasing bijection of each element; equal to another of its class."""

    bijective = True
    sign = +1  # type: ignore[assignment]
    domain = constraints.real
    codomain = constraints.real

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    __hash__ = object.__hash__


class ExpTransform(_Elementwise):
    """From real to positive numbers: `exp(x)`.

    As `torch.distributions.ExpTransform`.

    Args:
        cache_size (int): 1 keeps the last input with its output, for an exact inverse; 0 keeps none.
            Default: 0.

    Example:
        >>> mica.distributions.ExpTransform()(mica.tensor([0.0, 1.0]))
        tensor([1.0000, 2.7183])
    """

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(_Elementwise):
    """A power of positive numbers: `x ** exponent`.

    As `torch.distributions.PowerTransform`.

    Args:
        exponent (Tensor or float): Not 0; broadcasts with the input.
        cache_size (int): 1 keeps the last input with its output, for an exact inverse; 0 keeps none.
            Default: 0.

    Example:
        >>> f = mica.distributions.PowerTransform(2.0)
        >>> f(mica.tensor(3.0)), f.inv(mica.tensor(9.0))
        (tensor(9.), tensor(3.))
    """

    domain = constraints.positive
    codomain = constraints.positive

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        (self.exponent,) = broadcast_all(exponent)

    def with_cache(self, cache_size: int = 1) -> Any:
        return self if self._cache_size == cache_size else PowerTransform(self.exponent, cache_size)

    @property
    def sign(self) -> Any:
        return self.exponent.sign()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and bool(self.exponent.eq(other.exponent).all())

    __hash__ = object.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()


class SigmoidTransform(_Elementwise):
    """From real numbers to (0, 1): `1 / (1 + exp(-x))`, kept off 0 and 1.

    As `torch.distributions.SigmoidTransform`.

    Args:
        cache_size (int): 1 keeps the last input with its output, for an exact inverse; 0 keeps none.
            Default: 0.

    Example:
        >>> f = mica.distributions.SigmoidTransform()
        >>> f(mica.tensor([0.0, 2.0])), f.inv(mica.tensor(0.5))
        (tensor([0.5000, 0.8808]), tensor(0.))
    """

    codomain = constraints.unit_interval

    def _call(self, x: Tensor) -> Tensor:
        f = mica.finfo(x.dtype)
        return mica.clamp(mica.sigmoid(x), min=f.tiny, max=1.0 - f.eps)

    def _inverse(self, y: Tensor) -> Tensor:
        f = mica.finfo(y.dtype)
        y = y.clamp(min=f.tiny, max=1.0 - f.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -mica.nn.functional.softplus(-x) - mica.nn.functional.softplus(x)


class SoftplusTransform(_Elementwise):
    """From real to positive numbers: `log(1 + exp(x))`.

    As `torch.distributions.SoftplusTransform`. Unlike `exp` it grows linearly.

    Args:
        cache_size (int): 1 keeps the last input with its output, for an exact inverse; 0 keeps none.
            Default: 0.

    Example:
        >>> mica.distributions.SoftplusTransform()(mica.tensor([0.0, 3.0]))
        tensor([0.6931, 3.0486])
    """

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return mica.nn.functional.softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -mica.nn.functional.softplus(-x)


class TanhTransform(_Elementwise):
    """From real numbers to (-1, 1): `tanh(x)`.

    As `torch.distributions.TanhTransform`. Its Jacobian is more exact than that of a composed sigmoid. The
    inverse of numbers that are rounded to 1 is infinite; a cache avoids that.

    Args:
        cache_size (int): 1 keeps the last input with its output, for an exact inverse; 0 keeps none.
            Default: 0.

    Example:
        >>> mica.distributions.TanhTransform()(mica.tensor([0.0, 1.0]))
        tensor([0.0000, 0.7616])
    """

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return mica.atanh(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return 2.0 * (math.log(2.0) - x - mica.nn.functional.softplus(-2.0 * x))


class AbsTransform(Transform):
    """From real to positive numbers: `abs(x)`, which is no bijection.

    As `torch.distributions.AbsTransform`. The inverse returns its input, or with `cache_size=1` the cached input.
    `log_abs_det_jacobian` raises NotImplementedError, so a `TransformedDistribution` with it has no `log_prob`.

    Args:
        cache_size (int): 1 keeps the last input with its output, for an exact inverse; 0 keeps none.
            Default: 0.

    Example:
        >>> mica.distributions.AbsTransform()(mica.tensor([-2.0, 3.0]))
        tensor([2., 3.])
    """

    domain = constraints.real
    codomain = constraints.positive

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbsTransform)

    __hash__ = object.__hash__

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class AffineTransform(Transform):
    """Scales and shifts: `loc + scale * x`.

    As `torch.distributions.AffineTransform`.

    Args:
        loc (Tensor or float): What is added.
        scale (Tensor or float): Factor, not 0.
        event_dim (int): Dimensions of one event, from the right: 0 for numbers, 1 for vectors. Default: 0.
        cache_size (int): 1 keeps the last input with its output, for an exact inverse; 0 keeps none.
            Default: 0.

    Example:
        >>> f = mica.distributions.AffineTransform(1.0, 2.0)
        >>> f(mica.tensor(3.0)), f.inv(mica.tensor(7.0)), f.sign
        (tensor(7.), tensor(3.), 1)
    """

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    event_dim = property(lambda self: self._event_dim)  # type: ignore[assignment]

    @property
    def domain(self) -> Any:  # type: ignore[override]
        dims = self._event_dim
        return constraints.real if dims == 0 else constraints.independent(constraints.real, dims)

    codomain = domain

    def with_cache(self, cache_size: int = 1) -> Any:
        if self._cache_size == cache_size:
            return self
        return AffineTransform(self.loc, self.scale, self.event_dim, cache_size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AffineTransform) and all(
            bool(mica.as_tensor(a).eq(mica.as_tensor(b)).all())
            for a, b in ((self.loc, other.loc), (self.scale, other.scale))
        )

    __hash__ = object.__hash__

    @property
    def sign(self) -> Any:
        if isinstance(self.scale, Tensor):
            return self.scale.sign()
        return (self.scale > 0) - (self.scale < 0)

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x  # type: ignore[no-any-return]

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        scale = self.scale
        result = scale.abs().log() if isinstance(scale, Tensor) else mica.full_like(x, math.log(abs(scale)))
        shape = x.shape[: x.dim() - self._event_dim]
        return _sum_rightmost(result.expand(x.shape), self._event_dim).expand(shape)

    def forward_shape(self, shape: Any) -> Any:
        return mica.broadcast_shapes(shape, getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ()))

    inverse_shape = forward_shape
