"""Families over categories: Categorical, one-hot, multinomial, and their relaxed forms."""

from __future__ import annotations

from typing import Any

import mica
from mica._C import Tensor
from mica.distributions import constraints
from mica.distributions._discrete import Binomial, _Odds
from mica.distributions.distribution import Distribution, Size
from mica.distributions.transformed_distribution import TransformedDistribution
from mica.distributions.transforms import ExpTransform, SigmoidTransform
from mica.distributions.utils import (
    broadcast_all,
    clamp_probs,
    lazy_property,
    logits_to_probs,
    probs_to_logits,
)


class Categorical(Distribution):
    """The number of a category: k with the probability `probs[k]`.

    As `torch.distributions.Categorical`. It has `entropy` and `enumerate_support`; draws are int64. Mean and
    variance are nan, since categories have no order.

    Args:
        probs (Tensor, optional): `batch_shape + (K)`, at least 0; divided by their sum.
        logits (Tensor, optional): Log probabilities up to a constant, of that shape. One of the two is given.
        validate_args (bool, optional): Check parameters and the values of `log_prob`. Default: True, or what
            `Distribution.set_default_validate_args` says.

    Raises:
        ValueError: Both or none of `probs` and `logits` are given, without a dimension, or negative.

    Example:
        >>> d = mica.distributions.Categorical(probs=mica.tensor([1.0, 1.0, 2.0]))
        >>> d.probs, d.log_prob(mica.tensor(2)), d.mode
        (tensor([0.2500, 0.2500, 0.5000]), tensor(-0.6931), tensor(2))
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _own_dims = {"probs": 1, "logits": 1, "_param": 1}

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        given = probs if logits is None else logits
        if given.dim() < 1:
            raise ValueError(
                f"`{'probs' if logits is None else 'logits'}` parameter must be at least one-dimensional."
            )
        if logits is None:
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = logits - logits.logsumexp(dim=-1, keepdim=True)
        self._param = self.probs if logits is None else self.logits
        self._num_events = self._param.size()[-1]
        super().__init__(self._param.size()[:-1], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:  # type: ignore[override]
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def logits(self) -> Tensor:
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Tensor:
        return logits_to_probs(self.logits)

    @property
    def param_shape(self) -> Any:
        return self._param.size()

    mean = variance = property(
        lambda self: mica.full(self._extended_shape(), float("nan"), dtype=self.probs.dtype)
    )  # type: ignore[assignment]
    mode = property(lambda self: self.probs.argmax(dim=-1))  # type: ignore[assignment]

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = Size(sample_shape)
        flat = self.probs.reshape(-1, self._num_events)
        drawn = mica.multinomial(flat.detach(), shape.numel(), True).T
        return drawn.reshape(self._extended_shape(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        value = value.long().unsqueeze(-1)
        value, log_pmf = mica.broadcast_tensors(value, self.logits)
        return log_pmf.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        logits = mica.clamp(self.logits, min=mica.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = mica.arange(self._num_events, dtype=mica.int64, device=self._param.device)
        values = values.view((-1, *([1] * len(self._batch_shape))))
        return values.expand((-1, *self._batch_shape)) if expand else values


class OneHotCategorical(Distribution):
    """A category as a vector with a 1 at its place and zeros elsewhere.

    As `torch.distributions.OneHotCategorical`. It has `entropy` and `enumerate_support`.

    Args:
        probs (Tensor, optional): `batch_shape + (K)`, at least 0; divided by their sum. Events are `(K)`.
        logits (Tensor, optional): Log probabilities up to a constant, of that shape. One of the two is given.
        validate_args (bool, optional): Check parameters and the values of `log_prob`. Default: True, or what
            `Distribution.set_default_validate_args` says.

    Raises:
        ValueError: Both or none of `probs` and `logits` are given, without a dimension, or negative.

    Example:
        >>> d = mica.distributions.OneHotCategorical(probs=mica.tensor([1.0, 3.0]))
        >>> d.log_prob(mica.tensor([0.0, 1.0])), d.mode
        (tensor(-0.2877), tensor([0., 1.]))
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._categorical = self._categorical.expand(batch_shape)
        return new

    probs = mean = property(lambda self: self._categorical.probs)  # type: ignore[assignment]
    logits = property(lambda self: self._categorical.logits)
    _param = property(lambda self: self._categorical._param)
    param_shape = property(lambda self: self._categorical.param_shape)
    variance = property(lambda self: self.probs * (1 - self.probs))  # type: ignore[assignment]

    @property
    def mode(self) -> Tensor:
        count = self.probs.shape[-1]
        return mica.nn.functional.one_hot(self.probs.argmax(-1), count).to(self.probs)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        drawn = self._categorical.sample(Size(sample_shape))
        return mica.nn.functional.one_hot(drawn, self._categorical._num_events).to(self.probs)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        n = self.event_shape[0]
        values = mica.eye(n, dtype=self._param.dtype).view((n, *([1] * len(self.batch_shape)), n))
        return values.expand((n, *self.batch_shape, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """OneHotCategorical whose draws pass the gradient of a draw on to the probabilities.

    As `torch.distributions.OneHotCategoricalStraightThrough` (Bengio et al., 2013): `rsample` gives one-hot
    vectors, and the gradient of the probabilities is that of the vector.

    Args:
        probs (Tensor, optional): `batch_shape + (K)`, at least 0; divided by their sum. Events are `(K)`.
        logits (Tensor, optional): Log probabilities up to a constant, of that shape. One of the two is given.
        validate_args (bool, optional): Check parameters and the values of `log_prob`. Default: True, or what
            `Distribution.set_default_validate_args` says.

    Raises:
        ValueError: Both or none of `probs` and `logits` are given, without a dimension, or negative.

    Example:
        >>> probs = mica.tensor([0.0, 1.0], requires_grad=True)
        >>> draw = mica.distributions.OneHotCategoricalStraightThrough(probs).rsample()
        >>> draw.detach(), draw.requires_grad
        (tensor([0., 1.]), True)
    """

    has_rsample = True

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        samples = self.sample(sample_shape)
        return samples + (self.probs - self.probs.detach())


class Multinomial(Distribution):
    """Counts of the categories in `total_count` independent draws.

    As `torch.distributions.Multinomial`. It has `entropy`.

    Args:
        total_count (int): Draws; one number for the whole batch. Default: 1.
        probs (Tensor, optional): `batch_shape + (K)`, at least 0; divided by their sum. Events are `(K)`.
        logits (Tensor, optional): Log probabilities up to a constant, of that shape. One of the two is given.
        validate_args (bool, optional): Check parameters and the values of `log_prob`. Default: True, or what
            `Distribution.set_default_validate_args` says.

    Raises:
        NotImplementedError: `total_count` is no int.
        ValueError: Both or none of `probs` and `logits` are given, without a dimension, or negative.

    Example:
        >>> d = mica.distributions.Multinomial(4, probs=mica.tensor([1.0, 1.0]))
        >>> d.mean, d.log_prob(mica.tensor([2.0, 2.0])).exp()
        (tensor([2., 2.]), tensor(0.3750))
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(
        self,
        total_count: int = 1,
        probs: Any = None,
        logits: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs=probs, logits=logits)
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._categorical = self._categorical.expand(batch_shape)
        return new

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:  # type: ignore[override]
        return constraints.multinomial(self.total_count)

    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    param_shape = property(lambda self: self._categorical.param_shape)
    mean = property(lambda self: self.probs * self.total_count)  # type: ignore[assignment]
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))  # type: ignore[assignment]

    def sample(self, sample_shape: Any = ()) -> Tensor:
        shape = Size(sample_shape)
        drawn = self._categorical.sample((self.total_count, *shape)).movedim(0, -1)
        counts = self.probs.new_zeros(self._extended_shape(shape))
        return counts.scatter_add(-1, drawn, mica.ones_like(drawn).to(counts.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        log_factorials = mica.lgamma(value.sum(-1) + 1) - mica.lgamma(value + 1).sum(-1)
        logits = logits.masked_fill((value == 0) & (logits == -float("inf")), 0)
        return log_factorials + (logits * value).sum(-1)

    def entropy(self) -> Tensor:
        n = mica.tensor(self.total_count)
        single = Binomial(n, self.probs)
        support = single.enumerate_support(False)[1:]
        weights = mica.exp(Binomial(n, self.probs).log_prob(support))
        term = (weights * mica.lgamma(support + 1)).sum(dim=[0, -1])
        return n * self._categorical.entropy() - mica.lgamma(n + 1.0) + term


class _LogitRelaxedBernoulli(_Odds):
    """The logit of a relaxed Bernoulli."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        self._take(probs, logits)
        super().__init__(self._shape(), validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        uniforms = clamp_probs(probs.new_empty(shape).uniform_())
        noise = uniforms.log() - (-uniforms).log1p() + probs.log() - (-probs).log1p()
        return noise / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        diff = logits - value.mul(self.temperature)
        return self.temperature.log() + diff - 2 * diff.exp().log1p()


class RelaxedBernoulli(TransformedDistribution):
    """A coin made continuous: numbers in (0, 1) that come close to 0 and 1 as the temperature falls.

    As `torch.distributions.RelaxedBernoulli` (Maddison et al., 2017). It has `rsample`.

    Args:
        temperature (Tensor): Above 0 (not checked), one number; `log_prob` needs a Tensor, `sample` and `rsample`
            take a float too.
        probs (Tensor or float, optional): Probability of 1, in [0, 1]. Its shape is the batch.
        logits (Tensor or float, optional): `log(probs / (1 - probs))`. One of the two is given.
        validate_args (bool, optional): Check parameters and the values of `log_prob`. Default: True, or what
            `Distribution.set_default_validate_args` says.

    Raises:
        ValueError: Both or none of `probs` and `logits` are given, or one is outside of its range.

    Example:
        >>> d = mica.distributions.RelaxedBernoulli(mica.tensor(0.5), probs=mica.tensor([0.1, 0.5]))
        >>> d.rsample((3,)).shape
        mica.Size([3, 2])
        >>> d.log_prob(mica.tensor([0.5, 0.5]))
        tensor([-1.7148, -0.6931])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(
            _LogitRelaxedBernoulli(temperature, probs, logits), SigmoidTransform(), validate_args
        )

    temperature = property(lambda self: self.base_dist.temperature)
    logits = property(lambda self: self.base_dist.logits)
    probs = property(lambda self: self.base_dist.probs)


class _ExpRelaxedCategorical(Distribution):
    """The logarithm of a relaxed one-hot category."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        super().__init__(self._categorical.batch_shape, self._categorical.param_shape[-1:], validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = super().expand(batch_shape, _instance)
        new._categorical = self._categorical.expand(batch_shape)
        return new

    probs = property(lambda self: self._categorical.probs)
    logits = property(lambda self: self._categorical.logits)
    param_shape = property(lambda self: self._categorical.param_shape)

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        uniforms = clamp_probs(self.logits.new_empty(shape).uniform_())
        scores = (self.logits - (-uniforms.log()).log()) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        k = self._categorical._num_events
        logits, value = broadcast_all(self.logits, value)
        log_scale = mica.full_like(self.temperature, float(k)).lgamma() - self.temperature.log().mul(-(k - 1))
        score = logits - value.mul(self.temperature)
        return (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1) + log_scale


class RelaxedOneHotCategorical(TransformedDistribution):
    """A one-hot category made continuous: probabilities that come close to one-hot as the temperature falls.

    As `torch.distributions.RelaxedOneHotCategorical` (Jang et al., 2017; Maddison et al., 2017). It has
    `rsample`.

    Args:
        temperature (Tensor): Above 0 (not checked), one number; `log_prob` needs a Tensor, `sample` and `rsample`
            take a float too.
        probs (Tensor, optional): `batch_shape + (K)`, at least 0; divided by their sum. Events are `(K)`.
        logits (Tensor, optional): Log probabilities up to a constant, of that shape. One of the two is given.
        validate_args (bool, optional): Check parameters and the values of `log_prob`. Default: True, or what
            `Distribution.set_default_validate_args` says.

    Raises:
        ValueError: Both or none of `probs` and `logits` are given, they have no dimension, or some of `probs`,
            divided by their sum, are negative.

    Example:
        >>> d = mica.distributions.RelaxedOneHotCategorical(mica.tensor(0.5), probs=mica.ones(3))
        >>> d.rsample((2,)).shape
        mica.Size([2, 3])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = _ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    temperature = property(lambda self: self.base_dist.temperature)
    logits = property(lambda self: self.base_dist.logits)
    probs = property(lambda self: self.base_dist.probs)
