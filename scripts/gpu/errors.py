"""Section `errors`: what a device refuses is an exception, now or at the next synchronisation; the
process goes on; a fork is told; and a process ends cleanly. Each row is a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from row import Options, Row, expect

# What each program begins with. `raised` runs a call and what waits for it, and says what came of it.
_START = """
import json, os, sys, time
import mica
DEVICE = sys.argv[1]
def wait():
    mica.synchronize(DEVICE)
def raised(call, kinds):
    at_once = True
    try:
        result = call()
        at_once = False
        wait()
        result.cpu().tolist()
    except kinds as error:
        said = {"exception": type(error).__name__, "at once": at_once, "message": str(error).splitlines()[0][:300]}
    except Exception as error:
        sys.exit(f"It raised {type(error).__name__}: {error}")
    else:
        sys.exit("Nothing was raised.")
    if (mica.ones(4, device=DEVICE) + 1).tolist() != [2.0] * 4:
        sys.exit("The device no longer computes.")
    wait()
    print(json.dumps(said))
"""
_BOUNDS = "(IndexError, RuntimeError)"
RAISES = {
    "integer division by zero": "raised(lambda: mica.tensor([4, 2], device=DEVICE) // mica.tensor([2, 0], device=DEVICE), (ZeroDivisionError, RuntimeError))",
    "integer remainder by zero": "raised(lambda: mica.tensor([4, 2], device=DEVICE) % mica.tensor([2, 0], device=DEVICE), (ZeroDivisionError, RuntimeError))",
    "division by zero in a large tensor": "a = mica.ones(1 << 20, dtype=mica.int32, device=DEVICE); b = a.clone(); b[777777] = 0\nraised(lambda: a // b, (ZeroDivisionError, RuntimeError))",
    "embedding out of bounds": f"raised(lambda: mica.nn.functional.embedding(mica.tensor([0, 7], device=DEVICE), mica.ones(5, 3, device=DEVICE)), {_BOUNDS})",
    "gather out of bounds": f"raised(lambda: mica.ones(2, 3, device=DEVICE).gather(1, mica.tensor([[0], [3]], device=DEVICE)), {_BOUNDS})",
    "index_select out of bounds": f"raised(lambda: mica.ones(5, 3, device=DEVICE).index_select(0, mica.tensor([0, -9], device=DEVICE)), {_BOUNDS})",
    "x[i] out of bounds": f"raised(lambda: mica.ones(5, 3, device=DEVICE)[mica.tensor([0, 5], device=DEVICE)], {_BOUNDS})",
    "index_put out of bounds": f"x = mica.ones(5, device=DEVICE)\ndef write():\n    x[mica.tensor([0, 99], device=DEVICE)] = 2.0\n    return x\nraised(write, {_BOUNDS})",
    "scatter out of bounds": f"raised(lambda: mica.zeros(2, 3, device=DEVICE).scatter(1, mica.tensor([[0], [3]], device=DEVICE), 1.0), {_BOUNDS})",
    "a class out of bounds": f"raised(lambda: mica.nn.functional.cross_entropy(mica.zeros(2, 3, device=DEVICE), mica.tensor([0, 3], device=DEVICE)), {_BOUNDS})",
    "shapes that do not fit": "raised(lambda: mica.ones(2, 3, device=DEVICE) @ mica.ones(2, 3, device=DEVICE), (RuntimeError, ValueError))",
    "two devices in one call": "raised(lambda: mica.ones(3, device=DEVICE) + mica.ones(3), RuntimeError)",
    "a device that is not there": "raised(lambda: mica.ones(3, device=mica.device(DEVICE).type + ':99'), RuntimeError)",
    "out of memory": "raised(lambda: mica.empty(1 << 46, dtype=mica.uint8, device=DEVICE), mica.OutOfMemoryError)",
}
# What means nothing where the device is the CPU.
NOT_ON_CPU = {"two devices in one call", "a device that is not there", "out of memory"}
_FORK = """
x = mica.ones(1000, device=DEVICE)
x.tolist()
sys.stdout.flush()
child = os.fork()
if child == 0:
    try:
        y = (mica.ones(1000, device=DEVICE) + 1).tolist()
        print(json.dumps({"child": "computes", "right": y == [2.0] * 1000}), flush=True)
    except Exception as error:
        print(json.dumps({"child": type(error).__name__, "message": str(error).splitlines()[0]}), flush=True)
    os._exit(0)
for _ in range(200):
    done, status = os.waitpid(child, os.WNOHANG)
    if done:
        break
    time.sleep(0.05)
else:
    os.kill(child, 9)
    sys.exit("The child hung.")
if os.waitstatus_to_exitcode(status):
    sys.exit(f"The child ended with {os.waitstatus_to_exitcode(status)}.")
if (x + 1).sum().item() != 2000:
    sys.exit("The parent no longer computes.")
"""
CLEAN = {
    "exit at once": "mica.empty(4, device=DEVICE)",
    "exit with work queued": """
streams = [] if DEVICE == "cpu" else [mica.Stream(DEVICE) for _ in range(4)]
kept, events = [mica.ones(1 << 22, device=DEVICE) for _ in range(4)], []
for k in range(400):
    with mica.stream(streams[k % 4] if streams else None):
        kept[k % 4] = kept[k % 4] + 1
        if streams:
            events.append(streams[k % 4].record_event())
""",
    "exit by sys.exit with a product queued": """
x = mica.ones(2048, 2048, device=DEVICE)
for _ in range(20 if DEVICE != "cpu" else 1):
    x = x @ x / 2048
sys.exit(0)
""",
    "exit from a thread's work": """
import threading
def work():
    x = mica.ones(1 << 20, device=DEVICE)
    for _ in range(100):
        x = x + 1
threads = [threading.Thread(target=work) for _ in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
""",
    "exit with a graph of gradients alive": """
x = mica.ones(64, 64, device=DEVICE, requires_grad=True)
loss = ((x @ x).relu()).sum()
loss.backward()
KEPT = [x, loss, x.grad]
""",
    "exit with torch in the process": """
try:
    import torch
    y = torch.ones(1000, device="cuda" if torch.cuda.is_available() else "cpu") + 1
except ImportError:
    pass
x = mica.ones(1000, device=DEVICE) + 1
""",
}


def program(text: str, device: str, limit: float = 45) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", _START + text, device]
    return subprocess.run(command, capture_output=True, text=True, timeout=limit, env=dict(os.environ))


def rows(device: str, options: Options) -> Iterator[Row]:
    import mica

    # Programs start while others run; each row waits for its own.
    pool = ThreadPoolExecutor(4)
    started: dict[str, Future[subprocess.CompletedProcess[str]]] = {}

    def ended(text: str) -> subprocess.CompletedProcess[str]:
        return started[text].result() if text in started else program(text, device)

    def raises(text: str) -> dict[str, Any]:
        done = ended(text)
        expect(done.returncode == 0, f"It ended with ({done.returncode}): {done.stderr[-900:]}")
        # An error that a device tells late may be told again by whoever ends it; the row shows it.
        return {
            **json.loads(done.stdout.splitlines()[-1]),
            **({"stderr": done.stderr[-500:]} if done.stderr else {}),
        }

    def fork() -> dict[str, Any]:
        done = program(_FORK, device)
        expect(done.returncode == 0, f"It ended with ({done.returncode}): {done.stderr[-900:]}")
        said = json.loads(done.stdout.splitlines()[0])
        expect(said.get("right", True), "The child computed another value.")
        expect(
            "right" in said or "fork" in said["message"],
            f"The child's exception does not speak of the fork: {said}",
        )
        return {**said, "stderr": done.stderr[-500:]}

    def clean(text: str) -> dict[str, Any]:
        done = ended(text)
        expect(done.returncode == 0, f"It ended with ({done.returncode}): {done.stderr[-900:]}")
        expect(not done.stderr.strip(), f"It wrote to stderr: {done.stderr[-900:]}")
        return {}

    def error_and_exit() -> dict[str, Any]:
        """An error that nobody asked for does not hang or crash the end of the process."""
        text = "x = mica.nn.functional.embedding(mica.tensor([0, 7], device=DEVICE), mica.ones(5, 3, device=DEVICE))"
        done = program(text, device)
        expect(done.returncode in (0, 1), f"It ended with ({done.returncode}): {done.stderr[-900:]}")
        return {"exit status": done.returncode, "stderr": done.stderr[-300:]}

    on_cpu = mica.device(device).type == "cpu"
    for text in [*RAISES.values(), *CLEAN.values()]:
        started[text] = pool.submit(program, text, device)
    for name, text in RAISES.items():
        if not (on_cpu and name in NOT_ON_CPU):
            yield Row(name, lambda text=text: raises(text))
    yield Row("fork after use", fork)
    for name, text in CLEAN.items():
        yield Row(name, lambda text=text: clean(text))
    yield Row("exit with an error that nobody asked for", error_and_exit)
