"""mica.distributions: probability distributions, transforms and divergences, as torch names them."""

from mica.distributions import constraints as constraints, transforms as transforms, utils as utils
from mica.distributions._categorical import (
    Categorical as Categorical,
    Multinomial as Multinomial,
    OneHotCategorical as OneHotCategorical,
    OneHotCategoricalStraightThrough as OneHotCategoricalStraightThrough,
    RelaxedBernoulli as RelaxedBernoulli,
    RelaxedOneHotCategorical as RelaxedOneHotCategorical,
)
from mica.distributions._composed import (
    Gumbel as Gumbel,
    HalfCauchy as HalfCauchy,
    HalfNormal as HalfNormal,
    Independent as Independent,
    InverseGamma as InverseGamma,
    Kumaraswamy as Kumaraswamy,
    LogisticNormal as LogisticNormal,
    LogNormal as LogNormal,
    MixtureSameFamily as MixtureSameFamily,
    Pareto as Pareto,
    Weibull as Weibull,
)
from mica.distributions._discrete import (
    Bernoulli as Bernoulli,
    Binomial as Binomial,
    ContinuousBernoulli as ContinuousBernoulli,
    Geometric as Geometric,
    NegativeBinomial as NegativeBinomial,
    Poisson as Poisson,
)
from mica.distributions._generalized_pareto import GeneralizedPareto as GeneralizedPareto
from mica.distributions._location_scale import (
    Cauchy as Cauchy,
    Laplace as Laplace,
    Normal as Normal,
    StudentT as StudentT,
    Uniform as Uniform,
)
from mica.distributions._matrix_transforms import (
    CatTransform as CatTransform,
    CorrCholeskyTransform as CorrCholeskyTransform,
    CumulativeDistributionTransform as CumulativeDistributionTransform,
    LowerCholeskyTransform as LowerCholeskyTransform,
    PositiveDefiniteTransform as PositiveDefiniteTransform,
    ReshapeTransform as ReshapeTransform,
    SoftmaxTransform as SoftmaxTransform,
    StackTransform as StackTransform,
    StickBreakingTransform as StickBreakingTransform,
)
from mica.distributions._multivariate import (
    LKJCholesky as LKJCholesky,
    LowRankMultivariateNormal as LowRankMultivariateNormal,
    MultivariateNormal as MultivariateNormal,
    Wishart as Wishart,
)
from mica.distributions._positive import (
    Beta as Beta,
    Chi2 as Chi2,
    Dirichlet as Dirichlet,
    Exponential as Exponential,
    FisherSnedecor as FisherSnedecor,
    Gamma as Gamma,
)
from mica.distributions._von_mises import VonMises as VonMises
from mica.distributions.constraint_registry import biject_to as biject_to, transform_to as transform_to
from mica.distributions.distribution import (
    Distribution as Distribution,
    ExponentialFamily as ExponentialFamily,
)
from mica.distributions.kl import kl_divergence as kl_divergence, register_kl as register_kl
from mica.distributions.transformed_distribution import (
    TransformedDistribution as TransformedDistribution,
)
from mica.distributions.transforms import (
    AbsTransform as AbsTransform,
    AffineTransform as AffineTransform,
    ComposeTransform as ComposeTransform,
    ExpTransform as ExpTransform,
    IndependentTransform as IndependentTransform,
    PowerTransform as PowerTransform,
    SigmoidTransform as SigmoidTransform,
    SoftplusTransform as SoftplusTransform,
    TanhTransform as TanhTransform,
    Transform as Transform,
    identity_transform as identity_transform,
)
