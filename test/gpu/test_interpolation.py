"""Interpolation and its gradients, which gather by a table a dimension, on the simulated GPU as on the CPU."""

import itertools

import pytest
from gpu_device import DEVICE

import mica
from mica import nn
from mica._devices import modules

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
    "a slice": lambda x: mica.cat([x, x[..., :1]], -1)[..., : x.shape[-1]],
    "expanded": lambda x: x[:1].expand(x.shape),
    "one element later": lambda x: mica.cat([x.flatten()[:1], x.flatten()])[1:].view(x.shape),
}

# Modes of each number of dimensions, and sizes before and behind: larger, smaller, both, 1, the same.
MODES = {
    1: ["nearest", "nearest-exact", "linear"],
    2: ["nearest", "nearest-exact", "bilinear", "bicubic", "bilinear aa", "bicubic aa", "lanczos aa"],
    3: ["nearest", "nearest-exact", "trilinear"],
}
SIZES = {
    1: [
        ((7,), (14,)),
        ((14,), (7,)),
        ((5,), (8,)),
        ((1,), (4,)),
        ((6,), (1,)),
        ((3,), (3,)),
        ((300,), (611,)),
    ],
    2: [
        ((5, 7), (10, 14)),
        ((10, 14), (5, 7)),
        ((4, 9), (11, 3)),
        ((1, 1), (3, 2)),
        ((6, 5), (1, 1)),
        ((4, 3), (4, 3)),
        ((23, 17), (4, 3)),
    ],
    3: [((3, 4, 5), (6, 8, 10)), ((6, 4, 5), (2, 7, 5)), ((1, 1, 1), (2, 3, 2)), ((4, 3, 2), (1, 1, 1))],
}


def values(shape, dtype):
    mica.manual_seed(0)
    return mica.randn(*shape).to(getattr(mica, dtype))


def worst(got, want):
    """The largest difference, of the largest number that is expected."""
    assert got.shape == want.shape and got.dtype == want.dtype and got.device.type == DEVICE
    got, want = got.cpu().double(), want.double()
    return ((got - want).abs().max() / want.abs().max().clamp_min(1e-30)).item()


def interpolate(x, size, mode, align=False, scale=None):
    if mode == "lanczos aa":
        return mica.ops.mica._upsample_lanczos2d_aa(x, size, align)
    corners = None if mode.startswith("nearest") else align
    where = {"scale_factor": scale} if scale else {"size": size}
    name, antialias = mode.removesuffix(" aa"), mode.endswith(" aa")
    return F.interpolate(x, mode=name, align_corners=corners, antialias=antialias, **where)


def result_and_gradient(x, device, *how, **named):
    leaf = x.detach().to(device).requires_grad_(True)
    y = interpolate(leaf, *how, **named)
    y.backward((mica.arange(y.numel(), device=device).reshape(y.shape) % 7 - 3).to(y.dtype))
    return y.detach(), leaf.grad


def check(x, dtype, *how, **named):
    """Where the gradient of the CPU has the same strides too."""
    got, want = (result_and_gradient(x, device, *how, **named) for device in (DEVICE, "cpu"))
    for a, b in zip(got, want, strict=True):
        assert worst(a, b) < CLOSE[dtype], how
        assert a.stride() == b.stride()
    assert mica.fallback_counts() == {}


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("mode,ndim", [(mode, n) for n, modes in MODES.items() for mode in modes])
def test_interpolation_of_every_size(mode, ndim, dtype, align):
    if align and mode.startswith("nearest"):
        pytest.skip("has no corners")
    for before, behind in SIZES[ndim]:
        check(values((2, 3, *before), dtype), dtype, behind, mode, align)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic", "bilinear aa"])
def test_interpolation_of_every_layout(mode, layout, dtype):
    # Channels around the 2, 4 and 8 that one access has.
    for channels in (1, 2, 3, 4, 8, 12):
        x = LAYOUTS[layout](values((2, channels, 5, 6), dtype))
        check(x, dtype, (7, 9), mode)


@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
@pytest.mark.parametrize("mode", ["nearest", "trilinear"])
def test_interpolation_of_volumes_of_every_layout(mode, layout):
    check(LAYOUTS[layout](values((2, 4, 3, 4, 5), "float32")), "float32", (5, 3, 8), mode)


@pytest.mark.parametrize("planes", [1, 2, 7, 8, 9, 17])
def test_interpolation_of_several_planes_an_item(planes):
    """So many elements that a work-item takes on 8 planes, and what is left of them."""
    x = values((1, planes, 150, 201), "float32")
    check(x, "float32", (302, 403), "bilinear")


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic", "bilinear aa"])
@pytest.mark.parametrize("scale", [2.0, (1.5, 0.7), (0.34, 2.6)])
def test_interpolation_by_scale_factors(scale, mode):
    check(values((1, 2, 9, 7), "float32"), "float32", None, mode, scale=scale)


@pytest.mark.parametrize("dtype", ["uint8", "float16"])
def test_nearest_elements_move_as_they_are(dtype):
    x = (mica.arange(60).reshape(1, 3, 4, 5) * 4).to(getattr(mica, dtype))
    if dtype == "float16":
        x[0, 0, 0, :3] = mica.tensor([float("nan"), float("inf"), -0.0]).half()
    for size in ((8, 11), (3, 2)):
        got, want = F.interpolate(x.to(DEVICE), size=size).cpu(), F.interpolate(x, size=size)
        bits = mica.uint8 if dtype == "uint8" else mica.int16
        assert (got.view(bits) == want.view(bits)).all()
    assert mica.fallback_counts() == {}


@pytest.mark.parametrize("mode", ["bilinear", "bicubic aa"])
def test_images_of_bytes_are_those_of_the_cpu(mode):
    x = (mica.arange(2 * 3 * 9 * 7).reshape(2, 3, 9, 7) * 37 % 256).to(mica.uint8)
    for size in ((14, 12), (4, 5)):
        assert (interpolate(x.to(DEVICE), size, mode).cpu() == interpolate(x, size, mode)).all()


@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_numbers_that_are_not_finite_reach_what_reads_them(mode):
    x = values((1, 1, 6, 6), "float32")
    x[0, 0, 2, 3], x[0, 0, 4, 1] = float("nan"), float("inf")
    for size in ((12, 12), (6, 9), (3, 4)):
        got, want = interpolate(x.to(DEVICE), size, mode).cpu(), interpolate(x, size, mode)
        assert (got.isfinite() == want.isfinite()).all() and (got.isnan() == want.isnan()).all()


def test_gradients_are_the_same_in_every_run():
    x = values((2, 3, 11, 13), "float32")
    first, second = (result_and_gradient(x, DEVICE, (30, 29), "bicubic")[1].cpu() for _ in range(2))
    assert (first == second).all()


def tables(device, *places):
    rows = [mica.tensor(p, dtype=mica.int64, device=device) for p in places]
    return rows, [(mica.arange(p.numel(), device=device).reshape(p.shape) % 5 - 1.5) for p in rows]


ANY_ORDER = [
    ("rows in no order", [[3, 0], [1, 1], [2, 3]], [[4], [0], [2], [0]]),
    ("no place at all", [[-1, -1, -1], [2, -1, 0]], [[-1], [1]]),
    ("gaps between places", [[-1, 3, -1, 0, 0], [0, -1, -1, -1, 2]], [[2, -1, 4]]),
]


@pytest.mark.parametrize("how,rows,columns", ANY_ORDER, ids=[name for name, _, _ in ANY_ORDER])
def test_resample_by_any_table(how, rows, columns):
    x = values((2, 2, 4, 5), "float64")
    wide = lambda d: [t.double() for t in tables(d, rows, columns)[1]]  # noqa: E731
    [want, got] = [
        mica.ops.mica._resample(x.to(d), tables(d, rows, columns)[0], wide(d)) for d in ("cpu", DEVICE)
    ]
    # Plain loops, since the CPU's kernel ends a row at its first -1.
    sums = mica.zeros(2, 2, len(rows), len(columns), dtype=mica.float64)
    [by_row, by_column] = wide("cpu")
    for (i, row), (j, column) in itertools.product(enumerate(rows), enumerate(columns)):
        for (s, p), (t, q) in itertools.product(enumerate(row), enumerate(column)):
            if p >= 0 and q >= 0:
                sums[:, :, i, j] += by_row[i, s] * by_column[j, t] * x[:, :, p, q]
    assert worst(got, sums) < 1e-14 and want.shape == got.shape
    grad = values(sums.shape, "float64")
    back = mica.ops.mica._resample_backward(
        grad.to(DEVICE), x.shape, tables(DEVICE, rows, columns)[0], wide(DEVICE)
    )
    # <grad, A x> = <A' grad, x> for all x says that the transpose is right.
    assert abs(((back.cpu() * x).sum() - (grad * sums).sum()).item()) < 1e-11
    assert mica.fallback_counts() == {}


@pytest.mark.parametrize("place", [4, -2, 1 << 40])
def test_a_place_outside_is_an_index_error(place):
    x, grad = mica.randn(1, 1, 4, device=DEVICE), mica.randn(1, 1, 2, device=DEVICE)
    [at], [by] = tables(DEVICE, [[0, 1], [place, 3]])
    for call in (
        lambda: mica.ops.mica._resample(x, [at], [by]),
        lambda: mica.ops.mica._resample_backward(grad, [1, 1, 4], [at], [by]),
        lambda: mica.ops.mica._resample(x, [at[:, :1].contiguous()], []),
    ):
        with pytest.raises(IndexError, match="An index of a table is out of range for its dimension"):
            call()
            mica.synchronize(DEVICE)


def test_second_gradients_and_transforms():
    x = values((2, 2, 4, 3), "float64")
    up = lambda a: F.interpolate(a, size=(7, 5), mode="bicubic")  # noqa: E731
    ways = (
        lambda a: mica.func.jvp(up, (a,), (mica.ones_like(a).cumsum(1),))[1],
        lambda a: mica.vmap(up)(mica.stack([a, 2 * a])),
        lambda a: mica.func.grad(lambda b: (mica.func.grad(lambda c: (up(c) ** 3).sum())(b) ** 2).sum())(a),
    )
    for way in ways:
        assert worst(way(x.to(DEVICE)), way(x)) < 1e-13


def test_what_is_no_interpolation_is_refused_as_on_the_cpu():
    for shape, size in (((1, 1, 4), (2, 2)), ((1, 0, 4, 4), (2, 2)), ((1, 1, 4, 4), (0, 2))):
        with pytest.raises(Exception) as want:
            F.interpolate(mica.zeros(*shape), size=size, mode="bilinear")
        with pytest.raises(want.type) as got:
            F.interpolate(mica.zeros(*shape, device=DEVICE), size=size, mode="bilinear")
        assert str(got.value).splitlines()[0] == str(want.value).splitlines()[0]


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic aa"])
def test_a_graph_records_interpolation(mode):
    """Its tables come from pinned memory, which each replay reads again."""
    gpu = modules.of(DEVICE)
    graph = gpu.CUDAGraph() if DEVICE == "cuda" else gpu.Graph()
    x = values((2, 3, 5, 6), "float32").to(DEVICE)
    result_and_gradient(x, DEVICE, (10, 9), mode)  # compiles
    with gpu.graph(graph):
        got = result_and_gradient(x, DEVICE, (10, 9), mode)
    for factor in (1, -2):
        x.copy_(values((2, 3, 5, 6), "float32") * factor)
        graph.replay()
        want = result_and_gradient(values((2, 3, 5, 6), "float32") * factor, "cpu", (10, 9), mode)
        for a, b in zip(got, want, strict=True):
            assert worst(a, b) < CLOSE["float32"]
