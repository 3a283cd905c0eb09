"""The younger functions of a device's table, each driven by the host: flags of events, priorities of streams, peers,
attributes by key; and options that a plugin declares. On test/conformance/late_device.cc, which has them all, and
on the null device, which has none."""

from __future__ import annotations

from pathlib import Path

import pytest
from process import printed, ran

import mica


def run(late_device: Path, program: str, **settings: str) -> tuple[list[str], list[str]]:
    """The lines that a program prints, and those that the device says."""
    done = ran("import mica\n" + program, MICA_PLUGINS=str(late_device), LATE_SAY="1", **settings)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), done.stderr.splitlines()


def test_an_event_is_made_for_what_it_is_for(late_device: Path) -> None:
    program = """
stream = mica.Stream("late")
stream.record_event().synchronize()
start, end = (mica.late.Event(enable_timing=True) for _ in range(2))
start.record(stream)
end.record(stream)
end.synchronize()
print(start.elapsed_time(end) >= 0)
mica.Event("late", blocking=True).record(stream)
plain = mica.Event("late")
plain.record(stream)
try:
    start.elapsed_time(plain)
except RuntimeError as error:
    print(error)
"""
    printed_lines, said = run(late_device, program)
    assert printed_lines == [
        "True",
        "The time between two events needs both to be made to be timed; make them with enable_timing=True.",
    ]
    made = [line for line in said if line.startswith("event of flags")]
    assert made == ["event of flags 1 made"] * 2 + ["event of flags 2 made"]


def test_priorities_are_those_that_the_device_has(late_device: Path) -> None:
    program = """
print(mica.late.Stream.priority_range())
high, higher, low = (mica.Stream("late", priority=p) for p in (-2, -9, 5))
"""
    printed_lines, said = run(late_device, program)
    assert printed_lines == ["(0, -2)"]
    assert [line for line in said if "priority" in line] == ["of priority -2"] * 2


def test_peers_and_attributes(late_device: Path) -> None:
    program = """
late = mica.late
print(late.can_device_access_peer(0, 1), late.can_device_access_peer(1, 0), late.can_device_access_peer(0, 0))
print(late.get_device_capability(), late.get_device_attribute("late.delay"), late.get_device_attribute("late.delay", 1))
for call in (lambda: late.get_device_attribute("acme.cores"), lambda: late.can_device_access_peer(0, 5)):
    try:
        call()
    except (KeyError, RuntimeError) as error:
        print(error.args[0])
"""
    assert run(late_device, program)[0] == [
        "True False False",
        "(7, 5) 1000 1001",
        "The device (late:0) has no attribute of the key (acme.cores); its plugin knows which it has.",
        "The device (late:5) does not exist; the backend (late) has (2) devices, numbered from 0.",
    ]


@pytest.mark.usefixtures("null_device")
def test_a_table_without_them() -> None:
    null = mica.null
    assert not null.can_device_access_peer(0, 1)
    assert null.get_device_capability() == (0, 0)
    with pytest.raises(KeyError, match="acme.cores"):
        null.get_device_attribute("acme.cores")
    with pytest.raises(NotImplementedError, match="`priority_range` lacks in its table"):
        null.Stream.priority_range()
    assert mica.Stream("null", priority=-9).query()
    event = mica.Event("null", enable_timing=True, blocking=True)
    event.record()
    event.synchronize()


def test_options_of_a_plugin(late_device: Path) -> None:
    program = """
import sys, time
try:
    mica.set_plugin_option("late.milliseconds", 1)  # opens the plugin
except ValueError as error:
    print(error)
print(mica.plugin_options())
def took():
    x = mica.ones(64).to("late")
    begin = time.perf_counter()
    (x * x).cpu()
    return time.perf_counter() - begin
mica.set_plugin_option("late.microseconds", 200_000)
print(took() > 0.2)
mica.set_plugin_option("late.microseconds", 0)
print(took() < 0.2, mica.plugin_options())
for name, value in (("late", 1), ("acme.npu.cores", 2), ("late.microseconds", "many")):
    try:
        mica.set_plugin_option(name, value)
    except (TypeError, ValueError) as error:
        print(type(error).__name__, "late.microseconds" in str(error))
"""
    given = {"MICA_PLUGINS": str(late_device), "MICA_PLUGIN_OPTIONS": "acme.x=2, late.microseconds = 7"}
    assert printed("import mica\n" + program, **given).splitlines() == [
        "No plugin that is loaded declares the option (late.milliseconds). Those that are declared: "
        "(late.microseconds)",
        "{'late.microseconds': 7}",
        "True",
        "True {'late.microseconds': 0}",
        "ValueError True",
        "ValueError True",
        "TypeError False",
    ]


def test_an_option_in_the_environment_that_is_no_number(late_device: Path) -> None:
    program = "mica.set_plugin_option('late.microseconds', 3)\nprint(mica.plugin_options())"
    printed_lines, said = run(late_device, program, MICA_PLUGIN_OPTIONS="late.microseconds=few")
    assert printed_lines == ["{'late.microseconds': 3}"]
    assert "the value (few), which is no number; it has (-1)" in "".join(said)
