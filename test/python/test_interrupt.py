"""Ctrl-C in long calls ends them with KeyboardInterrupt and leaves a working
process; threads run forward and backward side by side."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

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

# Calls in a loop, each of them short or of several steps.
LOOP = """
import mica, os, signal, threading, time
from mica import nn
from mica.utils.data import DataLoader
x, a = mica.rand(1 << 22), mica.rand(2048, 2048)
w = mica.rand(512, 512, requires_grad=True)
{setup}
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
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
    return subprocess.run(
        [sys.executable, "-c", LISTEN + program], capture_output=True, text=True, timeout=120, check=True
    ).stdout


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
