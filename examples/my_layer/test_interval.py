"""Bounds enclose: random intervals, random points in them, every rule; nesting with vmap, grad,
jvp and itself; what has no rule."""

import math

import pytest
from my_layer import Bounds, bounds

import mica

F64 = mica.float64
SLACK = 1e-12  # the bounds are rounded to nearest, as the values are


def interval(*shape, low=-2.0, high=2.0):
    ends = low + (high - low) * mica.rand(2, *shape, dtype=F64)
    return Bounds(ends.amin(0), ends.amax(0))


def inside(box):
    """A point of a Bounds; corners are drawn as often as the rest."""
    at = (mica.rand(box.lower.shape, dtype=F64) * 1.5 - 0.25).clamp(0, 1)
    return box.lower + at * (box.upper - box.lower)


def encloses(function, *arguments, draws=50):
    result = bounds(function)(*arguments)
    slack = SLACK * (1 + result.lower.abs() + result.upper.abs())
    for _ in range(draws):
        value = function(*[inside(a) if isinstance(a, Bounds) else a for a in arguments])
        assert value.shape == result.lower.shape
        assert ((result.lower - slack <= value) & (value <= result.upper + slack)).all(), (result, value)
    return result


UNARY = [
    "neg", "abs", "sign", "square", "floor", "ceil", "trunc", "round", "exp", "exp2", "expm1", "sin", "cos",
    "atan", "sinh", "cosh", "tanh", "asinh", "erf", "erfc", "sigmoid", "relu", "positive", "frac",
]  # fmt: skip
POSITIVE = ["sqrt", "rsqrt", "log", "log2", "log10", "log1p", "reciprocal"]
ACTIVATIONS = [
    "silu", "gelu", "softplus", "leaky_relu", "elu", "selu", "hardtanh", "hardsigmoid", "relu6", "softsign",
    "mish", "logsigmoid", "hardswish", "celu", "tanhshrink", "softshrink", "hardshrink",
]  # fmt: skip
BINARY = ["add", "sub", "mul", "maximum", "minimum", "rsub", "logaddexp"]


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_variable(name):
    encloses(getattr(mica, name), interval(6, 5))


@pytest.mark.parametrize("name", POSITIVE)
def test_functions_on_their_domain(name):
    encloses(getattr(mica, name), interval(6, 5, low=0.1, high=3.0))


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations(name):
    encloses(getattr(mica.nn.functional, name), interval(6, 5, low=-4.0, high=4.0))


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_variables(name):
    function = getattr(mica, name)
    encloses(function, interval(4, 1, 3), interval(5, 1))
    encloses(function, interval(4, 3), mica.randn(3, dtype=F64))
    encloses(function, mica.randn(3, dtype=F64), interval(4, 3))


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 4, -1, -2, -3, 0.5, -1.5])
def test_powers(exponent):
    low = 0.2 if exponent != int(exponent) else -2.0
    encloses(lambda x: x**exponent, interval(6, 5, low=low))


def test_division_and_poles():
    encloses(mica.div, interval(6, 5), interval(6, 5, low=0.3, high=2.0))
    across = bounds(mica.div)(interval(3), Bounds(-mica.ones(3, dtype=F64), mica.ones(3, dtype=F64)))
    assert (across.lower == -math.inf).all() and (across.upper == math.inf).all()
    outside = bounds(mica.log)(Bounds(-mica.ones(1, dtype=F64), mica.ones(1, dtype=F64)))
    assert outside.lower.isnan().all()


def test_bounds_are_tight_where_they_can_be():
    box = Bounds(mica.tensor([-1.0, 0.5, 2.0]), mica.tensor([2.0, 1.0, 5.0]))
    square = bounds(lambda x: x * x)(box)
    assert square.lower.tolist() == [0.0, 0.25, 4.0] and square.upper.tolist() == [4.0, 1.0, 25.0]
    wave = bounds(mica.sin)(box)
    assert wave.lower[0].item() == pytest.approx(math.sin(-1.0)) and wave.upper[0].item() == 1.0
    assert wave.lower[2].item() == -1.0
    product = bounds(mica.mul)(box, Bounds(mica.full([3], -1.0), mica.full([3], 2.0)))
    assert product.lower.tolist() == [-2.0, -1.0, -5.0] and product.upper.tolist() == [4.0, 2.0, 10.0]


def test_conditions_are_surely_or_possibly_true():
    box = Bounds(mica.tensor([-1.0, 1.0, -3.0]), mica.tensor([1.0, 2.0, -2.0]))
    positive = bounds(lambda x: x > 0)(box)
    assert positive.lower.tolist() == [False, True, False]
    assert positive.upper.tolist() == [True, True, False]
    chosen = bounds(lambda x: mica.where(x > 0, x, 10 * x))(box)
    assert chosen.lower.tolist() == [-10.0, 1.0, -30.0] and chosen.upper.tolist() == [10.0, 2.0, -20.0]
    for name in ["lt", "le", "gt", "ge", "eq", "ne"]:
        condition = getattr(mica, name)
        encloses(lambda x, y, f=condition: mica.where(f(x, y), x, -y), interval(20), interval(20))


def test_contractions_split_signs():
    for a, b in [((3, 4), (4, 5)), ((2, 3, 4), (2, 4, 5)), ((3, 4), (4,)), ((4,), (4,))]:
        encloses(mica.matmul, interval(*a), interval(*b))
        encloses(mica.matmul, interval(*a), mica.randn(*b, dtype=F64))
        encloses(mica.matmul, mica.randn(*a, dtype=F64), interval(*b))
    for beta, alpha in [(1, 1), (-0.5, 2.0), (2.0, -1.5)]:
        encloses(lambda c, x, y, s=(beta, alpha): mica.addmm(c, x, y, beta=s[0], alpha=s[1]),
                 interval(5), interval(3, 4), interval(4, 5))  # fmt: skip
    weight = mica.randn(4, 5, dtype=F64)
    box = interval(3, 4)
    exact = bounds(mica.mm)(box, weight)
    up, down = weight.clamp(min=0), weight.clamp(max=0)
    mica.testing.assert_close(exact.lower, box.lower @ up + box.upper @ down)
    mica.testing.assert_close(exact.upper, box.upper @ up + box.lower @ down)


def test_views_sums_and_joins_take_each_bound():
    encloses(lambda x: x.t()[1:].reshape(-1), interval(3, 4))
    encloses(lambda x: x.sum(0) + x.mean() + x.amax(1, keepdim=True) - x.amin(), interval(4, 4))
    encloses(lambda x, y: mica.cat([x, y.expand(2, 3)]).flip(0).cumsum(0), interval(4, 3), interval(1, 3))
    encloses(lambda x: mica.stack(x.chunk(2, 1)).index_select(2, mica.tensor([1, 0])), interval(3, 4))
    encloses(lambda x: x.float().double().clone() + mica.zeros_like(x), interval(3, 4))


def test_a_network_and_its_certificate():
    mica.manual_seed(0)
    net = mica.nn.Sequential(
        mica.nn.Linear(8, 16), mica.nn.ReLU(), mica.nn.Linear(16, 16), mica.nn.Tanh(), mica.nn.Linear(16, 3)
    ).double()
    center = mica.randn(5, 8, dtype=F64)
    encloses(net, Bounds(center - 0.01, center + 0.01))


def test_vmap_outside_and_inside():
    w, box = mica.randn(4, dtype=F64), interval(6, 4)
    per_row = mica.func.vmap(
        lambda lower, upper: tuple(bounds(lambda x: (x * w).sin().sum())(Bounds(lower, upper)))
    )
    lower, upper = per_row(*box)
    whole = bounds(lambda x: (x * w).sin().sum(1))(box)
    mica.testing.assert_close(lower, whole.lower)
    mica.testing.assert_close(upper, whole.upper)
    inner = bounds(mica.func.vmap(lambda row: (row * w).sin().sum()))(box)
    mica.testing.assert_close(inner.lower, whole.lower)
    mica.testing.assert_close(inner.upper, whole.upper)
    encloses(mica.func.vmap(lambda row: mica.outer(row, w) @ row), box)


def test_grad_outside_is_the_gradient_of_a_bound():
    box, w = interval(4), mica.randn(4, dtype=F64)

    def width(w):
        result = bounds(lambda x: mica.tanh(x * w).sum())(box)
        return result.upper - result.lower

    gradient = mica.func.grad(width)(w)
    for i in range(4):
        step = mica.zeros(4, dtype=F64)
        step[i] = 1e-6
        difference = (width(w + step) - width(w - step)) / 2e-6
        assert gradient[i].item() == pytest.approx(difference.item(), abs=1e-5)
    leaf = w.clone().requires_grad_()
    width(leaf).backward()
    mica.testing.assert_close(leaf.grad, gradient)


def test_grad_and_jvp_inside_bound_the_derivative():
    def loss(x):
        return (x.sin() * x.exp()).sum()

    encloses(mica.func.grad(loss), interval(5))
    encloses(lambda x: mica.func.jvp(loss, (x,), (mica.ones(5, dtype=F64),))[1], interval(5))
    encloses(mica.func.vmap(mica.func.grad(loss)), interval(3, 5))


def test_intervals_of_intervals():
    outer, inner = interval(4), interval(4)
    encloses(lambda x: bounds(lambda y: x * y)(inner).upper, outer)


NO_RULE = {
    "sort": (lambda x: x.sort(), "mica::sort"),
    "softmax": (lambda x: x.softmax(0), "of class row has no rule"),
    "argmax": (lambda x: x.argmax(), "of class reduction has no rule"),
    "in place": (lambda x: x.add_(1), "use the functional form"),
    "into a point": (lambda x: mica.zeros(4, dtype=F64).add_(x), "use the functional form"),
    "lgamma": (lambda x: x.lgamma(), r"step \(LGAMMA\) has no rule"),
    "linalg": (lambda x: mica.linalg.inv(x.reshape(2, 2)), "has no rule for bounds"),
}


@pytest.mark.parametrize("case", NO_RULE)
def test_what_has_no_rule_says_so(case):
    function, sentence = NO_RULE[case]
    with pytest.raises(NotImplementedError, match=sentence):
        bounds(function)(interval(4))


def test_values_are_not_to_be_read():
    def branch(x):
        return x if x.sum() > 0 else -x

    with pytest.raises(RuntimeError, match="stands for more than one value inside of my_layer.interval"):
        bounds(branch)(interval(4))
    with pytest.raises(RuntimeError, match="stands for more than one value"):
        bounds(lambda x: x[0].item())(interval(4))
    assert bounds(lambda x: x * mica.ones(4, dtype=F64).sum().item())(interval(4)).lower.shape == (4,)


def test_bad_bounds():
    with pytest.raises(ValueError, match="above its upper bound"):
        bounds(mica.exp)(Bounds(mica.ones(2), mica.zeros(2)))
    with pytest.raises(ValueError, match=r"have the shapes \[2\] and \[3\]"):
        bounds(mica.exp)(Bounds(mica.ones(2), mica.ones(3)))
    with pytest.raises(TypeError, match="expected a floating dtype"):
        bounds(mica.exp)(Bounds(mica.tensor([1]), mica.tensor([2])))


def test_an_interval_that_escapes():
    kept = []
    bounds(lambda x: kept.append(x) or x)(interval(3))
    with pytest.raises(RuntimeError, match="after it escaped from that my_layer.interval. Return it from"):
        kept[0] + 1


def test_a_disabled_kind_is_gone_and_comes_back():
    box = interval(3)
    mica.disable_plugin("my_layer")
    try:
        with pytest.raises(RuntimeError, match="the plugin that brought it is disabled"):
            bounds(mica.exp)(box)
    finally:
        mica.enable_plugin("my_layer")
    encloses(mica.exp, box)


POINTWISE = [
    name for name in mica._C._operator_names()
    if (op := mica._C._find_operator(name)).op_class == "pointwise" and op.program and op.functional in (None, name)
    and not name.endswith("_step")  # optimizers' and recurrent steps: several results, numbers by keyword
]  # fmt: skip


def drawn(name, kind, low, high):
    """An argument of a schema's type; None where it is left to its default."""
    if name in ("mask", "condition"):
        return mica.rand(20) > 0.5
    if kind == "Tensor":
        return interval(20, low=low, high=high)
    if kind in ("Scalar", "float"):
        return low + (high - low) * mica.rand(1).item()
    return {"int": 2, "bool": True, "ScalarType": mica.float32}.get(kind)


def check_operator(op, low, high):
    """False: no call of it could be drawn."""
    arguments, _, _ = op._schema_info()
    given = [drawn(name, kind, low, high) for name, kind, keyword, _ in arguments if not keyword]
    points = [[inside(g) if isinstance(g, Bounds) else g for g in given] for _ in range(20)]
    try:
        values = [op(*p) for p in points]
    except (RuntimeError, TypeError, ValueError):
        return False
    result = bounds(op)(*given)
    if not result.lower.is_floating_point():
        return True
    known = ~(result.lower.isnan() | result.upper.isnan())
    slack = SLACK * (1 + result.lower.abs() + result.upper.abs())
    for value in values:
        within = (result.lower - slack <= value) & (value <= result.upper + slack)
        assert (within | value.isnan() | ~known).all(), (op, given, result, value)
    return True


def test_every_pointwise_operator_encloses_or_refuses():
    mica.manual_seed(0)
    counts = {"enclosed": 0, "refused": 0, "not drawn": 0}
    for op in map(mica._C._find_operator, POINTWISE):
        try:
            checked = [check_operator(op, *where) for where in [(0.1, 0.9), (1.1, 3.0), (-2.0, 2.0)]]
            counts["enclosed" if all(checked) else "not drawn"] += 1
        except NotImplementedError:
            counts["refused"] += 1
    assert counts["enclosed"] >= 100, counts
    assert counts["not drawn"] <= 5, counts
