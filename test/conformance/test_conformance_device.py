"""The kit's checks of streams, copies and processes on a device that is truly late, and
that breaks a promise on demand: test/conformance/late_device.cc."""

from __future__ import annotations

import json
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
    assert len(found) > 20 and wrong == {}
    assert found["streams: time between events"] == ["unsupported"]


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        ("event_wait", "streams: an event orders two streams"),
        ("event_sync", "streams: events happen"),
        ("stream_sync", "copies: large there and back"),
        ("copy", "copies: every dtype there and back"),
    ],
)
def test_a_broken_promise_is_found(late_device: Path, fault: str, check: str) -> None:
    assert verdicts(late_device, fault, 60, check)[check][0] == "fails"


def test_a_crash_and_a_hang_are_rows(late_device: Path) -> None:
    found = verdicts(late_device, "crash", 60, "copies: strided", "copies: empty")
    assert len(found) == 3
    assert all("SIGSEGV" in what[1] for what in found.values()), found
    found = verdicts(late_device, "hang", 3, "copies: empty", "memory: statistics")
    assert "did not end within 3 s" in found["copies: empty and single elements"][1]
    assert found["memory: statistics"] == ["passes"]
