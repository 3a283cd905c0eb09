"""Mica's tensors in libraries that know nothing but the array API standard: SciPy and scikit-learn.

Each function is given a tensor, gives a tensor, and its values are those that it gives of
the same NumPy array.
"""

import os

os.environ["SCIPY_ARRAY_API"] = "1"  # read when scipy is imported

import numpy as np
import pytest

import mica
from mica import array_api as xp

cluster = pytest.importorskip("scipy.cluster")
signal = pytest.importorskip("scipy.signal")
special = pytest.importorskip("scipy.special")
stats = pytest.importorskip("scipy.stats")
sklearn = pytest.importorskip("sklearn")
metrics = pytest.importorskip("sklearn.metrics")
preprocessing = pytest.importorskip("sklearn.preprocessing")

SCIPY = {
    "logsumexp": lambda x: special.logsumexp(x, axis=0),
    "softmax": lambda x: special.softmax(x, axis=1),
    "log_softmax": lambda x: special.log_softmax(x),
    "zscore": lambda x: stats.zscore(x),
    "moment": lambda x: stats.moment(x, 3),
    "skew": lambda x: stats.skew(x, axis=None),
    "kurtosis": lambda x: stats.kurtosis(x),
    "gmean": lambda x: stats.gmean(x * x + 1),
    "entropy": lambda x: stats.entropy(x * x + 1),
    "pearsonr": lambda x: stats.pearsonr(x[:, 0], x[:, 1]).statistic,
    "detrend": lambda x: signal.detrend(x),
    "whiten": lambda x: cluster.vq.whiten(x),
}
SKLEARN = {
    "MinMaxScaler": lambda x: preprocessing.MinMaxScaler().fit_transform(x),
    "StandardScaler": lambda x: preprocessing.StandardScaler().fit_transform(x),
    "MaxAbsScaler": lambda x: preprocessing.MaxAbsScaler().fit_transform(x),
    "Normalizer": lambda x: preprocessing.Normalizer().fit_transform(x),
    "cosine_similarity": lambda x: metrics.pairwise.cosine_similarity(x),
    "euclidean_distances": lambda x: metrics.pairwise.euclidean_distances(x),
    "mean_squared_error": lambda x: metrics.mean_squared_error(x[:, 0], x[:, 1]),
    "r2_score": lambda x: metrics.r2_score(x[:, 0], x[:, 1]),
    "accuracy_score": lambda x: metrics.accuracy_score(x[:, 0] > 0, x[:, 1] > 0),
}


def data():
    return np.random.default_rng(0).standard_normal((20, 4))


@pytest.mark.parametrize("name", SCIPY)
def test_scipy_takes_and_gives_tensors(name):
    given = SCIPY[name](mica.from_numpy(data()))
    assert isinstance(given, mica.Tensor)
    assert np.allclose(given.numpy(), SCIPY[name](data()), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", SKLEARN)
def test_scikit_learn_takes_and_gives_tensors(name):
    expected = SKLEARN[name](data())
    with sklearn.config_context(array_api_dispatch=True):
        given = SKLEARN[name](mica.from_numpy(data()))
    assert isinstance(given, mica.Tensor if isinstance(expected, np.ndarray) else float)
    assert np.allclose(np.asarray(given), expected, rtol=1e-6, atol=1e-9)


def test_a_tensor_names_its_namespace():
    x = mica.tensor([1.0])
    assert x.__array_namespace__() is xp
    assert x.__array_namespace__(api_version="2022.12") is xp
    with pytest.raises(ValueError, match="2019.12"):
        x.__array_namespace__(api_version="2019.12")
    assert x.to_device("meta").device.type == "meta"
    assert set(xp.__all__) <= set(dir(xp))


def test_zero_dimensional_arrays_promote_in_the_namespace_alone():
    x, zero = mica.ones(2, dtype=mica.int32), mica.tensor(1, dtype=mica.int64)
    assert xp.add(x, zero).dtype == mica.int64
    assert (x + zero).dtype == mica.int32  # torch's


def test_infinite_quotients_are_the_standards_in_the_namespace_alone():
    x = mica.tensor([mica.inf, -1.0])
    y = mica.tensor([2.0, mica.inf])
    assert xp.floor_divide(x, y).tolist() == [mica.inf, 0.0]
    assert str((x // y).tolist()) == "[nan, -1.0]"  # torch's


def test_numbers_of_uint64_are_whole():
    x = ~mica.tensor([1], dtype=mica.uint64)
    assert int(x) == x.item() == x.tolist()[0] == x[0].__index__() == 2**64 - 2
    assert (mica.tensor([1], dtype=mica.uint16) + mica.tensor([-2], dtype=mica.int8)).dtype == mica.int32


def test_meshgrid_in_either_order_has_numpys_shapes():
    x, y = mica.arange(3), mica.arange(2)
    for indexing in ("ij", "xy"):
        for given, expected in zip(
            mica.meshgrid(x, y, indexing=indexing), np.meshgrid(range(3), range(2), indexing=indexing)
        ):
            assert given.tolist() == expected.tolist()


def test_a_zero_remainder_has_the_divisors_sign():
    rest = mica.tensor([-0.0, 0.0, -4.0, 4.0]) % mica.tensor([2.0, -2.0, 2.0, -2.0])
    assert mica.signbit(rest).tolist() == [False, True, False, True]
