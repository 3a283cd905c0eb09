"""Errors that a device reports later than the call that caused them, on test/conformance/late_device.cc:
each is raised, by the next call that can, with the operator and the stream that were running."""

from __future__ import annotations

from pathlib import Path

from process import printed, ran

START = """
import os, random, sys
import mica
OPERATORS = {
    "mul.Tensor": lambda x: x * x, "add.Tensor": lambda x: x + x, "neg": lambda x: -x, "relu": mica.relu,
}
def fails(number):
    fails.count += 1
    os.environ["LATE_FAIL"] = f"{fails.count}:{number}"  # the number-th kernel from now on
fails.count = 0
def error(call):
    try:
        call()
    except RuntimeError as e:
        return str(e)
"""


def run(late_device: Path, program: str, **settings: str) -> str:
    return printed(START + program, timeout=300, MICA_PLUGINS=str(late_device), **settings).strip()


RANDOM = """
draw = random.Random(int(os.environ["SEED"]))
devices = ["late:0", "late:1"]
streams = {d: [mica.current_stream(d), mica.Stream(d), mica.Stream(d)] for d in devices}
inputs = {d: mica.ones(64).to(d) for d in devices}
for d in devices:
    mica.synchronize(d)

def drop_what_another_stream_uses(y, s):  # the allocator records an event, asks it, and takes memory back
    y.record_stream(s)
    del y
    mica.empty_cache(s.device)

ENDS = [
    lambda y, s: s.synchronize(),
    lambda y, s: mica.synchronize(s.device),
    lambda y, s: s.record_event().synchronize(),
    lambda y, s: mica.empty_cache(s.device),
    lambda y, s: s.query(),
    lambda y, s: y.cpu(),
    drop_what_another_stream_uses,
]
seen = 0
for _ in range(500):
    device = draw.choice(devices)
    calls = [(draw.choice(sorted(OPERATORS)), draw.choice(streams[device])) for _ in range(draw.randint(1, 40))]
    number = draw.randint(1, len(calls))
    fails(number)
    def run():
        for name, s in calls:
            with mica.stream(s):
                y = OPERATORS[name](inputs[device])
        draw.choice(ENDS)(y, draw.choice(streams[device]))
        del y
        mica.synchronize(device)
    said = error(run) or "nothing"
    name, s = calls[number - 1]
    seen += "has trapped" in said and f"{name} in stream ({s.handle})" in said and f"({device})" in said
    again = error(lambda: mica.synchronize(device))
    assert again is None, again  # it is said once
print(seen)
"""


def test_errors_of_500_random_launches_are_raised_with_their_operators(late_device: Path) -> None:
    assert run(late_device, RANDOM, SEED="18", LATE_MICROSECONDS="0") == "500"


def test_the_allocator_drops_no_error(late_device: Path) -> None:
    program = """
import time
x, other = mica.ones(64).to("late"), mica.Stream("late")
def give_back(results, other):
    y = results.pop()
    if other:  # an event is recorded behind the other stream's work, and the device reports there
        y.record_stream(other)
    del y
    mica.empty_cache("late")

for s in (None, other):
    fails(1)
    results = [mica.relu(x)]
    time.sleep(0.05)
    said = [error(lambda: give_back(results, s))]
    said.append(error(lambda: mica.synchronize("late")))
    print([bool(e) and "relu in stream (0)" in e for e in said])
"""
    # empty_cache waits without raising; whoever waits next is told.
    assert run(late_device, program).splitlines() == ["[False, True]"] * 2


def test_an_error_is_raised_on_its_own_device(late_device: Path) -> None:
    program = """
import time
x, y = mica.ones(64).to("late:0"), mica.ones(64).to("late:1")
fails(1)
z = x * x
time.sleep(0.1)
del z
mica.empty_cache("late:0")
print(error(lambda: (y + y).cpu()), "mul.Tensor in stream (0)" in error(lambda: x + x))
"""
    assert run(late_device, program) == "None True"


def test_launch_blocking_raises_in_the_operator(late_device: Path) -> None:
    program = """
x = mica.ones(64).to("late")
right = 0
for name, f in OPERATORS.items():
    for number in (1, 2, 3):
        fails(number)
        said = [error(lambda: f(x)) for f in (*[OPERATORS["mul.Tensor"]] * (number - 1), f)]
        right += said[:-1] == [None] * (number - 1) and f"in {name}(" in said[-1]
        right += "has trapped" in said[-1] and said[-1].count(" in stream (") == 1
print(right)
"""
    assert run(late_device, program, MICA_LAUNCH_BLOCKING="1") == "24"


def test_after_a_lost_device_cpu_tensors_are_saved_and_the_process_ends(
    late_device: Path, tmp_path: Path
) -> None:
    program = """
kept, x = mica.arange(10), mica.ones(64).to("late")
streams = [mica.Stream("late") for _ in range(3)]
fails(2)
with mica.stream(streams[0]):
    y = [x * x, x + x, -x]
    event = streams[0].record_event()
first = error(lambda: mica.synchronize("late"))
print("add.Tensor in stream" in first, "has trapped" in error(lambda: x.cpu()), "has trapped" in error(lambda: x + x))
del y[0]
mica.save({"kept": kept + 1}, sys.argv[1])
print(mica.load(sys.argv[1])["kept"].sum().item(), (mica.ones(4).to("late:1") + 1).sum().item())
"""
    settings = {"MICA_PLUGINS": str(late_device), "LATE_LOST": "1"}
    result = ran(START + program, str(tmp_path / "kept.mica"), timeout=60, **settings)
    assert (result.returncode, result.stdout.split()) == (0, ["True", "True", "True", "55", "8.0"]), result


def test_a_lost_device_is_asked_nothing_more(late_device: Path, tmp_path: Path) -> None:
    program = """
kept, x = mica.arange(10), mica.ones(64).to("late")
side, other = mica.Stream("late"), mica.ones(64).to("late:1")
fails(1)
with mica.stream(side):
    y = [x * x, x + x]
    event = side.record_event()
y[1].record_stream(mica.Stream("late"))
def lost(call):
    try:
        call()
    except mica.DeviceLostError as e:
        return str(e)
print("burnt out" in lost(lambda: mica.synchronize("late")))
print(*lost(lambda: x + x).splitlines()[0].split(" It may come from earlier work: ")[:1])
print("mul.Tensor in stream" in lost(lambda: x + x))
calls = [lambda: x.cpu(), lambda: mica.ones(3).to("late"), lambda: mica.empty(1 << 20, device="late"), side.query,
         event.synchronize, lambda: mica.Stream("late", -1), lambda: mica.device_properties("late"), lambda: x.copy_(x),
         lambda: other.to("late:0")]
print([bool(lost(call)) for call in calls])
del x, y, event, side
mica.empty_cache("late")
mica.save({"kept": kept + 1}, sys.argv[1])
print(mica.load(sys.argv[1])["kept"].sum().item(), (other + other).cpu().sum().item(), mica.late.device_count())
"""
    settings = {"MICA_PLUGINS": str(late_device), "LATE_LOST": "code"}
    done = ran(START + program, str(tmp_path / "kept.mica"), timeout=60, **settings)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert done.stdout.splitlines() == [
        "True",
        "The device (late:0) is lost and does nothing more in this process; tensors of the CPU and of other devices "
        "can still be used and saved. It said: The late device has burnt out.",
        "True",
        "[" + ", ".join(["True"] * 7 + ["False", "True"]) + "]",
        "55 128.0 2",
    ]


def test_a_device_whose_loss_nobody_saw_is_said_at_exit(late_device: Path) -> None:
    program = """
import time
x = mica.ones(1 << 22).to("late")  # memory of its own, so that the host waits before it gives that back
fails(1)
y = mica.relu(x)
time.sleep(0.05)
del y
mica.empty_cache("late")
"""
    done = ran(START + program, MICA_PLUGINS=str(late_device), LATE_LOST="code")
    assert done.returncode == 0
    assert done.stderr.startswith("mica: error at exit: The device (late:0) is lost")
    assert "burnt out" in done.stderr and "relu in stream (0)" in done.stderr


def test_errors_at_exit_are_printed(late_device: Path) -> None:
    program = """
import time
x = mica.ones(1 << 22).to("late")  # memory of its own, so that the host waits before it gives that back
fails(1)
y = mica.relu(x)
time.sleep(0.05)
del y
mica.empty_cache("late")
"""
    done = ran(START + program, MICA_PLUGINS=str(late_device))
    assert done.returncode == 0
    assert done.stderr.startswith("mica: error at exit: A unit of the late device has trapped.")
    assert "relu in stream (0)" in done.stderr


def test_a_copy_by_a_kernel_raises_what_came_late(late_device: Path) -> None:
    program = """
import time
x, y = mica.ones(8, 8).to("late"), mica.zeros(8, 8).to("late")
fails(1)
x.copy_(y.t())
print("copy_ in stream (0)" in error(lambda: mica.synchronize("late")))
x.copy_(y.t())
print(mica.fallback_counts().get("late"), x.sum().item())
fails(1)
z = mica.relu(x)
del z
time.sleep(0.05)
mica.empty_cache("late")  # keeps the error
print("relu in stream (0)" in error(lambda: x.copy_(y.t())))
"""
    assert run(late_device, program).splitlines() == ["True", "None 0.0", "True"]


LOSE = """
import shutil, time
def lose(device):
    x = mica.ones(64).to(device)
    fails(1)
    y = x * x
    said = error(lambda: mica.synchronize(device))
    assert "burnt out" in said, said
    del os.environ["LATE_FAIL"]
    return x, y
def lost(call):
    try:
        call()
    except mica.DeviceLostError as e:
        return str(e)
"""


def test_another_build_of_the_plugin_has_lost_nothing(late_device: Path, tmp_path: Path) -> None:
    program = """
streams = [mica.Stream("late:0")]
old = lose("late:0")
mica.replace_plugin(shutil.copy(os.environ["MICA_PLUGINS"], sys.argv[1]))
new = mica.ones(64).to("late:0")
print((new + new).cpu().sum().item())
del old, streams[0]
mica.empty_cache("late:0")  # what the old build gave goes back to it, whose device is lost
print((new + new).cpu().sum().item())
"""
    settings = {"MICA_PLUGINS": str(late_device), "LATE_LOST": "code"}
    done = ran(START + LOSE + program, str(tmp_path / "another.so"), timeout=60, **settings)
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["128.0", "128.0"], ""), done


def test_what_an_old_build_answers_is_not_about_the_new_one(late_device: Path, tmp_path: Path) -> None:
    program = """
x = mica.ones(64).to("late:0")
event = mica.Event("late:0")
fails(1)
y = x * x
event.record(mica.current_stream("late:0"))
time.sleep(0.1)
mica.replace_plugin(shutil.copy(os.environ["MICA_PLUGINS"], sys.argv[1]))
del os.environ["LATE_FAIL"]
print("burnt out" in lost(event.synchronize))
one = mica.ones(64).to("late:0")
print((one + one).cpu().sum().item())
"""
    settings = {"MICA_PLUGINS": str(late_device), "LATE_LOST": "code", "LATE_MICROSECONDS": "20000"}
    done = ran(START + LOSE + program, str(tmp_path / "another.so"), timeout=60, **settings)
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, ["True", "128.0"], ""), done


def test_a_lost_device_stays_lost_when_its_plugin_is_enabled_again(late_device: Path) -> None:
    program = """
lose("late:0")
mica.disable_plugin("late")
mica.enable_plugin("late")
print("burnt out" in lost(lambda: mica.synchronize("late:0")), (mica.ones(4).to("late:1") + 1).sum().item())
"""
    assert run(late_device, LOSE + program, LATE_LOST="code") == "True 8.0"


def test_the_others_work_while_the_current_device_is_lost(late_device: Path) -> None:
    program = """
in_driver = mica.ops.late.exchange_device
other = mica.ones(64).to("late:1")
pinned = mica.ones(64).pin_memory("late")
lose("late:0")
print(mica.late.current_device(), in_driver(-1), (other * other).sum().item(), in_driver(-1))
print(mica.ones(64).to("late:1", non_blocking=True).sum().item())
print(mica.ones(64).pin_memory("late").sum().item())
del pinned
mica.accelerator.empty_host_cache()
print((other + other).sum().item(), "burnt out" in lost(lambda: mica.synchronize("late:0")))
"""
    done = run(late_device, LOSE + program, LATE_LOST="code")
    assert done.splitlines() == ["0 0 64.0 0", "64.0", "64.0", "128.0 True"]


def test_what_makes_a_device_current_speaks_of_that_device(late_device: Path) -> None:
    program = """
x, other = mica.ones(64).to("late:0"), mica.ones(64).to("late:1")
fails(1)
y = x * x
time.sleep(0.1)
print([other.cpu().sum().item() for _ in range(2)], "burnt out" in lost(lambda: mica.synchronize("late:0")))
"""
    said = run(late_device, LOSE + program, LATE_LOST="code", LATE_FAULT="reports")
    assert said == "[64.0, 64.0] True"


ASIDE = """
x, w = mica.ones(64).to("late:0"), mica.ones(64).to("late:1")
mica.synchronize("late:0"), mica.synchronize("late:1")
fails(1)
y = x * x  # reported once; the device goes on
keep = [x + x for _ in range(6)]
a = mica.ones(1000).to("late:0", non_blocking=True)  # behind them, from memory set aside
time.sleep(0.15)
p = mica.full((10,), 2.0).to("late:1", non_blocking=True)  # asks for the end of the first copy
q = mica.full((1000,), 7.0).to("late:1", non_blocking=True)  # takes memory like that of the first copy
while error(lambda: print(sorted(set(a.cpu().tolist())))):
    pass
"""
LENT = """
D = "late:0"
s, h = mica.Stream(D), mica.ones(64)
x, w, seven = h.to(D), h.to(D), mica.full((64,), 7.0).pin_memory("late")
mica.synchronize(D)
fails(1)
z = w * w  # reported once; the device goes on
with s:
    keep = [w + w for _ in range(6)]
    r = x + x  # behind them
x.record_stream(s)
time.sleep(0.15)
del x  # the event that is to be recorded answers with the error
n = mica.empty(64, device=D)
while error(lambda: n.copy_(seven, non_blocking=True)):
    pass
while error(s.synchronize):
    pass
while error(lambda: print(sorted(set(r.cpu().tolist())))):
    pass
"""


READ = """
sevens, x = mica.full((1000,), 7.0).to("late:0"), mica.ones(64).to("late:0")
mica.synchronize("late:0")
fails(1)
y = x * x  # reported once; the device goes on
keep = [x + x for _ in range(6)]
print(error(sevens.cpu) is not None, end=" ")  # the copy that reports it is queued behind them
zeros = [mica.zeros(1000) for _ in range(20)]  # takes the memory that it would write
time.sleep(1)
print(max(z.max().item() for z in zeros))
"""
WRITTEN = """
there, x = mica.zeros(1000).to("late:0"), mica.ones(64).to("late:0")
mica.synchronize("late:0")
fails(1)
y = x * x  # reported once; the device goes on
keep = [x + x for _ in range(6)]
time.sleep(0.15)
print(error(lambda: there.copy_(mica.ones(1000), non_blocking=True)) is not None, end=" ")
q = mica.full((1000,), 7.0).to("late:1", non_blocking=True)  # takes memory like that of the first copy
while error(lambda: print(sorted(set(there.cpu().tolist())))):
    pass
"""


def test_memory_that_queued_work_uses_outlives_an_error_that_is_reported_once(late_device: Path) -> None:
    slow = {"LATE_MICROSECONDS": "100000"}
    assert run(late_device, "import time\n" + ASIDE, **slow) == "[1.0]"
    assert run(late_device, "import time\n" + LENT, **slow) == "[2.0]"
    assert run(late_device, "import time\n" + READ, **slow) == "True 0.0"
    assert run(late_device, "import time\n" + WRITTEN, **slow) == "True [1.0]"


def test_a_loss_that_nobody_was_told_is_said_at_exit(late_device: Path) -> None:
    program = """
import time
x = mica.ones(64).to("late:0")
mica.ones(8).to("late:1")
mica.synchronize("late:0")
fails(1)
y = x * x
z = mica.ones(1000).to("late:0", non_blocking=True)
time.sleep(0.3)
mica.ones(100).to("late:1", non_blocking=True)  # asks for the end of the other copy, and has no ear for the loss
print("ends", flush=True)
"""
    settings = {"MICA_PLUGINS": str(late_device), "LATE_LOST": "code", "LATE_MICROSECONDS": "20000"}
    ended = ran(START + program, **settings)
    assert (ended.returncode, ended.stdout) == (0, "ends\n"), ended.stderr
    assert ended.stderr.count("The device (late:0) is lost") == 1, ended.stderr


def test_a_loss_that_was_told_is_not_said_again_at_exit(late_device: Path) -> None:
    program = """
x, other = mica.ones(64).to("late:0"), mica.ones(8).to("late:1")
mica.synchronize("late:0")
fails(1)
y = x * x
try:
    mica.synchronize("late:0")
except mica.DeviceLostError as error:
    print("is lost" in str(error), end=" ")
print((other + other).sum().item())
"""
    settings = {"MICA_PLUGINS": str(late_device), "LATE_LOST": "code", "LATE_FAULT": "reports"}
    ended = ran(START + program, **settings)
    assert (ended.returncode, ended.stdout) == (0, "True 16.0\n"), ended.stderr
    assert "is lost" not in ended.stderr
