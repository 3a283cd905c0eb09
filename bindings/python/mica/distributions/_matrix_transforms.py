"""Transforms of whole vectors and matrices: reshaping, softmax, stick breaking, Cholesky factors, and
transforms of parts (Cat, Stack)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import mica
from mica._C import Tensor
from mica.distributions import constraints
from mica.distributions.transforms import SigmoidTransform, Transform
from mica.distributions.utils import _sum_rightmost, tril_matrix_to_vec, vec_to_tril_matrix

__all__ = [
    "CatTransform", "CorrCholeskyTransform", "CumulativeDistributionTransform", "LowerCholeskyTransform",
    "PositiveDefiniteTransform", "ReshapeTransform", "SoftmaxTransform", "StackTransform", "StickBreakingTransform",
]  # fmt: skip


class _OfItsClass(Transform):
    """Equal to another transform of its class."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    __hash__ = object.__hash__


class SoftmaxTransform(_OfItsClass):
    """From vectors to probabilities: `softmax(x)` along the last dimension, which is no bijection.

    As `torch.distributions.SoftmaxTransform`. The inverse is the logarithm; it has no Jacobian. For densities
    use StickBreakingTransform.

    Args:
        cache_size (int): 1 keeps the last input with its output, for an exact inverse; 0 keeps none.
            Default: 0.

    Shape:
        - Input: `(*, K)`.
        - Output: `(*, K)`.

    Example:
        >>> mica.distributions.SoftmaxTransform()(mica.tensor([0.0, 0.0]))
        tensor([0.5000, 0.5000])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        probs = (x - x.max(-1, True)[0]).exp()
        return probs / probs.sum(-1, True)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()


class StickBreakingTransform(_OfItsClass):
    """From vectors to probabilities of one more element: each takes its share of what the others left.

    As `torch.distributions.StickBreakingTransform`, a bijection.

    Args:
        cache_size (int): 1 keeps the last input with its output, for an exact inverse; 0 keeps none.
            Default: 0.

    Shape:
        - Input: `(*, K)`.
        - Output: `(*, K + 1)`.

    Example:
        >>> f = mica.distributions.StickBreakingTransform()
        >>> f(mica.zeros(3))
        tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    @staticmethod
    def _offset(x: Tensor) -> Tensor:
        return x.shape[-1] + 1 - x.new_ones(x.shape[-1]).cumsum(-1)

    def _call(self, x: Tensor) -> Tensor:
        z = SigmoidTransform()(x - self._offset(x).log())
        rest = (1 - z).cumprod(-1)
        pad = mica.nn.functional.pad
        return pad(z, [0, 1], value=1) * pad(rest, [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        cut = y[..., :-1]
        sf = 1 - cut.cumsum(-1)
        sf = mica.clamp(sf, min=mica.finfo(y.dtype).tiny)
        return cut.log() - sf.log() + self._offset(cut).log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        x = x - self._offset(x).log()
        return (-x + mica.nn.functional.logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        return mica.Size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape: Any) -> Any:
        return mica.Size((*shape[:-1], shape[-1] - 1))


class LowerCholeskyTransform(_OfItsClass):
    """From square matrices to Cholesky factors: the lower triangle, with the exponential of the diagonal.

    As `torch.distributions.LowerCholeskyTransform`. It has no Jacobian.

    Args:
        cache_size (int): 1 keeps the last input with its output, for an exact inverse; 0 keeps none.
            Default: 0.

    Shape:
        - Input: `(*, K, K)`.
        - Output: `(*, K, K)`.

    Example:
        >>> mica.distributions.LowerCholeskyTransform()(mica.ones(2, 2))
        tensor([[2.7183, 0.0000],
                [1.0000, 2.7183]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(_OfItsClass):
    """From square matrices to positive definite ones: `l @ l.T` of what LowerCholeskyTransform gives.

    As `torch.distributions.PositiveDefiniteTransform`. It has no Jacobian.

    Args:
        cache_size (int): 1 keeps the last input with its output, for an exact inverse; 0 keeps none.
            Default: 0.

    Shape:
        - Input: `(*, K, K)`.
        - Output: `(*, K, K)`.

    Example:
        >>> mica.distributions.PositiveDefiniteTransform()(mica.tensor([[0.0, 0.0], [1.0, 0.0]]))
        tensor([[1., 1.],
                [1., 2.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        x = LowerCholeskyTransform()(x)
        return x @ x.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(mica.linalg.cholesky(y))  # type: ignore[no-any-return]


class CorrCholeskyTransform(_OfItsClass):
    """From vectors to Cholesky factors of correlation matrices, whose rows have length 1.

    As `torch.distributions.CorrCholeskyTransform`, a bijection.

    Args:
        cache_size (int): 1 keeps the last input with its output, for an exact inverse; 0 keeps none.
            Default: 0.

    Shape:
        - Input: `(*, K * (K - 1) / 2)`.
        - Output: `(*, K, K)`.

    Raises:
        ValueError: When called with a vector of another length.

    Example:
        >>> mica.distributions.CorrCholeskyTransform()(mica.tensor([1.0]))
        tensor([[1.0000, 0.0000],
                [0.7616, 0.6481]])
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        eps = mica.finfo(x.dtype).eps
        r = vec_to_tril_matrix(mica.tanh(x).clamp(min=-1 + eps, max=1 - eps), diag=-1)
        roots = (1 - r**2).sqrt().cumprod(-1)
        r = r + mica.eye(r.shape[-1], dtype=r.dtype)
        return r * mica.nn.functional.pad(roots[..., :-1], [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        left = mica.nn.functional.pad((1 - (y * y).cumsum(-1))[..., :-1], [1, 0], value=1)
        y_vec, cut = tril_matrix_to_vec(y, diag=-1), tril_matrix_to_vec(left, diag=-1)
        t = y_vec / cut.sqrt()
        return (t.log1p() - t.neg().log1p()) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        left = tril_matrix_to_vec(1 - (y * y).cumsum(-1), diag=-2)
        softplus = mica.nn.functional.softplus
        stick = 0.5 * left.log().sum(-1)
        return stick - 2 * (x + softplus(-2 * x) - math.log(2.0)).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        d = round((0.25 + 2 * shape[-1]) ** 0.5 + 0.5)
        if d * (d - 1) // 2 != shape[-1]:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return mica.Size((*shape[:-1], d, d))

    def inverse_shape(self, shape: Any) -> Any:
        return mica.Size((*shape[:-2], shape[-1] * (shape[-1] - 1) // 2))


class ReshapeTransform(Transform):
    """Gives each event another shape, with the same elements in the same order.

    As `torch.distributions.ReshapeTransform`.

    Args:
        in_shape (tuple of int): Shape of an event of the input, its last dimensions.
        out_shape (tuple of int): Shape of an event of the output.
        cache_size (int): 1 keeps the last input with its output, for an exact inverse; 0 keeps none.
            Default: 0.

    Raises:
        ValueError: The shapes have different numbers of elements.

    Example:
        >>> f = mica.distributions.ReshapeTransform((4,), (2, 2))
        >>> f(mica.zeros(5, 4)).shape
        mica.Size([5, 2, 2])
    """

    bijective = True

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        self.in_shape, self.out_shape = mica.Size(in_shape), mica.Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size=cache_size)

    domain = property(lambda self: constraints.independent(constraints.real, len(self.in_shape)))
    codomain = property(lambda self: constraints.independent(constraints.real, len(self.out_shape)))

    def with_cache(self, cache_size: int = 1) -> Any:
        same = self._cache_size == cache_size
        return self if same else ReshapeTransform(self.in_shape, self.out_shape, cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(*x.shape[: x.dim() - len(self.in_shape)], *self.out_shape)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(*y.shape[: y.dim() - len(self.out_shape)], *self.in_shape)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    def _swapped(self, shape: Any, old: Any, new: Any) -> Any:
        if len(shape) < len(old):
            raise ValueError("Too few dimensions on input")
        cut = len(shape) - len(old)
        if tuple(shape[cut:]) != tuple(old):
            raise ValueError(f"Shape mismatch: expected {tuple(old)} but got {tuple(shape[cut:])}")
        return mica.Size((*shape[:cut], *new))

    def forward_shape(self, shape: Any) -> Any:
        return self._swapped(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._swapped(shape, self.out_shape, self.in_shape)


def _check_size(x: Tensor, dim: int, wanted: int) -> None:
    """AssertionError, as in torch, where the parts do not make up the dimension."""
    if x.size(dim) != wanted:
        raise AssertionError(
            f"Size ({x.size(dim)}) of dimension ({dim}) is not that ({wanted}) of the parts."
        )


class CatTransform(Transform):
    """A transform for each piece of a tensor along a dimension.

    As `torch.distributions.CatTransform`.

    Args:
        tseq (list of Transform): One for each piece.
        dim (int): Dimension to cut. Default: 0.
        lengths (list of int, optional): Size of each piece. Default: 1 each.
        cache_size (int): 1 keeps the last input with its output, for an exact inverse; 0 keeps none.
            Default: 0.

    Raises:
        AssertionError: When called with a tensor whose size is not the sum of the lengths.

    Example:
        >>> t = mica.distributions
        >>> f = t.CatTransform([t.ExpTransform(), t.AffineTransform(0.0, -1.0)], lengths=[1, 2])
        >>> f(mica.tensor([0.0, 1.0, 2.0]))
        tensor([ 1., -1., -2.])
    """

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        super().__init__(cache_size=cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        self.dim = dim

    event_dim = property(lambda self: max(t.event_dim for t in self.transforms))  # type: ignore[assignment]
    bijective = property(lambda self: all(t.bijective for t in self.transforms))  # type: ignore[assignment]
    domain = property(lambda s: constraints.cat([t.domain for t in s.transforms], s.dim, s.lengths))
    codomain = property(lambda s: constraints.cat([t.codomain for t in s.transforms], s.dim, s.lengths))

    def with_cache(self, cache_size: int = 1) -> Any:
        same = self._cache_size == cache_size
        return self if same else CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _pieces(self, x: Tensor) -> list[Tensor]:
        _check_size(x, self.dim, sum(self.lengths))
        return list(x.split(self.lengths, self.dim))

    def _call(self, x: Tensor) -> Tensor:
        return mica.cat([t(p) for t, p in zip(self.transforms, self._pieces(x))], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return mica.cat([t.inv(p) for t, p in zip(self.transforms, self._pieces(y))], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        terms = []
        for t, a, b in zip(self.transforms, self._pieces(x), self._pieces(y)):
            terms.append(_sum_rightmost(t.log_abs_det_jacobian(a, b), self.event_dim - t.event_dim))
        dim = self.dim - x.dim() if self.dim >= 0 else self.dim
        dim += self.event_dim
        return mica.cat(terms, dim) if dim < 0 else sum(terms)  # type: ignore[return-value]


class StackTransform(Transform):
    """A transform for each slice of a tensor along a dimension.

    As `torch.distributions.StackTransform`.

    Args:
        tseq (list of Transform): One for each slice.
        dim (int): Dimension that is taken apart and stacked again. Default: 0.
        cache_size (int): 1 keeps the last input with its output, for an exact inverse; 0 keeps none.
            Default: 0.

    Raises:
        AssertionError: When called with a tensor of another number of slices.

    Example:
        >>> t = mica.distributions
        >>> f = t.StackTransform([t.ExpTransform(), t.AffineTransform(0.0, -1.0)], dim=1)
        >>> f(mica.tensor([[0.0, 1.0], [1.0, 2.0]]))
        tensor([[ 1.0000, -1.0000],
                [ 2.7183, -2.0000]])
    """

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.dim = dim

    bijective = property(lambda self: all(t.bijective for t in self.transforms))  # type: ignore[assignment]
    domain = property(lambda self: constraints.stack([t.domain for t in self.transforms], self.dim))
    codomain = property(lambda self: constraints.stack([t.codomain for t in self.transforms], self.dim))

    def with_cache(self, cache_size: int = 1) -> Any:
        return (
            self if self._cache_size == cache_size else StackTransform(self.transforms, self.dim, cache_size)
        )

    def _slices(self, x: Tensor) -> tuple[Tensor, ...]:
        _check_size(x, self.dim, len(self.transforms))
        return x.unbind(self.dim)

    def _call(self, x: Tensor) -> Tensor:
        return mica.stack([t(p) for t, p in zip(self.transforms, self._slices(x))], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return mica.stack([t.inv(p) for t, p in zip(self.transforms, self._slices(y))], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        pairs = zip(self.transforms, self._slices(x), self._slices(y))
        return mica.stack([t.log_abs_det_jacobian(a, b) for t, a, b in pairs], self.dim)


class CumulativeDistributionTransform(Transform):
    """From values to their probabilities under a distribution: `distribution.cdf(x)`.

    As `torch.distributions.CumulativeDistributionTransform`. The inverse is `icdf`: between two of these
    stands a copula.

    Args:
        distribution (Distribution): Of numbers, with `cdf`, `icdf` and `log_prob`.
        cache_size (int): 1 keeps the last input with its output, for an exact inverse; 0 keeps none.
            Default: 0.

    Example:
        >>> f = mica.distributions.CumulativeDistributionTransform(mica.distributions.Normal(0.0, 1.0))
        >>> f(mica.tensor(0.0)), f.inv(mica.tensor(0.5))
        (tensor(0.5000), tensor(0.))
    """

    bijective = True
    codomain = constraints.unit_interval
    sign = +1  # type: ignore[assignment]

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    domain = property(lambda self: self.distribution.support)

    def with_cache(self, cache_size: int = 1) -> Any:
        same = self._cache_size == cache_size
        return self if same else CumulativeDistributionTransform(self.distribution, cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)  # type: ignore[no-any-return]

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)  # type: ignore[no-any-return]

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)  # type: ignore[no-any-return]
