"""grid_sample and its gradients on the simulated GPU, as on the CPU."""

import itertools

import pytest
from gpu_device import DEVICE

import mica
from mica import nn

pytestmark = pytest.mark.usefixtures("simt")
F = nn.functional

DTYPES = ["float16", "bfloat16", "float32", "float64"]
# Sums in another order; half types round each operation of the composition.
CLOSE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-6, "float64": 1e-14}
PADDINGS = ["zeros", "border", "reflection"]
# Modes of each number of dimensions, and the sizes of image and result.
MODES = {2: ["bilinear", "nearest", "bicubic"], 3: ["bilinear", "nearest"]}
SIZES = {
    2: [((5, 7), (6, 4)), ((1, 1), (3, 3)), ((4, 1), (1, 5)), ((9, 8), (13, 17))],
    3: [((3, 4, 5), (4, 3, 6)), ((1, 1, 1), (2, 1, 2))],
}
LAYOUTS = {
    "contiguous": lambda x: x,
    "channels_last": lambda x: x.contiguous(memory_format=mica.channels_last),
    "transposed": lambda x: x.transpose(-1, -2).contiguous().transpose(-1, -2),
    "a slice": lambda x: mica.cat([x, x[..., :1]], -1)[..., : x.shape[-1]],
    "expanded": lambda x: x[:1].expand(x.shape),
}


def image_and_grid(image, result, dtype, channels=3):
    mica.manual_seed(0)
    x = mica.randn(2, channels, *image).to(getattr(mica, dtype))
    # Points on the image, around its border and far outside.
    grid = (mica.rand(2, *result, len(result)) * 3 - 1.5).to(x.dtype)
    return x, grid


def worst(got, want):
    """The largest difference, of the largest number that is expected."""
    assert got.shape == want.shape and got.dtype == want.dtype and got.device.type == DEVICE
    got, want = got.cpu().double(), want.double()
    return ((got - want).abs().max() / want.abs().max().clamp_min(1e-30)).item()


def result_and_gradients(x, grid, device, **how):
    x, grid = (t.detach().to(device).requires_grad_(True) for t in (x, grid))
    y = F.grid_sample(x, grid, **how)
    y.backward((mica.arange(y.numel()).reshape(y.shape) % 7 - 3).to(y.dtype).to(device))
    return y.detach(), x.grad, grid.grad


def check(x, grid, dtype, **how):
    whole = F.grid_sample(x.to(DEVICE), grid.to(DEVICE), **how)
    got, want = (result_and_gradients(x, grid, device, **how) for device in (DEVICE, "cpu"))
    for a, b in zip((whole, *got), (want[0], *want), strict=True):
        assert (a is None and b is None) or worst(a, b) < CLOSE[dtype], how  # a span of 0 has no gradient
    assert mica.fallback_counts() == {}


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode,ndim", [(mode, n) for n, modes in MODES.items() for mode in modes])
def test_grid_sample_of_every_size(mode, ndim, dtype, padding, align):
    for image, result in SIZES[ndim]:
        x, grid = image_and_grid(image, result, dtype)
        check(x, grid, dtype, mode=mode, padding_mode=padding, align_corners=align)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_grid_sample_of_every_layout(mode, layout):
    for channels in (1, 2, 3, 4, 5, 9):
        x, grid = image_and_grid((5, 6), (4, 7), "float32", channels)
        check(LAYOUTS[layout](x), grid, "float32", mode=mode, align_corners=False)
        check(x, LAYOUTS[layout](grid), "float32", mode=mode, align_corners=False)


def test_points_at_edges_and_not_finite():
    inf, nan = float("inf"), float("nan")
    numbers = [-1.0, 1.0, 0.0, -0.75, 0.75, -1.25, 1.25, 1e30, inf, -inf, nan]
    grid = mica.tensor(list(itertools.product(numbers, numbers))).reshape(1, len(numbers), len(numbers), 2)
    x = image_and_grid((4, 4), (1, 1), "float32")[0][:1]
    for mode, padding, align in itertools.product(["bilinear", "nearest"], PADDINGS, [False, True]):
        how = {"mode": mode, "padding_mode": padding, "align_corners": align}
        got, want = F.grid_sample(x.to(DEVICE), grid.to(DEVICE), **how).cpu(), F.grid_sample(x, grid, **how)
        assert (got.isnan() == want.isnan()).all(), how
        assert (got - want).nan_to_num(0).abs().max() < 1e-5, how


def test_many_channels_are_shared_where_there_are_few_points():
    x, grid = image_and_grid((3, 3), (2, 2), "float32", channels=203)
    check(x, grid, "float32", align_corners=False)


def test_sums_that_depend_on_order_run_on_the_cpu_where_a_program_wants_the_same_in_every_run():
    x, grid = image_and_grid((5, 6), (9, 8), "float32")
    mica.use_deterministic_algorithms(True)
    try:
        got = result_and_gradients(x, grid, DEVICE, align_corners=False)
        assert mica.fallback_counts() == {DEVICE: {"mica::_weighted_scatter": 1}}
    finally:
        mica.use_deterministic_algorithms(False)
    for a, b in zip(got, result_and_gradients(x, grid, "cpu", align_corners=False), strict=True):
        assert worst(a, b) < CLOSE["float32"]


def taps(place):
    indices = mica.tensor([[[0, 3, -1], [place, 1, 2]]], device=DEVICE)
    return mica.ones(1, 2, 4, device=DEVICE), indices, mica.ones(1, 2, 3, device=DEVICE)


@pytest.mark.parametrize("place", [4, -2, 1 << 40])
def test_a_place_outside_is_an_index_error(place):
    x, indices, weights = taps(place)
    side = mica.ones(1, 2, 3, device=DEVICE)
    for call in (
        lambda: mica.ops.mica._weighted_gather(x, indices, weights),
        lambda: mica.ops.mica._weighted_scatter(side, indices, weights, 4),
        lambda: mica.ops.mica._weighted_gather_weights(side, x, indices),
    ):
        with pytest.raises(IndexError, match="An index is out of range for the places of a plane"):
            call()
            mica.synchronize(DEVICE)


def test_no_place_gives_nothing():
    x, indices, weights = taps(-1)
    x[0, :, 0] = float("nan")
    y = mica.ops.mica._weighted_gather(x, indices, weights)
    assert y[0, 0, 0].isnan().item() and y[0, 0].tolist()[1:] == [2.0, 1.0]
    nothing = mica.full_like(indices, -1)
    assert mica.ops.mica._weighted_gather(x, nothing, weights).tolist() == [[[0.0] * 3] * 2]
    assert mica.ops.mica._weighted_gather_weights(y, x, nothing).tolist() == [[[0.0] * 3] * 2]


def test_transforms():
    x, grid = image_and_grid((4, 5), (3, 3), "float64")
    f = lambda a, g: F.grid_sample(a, g, align_corners=False)  # noqa: E731
    ways = (
        lambda a, g: mica.func.jvp(f, (a, g), (mica.ones_like(a), mica.ones_like(g)))[1],
        lambda a, g: mica.vmap(f)(mica.stack([a, 2 * a]), mica.stack([g, g / 2])),
        lambda a, g: mica.func.grad(lambda b: (mica.func.grad(lambda c: (f(c, g) ** 3).sum())(b) ** 2).sum())(
            a
        ),
    )
    for way in ways:
        assert worst(way(x.to(DEVICE), grid.to(DEVICE)), way(x, grid)) < 1e-13
