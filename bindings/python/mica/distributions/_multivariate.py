"""Families of vectors and matrices: the multivariate normal in its two forms, Wishart, LKJ."""

from __future__ import annotations

import math
from typing import Any

import mica
from mica._C import Tensor
from mica.distributions import constraints
from mica.distributions._positive import Beta, Chi2
from mica.distributions.distribution import Distribution, ExponentialFamily, Size
from mica.distributions.utils import lazy_property


def _batch_mv(matrix: Tensor, vector: Tensor) -> Tensor:
    """Matrix times vector, both with batch dimensions."""
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(factor: Tensor, x: Tensor) -> Tensor:
    """x^T M^-1 x for the Cholesky factor of M."""
    solved = mica.linalg.solve_triangular(factor, x.unsqueeze(-1), upper=False)
    return solved.square().sum((-2, -1))


def _precision_to_scale_tril(precision: Tensor) -> Tensor:
    """The Cholesky factor of the inverse."""
    flipped = mica.linalg.cholesky(mica.flip(precision, (-2, -1)))
    upper = mica.flip(flipped, (-2, -1)).mT
    eye = mica.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return mica.linalg.solve_triangular(upper, eye, upper=False)


def _half_log_det(factor: Tensor) -> Tensor:
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


class _OfMatrix(Distribution):
    """A family of a positive definite matrix, by covariance, precision or the covariance's Cholesky factor."""

    _unbroadcasted_scale_tril: Tensor

    @staticmethod
    def _given(**matrices: Tensor | None) -> tuple[str, Tensor]:
        """The name and value of the one that is given."""
        found = [(k, v) for k, v in matrices.items() if v is not None]
        if len(found) != 1:
            raise ValueError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified."
            )
        name, matrix = found[0]
        if matrix.dim() < 2:
            raise ValueError(
                f"{name} must be at least two-dimensional, with optional leading batch dimensions"
            )
        return name, matrix

    def _factorise(self, name: str, matrix: Tensor) -> None:
        if name == "scale_tril":
            self._unbroadcasted_scale_tril = matrix
        elif name == "covariance_matrix":
            self._unbroadcasted_scale_tril = mica.linalg.cholesky(matrix)
        else:
            self._unbroadcasted_scale_tril = _precision_to_scale_tril(matrix)

    def _whole(self, matrix: Tensor) -> Tensor:
        return matrix.expand(self._batch_shape + self._event_shape[-1:] + self._event_shape[-1:])

    @lazy_property
    def scale_tril(self) -> Tensor:
        return self._whole(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        factor = self._unbroadcasted_scale_tril
        return self._whole(factor @ factor.mT)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        return self._whole(mica.cholesky_inverse(self._unbroadcasted_scale_tril))


class MultivariateNormal(_OfMatrix):
    """Normal vectors: density proportional to `exp(-0.5 * (x - loc) @ inverse(covariance) @ (x - loc))`.

    As `torch.distributions.MultivariateNormal`. It has `rsample` and `entropy`. Exactly one of the three
    matrices is given; `scale_tril` is the fastest, since the others are factorised into it.

    Args:
        loc (Tensor): Means, `batch_shape + (K)`.
        covariance_matrix (Tensor, optional): `batch_shape + (K, K)`, positive definite.
        precision_matrix (Tensor, optional): The inverse of the covariance, of its shape.
        scale_tril (Tensor, optional): Its Cholesky factor, lower triangular with a positive diagonal.
        validate_args (bool, optional): Check parameters and the values of `log_prob`. Default: True, or what
            `Distribution.set_default_validate_args` says.

    Raises:
        ValueError: Not exactly one matrix is given, one has fewer than 2 dimensions, `loc` has none, or a
            parameter is outside of its range.

    Example:
        >>> covariance = mica.tensor([[2.0, 1.0], [1.0, 2.0]])
        >>> d = mica.distributions.MultivariateNormal(mica.zeros(2), covariance)
        >>> d.log_prob(mica.zeros(2)), d.variance
        (tensor(-2.3872), tensor([2.0000, 2.0000]))
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True
    _own_dims = {
        "loc": 1,
        "covariance_matrix": 2,
        "precision_matrix": 2,
        "scale_tril": 2,
        "_unbroadcasted_scale_tril": 2,
    }

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        name, matrix = self._given(
            scale_tril=scale_tril, covariance_matrix=covariance_matrix, precision_matrix=precision_matrix
        )
        batch = mica.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        self.__dict__[name] = matrix.expand((*batch, -1, -1))
        self.loc = loc.expand((*batch, -1))
        super().__init__(batch, self.loc.shape[-1:], validate_args=validate_args)
        self._factorise(name, matrix)

    mean = mode = property(lambda self: self.loc)  # type: ignore[assignment]

    @property
    def variance(self) -> Tensor:
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        eps = self.loc.new_empty(shape).normal_()
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, eps)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        m = _batch_mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        half = _half_log_det(self._unbroadcasted_scale_tril)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + m) - half

    def entropy(self) -> Tensor:
        half = _half_log_det(self._unbroadcasted_scale_tril)
        h = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + half
        return h if len(self._batch_shape) == 0 else h.expand(self._batch_shape)


class LowRankMultivariateNormal(Distribution):
    """Normal vectors whose covariance is `cov_factor @ cov_factor.T + diag(cov_diag)`.

    As `torch.distributions.LowRankMultivariateNormal`: cheap where the rank `R` is far below the size `K`. It
    has `rsample` and `entropy`.

    Args:
        loc (Tensor): Means, `batch_shape + (K)`.
        cov_factor (Tensor): `batch_shape + (K, R)`.
        cov_diag (Tensor): `batch_shape + (K)`, above 0.
        validate_args (bool, optional): Check parameters and the values of `log_prob`. Default: True, or what
            `Distribution.set_default_validate_args` says.

    Raises:
        ValueError: `loc` has no dimension, the shapes do not fit, or `cov_diag` is not positive.

    Example:
        >>> d = mica.distributions.LowRankMultivariateNormal(
        ...     mica.zeros(2), mica.tensor([[1.0], [0.0]]), mica.ones(2)
        ... )
        >>> d.covariance_matrix
        tensor([[2., 0.],
                [0., 1.]])
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True
    _own_dims = {"loc": 1, "cov_factor": 2, "cov_diag": 1}

    def __init__(
        self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None
    ) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event = loc.shape[-1:]
        if cov_factor.dim() < 2 or cov_factor.shape[-2:-1] != event:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event[0]} x m")
        if cov_diag.shape[-1:] != event:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {tuple(event)}")
        batch = mica.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        self.loc = loc.expand((*batch, -1))
        self.cov_factor = cov_factor.expand((*batch, -1, -1))
        self.cov_diag = cov_diag.expand((*batch, -1))
        super().__init__(batch, event, validate_args=validate_args)

    @property
    def _capacitance_tril(self) -> Tensor:
        """The Cholesky factor of I + W^T D^-1 W."""
        scaled = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)
        k = scaled @ self.cov_factor
        return mica.linalg.cholesky(k + mica.eye(k.shape[-1], dtype=k.dtype))

    mean = mode = property(lambda self: self.loc)  # type: ignore[assignment]

    @lazy_property
    def variance(self) -> Tensor:
        return (self.cov_factor.pow(2).sum(-1) + self.cov_diag).expand(self._batch_shape + self._event_shape)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        return self.cov_factor @ self.cov_factor.mT + mica.diag_embed(self.cov_diag)

    @lazy_property
    def scale_tril(self) -> Tensor:
        return mica.linalg.cholesky(self.covariance_matrix)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        scaled = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)
        a = mica.linalg.solve_triangular(self._capacitance_tril, scaled, upper=False)
        return mica.diag_embed(self.cov_diag.reciprocal()) - a.mT @ a

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        low = (*shape[:-1], self.cov_factor.shape[-1])
        eps_w = self.loc.new_empty(low).normal_()
        eps_d = self.loc.new_empty(shape).normal_()
        return self.loc + _batch_mv(self.cov_factor, eps_w) + self.cov_diag.sqrt() * eps_d

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        diff = value - self.loc
        scaled = self.cov_factor.mT / self.cov_diag.unsqueeze(-2)
        m1 = (diff.pow(2) / self.cov_diag).sum(-1)
        m2 = _batch_mahalanobis(self._capacitance_tril, _batch_mv(scaled, diff))
        log_det = 2 * _half_log_det(self._capacitance_tril) + self.cov_diag.log().sum(-1)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + log_det + m1 - m2)

    def entropy(self) -> Tensor:
        log_det = 2 * _half_log_det(self._capacitance_tril) + self.cov_diag.log().sum(-1)
        h = 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + log_det)
        return h if len(self._batch_shape) == 0 else h.expand(self._batch_shape)


class Wishart(_OfMatrix, ExponentialFamily):
    """Positive definite matrices: `sum(x @ x.T)` of `df` normal vectors of this covariance.

    As `torch.distributions.Wishart`. It has `rsample` and `entropy`. Exactly one of the three matrices is
    given.

    Args:
        df (Tensor or float): Degrees of freedom, above `K - 1`.
        covariance_matrix (Tensor, optional): `batch_shape + (K, K)`, positive definite.
        precision_matrix (Tensor, optional): The inverse of the covariance, of its shape.
        scale_tril (Tensor, optional): Its Cholesky factor, lower triangular with a positive diagonal.
        validate_args (bool, optional): Check parameters and the values of `log_prob`. Default: True, or what
            `Distribution.set_default_validate_args` says.

    Raises:
        ValueError: Not exactly one matrix is given, `df` is too small, or a matrix is outside of its range.

    Example:
        >>> d = mica.distributions.Wishart(3.0, mica.eye(2))
        >>> d.mean, d.log_prob(mica.eye(2))
        (tensor([[3., 0.],
                [0., 3.]]), tensor(-3.5310))
    """

    arg_constraints = {
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
        "df": constraints.greater_than(0),
    }
    support = constraints.positive_definite
    has_rsample = True
    _own_dims = {
        "covariance_matrix": 2,
        "precision_matrix": 2,
        "scale_tril": 2,
        "_unbroadcasted_scale_tril": 2,
    }

    def __init__(
        self,
        df: Any,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        name, matrix = self._given(
            scale_tril=scale_tril, covariance_matrix=covariance_matrix, precision_matrix=precision_matrix
        )
        df = mica.as_tensor(df, dtype=matrix.dtype)
        batch = mica.broadcast_shapes(matrix.shape[:-2], df.shape)
        self.df, self.__dict__[name] = df.expand(batch), matrix.expand((*batch, -1, -1))
        size = matrix.shape[-1]
        if (self.df <= size - 1).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {size - 1}.")
        super().__init__(batch, matrix.shape[-2:], validate_args=validate_args)
        self._factorise(name, matrix)

    mean = property(lambda self: self.df[..., None, None] * self.covariance_matrix)  # type: ignore[assignment]

    @property
    def mode(self) -> Tensor:
        factor = self.df - self._event_shape[-1] - 1
        factor = mica.where(factor <= 0, math.nan, factor)
        return factor[..., None, None] * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        v = self.covariance_matrix
        d = v.diagonal(dim1=-2, dim2=-1)
        return self.df[..., None, None] * (v.pow(2) + d[..., :, None] * d[..., None, :])

    def _bartlett(self, sample_shape: Any) -> Tensor:
        """Draws by Bartlett's decomposition."""
        p = self._event_shape[-1]
        degrees = self.df.unsqueeze(-1) - mica.arange(p, dtype=self.df.dtype)
        diagonal = Chi2(degrees).rsample(sample_shape).sqrt()
        noise = diagonal.clamp(min=mica.finfo(diagonal.dtype).eps).diag_embed()
        rows, columns = mica.tril_indices(p, p, -1)
        below = (*sample_shape, *self._batch_shape, p * (p - 1) // 2)
        noise[..., rows, columns] = noise.new_empty(below).normal_()
        chol = self._unbroadcasted_scale_tril @ noise
        return chol @ chol.mT

    def _of_draws(self, mask: Tensor) -> Tensor:
        """A mask over draws and batch as one over draws: where any of the batch is."""
        return mask.amax([-1 - d for d in range(len(self._batch_shape))]) if self._batch_shape else mask

    def rsample(self, sample_shape: Any = (), max_try_correction: int | None = None) -> Tensor:
        """Draws through which gradients reach the parameters, by Bartlett's decomposition.

        As torch 2.13 does, it draws once more at first, and after that repeats what is singular.

        Args:
            sample_shape (tuple of int): How many draws. Default: (), one.
            max_try_correction (int, optional): How often singular draws are repeated. Default: 10.

        Returns:
            Tensor: `sample_shape + batch_shape + (K, K)`.
        """
        # torch 2.13 takes draws inside of the support for singular at first; draws are to equal its.
        drawn = self._bartlett(Size(sample_shape))
        again = self._of_draws(self.support.check(drawn))
        for _ in range(10 if max_try_correction is None else max_try_correction):
            if not again.any():
                break
            new = self._bartlett(again[again].shape)
            drawn[again.clone()] = new  # backward keeps the mask, which changes below
            again[again.clone()] = self._of_draws(~self.support.check(new))
        return drawn

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        nu, p = self.df, self._event_shape[-1]
        trace = mica.cholesky_solve(value, self._unbroadcasted_scale_tril)
        trace = trace.diagonal(dim1=-2, dim2=-1).sum(-1)
        constant = -nu * (p * math.log(2) / 2 + _half_log_det(self._unbroadcasted_scale_tril))
        log_det = mica.linalg.slogdet(value).logabsdet
        return constant - mica.mvlgamma(nu / 2, p) + (nu - p - 1) / 2 * log_det - trace / 2

    def entropy(self) -> Tensor:
        nu, p = self.df, self._event_shape[-1]
        steps = mica.arange(p, dtype=nu.dtype) / 2
        digammas = mica.digamma((nu / 2).unsqueeze(-1) - steps).sum(-1)
        half = _half_log_det(self._unbroadcasted_scale_tril)
        start = (p + 1) * (p * math.log(2) / 2 + half) + mica.mvlgamma(nu / 2, p)
        return start - (nu - p - 1) / 2 * digammas + nu * p / 2


class LKJCholesky(Distribution):
    """Cholesky factors of random correlation matrices.

    As `torch.distributions.LKJCholesky` (Lewandowski, Kurowicka and Joe, 2009, by the onion method). The
    density of a correlation matrix `c` is proportional to `det(c) ** (concentration - 1)`.

    Args:
        dim (int): Rows of the matrices, at least 2.
        concentration (Tensor or float): 1 is uniform; the larger, the weaker the correlations; above 0. Its
            shape is the batch. Default: 1.
        validate_args (bool, optional): Check parameters and the values of `log_prob`. Default: True, or what
            `Distribution.set_default_validate_args` says.

    Raises:
        ValueError: `dim` is below 2, or `concentration` is not positive.

    Example:
        >>> factor = mica.distributions.LKJCholesky(3, 2.0).sample()
        >>> mica.allclose((factor @ factor.T).diagonal(), mica.ones(3))
        True
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = mica.distributions.utils.broadcast_all(concentration)
        batch, event = self.concentration.size(), (dim, dim)
        marginal = self.concentration + 0.5 * (dim - 2)
        offset = mica.arange(dim - 1, dtype=self.concentration.dtype)
        offset = mica.cat([offset.new_zeros((1,)), offset])
        self._beta = Beta(offset + 0.5, marginal.unsqueeze(-1) - 0.5 * offset)
        super().__init__(batch, event, validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._beta = self._beta.expand(Size((*batch_shape, self.dim)))
        return new

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with mica.no_grad():
            y = self._beta.sample(sample_shape).unsqueeze(-1)
            shape = self._extended_shape(sample_shape)
            u = y.new_empty(shape).normal_().tril(-1)
            sphere = u / u.norm(dim=-1, keepdim=True)
            sphere[..., 0, :].fill_(0.0)
            w = y.sqrt() * sphere
            eps = mica.finfo(w.dtype).tiny
            return w + (1 - (w**2).sum(-1)).clamp(min=eps).sqrt().diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        diagonal = value.diagonal(dim1=-1, dim2=-2)[..., 1:]
        order = mica.arange(2, self.dim + 1)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        unnormalized = (order * diagonal.log()).sum(-1)
        below = self.dim - 1
        alpha = self.concentration + 0.5 * below
        constant = 0.5 * below * math.log(math.pi)
        return unnormalized - (constant + mica.mvlgamma(alpha - 0.5, below) - mica.lgamma(alpha) * below)
