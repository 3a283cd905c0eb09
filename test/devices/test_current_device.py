"""The current device belongs to the thread and the driver: the host tells it what a program sets, asks it where a
name has no number, and puts back what a plugin changed. On test/conformance/late_device.cc, whose driver has one
for every library of the process (`late::exchange_device`)."""

from __future__ import annotations

from pathlib import Path

import pytest
from process import printed

START = """
import os
import mica
if not mica.late.is_available():
    raise SystemExit("no device")
others = mica.ops.late.exchange_device  # what another library calls; -1 asks
"""


def run(late_device: Path, program: str, **settings: str) -> str:
    return printed(START + program, MICA_PLUGINS=str(late_device), LATE_MICROSECONDS="0", **settings).strip()


# Each step with both devices, and with each of them current.
STEPS = """
steps = {
    "allocate and copy in": lambda d: mica.ones(64).to(d),
    "compute": lambda d: inputs[d] * inputs[d],
    "copy out": lambda d: inputs[d].cpu(),
    "copy between": lambda d: inputs[d].to("late:0" if d == "late:1" else "late:1"),
    "streams and events": lambda d: mica.Stream(d).record_event().synchronize(),
    "memory": lambda d: (mica.empty(1 << 20, device=d), mica.empty_cache(d)),
    "synchronize": mica.synchronize,
    "properties": mica.device_properties,
    "pinned": lambda d: mica.ones(8).pin_memory(d),
}
inputs = {d: mica.full((64,), 3.0).to(d) for d in ("late:0", "late:1")}
for current in (0, 1):
    others(current)
    for name, step in steps.items():
        for d in inputs:
            step(d)
            if others(-1) != current:
                print(name, "on", d, "left", others(-1), "for", current)
            others(current)
    for d, x in inputs.items():
        y = (x * x + x).relu()
        assert y.device == x.device and (y.cpu() == 12).all(), (d, y.cpu())
print("done")
"""


@pytest.mark.parametrize("fault", ["none", "rude"])
def test_what_a_plugin_makes_current_is_put_back(late_device: Path, fault: str) -> None:
    assert run(late_device, STEPS, LATE_FAULT=fault) == "done"


def test_a_kernel_runs_on_its_device_whatever_allocate_made_current(late_device: Path) -> None:
    # The device books a launch where it is current, and reports its errors there.
    program = """
x = {d: mica.ones(64).to(d) for d in ("late:0", "late:1")}
for number, (d, other) in enumerate([("late:1", "late:0"), ("late:0", "late:1")]):
    os.environ["LATE_FAIL"] = f"{number}:1"
    mica.empty(1 << 20, device=other)
    y = x[d] * x[d]
    mica.synchronize(other)
    try:
        mica.synchronize(d)
    except RuntimeError as error:
        print(d in str(error))
"""
    assert run(late_device, program, LATE_FAULT="rude") == "True\nTrue"


def test_the_driver_is_told_and_asked(late_device: Path) -> None:
    program = """
import threading
mica.late.set_device(1)
print(others(-1), mica.late.current_device(), mica.ones(1, device="late").device)
others(0)
print(mica.late.current_device(), mica.ones(1, device="late").device, mica.ones(1).late().device, others(-1))
with mica.late.device(1):
    print(others(-1))
print(others(-1))
def elsewhere():
    others(1)
    print(mica.late.current_device())
thread = threading.Thread(target=elsewhere)
thread.start()
thread.join()
print(mica.late.current_device())
"""
    assert run(late_device, program).splitlines() == [
        "1 1 late:1", "0 late:0 late:0 0", "1", "0", "1", "0",
    ]  # fmt: skip
