"""mica.distributions beside torch.distributions: every method of every family on given values,
seeded draws where both draw from the same stream, moments where they do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import mica

# A family, its arguments as text over L (torch or mica) and t (a tensor of a list), values of its support.
FAMILIES = {
    "Normal": ("t([0.5, -1.0]), t([1.0, 2.0])", [[0.3, 2.0], [-1.0, 0.1]]),
    "Laplace": ("t([0.5, -1.0]), t([1.0, 2.0])", [[0.3, 2.0], [-1.0, 0.1]]),
    "Cauchy": ("t([0.5, -1.0]), t([1.0, 2.0])", [[0.3, 2.0], [-1.0, 0.1]]),
    "Uniform": ("t([0.5, -1.0]), t([1.0, 2.0])", [[0.6, 1.5], [0.9, 0.1]]),
    "StudentT": ("t([3.0, 5.0]), t([0.5, -1.0]), t([1.0, 2.0])", [[0.3, 2.0], [-1.0, 0.1]]),
    "LogNormal": ("t([0.5, -1.0]), t([1.0, 2.0])", [[0.3, 2.0], [1.0, 0.1]]),
    "Gumbel": ("t([0.5, -1.0]), t([1.0, 2.0])", [[0.3, 2.0], [1.0, 0.1]]),
    "HalfNormal": ("t([0.5, 1.0])", [[0.3, 2.0], [1.0, 0.1]]),
    "HalfCauchy": ("t([0.5, 1.0])", [[0.3, 2.0], [1.0, 0.1]]),
    "Exponential": ("t([0.5, 1.0])", [[0.3, 2.0], [1.0, 0.1]]),
    "Gamma": ("t([0.5, 3.0]), t([1.0, 2.0])", [[0.3, 2.0], [1.0, 0.1]]),
    "InverseGamma": ("t([2.5, 3.0]), t([1.0, 2.0])", [[0.3, 2.0], [1.0, 0.1]]),
    "Chi2": ("t([1.5, 3.0])", [[0.3, 2.0], [1.0, 0.1]]),
    "Beta": ("t([0.5, 3.0]), t([1.5, 2.0])", [[0.3, 0.2], [0.7, 0.1]]),
    "Dirichlet": ("t([0.5, 3.0, 2.0])", [[0.3, 0.2, 0.5], [0.1, 0.1, 0.8]]),
    "FisherSnedecor": ("t([3.0, 6.0]), t([5.0, 9.0])", [[0.3, 2.0], [1.0, 0.1]]),
    "Pareto": ("t([0.5, 1.0]), t([3.0, 2.5])", [[0.6, 2.0], [1.0, 1.1]]),
    "Weibull": ("t([0.5, 1.0]), t([3.0, 2.5])", [[0.6, 2.0], [1.0, 1.1]]),
    "Kumaraswamy": ("t([1.5, 2.0]), t([3.0, 2.5])", [[0.6, 0.2], [0.1, 0.9]]),
    "VonMises": ("t([0.5, -1.0]), t([1.0, 4.0])", [[0.3, 2.0], [-1.0, 0.1]]),
    "LogisticNormal": ("t([0.5, -1.0]), t([1.0, 2.0])", [[0.3, 0.2, 0.5], [0.1, 0.1, 0.8]]),
    "Bernoulli": ("t([0.3, 0.8])", [[0.0, 1.0], [1.0, 1.0]]),
    "Bernoulli logits": ("logits=t([0.3, -0.8])", [[0.0, 1.0], [1.0, 1.0]]),
    "ContinuousBernoulli": ("t([0.3, 0.5])", [[0.2, 0.7], [0.1, 0.9]]),
    "Geometric": ("t([0.3, 0.8])", [[0.0, 3.0], [2.0, 1.0]]),
    "Poisson": ("t([0.3, 12.0])", [[0.0, 3.0], [2.0, 11.0]]),
    "Binomial": ("5, t([0.3, 0.8])", [[0.0, 3.0], [2.0, 5.0]]),
    "NegativeBinomial": ("t([5.0, 2.0]), t([0.3, 0.8])", [[0.0, 3.0], [2.0, 5.0]]),
    "Categorical": ("t([[0.3, 0.7, 1.0], [1.0, 1.0, 2.0]])", [[0, 2], [1, 1]]),
    "Categorical logits": ("logits=t([[0.3, -0.7, 1.0], [1.0, 1.0, 2.0]])", [[0, 2], [1, 1]]),
    "OneHotCategorical": ("t([0.3, 0.7, 1.0])", [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]),
    "OneHotCategoricalStraightThrough": ("t([0.3, 0.7, 1.0])", [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]),
    "Multinomial": ("4, t([0.3, 0.7, 1.0])", [[0.0, 3.0, 1.0], [2.0, 1.0, 1.0]]),
    "RelaxedBernoulli": ("t(0.7), t([0.3, 0.8])", [[0.2, 0.7], [0.1, 0.9]]),
    "RelaxedOneHotCategorical": ("t(0.7), t([0.3, 0.7, 1.0])", [[0.3, 0.2, 0.5], [0.1, 0.1, 0.8]]),
    "MultivariateNormal": ("t([0.5, -1.0]), t([[2.0, 0.3], [0.3, 1.0]])", [[0.3, 2.0], [-1.0, 0.1]]),
    "MultivariateNormal precision": (
        "t([0.5, -1.0]), precision_matrix=t([[2.0, 0.3], [0.3, 1.0]])",
        [[0.3, 2.0], [-1.0, 0.1]],
    ),
    "MultivariateNormal tril": (
        "t([0.5, -1.0]), scale_tril=t([[2.0, 0.0], [0.3, 1.0]])",
        [[0.3, 2.0], [-1.0, 0.1]],
    ),
    "LowRankMultivariateNormal": (
        "t([0.5, -1.0]), t([[2.0], [0.3]]), t([0.5, 1.0])",
        [[0.3, 2.0], [-1.0, 0.1]],
    ),
    "Wishart": ("t(4.0), t([[2.0, 0.3], [0.3, 1.0]])", [[[1.0, 0.2], [0.2, 3.0]]]),
    "LKJCholesky": ("2, t(1.5)", [[[1.0, 0.0], [0.6, 0.8]]]),
    "Independent": (
        "L.distributions.Normal(t([[0.5, -1.0]]), t([[1.0, 2.0]])), 1",
        [[0.3, 2.0], [-1.0, 0.1]],
    ),
    "MixtureSameFamily": (
        "L.distributions.Categorical(t([0.3, 0.7])), L.distributions.Normal(t([0.5, -1.0]), t([1.0, 2.0]))",
        [0.3, 2.0],
    ),
    "TransformedDistribution": (
        "L.distributions.Normal(t([0.5, -1.0]), t([1.0, 2.0])), [L.distributions.SigmoidTransform(), "
        "L.distributions.AffineTransform(1.0, t([2.0, -3.0]))]",
        [[1.3, -0.5], [2.0, 0.1]],
    ),
}
# Draws that come from streams that both share.
SAME_STREAM = [
    "Normal",
    "Laplace",
    "Uniform",
    "LogNormal",
    "Gumbel",
    "HalfNormal",
    "Bernoulli",
    "Geometric",
    "Categorical",
    "OneHotCategorical",
    "Kumaraswamy",
    "MultivariateNormal",
    "LowRankMultivariateNormal",
    "Independent",
    "TransformedDistribution",
    "LogisticNormal",
    "StudentT",
    "Gamma",
    "InverseGamma",
    "Chi2",
    "Beta",
    "Dirichlet",
    "FisherSnedecor",
    "VonMises",
    "Poisson",
    "Binomial",
    "NegativeBinomial",
    "Multinomial",
    "Wishart",
    "LKJCholesky",
]
ATTRIBUTES = ["mean", "mode", "variance", "stddev", "batch_shape", "event_shape", "has_rsample", "support"]


def made(L: Any, name: str) -> Any:
    def t(values: Any) -> Any:
        return L.tensor(values, dtype=L.float64)

    return eval(f"L.distributions.{name.split()[0]}({FAMILIES[name][0]})", {"L": L, "t": t})


def values(L: Any, name: str) -> Any:
    given = FAMILIES[name][1]
    return L.tensor(given, dtype=L.int64 if name.startswith("Categorical") else L.float64)


def outcome(call: Any) -> Any:
    """What a call gives, or that it is not there."""
    try:
        found = call()
    except NotImplementedError:
        return "not there"
    if hasattr(found, "detach"):
        return np.asarray(found.detach().numpy())
    return str(found) if not isinstance(found, (tuple, bool)) else found


# torch computes Bessel functions by polynomials of single precision.
ROUGH = {"VonMises": 1e-6}


def same(a: Any, b: Any, what: str, tolerance: float = 1e-9) -> None:
    if isinstance(b, np.ndarray) and isinstance(a, np.ndarray):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=what)
    else:
        assert a == b, what


@pytest.mark.parametrize("name", FAMILIES)
def test_methods_give_what_torch_gives(name: str) -> None:
    ours, theirs = made(mica, name), made(torch, name)
    for attribute in ATTRIBUTES:
        a, b = (outcome(lambda d=d, attribute=attribute: getattr(d, attribute)) for d in (ours, theirs))
        if isinstance(b, np.ndarray) or attribute != "support":
            same(a, b, attribute, ROUGH.get(name, 1e-9))
    for method in ("log_prob", "cdf"):
        pair = [
            outcome(lambda d=d, L=L, method=method: getattr(d, method)(values(L, name)))
            for d, L in ((ours, mica), (theirs, torch))
        ]
        same(*pair, method, ROUGH.get(name, 1e-9))
    same(outcome(ours.entropy), outcome(theirs.entropy), "entropy")
    chances = [0.2, 0.7]
    same(
        outcome(lambda: ours.icdf(mica.tensor(chances, dtype=mica.float64))),
        outcome(lambda: theirs.icdf(torch.tensor(chances, dtype=torch.float64))),
        "icdf",
    )
    same(outcome(ours.enumerate_support), outcome(theirs.enumerate_support), "enumerate_support")
    grown = [d.expand((3, *d.batch_shape)) for d in (ours, theirs)]
    assert tuple(grown[0].batch_shape) == tuple(grown[1].batch_shape)
    pair = [outcome(lambda d=d, L=L: d.log_prob(values(L, name)[:1])) for d, L in zip(grown, (mica, torch))]
    same(*pair, "expand", ROUGH.get(name, 1e-9))


@pytest.mark.filterwarnings("ignore:Singular sample")
@pytest.mark.parametrize("name", SAME_STREAM)
def test_seeded_draws_are_torchs(name: str) -> None:
    draws = []
    for L in (mica, torch):
        L.manual_seed(7)
        draws.append(made(L, name).sample((5,)).numpy())
    np.testing.assert_allclose(*draws, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", [n for n in FAMILIES if n not in SAME_STREAM and n != "Cauchy"])
def test_draws_have_the_moments(name: str) -> None:
    mica.manual_seed(3)
    ours = made(mica, name)
    drawn = ours.sample((20000,)).double()
    assert tuple(drawn.shape) == (20000, *ours.batch_shape, *ours.event_shape)
    theirs = made(torch, name)
    torch.manual_seed(3)
    other = theirs.sample((20000,)).double().numpy()
    spread = np.sqrt(other.var(0) / 20000) * 6 + 1e-9
    quantiles = [0.1, 0.25, 0.5, 0.75, 0.9]
    if name not in ("HalfCauchy", "InverseGamma", "FisherSnedecor", "Pareto", "VonMises", "StudentT"):
        assert (np.abs(drawn.numpy().mean(0) - other.mean(0)) < 2 * spread).all()
    if len(np.unique(other)) > 100:
        a, b = np.quantile(drawn.numpy(), quantiles, axis=0), np.quantile(other, quantiles, axis=0)
        np.testing.assert_allclose(a, b, rtol=0.12, atol=0.06)


@pytest.mark.parametrize("name", FAMILIES)
def test_divergences(name: str) -> None:
    found = []
    for L in (mica, torch):
        p, q = made(L, name), made(L, name)
        if name.split()[0] in ("Normal", "Laplace", "Cauchy"):
            q = type(q)(q.loc + 0.5, q.scale * 2)
        found.append(outcome(lambda L=L, p=p, q=q: L.distributions.kl_divergence(p, q)))
    if isinstance(found[0], str) and isinstance(found[1], np.ndarray):
        pytest.fail(f"torch has the divergence of {name}")
    if isinstance(found[1], np.ndarray):
        same(*found, "kl", 1e-8)


ACROSS = [
    "Normal", "Laplace", "Gumbel", "Uniform", "Exponential", "Gamma", "Chi2", "Beta", "Pareto", "ContinuousBernoulli",
    "Bernoulli", "Poisson", "Binomial", "Geometric", "Cauchy", "HalfNormal", "LogNormal", "StudentT", "Weibull",
]  # fmt: skip


def test_divergences_across_families(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every pair that torch has a divergence for, with q's values inside p's range and outside of it."""
    count = 0
    # Where ends of ranges are equal torch says infinite; the divergence is finite.
    monkeypatch.setitem(FAMILIES, "Uniform", ("t([0.4, -1.0]), t([0.9, 2.0])", []))
    for first in ACROSS:
        for second in ACROSS:
            found = []
            for L in (mica, torch):
                p, q = made(L, first), made(L, second)
                found.append(outcome(lambda L=L, p=p, q=q: L.distributions.kl_divergence(p, q)))
            if isinstance(found[1], np.ndarray) and first != second:
                same(*found, f"{first}, {second}", 1e-7)
                count += bool(np.isfinite(found[1]).any())
    assert count > 30


def test_the_pair_nearer_to_the_first_type_is_taken() -> None:
    for L in (mica, torch):
        D = L.distributions
        A = type("A", (D.Normal,), {})
        B = type("B", (A,), {})
        D.register_kl(A, D.Normal)(lambda p, q: "first")
        D.register_kl(D.Normal, B)(lambda p, q: "second")
        assert D.kl_divergence(B(0.0, 1.0), A(0.0, 1.0)) == "first"
        with pytest.warns(RuntimeWarning):
            assert D.kl_divergence(A(0.0, 1.0), B(0.0, 1.0)) == "first"
        with pytest.raises(TypeError):
            D.register_kl(3, D.Normal)


def test_wrong_parameters_and_values_are_refused() -> None:
    for L in (mica, torch):
        with pytest.raises(ValueError, match="scale"):
            L.distributions.Normal(0.0, -1.0)
        with pytest.raises(ValueError, match="support"):
            L.distributions.Bernoulli(0.5).log_prob(L.tensor(0.3))
        with pytest.raises(ValueError, match="event_shape"):
            L.distributions.Dirichlet(L.ones(3)).log_prob(L.ones(2) / 2)


TRANSFORMS = [
    "ExpTransform()", "SigmoidTransform()", "TanhTransform()", "SoftplusTransform()", "AbsTransform()",
    "AffineTransform(1.0, -2.0)", "SoftmaxTransform()", "StickBreakingTransform()", "PowerTransform(t(2.0))",
    "CorrCholeskyTransform()", "ComposeTransform([D.ExpTransform(), D.AffineTransform(0.5, 2.0)])",
    "IndependentTransform(D.ExpTransform(), 1)", "ReshapeTransform((3,), (3, 1))",
    "CatTransform([D.ExpTransform(), D.TanhTransform()], 0, [1, 2])",
    "StackTransform([D.ExpTransform(), D.TanhTransform(), D.SigmoidTransform()], 0)",
    "CumulativeDistributionTransform(D.Normal(0.0, 1.0))",
]  # fmt: skip


@pytest.mark.parametrize("text", TRANSFORMS)
def test_transforms(text: str) -> None:
    found = []
    for L in (mica, torch):
        t = lambda v, L=L: L.tensor(v, dtype=L.float64)  # noqa: E731
        T = eval("D." + text, {"D": L.distributions, "t": t})
        x = t([0.3, 0.9, 0.4])
        y = T(x)
        jacobian = outcome(lambda T=T, x=x, y=y: T.log_abs_det_jacobian(x, y))
        found.append([y.numpy(), jacobian, outcome(lambda T=T, y=y: T.inv(y)), T.bijective])
    for a, b in zip(*found):
        same(a, b, text)


@pytest.mark.parametrize(
    "text", ["CatTransform([D.ExpTransform()], 0, [2])", "StackTransform([D.ExpTransform()] * 2)"]
)
def test_transforms_of_parts_refuse_other_sizes(text: str) -> None:
    for L in (mica, torch):
        T = eval("D." + text, {"D": L.distributions})
        for apply in (T, T.inv, lambda x, T=T: T.log_abs_det_jacobian(x, x)):
            with pytest.raises(AssertionError):
                apply(L.ones(3))


@pytest.mark.parametrize(
    "name",
    [
        "real",
        "positive",
        "unit_interval",
        "simplex",
        "lower_cholesky",
        "positive_definite",
        "corr_cholesky",
        "nonnegative",
    ],
)
def test_registered_transforms(name: str) -> None:
    found = []
    for L in (mica, torch):
        x = L.tensor([[0.3, 0.9], [0.4, -1.0]], dtype=L.float64)
        constraint = getattr(L.distributions.constraints, name)
        y = L.distributions.transform_to(constraint)(x[0, :1] if name == "corr_cholesky" else x)
        found.append((y.numpy(), constraint.check(y).numpy()))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-9)
    assert found[0][1].tolist() == found[1][1].tolist()
