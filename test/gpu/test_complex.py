"""Pointwise operators on complex numbers, on the simulated GPU as on the CPU."""

import itertools

import pytest
from gpu_device import DEVICE

import mica

pytestmark = pytest.mark.usefixtures("simt")

DTYPES = ["complex64", "complex128"]
CLOSE = {"complex64": 1e-6, "complex128": 4e-15}

UNARY = {
    "neg": lambda z: -z,
    "square": lambda z: z.square(),
    "reciprocal": lambda z: z.reciprocal(),
    "abs": lambda z: z.abs(),
    "angle": lambda z: z.angle(),
    "sgn": lambda z: z.sgn(),
    "exp": lambda z: z.exp(),
    "log": lambda z: z.log(),
    "conj": lambda z: z.conj_physical(),
    "a lazy conj": lambda z: z.conj() + 1,
    "real and imag": lambda z: z.real + 2 * z.imag,
    "times a number": lambda z: z * (2 - 1j) + 3,
    "to wide": lambda z: z.to(mica.complex128),
    "to narrow": lambda z: z.to(mica.complex64),
    "isnan": lambda z: z.isnan(),
    "isinf": lambda z: z.isinf(),
    "isfinite": lambda z: z.isfinite(),
    "logical_not": lambda z: z.logical_not(),
    "zeros": lambda z: mica.zeros_like(z) + 1j,
    "full": lambda z: mica.full_like(z, 2 - 3j),
    "ones": lambda z: mica.ones_like(z),
}
BINARY = {
    "add": lambda a, b: mica.add(a, b, alpha=2),
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "where": lambda a, b: mica.where(a.real > b.real, a, b),
    "addcmul": lambda a, b: mica.addcmul(a, b, b, value=2),
    "with real numbers": lambda a, b: a * b.real + b.imag,
}
LAYOUTS = {
    "contiguous": lambda z: z,
    "transposed": lambda z: z.t().contiguous().t(),
    "every other": lambda z: z.repeat_interleave(2, 1)[:, ::2],
    "expanded": lambda z: z[:1].expand(z.shape),
}


def numbers(dtype, seed=0):
    """Ordinary numbers, and signs and zeros of either part."""
    mica.manual_seed(seed)
    z = mica.complex(*(mica.randn(13, 9, dtype=mica.float64) for _ in range(2)))
    z[0, :5] = mica.tensor([0, -0.0 - 1j, 1 + 1e-9j, -2, 2j], dtype=z.dtype)
    return z.to(getattr(mica, dtype))


def check(got, want, dtype):
    assert got.device.type == DEVICE and got.dtype == want.dtype and got.shape == want.shape
    got = got.cpu()
    if not want.dtype.is_complex and not want.dtype.is_floating_point:
        assert (got == want).all()
        return
    parts = (mica.view_as_real(got), mica.view_as_real(want)) if want.dtype.is_complex else (got, want)
    a, b = (p.double() for p in parts)
    assert (a.isnan() == b.isnan()).all()
    assert (a.isinf() == b.isinf()).all()
    a, b = (p.nan_to_num(0, 0, 0) for p in (a, b))
    assert ((a - b).abs() <= CLOSE[dtype] * b.abs().clamp_min(1)).all()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", UNARY)
def test_unary(name, dtype, layout):
    z = LAYOUTS[layout](numbers(dtype))
    on_device = LAYOUTS[layout](numbers(dtype).to(DEVICE))
    mica.fallback_counts(reset=True)
    got = UNARY[name](on_device)
    assert mica.fallback_counts() == {}
    narrow = "complex64" if name == "to narrow" else dtype
    check(got, UNARY[name](z), narrow)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", BINARY)
def test_binary(name, dtype, layout):
    a, b = LAYOUTS[layout](numbers(dtype)), numbers(dtype, 1)
    on_device = LAYOUTS[layout](numbers(dtype).to(DEVICE)), b.to(DEVICE)
    mica.fallback_counts(reset=True)
    got = BINARY[name](*on_device)
    assert mica.fallback_counts() == {}
    check(got, BINARY[name](a, b), dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_complex_and_polar_of_real_numbers(dtype):
    wide = "complex64" if dtype == "float32" else "complex128"
    a, b = (mica.randn(5, 7, dtype=getattr(mica, dtype)) for _ in range(2))
    for f in (mica.complex, mica.polar, lambda x, y: mica.view_as_complex(mica.stack([x, y], -1)) * 2):
        got = f(a.to(DEVICE), b.to(DEVICE))
        assert mica.fallback_counts() == {}
        check(got, f(a, b), wide)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["mul", "div"])
def test_gradients(name, dtype):
    found = []
    for device in (DEVICE, "cpu"):
        a, b = (numbers(dtype, seed)[1:].to(device).detach().requires_grad_(True) for seed in (0, 1))
        y = BINARY[name](a, b)
        found.append(mica.autograd.grad(y, (a, b), (1 + 2j) * mica.ones_like(y)))
    for got, want in zip(*found, strict=True):
        check(got, want, dtype)


@pytest.mark.parametrize("name", ["mul", "div", "abs", "exp", "isinf", "isnan", "isfinite"])
def test_numbers_that_are_not_finite(name):
    special = [0.0, -0.0, 1.0, -2.0, float("inf"), -float("inf"), float("nan")]
    z = mica.tensor([complex(x, y) for x, y in itertools.product(special, special)])
    if name in BINARY:
        a, b = z.reshape(-1, 1).expand(49, 49).contiguous(), z.expand(49, 49).contiguous()
        check(BINARY[name](a.to(DEVICE), b.to(DEVICE)), BINARY[name](a, b), "complex64")
    else:
        check(UNARY[name](z.to(DEVICE)), UNARY[name](z), "complex64")


def test_what_the_device_does_not_compute_runs_on_the_cpu():
    z = numbers("complex64")
    check(z.to(DEVICE).tan(), z.tan(), "complex64")
    assert "mica::tan" in mica.fallback_counts()[DEVICE]


@pytest.mark.filterwarnings("ignore:Casting complex")
def test_dtypes_from_and_to_complex():
    for dtype in ("bool", "int64", "uint8", "float16", "bfloat16", "float32", "float64"):
        x = mica.tensor([0, 1, 2, 3]).to(getattr(mica, dtype))
        check(x.to(DEVICE).to(mica.complex64), x.to(mica.complex64), "complex64")
        z = mica.tensor([0, 1.5 + 2j, 3 - 1j, 2j])
        assert (z.to(DEVICE).to(x.dtype).cpu() == z.to(x.dtype)).all()
