"""The same layer and the same transform in Python only: each under sixty lines, and the same answers."""

from pathlib import Path

import pytest
from my_layer import Bounds, FlopCounter, bounds
from my_layer.python_flops import PythonFlopCounter
from my_layer.python_interval import Interval

import mica

F64 = mica.float64


@pytest.mark.parametrize("name", ["python_flops", "python_interval"])
def test_each_is_under_sixty_lines(name):
    assert len((Path(__file__).parent / "my_layer" / f"{name}.py").read_text().splitlines()) < 60


def network():
    return mica.nn.Sequential(mica.nn.Linear(8, 16), mica.nn.ReLU(), mica.nn.Linear(16, 16), mica.nn.Tanh(),
                              mica.nn.Linear(16, 3)).double()  # fmt: skip


def training_step(net, x):
    loss = net(x).square().mean()
    loss.backward()
    return loss


def batched(net, x):
    return mica.func.vmap(lambda row: mica.func.grad(lambda r: net(r).square().sum())(row))(x)


@pytest.mark.parametrize("program", [training_step, batched])
def test_both_counters_agree(program):
    net, x = network(), mica.randn(5, 8, dtype=F64)
    with FlopCounter() as plugin:
        program(net, x)
    with PythonFlopCounter() as python:
        program(net, x)
    assert python.count("contraction") == plugin.count("contraction") > 0
    assert python.count("mica::mm") == plugin.count("mica::mm")


def test_convolutions_agree():
    image, weight = mica.randn(2, 3, 8, 8), mica.randn(5, 3, 3, 3)
    with FlopCounter() as plugin, PythonFlopCounter() as python:
        mica.nn.functional.conv2d(image, weight)
    assert python.count() == plugin.count() == 2 * (2 * 5 * 6 * 6) * (3 * 3 * 3)


FUNCTIONS = {
    "pointwise": lambda x: (x.exp() - 2 * x).tanh() * (0.5 - x) + x * x,
    "relu and sums": lambda x: x.relu().sum(0) + x.amax(0) - 1.5,
    "views": lambda x: x.t()[1:].reshape(-1) + x[0, 0],
    "product": lambda x: x @ x.t(),
}


@pytest.mark.parametrize("case", FUNCTIONS)
def test_intervals_enclose_and_are_those_of_the_plugin_or_wider(case):
    function = FUNCTIONS[case]
    center, radius = mica.randn(4, 4, dtype=F64), 0.1 * mica.rand(4, 4, dtype=F64)
    result = function(Interval(center - radius, center + radius))
    for _ in range(50):
        value = function(center + radius * (2 * mica.rand(4, 4, dtype=F64) - 1))
        assert ((result.lower - 1e-12 <= value) & (value <= result.upper + 1e-12)).all()
    if case == "product":  # by midpoint and radius here, by signs there: neither is always the tighter
        return
    plugin = bounds(function)(Bounds(center - radius, center + radius))
    assert (result.lower <= plugin.lower + 1e-12).all() and (plugin.upper <= result.upper + 1e-12).all()


def test_a_network_has_bounds():
    mica.manual_seed(0)
    net, center = network(), mica.randn(5, 8, dtype=F64)
    with mica.no_grad():
        result = net(Interval(center - 0.01, center + 0.01))
        for _ in range(50):
            value = net(center + 0.01 * (2 * mica.rand(5, 8, dtype=F64) - 1))
            assert ((result.lower - 1e-12 <= value) & (value <= result.upper + 1e-12)).all()


@pytest.mark.parametrize("function", [lambda x: x.softmax(0), lambda x: x.prod(), lambda x: x.sin(),
                                      lambda x: x.add_(1), lambda x: x.sort()])  # fmt: skip
def test_what_has_no_rule_says_so(function):
    with pytest.raises(NotImplementedError, match="has no rule for intervals"):
        function(Interval(mica.zeros(3), mica.ones(3)))
