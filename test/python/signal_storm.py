"""A storm of signals over one kind of kernel, in a process without an alternate signal stack.

    python test/python/signal_storm.py KERNEL SIGNAL HANDLER SECONDS [MICROSECONDS]

Another process sends SIGNAL every MICROSECONDS or so, to the process or to one of its threads,
while KERNEL runs again and again; each result is compared with that of the calm. HANDLER is
"python", a function given to `signal.signal`, or "raw", a function of C installed by sigaction
without SA_ONSTACK and SA_RESTART. Prints as JSON how many rounds ran, how many of them differed, how many
signals were sent, and how often Python's handler ran. test_signals.py runs it; for a long storm run
it by hand.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import mica
import mica.nn.functional as F  # noqa: N812
from mica import nn
from mica.utils.data import DataLoader

# Until its input ends: to the process, then to one of its threads, which a process's signal rarely reaches.
SENDER = """
import ctypes, os, random, select, sys, time
pid, number, period = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]) * 1e-6
libc, sent, chance = ctypes.CDLL(None, use_errno=True), 0, random.Random(0)
tgkill = 234 if os.uname().machine == "x86_64" else 131
while not select.select([sys.stdin], [], [], 0)[0]:
    try:
        threads = [int(name) for name in os.listdir(f"/proc/{pid}/task")]
        if sent % 2: libc.syscall(ctypes.c_long(tgkill), pid, chance.choice(threads), number)
        else: os.kill(pid, number)
    except OSError:
        break
    sent += 1
    time.sleep(chance.random() * 2 * period)
print(sent)
"""

Round = Callable[[], list[mica.Tensor]]


def products(dtype: mica.dtype) -> Round:
    def numbers(*sizes: int) -> mica.Tensor:
        return mica.randn(*sizes, dtype=mica.float64).to(dtype)

    # Small, few rows, few columns, long, wide, and large enough for two threads.
    shapes = [(16, 16, 16), (1, 700, 300), (8, 300, 500), (500, 3000, 10), (130, 3000, 70), (300, 260, 280)]
    pairs = [(numbers(m, k), numbers(k, n)) for m, k, n in shapes]
    pairs += [(a.t().contiguous().t(), b.t().contiguous().t()) for a, b in pairs]
    pairs += [(numbers(40, 300)[:, ::2], numbers(300, 60)[::2])]
    batch = numbers(6, 40, 70)
    return lambda: [a @ b for a, b in pairs] + [batch @ batch.transpose(1, 2)]


def convolution() -> Round:
    cases = []
    for spatial, channels, filters, options in [
        (1, 8, 12, {"padding": 2, "dilation": 2}),
        (2, 1, 16, {"padding": 1}),
        (2, 16, 32, {"padding": 1}),
        (2, 16, 16, {"padding": 1, "groups": 16}),
        (2, 12, 6, {"groups": 3, "stride": 2}),
        (2, 16, 24, {"padding": 2, "dilation": 2}),
        (2, 24, 24, {"padding": 2, "dilation": 2, "stride": 2}),
        (3, 4, 6, {"stride": 2}),
    ]:
        x = mica.randn(3, channels, *[16] * spatial, requires_grad=True)
        w = mica.randn(filters, channels // options.get("groups", 1), *[3] * spatial, requires_grad=True)
        cases.append(((F.conv1d, F.conv2d, F.conv3d)[spatial - 1], x, w, options))

    def run() -> list[mica.Tensor]:
        results = []
        for function, x, w, options in cases:
            y = function(x, w, **options)
            results += [y.detach(), *mica.autograd.grad(y.square().sum(), [x, w])]
        return results

    return run


def training() -> Round:
    x, labels = mica.randn(128, 256), mica.randint(0, 10, (128,))

    def run() -> list[mica.Tensor]:
        mica.manual_seed(1)
        net = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Dropout(0.1), nn.Linear(256, 10))
        optimizer = mica.optim.AdamW(net.parameters(), lr=1e-3)
        for _ in range(4):
            optimizer.zero_grad()
            F.cross_entropy(net(x), labels).backward()
            optimizer.step()
        return [p.detach() for p in net.parameters()]

    return run


def attention() -> Round:
    q, k, v = (mica.randn(2, 4, 150, 32, requires_grad=True) for _ in range(3))

    def run() -> list[mica.Tensor]:
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return [y.detach(), *mica.autograd.grad(y.square().sum(), [q, k, v])]

    return run


def transforms() -> Round:
    x, image = mica.randn(50, 1000), mica.randn(4, 120, 128)
    return lambda: [mica.fft.fft(x), mica.fft.irfft(mica.fft.rfft(x)), mica.fft.fft2(image)]


def factorisations() -> Round:
    a = mica.randn(3, 60, 60, dtype=mica.float64)
    symmetric = a @ a.mT + 60 * mica.eye(60, dtype=mica.float64)
    return lambda: [
        mica.linalg.svdvals(a),
        mica.linalg.eigvalsh(symmetric),
        mica.linalg.eigvals(a),
        mica.linalg.cholesky(symmetric),
        mica.linalg.solve(a, symmetric),
        *mica.linalg.qr(a),
        mica.linalg.inv(symmetric.float()),
        mica.linalg.lstsq(a, symmetric).solution,
    ]


def loader() -> Round:
    data = mica.arange(600.0).view(100, 6)
    return lambda: list(DataLoader(data, 16, num_workers=2))


def engine() -> Round:
    x, places = mica.randn(300, 700), mica.randperm(700)
    cells = nn.GRU(20, 30)
    return lambda: [
        (x.sin() * x).exp(),
        x.sum((0,)),
        x.std(1),
        x.softmax(-1),
        x.cumsum(0),
        x.sort()[0],
        x[:, places],
        x.bfloat16().float(),
        F.max_pool2d(x[None, None], 3),
        F.layer_norm(x, (700,)),
        cells(x[:, :20])[0].detach(),
        x.unique(),
    ]


KERNELS: dict[str, Callable[[], Round]] = {
    "training": training,
    "convolution": convolution,
    **{f"products-{d}": (lambda d=d: products(getattr(mica, d))) for d in
       ("float32", "float64", "bfloat16", "float16", "complex64", "complex128", "int64")},
    "attention": attention,
    "transforms": transforms,
    "factorisations": factorisations,
    "loader": loader,
    "engine": engine,
}  # fmt: skip


class Action(ctypes.Structure):
    """The C library's struct sigaction, as on x86-64 and AArch64."""

    _fields_ = [
        ("handler", ctypes.c_void_p),
        ("mask", ctypes.c_byte * 128),
        ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    ]


def install(number: int, kind: str, seen: list[float]) -> None:
    """A handler that does next to nothing: the signal's frame on the stack is what does harm."""
    if kind == "python":
        signal.signal(number, lambda *_: seen.append(time.monotonic()))
        return
    libc = ctypes.CDLL(None)
    harmless = ctypes.cast(libc.abs, ctypes.c_void_p).value  # int abs(int)
    if libc.sigaction(number, ctypes.byref(Action(handler=harmless, flags=0)), None) != 0:
        raise OSError(f"Signal ({number}) takes no handler.")


def same(a: list[mica.Tensor], b: list[mica.Tensor]) -> bool:
    return all(bool(mica.equal(x, y)) for x, y in zip(a, b, strict=True))


def storm(kernel: str, number: int, kind: str, seconds: float, period: float) -> dict[str, object]:
    mica.manual_seed(0)
    run, seen = KERNELS[kernel](), []
    calm = [x.clone() for x in run()]
    assert same(run(), calm), f"Kernel ({kernel}) gives other results in another run."
    install(number, kind, seen)
    arguments = [sys.executable, "-S", "-c", SENDER, str(os.getpid()), str(number), str(period)]
    sender = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    rounds = wrong = 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        rounds += 1
        wrong += not same(run(), calm)
    sent = int(sender.communicate("")[0])
    signal.signal(number, signal.SIG_IGN)
    return {"rounds": rounds, "wrong": wrong, "sent": sent, "handled": len(seen)}


if __name__ == "__main__":
    name, signal_name, handler, length = sys.argv[1:5]
    gap = float(sys.argv[5]) if len(sys.argv) > 5 else 1000.0
    print(json.dumps(storm(name, getattr(signal, signal_name), handler, float(length), gap)))
