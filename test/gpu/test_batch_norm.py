"""Batch normalisation and its gradient on the simulated GPU, against float64 on the CPU."""

import pytest
from gpu_device import DEVICE

import mica
from mica import nn

pytestmark = pytest.mark.usefixtures("simt")
F = nn.functional

DTYPES = ["float16", "bfloat16", "float32", "float64"]
# Of the largest number that is expected: sums in another order, rounded once.
CLOSE = {"float16": 6e-4, "bfloat16": 4e-3, "float32": 3e-6, "float64": 2e-14}
NAMES = ["result", "gradient", "gradient of weight", "gradient of bias", "running mean", "running variance"]


def channels_last(x):
    return x.contiguous(memory_format={4: mica.channels_last, 5: mica.channels_last_3d}[x.ndim])


def outcome(x, vectors, weights, training, device):
    """Result, gradients and running statistics. `vectors`: weight, bias and running statistics, or None."""
    x = x.detach().to(device).requires_grad_(True)
    weight, bias = (None if v is None else v.detach().to(device).requires_grad_(True) for v in vectors[:2])
    mean, var = (None if v is None else v.to(device).clone() for v in vectors[2:])
    y = F.batch_norm(x, mean, var, weight, bias, training, 0.3, 1e-3)
    y.backward(weights.to(device))
    gradients = [x.grad, *(None if v is None else v.grad for v in (weight, bias))]
    return [y, *gradients, mean, var]


def check(x, vectors, training, weights=None, close=None):
    """Against the same in float64; `close` is how near numbers come, of the largest one."""
    if weights is None:
        weights = mica.randn(*x.shape).to(x.dtype)
    name = str(x.dtype).rpartition(".")[2]
    got = outcome(x, vectors, weights, training, DEVICE)
    wide = [None if v is None else v.double() for v in vectors]
    want = outcome(x.double(), wide, weights.double(), training, "cpu")
    for what, mine, exact in zip(NAMES, got, want, strict=True):
        assert (mine is None) == (exact is None), what
        if mine is None:
            continue
        difference = (mine.detach().cpu().double() - exact).abs().max() / exact.abs().max()
        assert mine.shape == exact.shape and mine.device.type == DEVICE, what
        assert difference.item() < (close or CLOSE[name]), (what, tuple(x.shape), training)
    assert got[0].dtype == got[1].dtype == x.dtype
    if x.is_contiguous() or x.is_contiguous(
        memory_format=mica.channels_last if x.ndim == 4 else mica.channels_last_3d
    ):
        assert got[0].stride() == want[0].stride() and got[1].stride() == want[1].stride()
    assert mica.fallback_counts() == {}


def batch(shape, dtype):
    return (mica.randn(*shape) * 2 + 3).to(getattr(mica, dtype))


def per_channel(channels, dtype):
    """Weight, bias, running mean and running variance."""
    made = [mica.rand(channels) + 0.5, mica.randn(channels), mica.randn(channels), mica.rand(channels) + 0.5]
    return [v.to(getattr(mica, dtype)) for v in made]


# Around a chunk (2, 4 or 8 elements), the lanes of a channel (up to 256), and pieces of it (8 chunks a lane).
PLANES = [(7, 3, 1), (3, 2, 2), (1, 5, 4), (3, 5, 7, 7), (4, 6, 8, 8), (2, 1, 31, 33), (1, 2, 64, 66), (3, 2, 64, 128), (2, 1, 3, 50, 67)]  # fmt: skip
# Around a chunk, the columns of a group (32 chunks), its lanes, and pieces of the rows.
ROWS = [(7, 1, 1, 1), (2, 7, 3, 5), (2, 8, 6, 7), (1, 33, 8, 4), (2, 64, 28, 28), (1, 136, 9, 9), (1, 300, 5, 7), (2, 3, 41, 50), (2, 6, 2, 3, 5)]  # fmt: skip


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
def test_planes(dtype, training):
    mica.manual_seed(0)
    for shape in PLANES:
        check(batch(shape, dtype), per_channel(shape[1], dtype), training)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
def test_channels_side_by_side(dtype, training):
    mica.manual_seed(0)
    for shape in ROWS:
        check(channels_last(batch(shape, dtype)), per_channel(shape[1], dtype), training)
    for shape in ((7, 1), (9, 3), (40, 33), (1030, 8)):
        check(batch(shape, dtype), per_channel(shape[1], dtype), training)


def test_more_pieces_than_work_items_that_join_them():
    mica.manual_seed(0)
    check(batch((2176, 128), "float32"), per_channel(128, "float32"), True)
    check(batch((2176, 128), "bfloat16"), per_channel(128, "float32"), True)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("order", [lambda x: x, channels_last])
def test_parameters_of_float32_beside_half_types(order, dtype):
    mica.manual_seed(0)
    for training in (True, False):
        x, vectors = order(batch((3, 6, 5, 8), dtype)), per_channel(6, "float32")
        check(x, vectors, training)
        there = [v.to(DEVICE) for v in vectors]
        kept = mica.native_batch_norm(x.to(DEVICE), *there, training, 0.1, 1e-5)[1:]
        assert all(k.dtype == mica.float32 and k.shape == (6 * training,) for k in kept)


@pytest.mark.parametrize("order", [lambda x: x, channels_last])
def test_without_parameters_or_running_statistics(order):
    mica.manual_seed(0)
    x = order(batch((3, 6, 5, 8), "float32"))
    weight, bias, mean, var = per_channel(6, "float32")
    for vectors in (
        (None, None, mean, var),
        (weight, None, None, None),
        (None, bias, mean, None),
        (None,) * 4,
    ):
        check(x, vectors, True)
    check(x, (None, None, mean, var), False)


@pytest.mark.parametrize("order", [lambda x: x, channels_last])
def test_gradients_of_another_order(order):
    mica.manual_seed(0)
    x, vectors = order(batch((3, 6, 5, 8), "float32")), per_channel(6, "float32")
    plain = mica.randn(3, 6, 5, 8)
    turned = plain.transpose(1, 3).contiguous().transpose(1, 3)
    for weights in (plain, channels_last(plain), turned, mica.randn(3, 1, 1, 8).expand(3, 6, 5, 8)):
        check(x, vectors, True, weights)


def test_inputs_of_other_orders_are_decomposed():
    mica.manual_seed(0)
    for x in (batch((5, 3, 8, 6), "float32").transpose(1, 3), batch((6, 6, 10), "float32")[:, :, ::2]):
        check(x, per_channel(6, "float32"), True)


@pytest.mark.parametrize("order", [lambda x: x, channels_last])
def test_numbers_far_from_zero_and_far_from_the_others(order):
    mica.manual_seed(0)
    far = mica.randn(2, 4, 48, 64) + 3000
    check(order(far), per_channel(4, "float32"), True, close=2e-4)  # what float32 holds of such numbers
    for place in (0, 100, -1):  # the first of a work-item, or another
        x = mica.randn(2, 4, 48, 64)
        x[0].reshape(4, -1)[:, place] = 3000
        check(order(x), per_channel(4, "float32"), True, close=2e-6)
    same = order(mica.full((2, 4, 5, 6), 0.1)).to(DEVICE)
    assert F.batch_norm(same, None, None, training=True, eps=1e-5).abs().max().item() < 1e-4


@pytest.mark.parametrize("order", [lambda x: x, channels_last])
def test_what_is_no_number_stays_in_its_channel(order):
    x = order(mica.arange(240.0).reshape(2, 4, 5, 6))
    x[1, 2, 3, 4] = mica.nan
    y = F.batch_norm(x.to(DEVICE), None, None, training=True).cpu()
    assert y.isnan().sum((0, 2, 3)).tolist() == [0, 0, 60, 0]


def test_elements_that_begin_between_aligned_addresses():
    mica.manual_seed(0)
    base = mica.randn(1 + 2 * 8 * 6 * 4)
    x, vectors = base[1:].reshape(2, 8, 6, 4), per_channel(8, "float32")
    there = base.to(DEVICE)[1:].reshape(2, 8, 6, 4)
    got = F.batch_norm(there, None, None, *(v.to(DEVICE) for v in vectors[:2]), True).cpu()
    assert (got - F.batch_norm(x, None, None, *vectors[:2], True)).abs().max().item() < 2e-6


@pytest.mark.parametrize("shape", [(0, 3, 4, 4), (2, 0, 3), (2, 3, 0)])
def test_no_elements(shape):
    x = mica.zeros(*shape)
    running = [mica.zeros(shape[1]), mica.ones(shape[1])]
    y = F.batch_norm(x.to(DEVICE), *(v.to(DEVICE) for v in running), training=False)
    assert y.shape == shape and mica.fallback_counts() == {}


def test_one_element_of_a_channel_has_no_variance():
    x, running = mica.tensor([[1.0, 2.0]]), [mica.zeros(2), mica.ones(2)]
    for device in ("cpu", DEVICE):
        mean, var = (v.to(device).clone() for v in running)
        y, kept, rstd = mica.native_batch_norm(x.to(device), None, None, mean, var, True, 0.5, 0.25)
        assert y.tolist() == [[0.0, 0.0]] and kept.tolist() == [1.0, 2.0] and rstd.tolist() == [2.0, 2.0]
        assert mean.tolist() == [0.5, 1.0] and var.isnan().all().item()


def test_gradients_that_are_asked_for():
    mica.manual_seed(0)
    x, g, weight = mica.randn(2, 4, 3, 5), mica.randn(2, 4, 3, 5), mica.rand(4)
    _, mean, rstd = mica.native_batch_norm(x, weight, None, None, None, True, 0.1, 1e-5)
    for mask in ([True, False, False], [False, True, False], [False, False, True], [False, False, False]):
        arguments = [g, x, weight, None, None, mean, rstd]
        there = [None if t is None else t.to(DEVICE) for t in arguments]
        got = mica.native_batch_norm_backward(*there, True, 1e-5, mask)
        want = mica.native_batch_norm_backward(*arguments, True, 1e-5, mask)
        for wanted, a, b in zip(mask, got, want, strict=True):
            assert (a is not None) == wanted
            assert not wanted or (a.cpu() - b).abs().max().item() < 1e-5


def test_the_same_bits_in_every_run():
    mica.manual_seed(0)
    for x in (batch((3, 2, 64, 128), "float32"), channels_last(batch((2, 64, 28, 28), "bfloat16"))):
        vectors = per_channel(x.shape[1], "float32")
        weights = mica.randn(*x.shape).to(x.dtype)
        first, second = (outcome(x, vectors, weights, True, DEVICE) for _ in range(2))
        assert all(a.tolist() == b.tolist() for a, b in zip(first, second, strict=True))


def test_samples_alone():
    mica.manual_seed(0)
    x, weight, bias = mica.randn(3, 5, 6, 7), mica.rand(5), mica.randn(5)
    got = F.instance_norm(x.to(DEVICE), weight=weight.to(DEVICE), bias=bias.to(DEVICE)).cpu()
    assert (got - F.instance_norm(x, weight=weight, bias=bias)).abs().max().item() < 2e-6
    assert mica.fallback_counts() == {}
