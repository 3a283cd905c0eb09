"""The OpenCL device against the CPU: operators from the conformance kit's data, streams, errors, a network.

`MICA_PLUGINS` names the plugin (CMakeLists.txt sets it). Kernels compile on first
use, so the first run takes longer than the next.
"""

import importlib.util
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

import mica
from mica.conformance.operator_checks import check_operator
from mica.conformance.operators import ENTRIES

DEVICE = "opencl"
DIGITS = pathlib.Path(__file__).resolve().parent.parent / "digits" / "train.py"

# By dtype, operators that must run on the device in every layout and form; for each way
# in which the plugin computes, some.
ON_DEVICE = {
    "float32": [
        "add.Tensor",
        "mul.Scalar",
        "div.Tensor",
        "pow.Tensor_Tensor",
        "floor_divide",
        "remainder.Tensor",
        "where.self",
        "maximum",
        "clamp_min",
        "isnan",
        "exp",
        "erfinv",
        "digamma",
        "logaddexp",
        "_gelu",
        "arange.start_step",
        "sum.dim_IntList",
        "mean",
        "prod.dim_int",
        "amax",
        "argmin",
        "max.dim",
        "any.dim",
        "var_mean.correction",
        "cumsum",
        "cummax",
        "_softmax",
        "_log_softmax",
        "_softmax_backward_data",
        "mm",
        "bmm",
        "addmm",
        "mv",
        "dot",
        "convolution",
        "max_pool2d_with_indices",
        "avg_pool2d",
        "_adaptive_avg_pool2d",
        "flip",
        "roll",
        "tril",
        "constant_pad_nd",
        "gather",
        "index_select",
        "embedding",
        "cat",
        "stack",
        "nll_loss_forward",
        "scatter_add",
        "embedding_dense_backward",
        "sort.stable",
        "topk",
        "nonzero",
    ],
    "float16": ["add.Tensor", "sigmoid", "sum.dim_IntList", "_softmax", "mm"],
    "bfloat16": ["mul.Tensor", "mean.dim"],
    "float64": ["add.Tensor", "erf", "sum.dim_IntList"],
    "int32": [
        "add.Tensor",
        "floor_divide",
        "pow.Tensor_Scalar",
        "gcd",
        "bitwise_left_shift.Tensor",
        "amin",
        "mm",
    ],
    "int64": ["remainder.Tensor", "lcm", "argmax", "cumprod"],
    "uint8": ["sub.Tensor", "bitwise_not", "prod", "eq.Tensor"],
    "bool": ["add.Tensor", "logical_xor", "all.dims", "sum.dim_IntList"],
}
# Their gradients run on the device, too.
GRADIENTS = ["conv2d", "max_pool2d", "cross_entropy_loss", "batch_norm", "layer_norm", "addmm", "gelu", "cat"]
CASES = [(name, dtype) for dtype, names in ON_DEVICE.items() for name in names]


@pytest.fixture(autouse=True)
def _policy():
    """No test hides a fallback, unless it says so."""
    old = mica.set_fallback("error")
    yield
    mica.set_fallback(old)


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_operator_is_the_cpus(name, dtype):
    rows = check_operator(ENTRIES[name], DEVICE, [dtype], ["value", "inplace", "out"])
    assert rows, name
    wrong = [f"{f.detail}\n{f.line}" for row in rows for f in row.failures]
    assert not wrong, "\n".join(wrong[:3])
    assert sum(row.passed for row in rows) > 0, rows[0].reason


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradient_is_the_cpus(name):
    rows = check_operator(ENTRIES[name], DEVICE, ["float32"], ["gradient"])
    wrong = [f"{f.detail}\n{f.line}" for row in rows for f in row.failures]
    assert not wrong, "\n".join(wrong[:3])
    assert sum(row.passed for row in rows) > 0, name


DTYPES = [
    *[mica.bool, mica.uint8, mica.int16, mica.int32, mica.int64, mica.float16, mica.bfloat16],
    *[mica.float32, mica.float64, mica.complex64, mica.complex128],
]


@pytest.mark.parametrize("source", DTYPES, ids=str)
def test_copies_convert_and_stride_as_the_cpus(source):
    x = mica.tensor([[0.0, 1.5, -2.25], [3.75, 100.0, -0.5]]).abs().to(source)
    for target in DTYPES:
        if source.is_complex != target.is_complex:  # on the CPU
            continue
        for view in (lambda t: t, lambda t: t.t(), lambda t: t[:, ::2], lambda t: t[0].expand(4, 3)):
            expected = view(x).to(target)
            given = view(x.to(DEVICE)).to(target)
            assert given.device.type == DEVICE
            assert given.cpu().tolist() == expected.tolist(), (source, target)
            out = mica.empty(expected.shape[::-1], dtype=target, device=DEVICE).t()
            out.copy_(view(x.to(DEVICE)))
            assert out.cpu().tolist() == expected.tolist(), (source, target)


@pytest.mark.parametrize("name", ["bool", *(f"{u}int{n}" for n in (8, 16, 32, 64) for u in ("", "u"))])
def test_extreme_values_convert_as_the_cpus(name):
    target = getattr(mica, name)
    values = [np.nan, np.inf, -np.inf, 1e30, -1e30, 2.0**64, 2.0**63, 1e19, 3e9, -3e9, 70000.0, 300.7, -1.5]
    for source in (mica.float16, mica.float32, mica.float64):
        x = mica.tensor(values, dtype=mica.float64).to(source)
        given, expected = x.to(DEVICE).to(target).cpu(), x.to(target)
        assert str(given.tolist()) == str(expected.tolist()), (source, target)


def test_large_tensors_of_any_length_are_the_cpus():
    for n in (1, 7, 8, 1000, 4099):
        x = mica.randn(n)
        y = x.to(DEVICE)
        assert np.allclose((y * 2 + y).cpu().numpy(), (x * 2 + x).numpy())
        assert np.allclose(y.sum().item(), x.double().sum().item(), atol=1e-3)
    x = mica.randn(1 << 20)
    assert np.allclose(x.to(DEVICE).sum().item(), x.double().sum().item(), atol=1e-2)
    wide = mica.randn(3, 1 << 17)
    assert np.allclose(wide.to(DEVICE).amax(1).cpu().numpy(), wide.amax(1).numpy())


@pytest.mark.parametrize("columns", [3, 16, 63, 64, 67, 129, 1000, 1024, 2051])
def test_broadcast_rows_of_any_length_are_the_cpus(columns):
    x, row, column = mica.randn(7, columns), mica.randn(columns), mica.randn(7, 1)
    deep = mica.randn(3, 2, columns).expand(2, 3, 2, columns).transpose(0, 2)
    mask = x > 0
    on = [t.to(DEVICE) for t in (x, row, column, deep, mask)]
    for function in (
        lambda x, row, column, deep, mask: x * row + column,
        lambda x, row, column, deep, mask: mica.where(mask, x, column),
        lambda x, row, column, deep, mask: deep * row,
        lambda x, row, column, deep, mask: x.t() + column.view(7),
        lambda x, row, column, deep, mask: x.to(mica.float64) - row,
    ):
        assert np.array_equal(function(*on).cpu().numpy(), function(x, row, column, deep, mask).numpy())


def test_integer_division_by_zero_raises():
    x = mica.tensor([4, 2], device=DEVICE)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        x // mica.tensor([2, 0], device=DEVICE)


def test_a_class_out_of_bounds_raises():
    scores = mica.zeros(2, 3, device=DEVICE)
    with pytest.raises(IndexError, match="element \\(1\\)"):
        mica.nn.functional.nll_loss(scores, mica.tensor([0, 3], device=DEVICE))


def test_streams_and_events_order_work():
    x = mica.ones(1 << 20, device=DEVICE)
    stream, event = mica.Stream(DEVICE), mica.Event()
    mica.synchronize(DEVICE)
    with mica.stream(stream):
        y = x
        for _ in range(20):
            y = y + 1
        event.record()
    event.wait()
    z = y * 2
    event.synchronize()
    assert event.query()
    assert z[-1].item() == 42
    stream.synchronize()
    assert any(stream.query() for _ in range(100))  # idle


def test_random_numbers_follow_the_seed():
    def draw():
        mica.manual_seed(3)
        return [mica.rand(1000, device=DEVICE), mica.randn(1001, device=DEVICE)]

    first, second = draw(), draw()
    for a, b in zip(first, second):
        assert a.cpu().tolist() == b.cpu().tolist()
    uniform = first[0].cpu().numpy()
    assert uniform.min() >= 0 and uniform.max() < 1 and abs(uniform.mean() - 0.5) < 0.05
    for dtype in (mica.float16, mica.bfloat16, mica.float32):
        narrow = mica.empty(100000, dtype=dtype, device=DEVICE).uniform_(1, 2).float().cpu().numpy()
        assert narrow.min() >= 1 and narrow.max() < 2
    normal = mica.randn(100000, device=DEVICE).cpu().numpy()
    assert abs(normal.mean()) < 0.02 and abs(normal.std() - 1) < 0.02
    ones = mica.empty(100000, device=DEVICE).bernoulli_(0.25).cpu().numpy()
    assert set(np.unique(ones)) == {0, 1} and abs(ones.mean() - 0.25) < 0.01
    dice = mica.randint(1, 7, (60000,), device=DEVICE).cpu().numpy()
    assert np.all(np.abs(np.bincount(dice, minlength=7)[1:] - 10000) < 500)


def test_what_is_missing_falls_back_and_is_counted():
    x = mica.tensor([[2.0, 0.0], [0.0, 4.0]], device=DEVICE)
    with pytest.raises(NotImplementedError, match="linalg_inv"):
        mica.linalg.inv(x)
    mica.set_fallback("allow")
    mica.fallback_counts(reset=True)
    inverse = mica.linalg.inv(x)
    assert inverse.device.type == DEVICE and inverse.tolist() == [[0.5, 0.0], [0.0, 0.25]]
    assert any("linalg_inv" in name for name in mica.fallback_counts()[DEVICE])


def test_too_much_memory_is_out_of_memory():
    with pytest.raises(mica.OutOfMemoryError, match="opencl"):
        mica.empty(1 << 45, dtype=mica.uint8, device=DEVICE)
    assert mica.ones(3, device=DEVICE).sum().item() == 3


def test_gradients_of_a_network_are_as_exact_as_the_cpus():
    """The digits network without dropout, of which each device draws its own, against float64."""
    spec = importlib.util.spec_from_file_location("digits", DIGITS)
    digits = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(digits)
    mica.manual_seed(0)
    images, labels, _, _ = digits.load("cpu")
    weights = digits.Net().state_dict()

    def gradients(device, dtype, batch):
        net = digits.Net()
        net.load_state_dict(weights)
        net.classify[1] = mica.nn.Identity()
        net = net.to(device, dtype)
        loss = mica.nn.functional.cross_entropy(
            net(images[batch].to(device, dtype)), labels[batch].to(device)
        )
        loss.backward()
        found = {name: p.grad.cpu().double() for name, p in net.named_parameters()}
        return {"loss": loss.detach().cpu().double(), **found}

    errors = {device: dict.fromkeys(["loss", *weights], 0.0) for device in ("cpu", DEVICE)}
    units = dict.fromkeys(["loss", *weights], 0.0)  # two units in the last place: what luck alone decides
    for batch in (slice(0, 64), slice(64, 128), slice(128, 192), slice(192, 256)):
        exact = gradients("cpu", mica.float64, batch)
        for name, value in exact.items():
            units[name] += 2 * mica.finfo(mica.float32).eps * value.norm().item()
        for device, total in errors.items():
            for name, value in gradients(device, mica.float32, batch).items():
                total[name] += (value - exact[name]).norm().item()
    for name, error in errors["cpu"].items():
        assert errors[DEVICE][name] <= max(4 * error, units[name]), (name, errors[DEVICE][name], error)


def test_digits_learn(tmp_path):
    command = [sys.executable, str(DIGITS), "--device", DEVICE, "--epochs", "3", "--out", str(tmp_path)]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    accuracy = float(re.findall(r"test accuracy ([\d.]+)", out)[-1])
    assert accuracy >= 0.85, out
