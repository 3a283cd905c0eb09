"""A loaded device plugin through the life of a process: fork, threads, exit with
work in flight."""

from __future__ import annotations

import pytest
from record import golden

from build import plugin, python

START = """
import os, sys, threading, mica
mica.load_plugin(sys.argv[1])
x = mica.arange(4, dtype=mica.float32).to("golden.c")
"""


@pytest.mark.parametrize("variant", ["c", "gcc"])
def test_device_is_asked_to_quiesce_then_to_detach(variant: str) -> None:
    program = (
        START.replace("golden.c", f"golden.{variant}")
        + """
streams = [mica.Stream(x.device) for _ in range(4)]
kept = []
for s in streams:
    with mica.stream(s):
        kept.append(mica.neg(mica.neg(x)))
        mica.neg(x)  # its memory is freed at once, in a queue
y = kept[0]
print(y.cpu().tolist())
"""
    )
    result = python(program, str(golden(variant)), GOLDEN_SAY="1")
    assert result.returncode == 0, result.stderr
    assert result.stdout == "[0.0, 1.0, 2.0, 3.0]\n"
    assert result.stderr == "golden: quiesce\ngolden: detach\n"


def test_tensor_that_outlives_the_device_is_freed_in_peace() -> None:
    program = (
        START
        + """
import atexit
holder = [x]
class Late:
    def __del__(self): holder.clear()
sys.modules["keeps_it"] = Late()
"""
    )
    result = python(program, str(golden("c")), GOLDEN_SAY="1")
    assert result.returncode == 0, result.stderr
    assert result.stderr.endswith("golden: quiesce\ngolden: detach\n")


def test_device_used_before_a_fork_is_refused_in_the_child_with_a_sentence() -> None:
    program = (
        START
        + """
child = os.fork()
if child == 0:
    try:
        mica.neg(x)
    except RuntimeError as error:
        good = "was used before this process was forked" in str(error)
    mica.load_plugin(sys.argv[2])
    y = mica.ones(1).to("golden.gcc")  # loaded here, so it is the child's own
    good &= mica.neg(y).cpu().tolist() == [-1.0]
    os._exit(0 if good else 1)
print(os.waitpid(child, 0)[1], mica.neg(x + 1).cpu().tolist())
"""
    )
    result = python(program, str(golden("c")), str(golden("gcc")))
    assert result.stdout == "0 [-1.0, -2.0, -3.0, -4.0]\n", result.stderr


def test_child_of_fork_loads_plugins_while_threads_of_the_parent_call() -> None:
    program = """
import os, sys, threading, mica
mica.load_plugin(sys.argv[1])
# All is imported before: a lock that Python's import holds does not survive a fork.
assert mica.plugins() and mica.ops.liar.seven(mica.ones(1)) == 7
stop = False
def work():
    while not stop: mica.ops.liar.seven(mica.ones(1))
threads = [threading.Thread(target=work) for _ in range(2)]
for t in threads: t.start()
statuses = []
for _ in range(20):
    child = os.fork()
    if child == 0:
        good = mica.plugins() and mica.ops.liar.seven(mica.ones(1)) == 7
        mica.disable_plugin("liar")
        mica.load_plugin(sys.argv[2])
        os._exit(0 if good and mica.ops.liar.seven(mica.ones(1)) == 7 else 1)
    statuses.append(os.waitpid(child, 0)[1])
stop = True
for t in threads: t.join()
print(statuses == [0] * 20)
"""
    result = python(program, str(plugin("liar.c")), str(plugin("liar.c", "-DLIE_WAITING")))
    assert result.stdout == "True\n", result.stderr


def test_a_build_takes_the_place_of_another_while_threads_call() -> None:
    program = """
import sys, threading, mica
one, two, bad = sys.argv[1:]
mica.replace_plugin(one)
handle, stop, errors = mica.ops.liar.seven, False, []
def work():
    while not stop:
        try: assert handle(mica.ones(1)) == 7
        except Exception as error: errors.append(error)
threads = [threading.Thread(target=work) for _ in range(4)]
for t in threads: t.start()
for _ in range(50):
    mica.replace_plugin(two)
    mica.replace_plugin(one)
stop = True
for t in threads: t.join()
try: mica.replace_plugin(bad)
except RuntimeError as error: print("the driver is not there" in str(error))
states = {p["path"]: p["state"] for p in mica.plugins() if p["name"] == "liar"}
print(errors, states[one], states[two], states[bad], handle(mica.ones(1)))
"""
    builds = [plugin("liar.c"), plugin("liar.c", "-DANOTHER_BUILD"), plugin("liar.c", "-DLIE_HALFWAY")]
    result = python(program, *map(str, builds))
    assert result.stdout == "True\n[] loaded disabled refused 7\n", result.stderr


def test_threads_that_ask_for_one_plugin_load_it_once() -> None:
    program = """
import sys, threading, mica
barrier, values = threading.Barrier(8), []
def load():
    barrier.wait()
    mica.load_plugin(sys.argv[1])
    values.append(mica.ops.golden_c.affine(mica.ones(1), 2.0, 1.0).item())
threads = [threading.Thread(target=load) for _ in range(8)]
for t in threads: t.start()
for t in threads: t.join()
print(values, [p["state"] for p in mica.plugins() if p["name"] == "golden.c"])
"""
    result = python(program, str(golden("c")))
    assert result.stdout == f"{[3.0] * 8} ['loaded']\n", result.stderr


# What takes the loader's lock while the plugin starts in another thread.
ASKS = {
    "an operator's name": 'mica._C._find_operator("nowhere::op")',
    "a device's name": 'mica.device("nowhere:0")',
    "a device count": 'mica.device_count("nowhere")',
    "a fork": """
child = os.fork()
if child == 0: os._exit(0)
assert os.waitpid(child, 0)[1] == 0""",
    "the same plugin": "mica.load_plugin(sys.argv[1])",
}


@pytest.mark.parametrize("ask", ASKS)
def test_init_may_need_the_gil_while_others_wait_for_the_loader(ask: str) -> None:
    # A deadlock ends in the time-out of `python`, which raises.
    program = f"""
import os, sys, threading, time, mica
mica.device_count("nowhere")  # what asking imports
loader = threading.Thread(target=mica.load_plugin, args=(sys.argv[1],))
loader.start()
time.sleep(0.2)
try:
    {ASKS[ask].strip().replace(chr(10), chr(10) + "    ")}
except RuntimeError:
    pass
loader.join()
print(mica.ops.pythonic.seven(mica.ones(1)))
"""
    result = python(program, str(plugin("pythonic.c")))
    assert result.stdout == "from the init\n7\n", result.stderr
