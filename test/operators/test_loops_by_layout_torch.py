"""Loops that a layout or a dtype chooses, at odd sizes, against torch's."""

import numpy as np
import pytest
import torch

import mica

F, TF = mica.nn.functional, torch.nn.functional


def both(array):
    return mica.from_numpy(array.copy()), torch.from_numpy(array.copy())


def normal(*shape, dtype=np.float32):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def same(result, expected, **close):
    assert tuple(result.shape) == tuple(expected.shape)
    if close:
        np.testing.assert_allclose(result.detach().numpy(), expected.detach().numpy(), **close)
    else:
        np.testing.assert_array_equal(result.detach().numpy(), expected.detach().numpy())


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize(
    ("shape", "pad"),
    [
        ((2, 3, 5), (2, 1)), ((1, 2, 4, 7), (3, 0, 1, 2)), ((2, 1, 3, 4, 5), (1, 2, 0, 1, 2, 1)),
        ((2, 3, 5), (-1, 2)), ((1, 1, 1, 6), (5, 5, 0, 0)), ((1, 2, 6), (0, 0)), ((3, 4), (1, 3)),
    ],
)  # fmt: skip
def test_padding_by_mode(mode, shape, pad):
    if mode == "circular" and min(pad) < 0:
        pytest.skip("torch reads what it has not written")
    m, t = both(normal(*shape, dtype=np.float64))
    m.requires_grad_(True)
    t.requires_grad_(True)
    ours, theirs = F.pad(m, pad, mode), TF.pad(t, pad, mode)
    same(ours, theirs)
    weight = normal(*theirs.shape, dtype=np.float64)
    (ours * mica.from_numpy(weight)).sum().backward()
    (theirs * torch.from_numpy(weight)).sum().backward()
    same(m.grad, t.grad, rtol=1e-13)


def test_padding_of_views_and_second_gradients():
    m, t = both(normal(1, 5, 6, 4))
    for mode in ("reflect", "replicate", "circular"):
        view = (
            F.pad(m.permute(0, 3, 1, 2), (2, 1, 1, 2), mode),
            TF.pad(t.permute(0, 3, 1, 2), (2, 1, 1, 2), mode),
        )
        same(*view)
        x = mica.rand(1, 2, 4, dtype=mica.float64, requires_grad=True)
        assert mica.autograd.gradgradcheck(lambda a, mode=mode: F.pad(a, (2, 1), mode) ** 2, (x,))
        batch = mica.vmap(lambda a, mode=mode: F.pad(a, (1, 2), mode))(mica.ones(3, 1, 2, 4))
        assert tuple(batch.shape) == (3, 1, 2, 7)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 3, 4, 5), (1, 3, 2, 2, 2), (2, 3, 0)])
def test_losses_of_images(reduction, shape):
    scores = normal(*shape, dtype=np.float64)
    target = np.random.default_rng(1).integers(0, 3, (shape[0], *shape[2:]))
    target.reshape(-1)[::4] = 1
    for arguments in ({}, {"ignore_index": 1}, {"label_smoothing": 0.1}):
        m, t = both(scores)
        m.requires_grad_(True)
        t.requires_grad_(True)
        for weight in (None, normal(3, dtype=np.float64) ** 2):
            weights = [None, None] if weight is None else list(both(weight))
            ours = F.cross_entropy(m, mica.from_numpy(target), weights[0], reduction=reduction, **arguments)
            theirs = TF.cross_entropy(
                t, torch.from_numpy(target), weights[1], reduction=reduction, **arguments
            )
            same(ours, theirs, rtol=1e-12, atol=1e-14)
            ours.sum().backward()
            theirs.sum().backward()
            same(m.grad, t.grad, rtol=1e-12, atol=1e-14)


def test_losses_of_images_in_a_batch():
    scores, target = mica.randn(3, 2, 4, 5), mica.randint(0, 4, (3, 2, 5))
    for reduction in ("none", "mean"):
        one = [F.nll_loss(s, c, reduction=reduction) for s, c in zip(scores, target, strict=True)]
        many = mica.vmap(lambda s, c, r=reduction: F.nll_loss(s, c, reduction=r))(scores, target)
        assert mica.allclose(many, mica.stack(one))
        gradient = mica.func.grad(lambda s, c: F.nll_loss(s, c))
        assert mica.allclose(
            mica.vmap(gradient)(scores, target),
            mica.stack([gradient(s, c) for s, c in zip(scores, target, strict=True)]),
        )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("to", ["uint8", "int8", "int16", "int32", "int64"])
def test_casts_to_integers(dtype, to):
    """Numbers that an int32 does not hold become its smallest, of which narrow integers are the low bits."""
    x = np.concatenate(
        [normal(2500, dtype=dtype) * 100, np.array([3e9 + 512, -3e9, 1e10, 2.0**40, np.nan, np.inf], dtype)]
    )
    for numbers in (x, x[2500:], x[2502]):
        m, t = both(np.asarray(numbers))
        assert np.array_equal(m.to(getattr(mica, to)).numpy(), t.to(getattr(torch, to)).numpy())


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize("n", [1, 3, 8, 513, 70001])
def test_arithmetic_of_complex_numbers(dtype, n):
    a, b = (
        normal(n, 2, dtype=np.float64)[:, 0] + 1j * normal(n + 1, 2, dtype=np.float64)[:n, 1]
        for _ in range(2)
    )
    a, b = a.astype(dtype), (b * 2 + 1j).astype(dtype)
    (m, t), (w, v) = both(a), both(b)
    single = {"rtol": 2e-6 if dtype == np.complex64 else 1e-14}
    for f in (lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, lambda x, y: x / y):
        same(f(m, w), f(t, v), **single)
        same(f(m, w[0]), f(t, v[0]), **single)
        same(f(m[::2], w[::2]), f(t[::2], v[::2]), **single)
    same(-m, -t)
    same(m * 2, t * 2)
    same(m.square(), t.square(), **single)
    same(mica.conj_physical(m), torch.conj_physical(t))
    same(m.mul_(w), t.mul_(v), **single)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nextafter(dtype):
    numbers = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        np.inf,
        -np.inf,
        np.nan,
        np.finfo(dtype).max,
        np.finfo(dtype).tiny,
        5e-324,
    ]
    a, b = (g.reshape(-1).astype(dtype) for g in np.meshgrid(numbers, numbers))
    (m, t), (w, v) = both(a), both(b)
    ours, theirs = mica.nextafter(m, w).numpy(), torch.nextafter(t, v).numpy()
    np.testing.assert_array_equal(ours, theirs)
    assert np.array_equal(np.signbit(ours)[~np.isnan(ours)], np.signbit(theirs)[~np.isnan(ours)])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_nextafter_of_every_half_number(dtype):
    """One step of the dtype itself, which a step of float32 rounded to it is not."""
    bits = np.arange(-(2**15), 2**15, dtype=np.int16)
    numbers = {lib: lib.from_numpy(bits).view(getattr(lib, dtype)) for lib in (mica, torch)}
    for towards in (0.0, -0.0, 1.0, -1e-7, np.inf, -np.inf, np.nan):
        found, expected = (lib.nextafter(x, lib.full_like(x, towards)) for lib, x in numbers.items())
        assert found.dtype == getattr(mica, dtype)
        number = ~expected.isnan().numpy()
        assert np.array_equal(found.isnan().numpy(), ~number)
        assert np.array_equal(
            found.view(mica.int16).numpy()[number], expected.view(torch.int16).numpy()[number]
        )
    x = mica.tensor([1.0, 2.0], dtype=getattr(mica, dtype), requires_grad=True)
    mica.nextafter(x, mica.tensor([2.0, 2.0], dtype=x.dtype)).sum().backward()
    assert x.grad.tolist() == [1, 0]


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("shape", [(3, 1), (2, 5), (3, 33), (2, 700)])
def test_flips(dtype, shape):
    m, t = both((normal(*shape) * 9).astype(dtype))
    for dims in ([0], [1], [0, 1]):
        same(m.flip(dims), t.flip(dims))
        same(m.t().flip(dims), t.t().flip(dims))
    same(m.roll((1, -2), (0, 1)), t.roll((1, -2), (0, 1)))
    same(m.roll(3), t.roll(3))


@pytest.mark.parametrize("dtype", [np.bool_, np.int64, np.float16, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 40), (3, 17), (50, 1100)])
def test_running_extremes_of_columns(dtype, shape):
    x = (normal(*shape) * 3).astype(dtype)
    if np.issubdtype(dtype, np.floating):
        x[-1, ::5] = np.nan
        x = np.round(x)
    m, t = both(x)
    for name in ("cummax", "cummin"):
        for ours, theirs in zip(getattr(m, name)(0), getattr(t, name)(0), strict=True):
            same(ours, theirs)


def test_isin_of_many_floats():
    x, tests = normal(37, 5).round(1), normal(100).round(1)
    x[0, 0] = tests[3] = np.nan
    tests[5], x[1, 1] = 0.0, -0.0
    (m, t), (w, v) = both(x), both(tests)
    same(mica.isin(m, w), torch.isin(t, v))
    same(mica.isin(m, w, invert=True), torch.isin(t, v, invert=True))


def test_one_hot():
    classes = np.random.default_rng(0).integers(0, 7, (3, 50))
    m, t = both(classes)
    for count in (-1, 7, 12):
        same(F.one_hot(m, count), TF.one_hot(t, count))
        same(F.one_hot(m.t(), count), TF.one_hot(t.t(), count))
    for wrong, count in ((m - 1, 7), (m, 3)):
        with pytest.raises(RuntimeError):
            F.one_hot(wrong, count)


def test_block_diag():
    blocks = [normal(2, 3), normal(4), normal(0, 2), normal(3, 1), np.float32(2.0)]
    ours = [mica.tensor(b) if b.ndim == 0 else mica.from_numpy(b) for b in map(np.asarray, blocks)]
    theirs = [torch.tensor(b) for b in map(np.asarray, blocks)]
    same(mica.block_diag(*ours), torch.block_diag(*theirs))
    same(mica.block_diag(ours[0].t(), ours[1]), torch.block_diag(theirs[0].t(), theirs[1]))
    same(mica.block_diag(ours[0], ours[0].double()), torch.block_diag(theirs[0], theirs[0].double()))
