"""Checks that need a process of their own: fork, exit with work in flight; and programs
that use a device as people do: random numbers, training."""

from __future__ import annotations

import numpy as np

import mica
from mica.conformance.reference import baseline
from mica.conformance.runtime import check, equal, expect, in_process

_FORK = """
import os, sys
x = mica.ones([1000]).to(DEVICE)
x.to("cpu")
child = os.fork()
if child == 0:
    try:
        y = (mica.ones([1000]).to(DEVICE) + 1).to("cpu")
        os._exit(0 if bool((y == 2).all()) else 3)
    except RuntimeError as error:
        os._exit(4 if "fork" in str(error) else 5)
import time
for _ in range(100):
    done, status = os.waitpid(child, os.WNOHANG)
    if done:
        break
    time.sleep(0.1)
else:
    os.kill(child, 9)
    os.waitpid(child, 0)
    sys.exit("The child hung.")
code = os.waitstatus_to_exitcode(status)
if code == 3:
    sys.exit("The child computed another value.")
if code == 5:
    sys.exit("The child raised an exception that does not speak of the fork.")
if code not in (0, 4):
    sys.exit(f"The child ended with the status ({code}).")
if not bool((x.to("cpu") == 1).all()):
    sys.exit("The parent's tensor changed.")
print("refused" if code == 4 else "works")
"""

_EXIT = """
x = mica.ones([1 << 22])
streams = [] if mica.device(DEVICE).type == "cpu" else [mica.Stream(DEVICE) for _ in range(4)]
kept = [mica.empty([1 << 22], device=DEVICE) for _ in range(4)]
events = []
for k in range(40):
    with mica.stream(streams[k % 4] if streams else None):
        kept[k % 4].copy_(x, non_blocking=True)
        kept[k % 4] = kept[k % 4] + 1
        if streams:
            events.append(streams[k % 4].record_event())
import threading
thread = threading.Thread(target=lambda: kept[0].to("cpu"))
thread.start()
thread.join()
print("queued")
"""


@check("process")
def fork(device: str) -> None:
    """The child of a fork uses the device, or is told by an exception that it cannot; nobody hangs."""
    expect(in_process(_FORK, device).strip() in ("works", "refused"), "The parent printed something else.")


@check("process")
def exit_with_work_in_flight(device: str) -> None:
    """A process ends cleanly with queued work, live streams, events and tensors."""
    expect("queued" in in_process(_EXIT, device), "The program did not come to its end.")


@check("process")
def exit_at_once(device: str) -> None:
    """A process that only asked for the device ends cleanly."""
    in_process("mica.empty([4], device=DEVICE)", device)


@check("programs")
def random_numbers(device: str) -> None:
    """manual_seed repeats them; they lie where they should, with mean and spread as they should."""

    def draw() -> list[np.ndarray]:
        made = [
            mica.rand([20_000], device=device),
            mica.randn([20_000], device=device),
            mica.randint(0, 10, [20_000], device=device),
        ]
        return [x.to("cpu").numpy() for x in made]

    mica.manual_seed(7)
    first, later = draw(), draw()
    mica.manual_seed(7)
    for a, b, c in zip(first, draw(), later):
        expect(np.array_equal(a, b), "The same seed gives other numbers.")
        expect(not np.array_equal(a, c), "Two draws are equal.")
    uniform, normal, integers = first
    expect(uniform.min() >= 0 and uniform.max() < 1, "A uniform number is outside [0, 1).")
    expect(abs(uniform.mean() - 0.5) < 0.015, f"The mean of uniform numbers is ({uniform.mean()}).")
    expect(
        abs(normal.mean()) < 0.05 and abs(normal.std() - 1) < 0.05,
        "Normal numbers have another mean or spread.",
    )
    expect(integers.min() == 0 and integers.max() == 9, "Integers of [0, 10) lie elsewhere.")


@check("programs")
def training(device: str) -> None:
    """Twenty steps of a small network by Adam come to the CPU's loss."""
    a = np.random.default_rng(0).standard_normal((64, 8)).astype("float32")
    target = np.sin(a).sum(1, keepdims=True)

    def train(where: str) -> list[float]:
        mica.manual_seed(3)
        model = mica.nn.Sequential(mica.nn.Linear(8, 16), mica.nn.ReLU(), mica.nn.Linear(16, 1)).to(where)
        optimizer = mica.optim.Adam(model.parameters(), lr=0.01)
        x, y = mica.from_numpy(a).to(where), mica.from_numpy(target).to(where)
        losses = []
        for _ in range(20):
            optimizer.zero_grad()
            loss = ((model(x) - y) ** 2).mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    got = train(device)
    with baseline(device):
        expected = train("cpu")
    expect(got[-1] < got[0], "The loss did not fall.")
    worst = max(abs(g - e) / abs(e) for g, e in zip(got, expected))
    expect(worst < 1e-4, f"The loss differs from the CPU's by a share of ({worst:.2g}).")


@check("programs")
def views_share_memory(device: str) -> None:
    """A write through a view is seen by its base and by other views."""
    base = mica.zeros([4, 5]).to(device)
    row, column = base[1], base.transpose(0, 1)[2]
    row.copy_(mica.ones([5]))
    expected = np.zeros((4, 5), "float32")
    expected[1] = 1
    equal(base, expected, "The base does not show what was written through its view.")
    equal(column, expected[:, 2], "A second view does not show what was written through the first.")
    base.zero_()
    equal(row, np.zeros(5, "float32"), "A view does not show what was written to its base.")
