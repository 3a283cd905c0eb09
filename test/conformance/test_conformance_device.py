"""The kit's checks of streams, copies and processes on a device that is truly late, and
that breaks a promise on demand: test/conformance/late_device.cc."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from process import printed

pytestmark = pytest.mark.alone
ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
import json, sys
from mica.conformance import runtime
from mica.conformance.kit import load_checks
from mica.conformance.worker import Task, run_isolated
load_checks()
names = [c.name for c in runtime.CHECKS if any(word in c.name for word in sys.argv[2:])]
rows = [r for rs in run_isolated([Task("runtime", n, "late") for n in names], float(sys.argv[1])) for r in rs]
print(json.dumps({r.name: [r.verdict, *(f.detail for f in r.failures)] for r in rows}))
"""


def verdicts(late_device: Path, fault: str, limit: float, *words: str) -> dict[str, list[str]]:
    said = printed(PROGRAM, str(limit), *words, timeout=300, MICA_PLUGINS=str(late_device), LATE_FAULT=fault)
    return json.loads(said.splitlines()[-1])


def test_a_late_device_passes(late_device: Path) -> None:
    found = verdicts(late_device, "none", 60, "streams", "copies", "memory", "process", "programs", "threads")
    wrong = {name: what for name, what in found.items() if what[0] == "fails"}
    assert len(found) > 30 and wrong == {}
    assert {what[0] for what in found.values()} == {"passes"}


# The promises that late_device.cc breaks on demand, and the check of the kit that must find each.
FAULTS = {
    "event_wait": "streams: an event orders two streams",
    "event_destroy": "streams: an event orders two streams",
    "record_once": "streams: an event recorded again",
    "event_sync": "streams: events happen",
    "record_early": "streams: events happen",
    "record_stream0": "streams: events happen",
    "event_query_never": "streams: events happen",
    "stream_query_never": "streams: events happen",
    "event_query_early": "streams: an event says when it happened",
    "stream_query_early": "streams: a stream says when it is done",
    "stream_sync": "streams: a stream is waited for",
    "device_sync": "streams: a device is waited for",
    "elapsed": "streams: time between events",
    "order": "streams: work of one stream is in order",
    "copy": "copies: every dtype there and back",
    "copy_now": "streams: copies and kernels are in their stream",
    "copy_stream0": "streams: copies and kernels are in their stream",
    "pinned_now": "streams: copies and kernels are in their stream",
    "kernel_now": "streams: copies and kernels are in their stream",
    "kernel_stream0": "streams: copies and kernels are in their stream",
    "peer_byte": "copies: between devices",
    "peer_now": "copies: between devices in order",
    "peer_source": "copies: between devices in order",
    "exchange": "device: kernels run on their device",
    "current": "threads: each thread has its device",
    "leak": "memory: memory goes back",
    "oom": "memory: out of memory",
}
# Each check passes, fails with the fault, and passes again; else a fault would be found for another reason.
FIND = """
import json, os, sys
from mica.conformance import runtime
from mica.conformance.kit import load_checks
load_checks()

def passes(check, fault):
    os.environ["LATE_FAULT"] = fault
    try:
        [row] = runtime.run_check(check, "late")
    finally:
        os.environ["LATE_FAULT"] = "none"
        mica.synchronize("late")
    return row.verdict == "passes"

def found(fault, check):
    return (passes(check, "none"), passes(check, fault), passes(check, "none")) == (True, False, True)

import mica
faults = json.loads(sys.argv[1])
missed = [fault for fault, check in faults.items() if not found(fault, check)]
print(json.dumps(missed))
"""


@pytest.mark.parametrize("microseconds", [1000, 100, 0])  # that a job takes
def test_every_broken_promise_is_found(late_device: Path, microseconds: int) -> None:
    settings = {"MICA_PLUGINS": str(late_device), "LATE_MICROSECONDS": str(microseconds)}
    said = printed(FIND, json.dumps(FAULTS), timeout=600, **settings)
    assert len(FAULTS) == 27 and json.loads(said.splitlines()[-1]) == []


def test_streams_that_are_the_default_one_are_found(late_device: Path) -> None:
    # In a process of its own, as the host keeps streams for the next who asks.
    check = "streams: current inside its block"
    assert verdicts(late_device, "stream_zero", 60, check)[check][0] == "fails"


def test_the_list_of_faults_is_whole() -> None:
    source = Path(__file__).with_name("late_device.cc").read_text()
    faults = set(re.findall(r'Breaks\("(\w+)"\)', source)) - {
        "crash",
        "hang",
        "objects",
        "declines",
        "rude",
        "reports",
        "busy",
        "fork",
    }  # of other tests
    assert faults == {*FAULTS, "stream_zero"}


def test_a_crash_and_a_hang_are_rows(late_device: Path) -> None:
    found = verdicts(late_device, "crash", 60, "copies: strided", "copies: empty")
    assert len(found) == 3
    assert all("SIGSEGV" in what[1] for what in found.values()), found
    found = verdicts(late_device, "hang", 3, "copies: empty", "memory: statistics")
    assert "did not end within 3 s" in found["copies: empty and single elements"][1]
    assert found["memory: statistics"] == ["passes"]


PARALLEL = """
import json
from mica.conformance.kit import conform
options = {"operators": ["add.Tensor", "mul.Tensor", "neg", "relu", "sin"], "dtypes": ["float32"]}
told = [[(r.check, r.name, r.verdict, r.cases) for r in conform("late", jobs=jobs, **options).rows] for jobs in (1, 3)]
print(json.dumps([len(told[0]), told[0] == told[1]]))
"""


def test_jobs_change_no_row(late_device: Path) -> None:
    said = printed(PARALLEL, timeout=300, MICA_PLUGINS=str(late_device), LATE_MICROSECONDS="0")
    rows, same = json.loads(said.splitlines()[-1])
    assert rows > 10 and same
