"""Ctrl-C in long calls ends them with KeyboardInterrupt and leaves a working
process; threads run forward and backward side by side."""

from __future__ import annotations

import threading

import pytest
from process import printed

import mica

FORWARD = """
import mica, os, signal, threading, time
big = mica.ones(4_000_000)
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    while True:
        big = big.sin()
except KeyboardInterrupt:
    print("interrupted", (mica.ones(2) + 1).tolist())
"""

# One call each, which would take seconds: the last element is not reached.
KERNEL = """
import mica, os, signal, threading, time
x = mica.full((1 << 27,), 7, dtype=mica.{dtype})
threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    x.{call}
    time.sleep(2)
except KeyboardInterrupt:
    print("interrupted", x[-1].item(), (mica.ones(2) + 1).tolist())
"""

# Calls in a loop, each of them short or of several steps. CPython prints an exception that comes while it runs a
# finalizer, and goes on: who pressed Ctrl-C then has to press it again.
LOOP = """
import mica, os, signal, sys, threading, time
from mica import nn
from mica.utils.data import DataLoader
x, a = mica.rand(1 << 22), mica.rand(2048, 2048)
w = mica.rand(512, 512, requires_grad=True)
{setup}
def press(_):
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
sys.unraisablehook = press
press(None)
try:
    while True:
        {call}
except KeyboardInterrupt:
    y = mica.ones(2, requires_grad=True)
    (y * 2).sum().backward()
    again = next(iter(DataLoader(range(4), 2, num_workers=1))).tolist()
    print("interrupted", (a[:2, :2] @ a[:2, :2]).shape, x[:9].sort()[0].shape, y.grad.tolist(), again)
"""
LOOPS = {
    "pointwise": ("", "x.sin()"),
    "sum": ("", "x.sum()"),
    "reduction of rows": ("", "x.view(2048, -1).logsumexp(1)"),
    "sort": ("", "x.sort()"),
    "index": ("", "x[x > 0.5]"),
    "matmul": ("", "a @ a"),
    "convolution": ("net = nn.Conv2d(8, 32, 3)", "net(mica.rand(8, 8, 64, 64)).square().sum().backward()"),
    "backward": ("", "(w @ w @ w).tanh().sum().backward()"),
    "loader": ("data = mica.rand(1000, 8)", "for batch in DataLoader(data, 4, num_workers=2): pass"),
}

# One product, in steps: the last block of the result is not reached.
PRODUCT = """
import mica, os, signal, threading, time
a, b, c = mica.rand(5000, 5000), mica.rand(5000, 5000), mica.zeros(5000, 5000)
threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    mica.mm(a, b, out=c)
    time.sleep(2)
except KeyboardInterrupt:
    print("interrupted", c[-1, -1].item(), (a[:2, :2] @ b[:2, :2]).shape)
"""

BACKWARD = """
import mica, os, signal, threading, time
x = mica.ones(1, requires_grad=True)
y = x
for _ in range(200_000):
    y = y * 1.0
x.register_hook(lambda g: print("finished"))
def press():
    os.kill(os.getpid(), signal.SIGINT)
y.register_hook(lambda g: press())  # in the middle of the backward
try:
    y.backward()
    time.sleep(1)
except KeyboardInterrupt:
    print("interrupted", (mica.ones(2) + 1).tolist())
"""


# A shell's background job, and what it starts, ignores Ctrl-C.
LISTEN = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"


def run(program: str) -> str:
    return printed(LISTEN + program)


def test_forward() -> None:
    assert run(FORWARD) == "interrupted [2.0, 2.0]\n"


@pytest.mark.parametrize(
    ("dtype", "call"),
    [
        ("float32", "lgamma_()"),
        ("float16", "normal_()"),
        ("uint8", "bernoulli_(0.5)"),
        ("uint8", "random_(0, 5)"),
        ("float16", "uniform_()"),
    ],
)
def test_one_long_kernel(dtype: str, call: str) -> None:
    assert run(KERNEL.format(dtype=dtype, call=call)) == "interrupted 7{} [2.0, 2.0]\n".format(
        "" if dtype == "uint8" else ".0"
    )


@pytest.mark.parametrize("name", LOOPS)
def test_loop(name: str) -> None:
    setup, call = LOOPS[name]
    expected = "interrupted mica.Size([2, 2]) mica.Size([9]) [2.0, 2.0] [0, 1]\n"
    assert run(LOOP.format(setup=setup, call=call)) == expected


def test_one_product() -> None:
    assert run(PRODUCT) == "interrupted 0.0 mica.Size([2, 2])\n"


def test_backward() -> None:
    assert run(BACKWARD) == "interrupted [2.0, 2.0]\n"


# A timer of the process's own time goes off when a fifth of a call is done; the rest is then left undone.
ENDS = """
import mica, signal, time
import mica.nn.functional as F
from mica import nn
mica.manual_seed(0)
mica.set_num_threads(1)
{setup}
def timed():
    begin = time.process_time()
    try:
        {call}
    except TimeoutError:
        pass
    return time.process_time() - begin
whole = min(timed(), timed())
def handler(*_): raise TimeoutError
signal.signal(signal.SIGPROF, handler)
signal.setitimer(signal.ITIMER_PROF, whole / 5)
print("ended" if timed() < 0.8 * whole else f"not ended within ({{whole}}) seconds")
"""
N = "n = 1 << 22; x = mica.rand(n); places = mica.randint(0, n, (n,)); "
PLANE = "x = mica.rand(1, 1, 2000, 2000)"
IMAGES = "x = mica.rand({0}, 32, 64, 64, dtype=mica.{1}); w = mica.rand(64, 32, 3, 3, dtype=mica.{1});"
LONG = {
    "fft": ("x = mica.randn(1 << 23, dtype=mica.complex64)", "mica.fft.fft(x)"),
    "fft of a prime": ("x = mica.randn((1 << 22) + 15, dtype=mica.complex64)", "mica.fft.fft(x)"),
    "rfft": ("x = mica.randn(1 << 24)", "mica.fft.rfft(x)"),
    "irfft": ("x = mica.randn((1 << 23) + 1, dtype=mica.complex64)", "mica.fft.irfft(x)"),
    "logcumsumexp": (N, "x.logcumsumexp(0)"),
    "cumprod of complex": (N, "x.to(mica.complex64).cumprod(0)"),
    "cumsum of a row": ("x = mica.ones(1 << 28, dtype=mica.uint8)", "x.cumsum(0, dtype=mica.uint8)"),
    "cummax of a row": ("x = mica.ones(1 << 26, dtype=mica.int8)", "x.cummax(0)"),
    "cumsum of four rows": ("x = mica.ones(4, 1 << 25)", "x.cumsum(1)"),
    "randperm": ("", "mica.randperm(1 << 24)"),
    "ctc_loss": (
        "x = mica.randn(2000, 8, 500).log_softmax(2); t = mica.ones(8, 400, dtype=mica.int64)",
        "F.ctc_loss(x, t, [2000] * 8, [400] * 8)",
    ),
    "index": ("n = 1 << 24; x = mica.rand(n); places = mica.randint(0, n, (n,))", "x[places]"),
    "index_add": (N, "[x.index_add_(0, places, x.clone()) for _ in range(4)]"),
    "gather": ("n = 1 << 24; x = mica.rand(n); places = mica.randint(0, n, (n,))", "x.gather(0, places)"),
    "few costly rows": ("x = mica.rand(1500, 64)", "mica.cdist(x, x, p=1.5)"),
    "topk of few": ("x = mica.ones(1 << 29, dtype=mica.int8)", "x.topk(3)"),
    "topk of many": ("x = mica.rand(1 << 25)", "x.topk(1 << 22)"),
    "kthvalue": ("x = mica.rand(1 << 28)", "x.kthvalue(1 << 20)"),
    "softmax of few columns": ("x = mica.rand(1 << 25, 3)", "x.softmax(0)"),
    "log_softmax of few columns": ("x = mica.rand(1 << 25, 3)", "x.log_softmax(0)"),
    "softmax of a row": ("x = mica.rand(1 << 27, dtype=mica.float64)", "x.softmax(0)"),
    "logsumexp of columns": ("x = mica.rand(1 << 23, 16, dtype=mica.float64)", "x.logsumexp(0)"),
    "max_pool2d": (PLANE, "F.max_pool2d(x, 60, 1)"),
    "max_pool2d of other windows": (PLANE, "F.max_pool2d(x, 80, 3)"),
    "max_pool1d": ("x = mica.rand(1, 1, 1 << 21)", "F.max_pool1d(x, 2000, 1)"),
    "avg_pool2d": (PLANE, "F.avg_pool2d(x, 80, 1)"),
    "avg_pool2d of other windows": (PLANE, "F.avg_pool2d(x, 80, 3)"),
    "gradient of avg_pool2d": (
        "x = mica.rand(1, 1, 900, 900, requires_grad=True); y = F.avg_pool2d(x, 70, 1).sum()",
        "y.backward(retain_graph=True)",
    ),
    "avg_pool2d in channels_last": (
        "x = mica.rand(1, 64, 300, 300).contiguous(memory_format=mica.channels_last)",
        "F.avg_pool2d(x, (280, 100), 1)",
    ),
    "convolution of float64": (IMAGES.format(96, "float64"), "F.conv2d(x, w)"),
    "convolution of complex numbers": (IMAGES.format(48, "complex64"), "F.conv2d(x, w)"),
    "gradient of a convolution of float64": (
        IMAGES.format(96, "float64") + "w.requires_grad_(); y = F.conv2d(x, w).sum()",
        "y.backward(retain_graph=True)",
    ),
    "gradient of ctc_loss": (
        "x = mica.randn(400, 8, 5000, requires_grad=True); t = mica.ones(8, 100, dtype=mica.int64);"
        "y = F.ctc_loss(x, t, [400] * 8, [100] * 8)",
        "y.backward(retain_graph=True)",
    ),
    "gradient of gamma draws": (
        "x = mica.rand(1 << 22) + 1",
        "mica._C._find_operator('_standard_gamma_grad')(x, x)",
    ),
    "lstm": ("net = nn.LSTM(256, 256); x = mica.rand(6000, 4, 256)", "net(x)"),
}


@pytest.mark.parametrize("name", LONG)
def test_a_handlers_error_ends_one_long_call(name: str) -> None:
    setup, call = LONG[name]
    assert run(ENDS.format(setup=setup, call=call)) == "ended\n"


# What a handler needs of a lock that the interrupted call may hold.
HANDLER_NEEDS = """
import mica, signal, time
x, leaf = mica.full((1 << 21,), 4.0), mica.ones(1 << 21, requires_grad=True)
leaf.grad = mica.ones(1 << 21)
def handler(*_): seen.append((mica.rand(3).shape, leaf.grad.shape))
seen = []
signal.signal(signal.SIGALRM, handler)
signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
end = time.monotonic() + 20
while len(seen) < 3 and time.monotonic() < end:
    {call}
signal.setitimer(signal.ITIMER_REAL, 0)
print(len(seen) >= 3)
"""


@pytest.mark.parametrize(
    "call",
    [
        "mica.poisson(x)",
        "x.geometric_(0.3)",
        "x.cauchy_()",
        "mica.binomial(x[: 1 << 18], x[: 1 << 18] * 0.1)",
        "mica.randperm(1 << 21)",
        "[leaf.backward(x) for _ in range(40)]",
    ],
)
def test_a_handler_draws_numbers_and_reads_gradients(call: str) -> None:
    assert run(HANDLER_NEEDS.format(call=call)) == "True\n"


def test_threads() -> None:
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(300):
                x = mica.ones(4, requires_grad=True)
                (x * 2).sum().backward()
                assert x.grad is not None and x.grad.tolist() == [2, 2, 2, 2]
                large = mica.ones(40_000)  # gives the GIL up
                assert (large + large).sum().item() == 80_000
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
