"""Gradients of pooling, and col2im, on the simulated GPU as on the CPU."""

import pytest
from gpu_device import DEVICE

import mica
from mica import nn

pytestmark = pytest.mark.usefixtures("simt")
F = nn.functional

DTYPES = ["float16", "bfloat16", "float32", "float64"]
# Sums in another order, rounded once.
CLOSE = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 1e-6, "float64": 1e-14}
LAYOUTS = {
    "contiguous": lambda x: x,
    "channels_last": lambda x: x.contiguous(
        memory_format=mica.channels_last if x.ndim == 4 else mica.channels_last_3d
    ),
    "transposed": lambda x: x.transpose(-1, -2).contiguous().transpose(-1, -2),
    "without a batch": lambda x: x[0],
}


def worst(got, want):
    """The largest difference, of the largest number that is expected."""
    assert got.shape == want.shape and got.dtype == want.dtype and got.device.type == DEVICE
    got, want = got.cpu().double(), want.double()
    return ((got - want).abs().max() / want.abs().max().clamp_min(1e-30)).item()


def gradient(x, pool, device):
    leaf = x.detach().to(device).requires_grad_(True)
    y = pool(leaf)
    weights = (mica.arange(y.numel()).reshape(y.shape) % 7 - 3).to(y.dtype)
    if x.ndim == 4 and x.stride(1) == 1:
        weights = weights.contiguous(memory_format=mica.channels_last)
    y.backward(weights.to(device))
    return leaf.grad


def check(x, dtype, pool, what):
    got, want = gradient(x, pool, DEVICE), gradient(x, pool, "cpu")
    assert worst(got, want) < CLOSE[dtype], what
    assert got.stride() == want.stride(), what
    assert mica.fallback_counts() == {}


def image(shape, dtype):
    mica.manual_seed(0)
    return mica.randn(*shape).to(getattr(mica, dtype))


# Kernel, stride, padding and whether the last windows may reach beyond the image.
WINDOWS = [
    ((2, 2), (2, 2), (0, 0), False),
    ((3, 3), (2, 2), (1, 1), False),
    ((3, 2), (1, 3), (1, 0), False),
    ((3, 3), (2, 2), (0, 1), True),
    ((5, 4), (3, 2), (2, 2), True),
    ((2, 3), (4, 5), (0, 1), False),
    ((7, 9), (7, 9), (0, 0), False),
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_averages_of_planes(layout, dtype):
    for kernel, stride, padding, ceil in WINDOWS:
        for counts, divisor in ((True, None), (False, None), (True, 3)):
            for channels in (1, 3, 8):
                x = LAYOUTS[layout](image((2, channels, 7, 9), dtype))
                how = (kernel, stride, padding, ceil, counts, divisor)
                check(x, dtype, lambda a, how=how: F.avg_pool2d(a, *how), how)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_averages_of_volumes(layout, dtype):
    for kernel, stride, padding, ceil in (((2, 2, 2), 2, 0, False), ((3, 2, 3), (2, 1, 3), 1, True)):
        for counts in (True, False):
            x = LAYOUTS[layout](image((2, 4, 5, 6, 7), dtype))
            check(
                x, dtype, lambda a, how=(kernel, stride, padding, ceil, counts): F.avg_pool3d(a, *how), kernel
            )


@pytest.mark.parametrize("dtype", DTYPES)
def test_averages_of_rows(dtype):
    for length, kernel, stride, padding in ((10, 3, 2, 1), (7, 7, 1, 0), (5, 2, 3, 1)):
        x = image((2, 3, length), dtype)
        check(x, dtype, lambda a, how=(kernel, stride, padding): F.avg_pool1d(a, *how), kernel)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_adaptive_averages(layout, dtype):
    for size in ((3, 4), (7, 9), (1, 2), (10, 20), (5, 9)):
        x = LAYOUTS[layout](image((2, 4, 7, 9), dtype))
        check(x, dtype, lambda a, size=size: F.adaptive_avg_pool2d(a, size), size)
    x = LAYOUTS[layout](image((2, 3, 4, 5, 6), dtype))
    check(x, dtype, lambda a: F.adaptive_avg_pool3d(a, (3, 2, 7)), "3d")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_maxima_of_planes_and_volumes(layout, dtype):
    for kernel, stride, padding, dilation, ceil in (
        ((2, 2), (2, 2), 0, 1, False),
        ((3, 3), (2, 2), 1, 1, False),
        ((3, 2), (1, 3), (1, 0), (2, 3), False),
        ((3, 3), (2, 2), 1, 1, True),
        ((7, 9), (7, 9), 0, 1, False),
    ):
        for channels in (1, 3, 8):
            x = LAYOUTS[layout](image((2, channels, 7, 9), dtype))
            how = (kernel, stride, padding, dilation, ceil)
            check(x, dtype, lambda a, how=how: F.max_pool2d(a, *how), how)
    x = LAYOUTS[layout](image((2, 3, 5, 6, 7), dtype))
    check(x, dtype, lambda a: F.max_pool3d(a, (3, 2, 2), (2, 2, 1), (1, 0, 1)), "3d")
    check(x, dtype, lambda a: F.max_pool3d(a, 2, 2, 0, 2), "3d")


@pytest.mark.parametrize("planes", [1, 7, 8, 17])
def test_several_planes_an_item(planes):
    x = image((1, planes, 520, 513), "float32")
    check(x, "float32", lambda a: F.avg_pool2d(a, 3, 2, 1), planes)


# Kernel, dilation, padding and stride.
COLUMNS = [
    (2, 1, 0, 2),
    ((3, 2), 1, 1, 1),
    ((2, 3), (2, 3), (1, 2), (1, 2)),
    ((3, 3), 2, 2, 3),
    ((7, 9), 1, 0, 1),
]


@pytest.mark.parametrize("dtype", DTYPES)
def test_col2im(dtype):
    for how in COLUMNS:
        shape = F.unfold(mica.zeros(2, 3, 7, 9), *how).shape
        columns = image(shape, dtype)
        for layout in (
            lambda c: c,
            lambda c: c[0],
            lambda c: c.transpose(1, 2).contiguous().transpose(1, 2),
        ):
            c = layout(columns)
            got, want = F.fold(c.to(DEVICE), (7, 9), *how), F.fold(c, (7, 9), *how)
            assert worst(got, want) < CLOSE[dtype], how
        check(image((2, 3, 7, 9), dtype), dtype, lambda a, how=how: F.unfold(a, *how), how)
    assert mica.fallback_counts() == {}


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64"])
def test_col2im_of_integers(dtype):
    columns = (mica.arange(3 * 4 * 12).reshape(3, 4, 12) * 37).to(getattr(mica, dtype))
    got, want = F.fold(columns.to(DEVICE), (4, 5), 2), F.fold(columns, (4, 5), 2)
    assert (got.cpu() == want).all()
    assert mica.fallback_counts() == {}


def test_numbers_that_are_not_finite_stay_in_their_windows():
    x = image((1, 1, 6, 6), "float32")
    for pool in (lambda a: F.avg_pool2d(a, 3, 2, 1), lambda a: F.adaptive_avg_pool2d(a, (4, 4))):
        out = []
        for device in (DEVICE, "cpu"):
            leaf = x.detach().to(device).requires_grad_(True)
            y = pool(leaf)
            grad = mica.ones_like(y)
            grad[0, 0, 1, 1] = float("nan")
            y.backward(grad)
            out.append(leaf.grad.cpu())
        assert (out[0].isnan() == out[1].isnan()).all()


def second_gradient(f, x):
    first = mica.func.grad(lambda a: (f(a) ** 3).sum())
    return mica.func.grad(lambda a: (first(a) ** 2).sum())(x)


def gradients_of_several(f, x):
    return mica.vmap(mica.func.grad(lambda a: (f(a) ** 2).sum()))(mica.stack([x, 2 * x]))


def test_second_gradients_and_transforms():
    x = image((2, 2, 5, 6), "float64")
    pool = lambda a: F.avg_pool2d(a, 2, 1)  # noqa: E731
    fold = lambda a: F.fold(F.unfold(a, 2) ** 2, (5, 6), 2)  # noqa: E731
    for f in (pool, fold):
        for way in (second_gradient, gradients_of_several):
            assert worst(way(f, x.to(DEVICE)), way(f, x)) < 1e-13
