"""A storm of signals over one kind of kernel, in a process without an alternate signal stack.

    python test/concurrency/signal_storm.py KERNEL SIGNAL HANDLER SIGNALS [MICROSECONDS]
    python test/concurrency/signal_storm.py --all SIGNALS

Another process sends SIGNAL every MICROSECONDS or so, to the process or to one of its threads,
while KERNEL runs again and again; each result is compared with that of the calm. HANDLER is
"python", a function given to `signal.signal`, or "raw", a function of C installed by sigaction
without SA_ONSTACK and SA_RESTART. Prints as JSON how many rounds ran, how many of them differed, how many
signals were sent, how often Python's handler ran, how late after the last signal, and how long a
calm round takes. test_signals.py runs it.

--all shares SIGNALS out among all kernels, four kinds of signals, both handlers and all the
instruction sets that the machine has, a process each. Its last line counts the processes whose results
were right and whose handler ran within 100 ms and a block of work of the last signal.
"""

from __future__ import annotations

import ctypes
import itertools
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

# To the process, then to one of its threads, which a process's signal rarely reaches. The clock is one for all
# processes. Its own end, which is a SIGCHLD, comes late after its last signal.
SENDER = """
import ctypes, os, random, sys, time
pid, number, signals, period = (int(x) for x in sys.argv[1:5])
libc, sent, last, chance = ctypes.CDLL(None, use_errno=True), 0, 0.0, random.Random(0)
tgkill = 234 if os.uname().machine == "x86_64" else 131
while sent < signals:
    try:
        threads = [int(name) for name in os.listdir(f"/proc/{pid}/task")]
        last = time.monotonic()
        if sent % 2: libc.syscall(ctypes.c_long(tgkill), pid, chance.choice(threads), number)
        else: os.kill(pid, number)
    except OSError:
        break
    sent += 1
    time.sleep(chance.random() * 2e-6 * period)
print(sent, last, flush=True)
time.sleep(0.4)
"""
HANDLERS = ("raw", "python")
SIGNALS = ("SIGINT", "SIGALRM", "SIGTERM", "SIGCHLD")
# Mica's own kernels, oneDNN's and OpenBLAS's; the last is the best that the machine has.
TARGETS = {
    "sse4": {"MICA_CPU_TARGET": "sse4", "ONEDNN_MAX_CPU_ISA": "SSE41", "OPENBLAS_CORETYPE": "Nehalem"},
    "avx2": {"MICA_CPU_TARGET": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "OPENBLAS_CORETYPE": "Haswell"},
    "best": {},
}

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
        F.avg_pool2d(x[None, None], 40, 1),
        x.topk(300)[0],
        x.t().softmax(-1),
        x[:, :3].softmax(0),
        F.conv2d(x[None, None].double(), x[None, None, :5, :5].double()),
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


def storm(kernel: str, number: int, kind: str, signals: int, period: int) -> dict[str, float]:
    mica.manual_seed(0)
    run, seen = KERNELS[kernel](), []
    calm = [x.clone() for x in run()]
    begin = time.monotonic()
    assert same(run(), calm), f"Kernel ({kernel}) gives other results in another run."
    each = time.monotonic() - begin
    install(number, kind, seen)
    arguments = [sys.executable, "-S", "-c", SENDER, *map(str, (os.getpid(), number, signals, period))]
    sender = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True)
    rounds = wrong = 0
    while sender.poll() is None:
        rounds += 1
        wrong += not same(run(), calm)
    counts = sender.communicate()[0].split()
    signal.signal(number, signal.SIG_IGN)
    last = float(counts[1])
    late = min((at - last for at in seen if at >= last), default=float("inf")) if kind == "python" else 0.0
    found = {"rounds": rounds, "wrong": wrong, "sent": int(counts[0]), "handled": len(seen)}
    return {**found, "late": late, "round": each}


def in_a_process(kernel: str, name: str, kind: str, target: str, signals: int) -> dict[str, float]:
    """A storm in a process without faulthandler."""
    environment = {**os.environ, **TARGETS[target], "PYTHONFAULTHANDLER": ""}
    command = [sys.executable, __file__, kernel, name, kind, str(signals)]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    if ran.returncode != 0:
        raise ChildProcessError(f"status ({ran.returncode}): {ran.stderr[-2000:]}")
    return json.loads(ran.stdout.splitlines()[-1])


def all_storms(signals: int) -> int:
    """Every kernel under every signal, handler and instruction set; prints a line for each kernel."""
    cases = len(KERNELS) * len(SIGNALS) * len(TARGETS) * len(HANDLERS)
    each = -(-signals // cases)
    sent = handled = passed = 0
    for kernel in KERNELS:
        found = []
        for target, name, kind in itertools.product(TARGETS, SIGNALS, HANDLERS):
            if kernel == "loader":
                kind = "python"  # starting a worker puts Python's own handler in the place of a raw one
            try:
                one = in_a_process(kernel, name, kind, target, each)
            except (ChildProcessError, subprocess.TimeoutExpired) as error:
                print(f"FAILED {kernel} {name} {kind} {target}: {error}", flush=True)
                continue
            found.append(one)
            if one["wrong"] or one["late"] > 0.1 + one["round"]:
                print(f"FAILED {kernel} {name} {kind} {target}: {one}", flush=True)
            else:
                passed += 1
        sent += sum(int(one["sent"]) for one in found)
        handled += sum(int(one["handled"]) for one in found)
        late = max((one["late"] for one in found), default=0.0)
        rounds = sum(int(one["rounds"]) for one in found)
        print(f"{kernel}: {rounds} rounds, the last handler at most {1e3 * late:.1f} ms late", flush=True)
    print(f"{sent} signals sent, Python's handlers ran {handled} times")
    print(f"{passed} passed, {cases - passed} failed")
    return int(passed < cases)


if __name__ == "__main__":
    if sys.argv[1] == "--all":
        sys.exit(all_storms(int(sys.argv[2])))
    name, signal_name, handler, count = sys.argv[1:5]
    gap = int(sys.argv[5]) if len(sys.argv) > 5 else 1000
    print(json.dumps(storm(name, getattr(signal, signal_name), handler, int(count), gap)))
