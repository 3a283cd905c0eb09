"""Reductions over windows, on the simulated GPU as on the CPU: a work-item has up to four channels where they lie side by side."""

import pytest
from gpu_device import DEVICE

import mica
from mica import nn

pytestmark = pytest.mark.usefixtures("simt")
F = nn.functional

DTYPES = ["uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
FLOATS = DTYPES[3:]
CLOSE = {"float16": 1e-3, "bfloat16": 8e-3, "float32": 1e-6, "float64": 1e-14}
CHANNELS = [1, 2, 3, 4, 6, 8]  # one, two or four for a work-item
LAYOUTS = {
    "contiguous": lambda x: x,
    "channels_last": lambda x: x.contiguous(
        memory_format=mica.channels_last if x.ndim == 4 else mica.channels_last_3d
    ),
    "transposed": lambda x: x.transpose(-1, -2).contiguous().transpose(-1, -2),
    "every second": lambda x: mica.cat([x, x], -1)[..., ::2],
    "without a batch": lambda x: x[0],
}
# Kernel, stride, padding and dilation.
WINDOWS = [(2, 2, 0, 1), (3, 2, 1, 1), ((3, 2), (1, 3), (1, 0), (2, 1)), ((7, 9), 1, 0, 1), (2, 3, 1, 4)]


def image(shape, dtype):
    mica.manual_seed(0)
    return (mica.rand(*shape) * 50).to(getattr(mica, dtype))


def check_maxima(x, pool, what):
    for mine, want in zip(pool(x.to(DEVICE)), pool(x), strict=True):
        assert mine.dtype == want.dtype and mine.stride() == want.stride(), what
        assert mine.cpu().tolist() == want.tolist(), what
    assert mica.fallback_counts() == {}


def check_averages(x, pool, close, what):
    mine, want = pool(x.to(DEVICE)), pool(x)
    assert mine.dtype == want.dtype and mine.stride() == want.stride(), what
    difference = (mine.cpu().double() - want.double()).abs().max() / want.double().abs().max()
    assert difference.item() < close, what
    assert mica.fallback_counts() == {}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_maxima_of_planes(layout, dtype):
    for how in WINDOWS:
        for channels in CHANNELS:
            x = LAYOUTS[layout](image((2, channels, 7, 9), dtype))
            check_maxima(x, lambda a, how=how: F.max_pool2d(a, *how, return_indices=True), how)


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_maxima_of_volumes_and_of_equal_parts(layout, dtype):
    for channels in CHANNELS:
        x = LAYOUTS[layout](image((2, channels, 5, 7, 9), dtype))
        check_maxima(x, lambda a: F.max_pool3d(a, 3, 2, 1, return_indices=True), channels)
        x = LAYOUTS[layout](image((2, channels, 7, 9), dtype))
        check_maxima(x, lambda a: F.adaptive_max_pool2d(a, (3, 4), return_indices=True), channels)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_averages(layout, dtype):
    for channels in CHANNELS:
        x = LAYOUTS[layout](image((2, channels, 7, 9), dtype))
        for padded, divisor in ((True, None), (False, None), (True, 3)):
            how = (3, 2, 1, True, padded, divisor)
            check_averages(x, lambda a, how=how: F.avg_pool2d(a, *how), CLOSE[dtype], (channels, how))
        check_averages(x, lambda a: F.adaptive_avg_pool2d(a, (3, 4)), CLOSE[dtype], channels)


@pytest.mark.parametrize("channels", CHANNELS)
def test_what_is_no_number_is_the_largest(channels):
    x = LAYOUTS["channels_last"](image((1, channels, 6, 6), "bfloat16"))
    x[0, channels - 1, 2, 3] = mica.nan
    there, places = F.max_pool2d(x.to(DEVICE), 3, return_indices=True)
    assert there.isnan().sum().item() == 1 and there[0, channels - 1, 0, 1].isnan().item()
    assert places[0, channels - 1, 0, 1].item() == 2 * 6 + 3


def test_results_of_another_order_than_the_image():
    x = LAYOUTS["channels_last"](image((2, 4, 6, 6), "float32"))
    out, places = (
        mica.empty(2, 4, 3, 3, device=DEVICE),
        mica.empty(2, 4, 3, 3, device=DEVICE, dtype=mica.int64),
    )
    operator = mica.ops.mica.max_pool2d_with_indices.out
    operator(x.to(DEVICE), [2, 2], out0=out, out1=places)
    want, index = F.max_pool2d(x, 2, return_indices=True)
    assert out.is_contiguous() and out.tolist() == want.tolist() and places.tolist() == index.tolist()


def test_elements_that_begin_between_aligned_addresses():
    base = image((1 + 2 * 6 * 6 * 4,), "bfloat16")
    make = lambda t: t[1:].reshape(2, 6, 6, 4).permute(0, 3, 1, 2)  # noqa: E731
    mine, want = F.max_pool2d(make(base.to(DEVICE)), 3, 2), F.max_pool2d(make(base), 3, 2)
    assert mine.cpu().tolist() == want.tolist()
