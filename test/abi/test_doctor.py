"""`mica doctor`: what it says, that it survives what it examines, and its exit status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from build import CXX, plugin


def doctor(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mica", "doctor", *arguments],
        capture_output=True, text=True, timeout=120, check=False, env={**os.environ, **environment},
    )  # fmt: skip


def report(*arguments: str, **environment: str) -> tuple[dict[str, dict[str, object]], int]:
    """The plugins of `doctor --json` by name, and the exit status."""
    result = doctor("--json", *arguments, **environment)
    content = json.loads(result.stdout)
    return {p["name"] or os.path.basename(p["path"]): p for p in content["plugins"]}, result.returncode


def test_says_what_each_plugin_registers() -> None:
    plugins, status = report()
    assert status == 0
    assert plugins["cpu"]["state"] == "loaded"
    assert plugins["cpu"]["abi"] == "1.0"
    kinds = {item["kind"] for item in plugins["cpu"]["registered"]}
    assert kinds >= {"device", "class", "kernel"}
    assert plugins["autograd"]["state"] == "loaded"


def test_text_names_the_rows() -> None:
    result = doctor(MICA_PLUGINS=str(plugin("liar.c")))
    assert result.returncode == 0, result.stdout + result.stderr
    for text in (
        "liar 1.0 (Mica tests): loaded",
        "found by   MICA_PLUGINS",
        "1 operator",
        "backend:liar.dev",
    ):
        assert text in result.stdout


def test_devices_are_described_one_by_one(late_device: Path) -> None:
    plugins, status = report(str(late_device))
    assert status == 0
    assert plugins["late"]["devices"] == {
        "late": [f"late:{number} a late device, 8.0 GiB" for number in range(2)]
    }
    assert "late:1 a late device" in doctor(str(late_device)).stdout


def test_one_device_that_fails_hides_no_other(late_device: Path) -> None:
    plugins, _ = report(str(late_device), LATE_FAULT="busy")
    assert plugins["late"]["devices"] == {
        "late": ["late:0 a late device, 8.0 GiB", "late:1: Unit 1 is in exclusive use."]
    }


def test_a_driver_that_survives_no_fork_is_asked_where_it_was_opened(late_device: Path) -> None:
    plugins, _ = report(str(late_device), LATE_FAULT="fork")
    assert len(plugins["late"]["devices"]["late"]) == 2
    assert plugins["late"]["devices"]["late"][1].startswith("late:1 a late device")


def test_a_driver_that_is_not_there_is_said() -> None:
    plugins, status = report(str(plugin("absent.cc", compiler=CXX)))
    assert status == 0
    assert plugins["absent"]["state"] == "loaded"
    [said] = plugins["absent"]["devices"]["absent"]
    assert said.startswith("no device: ")
    assert "the driver libabsent.so does not open" in said


def test_a_driver_that_crashes_when_it_is_asked_ends_nothing() -> None:
    plugins, _ = report(str(plugin("absent.cc", "-DCRASHES", compiler=CXX)))
    assert plugins["absent"]["devices"] == {
        "absent": ["no device: it crashes when it is asked for its devices, by signal (SIGABRT)"]
    }


def test_what_a_plugin_provides_is_compared_with_what_it_registers() -> None:
    path = plugin("liar.c", '-DPROVIDES="backend:bad"', '-DDEVICE="cpu"')
    plugins, status = report(str(path))
    assert (status, plugins["liar"]["state"], plugins["cpu"]["state"]) == (1, "refused", "loaded")
    assert "registers the device (cpu)" in str(plugins["liar"]["reason"])


# What is asked for and does not load: the lie and what the report says of it.
REFUSED = {
    "-DLIE_HALFWAY": "failed to start: the driver is not there",
    "-DLIE_NO_COPY": "lacks the mandatory function `copy`",
    '-DFEATURES="mmx9"': "needs the CPU feature (mmx9)",
    "-DLIE_CRASH": "it crashes when it starts, by signal (SIGABRT)",
    "-DLIE_FOREVER": "it hangs when it starts: there is no answer after (5) s",
    "-DLIE_NO_NOTE": "carries no Mica manifest",
}


@pytest.mark.parametrize("lie", REFUSED)
def test_refused_plugin_is_explained_and_the_status_is_one(lie: str) -> None:
    path = plugin("liar.c", lie)
    plugins, status = report("--seconds", "5", MICA_PLUGINS=str(path))
    assert status == 1
    [row] = [p for p in plugins.values() if p["path"] == str(path)]
    assert row["state"] == "refused"
    assert row["asked"] is True
    assert REFUSED[lie] in str(row["reason"])
    assert plugins["cpu"]["state"] == "loaded"


def test_plugin_of_the_command_line_is_asked_for() -> None:
    plugins, status = report(str(plugin("liar.c", "-DLIE_WAITING")))
    assert status == 0
    assert plugins["liar"]["asked"] is True
    waits = [r["name"] for r in plugins["liar"]["registered"] if r["waits"]]
    assert waits == ["mica::no_such_operator"]
    _, status = report("/no/such/plugin.so")
    assert status == 1


def test_left_out_kernels_and_overrides_are_said() -> None:
    plugins, _ = report(str(plugin("liar.c", "-DLIE_HASH")))
    assert "was built for another schema" in plugins["liar"]["notes"][0]
    plugins, _ = report(str(plugin("liar.c", "-DLIE_OVERRIDE")))
    overrides = [(r["name"], r["overrides"]) for r in plugins["liar"]["registered"] if r["overrides"]]
    assert overrides == [("mica::mm.out", "cpu")]


def test_name_in_only_that_is_not_there_fails() -> None:
    result = doctor(MICA_PLUGINS_ONLY="cpu,acme.npu")
    assert result.returncode == 1
    assert "MICA_PLUGINS_ONLY names the plugin (acme.npu), which did not load" in result.stdout


def test_help_lists_the_subcommands() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "mica", "--help"], capture_output=True, text=True, check=True
    )
    assert "doctor" in result.stdout
