"""What the host does with a device that is truly late (test/conformance/late_device.cc):
backward in the streams of forward, streams given back, pinned memory, `supports`.

Each test runs a program in a process of its own, since the device says what it is
asked for on stderr and lasts until its process ends."""

from __future__ import annotations

from pathlib import Path

from process import ran

ROOT = Path(__file__).resolve().parents[2]
START = "import mica\nfrom mica import nn\n"


def run(late_device: Path, program: str, fault: str = "none") -> tuple[str, list[str]]:
    """What the program prints, and what the device says."""
    result = ran(START + program, MICA_PLUGINS=str(late_device), LATE_FAULT=fault, LATE_SAY="1")
    assert result.returncode == 0, result.stderr
    return result.stdout.strip(), result.stderr.splitlines()


# Forward in two streams, backward from the default one: grad of 3 x * 3 x is 18 x.
BACKWARD = """
first, second = mica.Stream("late"), mica.Stream("late")
three = mica.full((4096,), 3.0).to("late")
wrong = 0
for _ in range(4):
    x = mica.ones(4096).to("late").requires_grad_()
    ones = mica.ones(4096).to("late")
    with mica.stream(first):
        y = x * three
    second.wait_stream(first)
    with mica.stream(second):
        z = y * y
    mica.current_stream("late").wait_stream(second)
    z.backward(ones)
    wrong += not bool((x.grad.cpu() == 18).all())
print(wrong, first.handle, second.handle)
"""


def test_backward_runs_in_the_streams_of_forward(late_device: Path) -> None:
    printed, said = run(late_device, BACKWARD)
    wrong, first, second = map(int, printed.split())
    assert wrong == 0
    kernels = [line for line in said if line.startswith(("mul", "add"))]
    # Of one round: x * three, y * y; then grad * y twice and their sum, and grad * three.
    mul, add = "mul in stream {}", "add in stream {}"
    forward = [mul.format(first), mul.format(second)]
    backward = [mul.format(second)] * 2 + [add.format(first), mul.format(first)]
    assert kernels[:6] == forward + backward


def test_backward_waits_between_its_streams(late_device: Path) -> None:
    # On a device whose streams do not wait for events, the same program must go wrong.
    printed, _ = run(late_device, BACKWARD, fault="event_wait")
    assert int(printed.split()[0]) > 0


def test_captured_gradients_are_ready_where_grad_was_called(late_device: Path) -> None:
    program = """
side = mica.Stream("late")
x = mica.ones(4096).to("late").requires_grad_()
two = mica.full((4096,), 2.0).to("late")
with mica.stream(side):
    y = x * two
[g] = mica.autograd.grad(y, x, mica.ones(4096).to("late"))
h = g * two
print((h.cpu() == 4).all().item())
"""
    assert run(late_device, program)[0] == "True"


def test_streams_are_shared_reused_and_given_back(late_device: Path) -> None:
    program = """
kept = mica.Stream("late")
for _ in range(10):
    with mica.stream(mica.Stream("late")):
        mica.ones(8).to("late")
current = mica.Stream("late")
mica.set_stream(current)
assert mica.current_stream("late") == current
del current
mica.Stream("late").synchronize()
print("done")
"""
    printed, said = run(late_device, program)
    assert printed == "done"
    made = [line for line in said if line.endswith("made")]
    gone = [line for line in said if line.endswith("destroyed")]
    assert len(made) == 3
    assert sorted(line.split()[1] for line in gone) == sorted(line.split()[1] for line in made)
    assert said.index("quiesce") > said.index(gone[-1])


def test_streams_of_a_disabled_plugin_are_given_back(late_device: Path) -> None:
    program = """
held = mica.Stream("late")
for _ in range(3):
    mica.Stream("late")
mica.disable_plugin("late")
print("disabled", flush=True)
mica.enable_plugin("late")
with mica.stream(held):
    print(mica.ones(3).to("late").cpu().tolist())
"""
    printed, said = run(late_device, program)
    assert printed.endswith("[1.0, 1.0, 1.0]")
    assert said[:3] == ["stream 1 made", "stream 2 made", "stream 2 destroyed"]


def test_exit_while_a_thread_still_uses_a_stream(late_device: Path) -> None:
    program = """
import threading
def work():
    with mica.stream(mica.Stream("late")):
        x = mica.ones(1000).to("late")
        while True:
            x = x * x
threading.Thread(target=work, daemon=True).start()
while not any(mica.ones(1).to("late").cpu().tolist() for _ in range(30)):
    pass
"""
    run(late_device, program)


def test_a_tensor_grows_on_its_device(late_device: Path) -> None:
    program = """
x = mica.arange(5, dtype=mica.float32).to("late")
x.resize_(5000)
print(x[:5].cpu().tolist(), x.shape, x.device)
"""
    assert run(late_device, program)[0] == "[0.0, 1.0, 2.0, 3.0, 4.0] mica.Size([5000]) late:0"


def test_pinned_memory(late_device: Path) -> None:
    program = """
x = mica.arange(6, dtype=mica.float32).reshape(2, 3).t()
pinned = x.pin_memory()
assert pinned.is_pinned() and not x.is_pinned() and pinned.device.type == "cpu"
assert pinned.tolist() == x.tolist() and pinned.stride() == x.stride()
assert pinned.pin_memory() is pinned
there = pinned.to("late", non_blocking=True)
del pinned  # the copy may still be under way
filler = mica.full((6,), -1.0).pin_memory()
assert there.cpu().tolist() == x.tolist()
back = mica.empty(3, 2, pin_memory=True)
back.copy_(there, non_blocking=True)
mica.synchronize("late")
assert back.is_pinned() and back.tolist() == x.tolist()
assert mica.zeros(4, pin_memory=True).is_pinned() and mica.tensor([1.0], pin_memory=True).is_pinned()
from mica.utils.data import DataLoader, TensorDataset
loader = DataLoader(TensorDataset(mica.arange(10), mica.ones(10)), batch_size=4, pin_memory=True)
seen = 0
for index, ones in loader:
    assert index.is_pinned() and ones.is_pinned()
    seen += ones.to("late", non_blocking=True).cpu().sum().item()
print(seen)
"""
    printed, said = run(late_device, program)
    assert printed == "10.0"
    assert any(line.startswith("pinned") for line in said)


def test_what_the_device_does_not_support_goes_elsewhere_with_its_words(late_device: Path) -> None:
    program = """
x, y = mica.ones(3).to("late"), mica.full((3,), 2.0).to("late")
print((x * x).cpu().tolist(), (x * y).cpu().tolist(), mica.fallback_counts()["late"])
mica.set_fallback("error")
for call in (lambda: x * x, lambda: x.mul_(x)):
    try:
        call()
    except NotImplementedError as error:
        print("it has no squares" in str(error))
print("do not take this call: it has no squares" in str(mica.explain("mul.Tensor", x, x)))
print("squares" in str(mica.explain("mul.Tensor", x, y)))
"""
    printed, said = run(late_device, program, fault="objects")
    assert printed.splitlines() == [
        "[1.0, 1.0, 1.0] [2.0, 2.0, 2.0] {'mica::mul.Tensor': 1}",
        "True",
        "True",
        "True",
        "False",
    ]
    assert len([line for line in said if line.startswith("mul")]) == 1


def test_what_the_host_does_not_drive_is_refused(late_device: Path) -> None:
    program = """
try:
    mica.ones(2).to("late").share_memory_()
except NotImplementedError as error:
    print("which is reserved" in str(error))
"""
    assert run(late_device, program)[0] == "True"


def test_a_device_that_records_no_graph(late_device: Path) -> None:
    program = """
graph = mica.accelerator.Graph()
try:
    with mica.stream(mica.Stream("late")), graph:
        print("not here")
except NotImplementedError as error:
    print(error)
print((mica.ones(2).to("late") + 1).sum().item())
"""
    assert run(late_device, program)[0].splitlines() == [
        "The device (late:0) records no graph: `capture_begin` lacks in its table; run the work each time, as "
        "without a graph.",
        "4.0",
    ]


def test_the_kit_shows_what_the_device_says(late_device: Path) -> None:
    program = """
from mica.conformance.kit import conform
options = {"operators": ["add.Tensor"], "dtypes": ["float32"], "groups": ["value"]}
[row] = conform("late", **options).rows
print(row.verdict, "which says (its adder is out of order)" in row.reason)
"""
    assert run(late_device, program, fault="objects")[0] == "unsupported True"
    assert run(late_device, program)[0] != "unsupported True"


def test_a_forked_child_drops_pinned_tensors(late_device: Path) -> None:
    program = """
import os, signal, threading
pinned, stop = [mica.ones(1000).pin_memory("late") for _ in range(3)], False
def pin():
    x = mica.ones(80000)
    while not stop:
        [x.pin_memory("late") for _ in range(200)]
def empty():
    while not stop:
        mica.accelerator.empty_host_cache()
threads = [threading.Thread(target=work) for work in (pin, empty)]
[thread.start() for thread in threads]
ended = 0
for _ in range(150):
    child = os.fork()
    if child == 0:
        signal.alarm(10)  # ends one that hangs
        pinned.clear()
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        break
    ended += 1
stop = True
[thread.join() for thread in threads]
print(ended)
"""
    settings = {"MICA_PLUGINS": str(late_device), "LATE_MICROSECONDS": "0"}
    assert ran(START + program, timeout=100, **settings).stdout == "150\n"


def test_a_forked_child_measures_no_times(late_device: Path) -> None:
    program = """
import os
first, second = (mica.Event("late", enable_timing=True) for _ in range(2))
first.record(), second.record()
mica.synchronize("late:0")
assert first.elapsed_time(second) >= 0
child = os.fork()
if child == 0:
    try:
        first.elapsed_time(second)
    except RuntimeError as error:
        os._exit("forked" in str(error))
    os._exit(2)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert run(late_device, program)[0].strip() == "1"
