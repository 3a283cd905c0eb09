"""Cross entropy in one pass, as wide devices compute it, on the simulated GPU."""

import itertools

import pytest
from gpu_device import DEVICE

import mica
from mica import nn

pytestmark = pytest.mark.usefixtures("simt")
F = nn.functional

DTYPES = ["float16", "bfloat16", "float32", "float64"]
# One rounding of the loss or gradient, and float32's errors in between.
CLOSE = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 3e-6, "float64": 1e-14}


def on(device, x):
    return None if x is None else x.to(device)


def worst(got, want, least=1e-30):
    """The largest difference, of the largest number that is expected."""
    assert got.shape == want.shape
    return ((got.cpu().double() - want).abs().max() / want.abs().max().clamp_min(least)).item()


def terms(x, target, weight, reduction):
    """The largest of what a gradient takes from a share, which both may cancel."""
    zeros = mica.zeros(x.shape, dtype=mica.float64, requires_grad=True)
    loss = F.nll_loss(zeros, target, weight, reduction=reduction, ignore_index=-7)
    [gradient] = mica.autograd.grad(loss.sum(), zeros)
    return gradient.abs().max().item()


def loss_and_gradient(x, target, weight, reduction, device):
    x = x.to(device).detach().requires_grad_(True)
    loss = F.cross_entropy(x, on(device, target), on(device, weight), reduction=reduction, ignore_index=-7)
    loss.backward(mica.linspace(0.5, 2, len(target), dtype=x.dtype, device=device) if loss.ndim else None)
    return loss.detach(), x.grad


# Rows and classes: around a chunk (4 or 8 classes), what a member has at once (16), and what a team takes at
# once (from 16 classes up to 16,384); so many rows that the team is smaller; a row for each group and many.
SHAPES = [
    *itertools.product([1, 5], [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33]),
    *itertools.product([3], [127, 128, 129, 511, 513, 1023, 1025, 4095, 4096, 4097, 8191, 8193]),
    *[(1, 16383), (2, 16385), (513, 2049), (1025, 10), (300, 67)],
]
REDUCTIONS = ["mean", "sum", "none"]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_cross_entropy_of_every_size(dtype, weighted):
    mica.manual_seed(0)
    for number, (rows, classes) in enumerate(SHAPES):
        reduction = REDUCTIONS[number % 3]
        x = (3 * mica.randn(rows, classes)).to(getattr(mica, dtype))
        weight = (mica.rand(classes) + 0.5).to(x.dtype) if weighted else None
        target = mica.randint(0, classes, (rows,))
        target[::3] = classes - 1
        if rows > 1:
            target[1] = -7
        got, got_gradient = loss_and_gradient(x, target, weight, reduction, DEVICE)
        weight = None if weight is None else weight.double()
        want, want_gradient = loss_and_gradient(x.double(), target, weight, reduction, "cpu")
        assert got.dtype == got_gradient.dtype == x.dtype
        assert worst(got, want) < CLOSE[dtype], (rows, classes, reduction)
        least = terms(x, target, weight, reduction)
        assert worst(got_gradient, want_gradient, least) < CLOSE[dtype], (rows, classes, reduction)
    assert mica.fallback_counts() == {}


def test_cross_entropy_keeps_two_numbers_of_a_row():
    x, target = mica.randn(4, 9, device=DEVICE), mica.tensor([0, 1, 2, 3], device=DEVICE)
    assert f"plugin {DEVICE}" in mica.explain("_cross_entropy_of_logits", x, target, None, 1, -100)
    loss, total, kept = mica.ops.mica._cross_entropy_of_logits(x, target, None, 1, -100)
    wide = x.cpu().double()
    assert total.item() == 4 and kept[0].tolist() == x.amax(1).tolist()
    assert worst(kept[1], wide.logsumexp(1) - wide.amax(1)) < 1e-6
    assert worst(loss, F.cross_entropy(x.cpu().double(), target.cpu())) < 1e-6


@pytest.mark.parametrize("dtype", DTYPES)
def test_cross_entropy_of_numbers_that_are_not_finite(dtype):
    inf, nan = float("inf"), float("nan")
    rows = [[0, 1, 2], [-inf, 1, 2], [-inf, 1, 2], [-inf, -inf, -inf], [inf, 1, 2], [1, inf, 2], [nan, 1, 2], [1, nan, 0]]  # fmt: skip
    x = mica.tensor(rows, dtype=getattr(mica, dtype))
    target = mica.tensor([2, 0, 1, 0, 0, 0, 1, 0])
    got = loss_and_gradient(x, target, None, "none", DEVICE)
    want = loss_and_gradient(x.double(), target, None, "none", "cpu")
    for a, b in zip(got, want, strict=True):
        a, b = a.cpu().double(), b.double()
        assert (a.isnan() == b.isnan()).all() and (a.isinf() == b.isinf()).all()
        assert worst(a.nan_to_num(0, 0, 0), b.nan_to_num(0, 0, 0)) < CLOSE[dtype]


def test_rows_that_are_ignored():
    x = mica.tensor([[1.0, 2.0], [float("nan"), 0.0]])
    target = mica.tensor([1, -7])
    loss, gradient = loss_and_gradient(x, target, None, "mean", DEVICE)
    assert abs(loss.item() - 0.31326169) < 1e-6 and gradient[1].tolist() == [0.0, 0.0]
    loss, gradient = loss_and_gradient(x, mica.tensor([-7, -7]), None, "mean", DEVICE)
    assert loss.isnan().item() and gradient.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    loss, _ = loss_and_gradient(x, mica.tensor([-7, -7]), None, "sum", DEVICE)
    assert loss.item() == 0


LAYOUTS = {
    "transposed": lambda x: x.t().contiguous().t(),
    "columns": lambda x: x.repeat_interleave(2, 1)[:, ::2],
    "a slice": lambda x: mica.cat([x, x[:, :3]], 1)[:, : x.shape[1]],
    "rows that begin one element later": lambda x: mica.cat([x[0, :1], x.flatten()])[1:].view(x.shape),
    "expanded": lambda x: x[:1].expand(x.shape),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_cross_entropy_of_every_layout(layout, dtype):
    mica.manual_seed(1)
    x = LAYOUTS[layout](mica.randn(6, 37).to(getattr(mica, dtype)).to(DEVICE)).detach().requires_grad_(True)
    wide = x.detach().cpu().double().requires_grad_(True)
    target = mica.randint(0, 37, (12,))[::2]
    loss, want = F.cross_entropy(x, target.to(DEVICE)), F.cross_entropy(wide, target)
    loss.backward(), want.backward()
    assert worst(loss.detach(), want.detach()) < CLOSE[dtype]
    assert worst(x.grad, wide.grad) < 2 * CLOSE[dtype]  # without gaps alone the sums are float32


def test_cross_entropy_in_one_kernel_only_where_it_is_one():
    x = mica.randn(6, 40).to(DEVICE)
    target = mica.arange(6).to(DEVICE)
    inputs = lambda loss: [node.name() for node, _ in loss.grad_fn.next_functions if node]  # noqa: E731
    fused = lambda *a: "LogSoftmaxBackward0" not in inputs(F.cross_entropy(*a))  # noqa: E731
    parts = {
        "whole": x,
        "a slice": x[:, :37],
        "rows apart": x[::2],
        "transposed": x.t()[:6],
        "columns": x[:, ::2],
    }
    found = {
        name: fused(part.detach().requires_grad_(True), target[: len(part)]) for name, part in parts.items()
    }
    assert found == {
        "whole": True,
        "a slice": True,
        "rows apart": True,
        "transposed": False,
        "columns": False,
    }
    x = x.detach().requires_grad_(True)
    assert not fused(x, target.to(mica.uint8))
    assert not fused(x, target, mica.ones(40, device=DEVICE, dtype=mica.float64))


def test_cross_entropy_without_classes_is_as_on_the_cpu():
    for shape in ((0, 0), (0, 3)):
        x, target = mica.zeros(*shape), mica.zeros(0, dtype=mica.int64)
        assert F.cross_entropy(x, target).isnan().item()
        assert F.cross_entropy(x.to(DEVICE), target.to(DEVICE)).cpu().isnan().item()


def test_cross_entropy_through_transforms():
    mica.manual_seed(2)
    x, target = mica.randn(4, 5, dtype=mica.float64), mica.tensor([0, 4, 2, 1])
    f = lambda a: F.cross_entropy(a, target.to(a.device))  # noqa: E731
    for way in (
        lambda a: mica.func.hessian(f)(a),
        lambda a: mica.func.jvp(f, (a,), (mica.ones_like(a).cumsum(1),))[1],
        lambda a: mica.vmap(mica.func.grad(f))(mica.stack([a, 2 * a])),
    ):
        assert worst(way(x.to(DEVICE)), way(x)) < 1e-13


def test_cross_entropy_under_autocast_is_float32():
    x, target = mica.randn(4, 5).to(mica.bfloat16).to(DEVICE), mica.tensor([0, 4, 2, 1], device=DEVICE)
    with mica.autocast(DEVICE, dtype=mica.bfloat16):
        loss = F.cross_entropy(x, target)
    assert loss.dtype == mica.float32
    assert worst(loss, F.cross_entropy(x.cpu().double(), target.cpu())) < CLOSE["float32"]


BAD = [
    ("a target of another length", lambda d: (mica.zeros(3, 4, device=d), mica.zeros(2, dtype=mica.int64, device=d))),
    ("a float target", lambda d: (mica.zeros(3, 4, device=d), mica.zeros(3, device=d))),
    ("a weight of another length", lambda d: (mica.zeros(3, 4, device=d), mica.zeros(3, dtype=mica.int64, device=d), mica.ones(3, device=d))),
    ("integers", lambda d: (mica.zeros(3, 4, dtype=mica.int64, device=d), mica.zeros(3, dtype=mica.int64, device=d))),
]  # fmt: skip


@pytest.mark.parametrize("what,arguments", BAD, ids=[name for name, _ in BAD])
def test_what_is_no_cross_entropy_is_refused_as_on_the_cpu(what, arguments):
    with pytest.raises(Exception) as want:
        F.cross_entropy(*arguments("cpu"))
    with pytest.raises(want.type) as got:
        F.cross_entropy(*arguments(DEVICE))
    assert str(got.value).splitlines()[0] == str(want.value).splitlines()[0]
