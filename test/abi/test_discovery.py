"""Where plugins are found, and that finding them opens nothing and costs little."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import pytest

from build import plugin, python

MANIFEST = {
    "name": "liar",
    "vendor": "Mica tests",
    "version": "1.0",
    "abi_major": 1,
    "abi_minor": 0,
    "cpu_features": "",
    "runtime_version": "",
    "provides": "backend:liar.dev,operators:liar",
}

SHOW = """
import json, sys, mica
mica._C._add_plugin_folder(sys.argv[1])
def rows(): return [p for p in mica.plugins() if p.get("vendor") != "Mica"]
def opened(): return "liar-" in open("/proc/self/maps").read()
"""


def describe(folder: Path, name: str, content: object) -> None:
    text = content if isinstance(content, str) else json.dumps(content)
    (folder / f"{name}.json").write_text(text)


def show(folder: Path, program: str, **environment: str) -> object:
    """What the program's last line prints, as JSON."""
    result = python(SHOW + program, str(folder), **environment)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout.splitlines()[-1])


def test_plugin_of_a_folder_opens_when_its_operator_is_called(tmp_path: Path) -> None:
    describe(tmp_path, "liar", {**MANIFEST, "path": str(plugin("liar.c"))})
    program = """
before = [rows()[0]["state"], opened()]
seven = mica.ops.liar.seven(mica.ones(1))
print(json.dumps([before, seven, rows()[0]["state"], opened()]))
"""
    assert show(tmp_path, program) == [["found", False], 7, "loaded", True]


def test_description_with_a_path_alone_sends_to_the_note(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "x.so").symlink_to(plugin("liar.c"))
    describe(tmp_path, "liar", {"path": "inner/x.so"})
    row = show(tmp_path, "print(json.dumps([rows()[0]['name'], rows()[0]['found_by'], opened()]))")
    assert row == ["liar", "folder", False]


HOSTILE = {
    "empty": ("", "is not a flat JSON object"),
    "no object": ("[]", "is not a flat JSON object"),
    "nested": ('{"path": {"a": 1}}', "is not a flat JSON object"),
    "escape": (r'{"path": "a\u0000.so"}', "is not a flat JSON object"),
    "no UTF-8": ('{"path": "\udcff.so"}', "is not a flat JSON object"),
    "twice": ('{"path": "a.so", "path": "b.so"}', "is not a flat JSON object"),
    "cut": ('{"path": "a.so"', "is not a flat JSON object"),
    "more": ('{"path": "a.so"} {}', "is not a flat JSON object"),
    "no path": ('{"name": "liar"}', "gives no `path`"),
    "missing": ('{"path": "no_such_file.so"}', "does not exist or cannot be read"),
    "no name": ('{"path": "x.so", "abi_major": 1}', "gives no name"),
    "huge": ('{"path": "' + "a" * 70000 + '"}', r"has 70012 bytes; it may have 65536"),
    "folder": ('{"path": "."}', "does not exist or cannot be read"),
    "device": ('{"path": "/dev/zero"}', "does not exist or cannot be read"),
}


def test_hostile_descriptions_are_refused_and_the_rest_goes_on(tmp_path: Path) -> None:
    for name, (text, _) in HOSTILE.items():
        (tmp_path / f"{name}.json").write_bytes(text.encode(errors="surrogateescape"))
    describe(tmp_path, "z", {**MANIFEST, "path": str(plugin("liar.c"))})
    program = """
print(json.dumps([[p["reason"] for p in rows()], mica.ops.liar.seven(mica.ones(1))]))
"""
    reasons, seven = show(tmp_path, program)
    assert seven == 7
    for name, (_, message) in HOSTILE.items():
        # A path that is no file stands for itself in its reason.
        assert [r for r in reasons if message in r], (name, reasons)


def test_description_that_copies_another_manifest_is_refused(tmp_path: Path) -> None:
    describe(tmp_path, "liar", {**MANIFEST, "version": "0.9", "path": str(plugin("liar.c"))})
    program = """
try: mica.ops.liar.seven
except AttributeError: pass
print(json.dumps(rows()[0]["reason"]))
"""
    reason = show(tmp_path, program)
    assert "copies another manifest" in reason
    assert "`version` (0.9) against (1.0)" in reason


@pytest.mark.parametrize(
    ("variable", "value", "state"),
    [
        ("MICA_PLUGINS_DISABLE", "liar", "refused"),
        ("MICA_PLUGINS_ONLY", "cpu,autograd", "refused"),
        ("MICA_PLUGINS_ONLY", "cpu,liar", "found"),
        ("MICA_PLUGINS_DISABLE", "other", "found"),
    ],
)
def test_variables_leave_plugins_out(tmp_path: Path, variable: str, value: str, state: str) -> None:
    describe(tmp_path, "liar", {**MANIFEST, "path": str(plugin("liar.c"))})
    found, reason = show(
        tmp_path, "print(json.dumps([rows()[0]['state'], rows()[0]['reason']]))", **{variable: value}
    )
    assert found == state
    assert (variable in reason) == (state == "refused")


def package(folder: Path, name: str, module: str, entry: str) -> None:
    """An installed distribution with one entry point."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[mica.plugins]\n{name} = {entry}\n")
    (folder / f"{name}_module.py").write_text(module)


def test_entry_points_are_asked_when_they_are_needed(tmp_path: Path) -> None:
    path = plugin("liar.c")
    package(tmp_path, "good", f"def paths(): return [{str(path)!r}]\n", "good_module:paths")
    package(tmp_path, "bad", "raise OSError('no driver')\n", "bad_module:paths")
    package(tmp_path, "odd", "paths = 7\n", "odd_module:paths")
    program = """
import os, sys, json
sys.path.insert(0, os.environ["SITE"])
before = set(sys.modules)
import mica
mica.ones(3) + mica.ones(3)
early = sorted({"importlib.metadata", "good_module", "bad_module"} & (set(sys.modules) - before))
seven = mica.ops.liar.seven(mica.ones(1))
rows = {p["found_by"].split()[2]: [p["state"], p["reason"]] for p in mica.plugins() if p["found_by"].startswith("entry")}
print(json.dumps([early, seven, rows]))
"""
    result = python(program, SITE=str(tmp_path))
    assert result.returncode == 0, result.stderr
    early, seven, rows = json.loads(result.stdout)
    assert early == []
    assert seven == 7
    assert rows["good"] == ["loaded", ""]
    assert rows["bad"][0] == "refused"
    assert "bad = bad_module:paths of bad fails: OSError: no driver" in rows["bad"][1]
    assert "neither a path nor a list of paths" in rows["odd"][1]


def test_hundred_unused_plugins_cost_little(tmp_path: Path) -> None:
    path = plugin("liar.c")
    for i in range(100):
        copy = tmp_path / f"p{i}.so"
        copy.write_bytes(path.read_bytes())
        describe(tmp_path, f"p{i}", {**MANIFEST, "name": f"p{i}", "path": copy.name})
    program = (
        SHOW.replace("mica._C._add_plugin_folder(sys.argv[1])\n", "")
        + """
import time
mica.ones(3) + mica.ones(3)
start = time.perf_counter()
mica._C._add_plugin_folder(sys.argv[1])
seconds = time.perf_counter() - start
print(json.dumps([seconds * 1e3, len(rows()), opened()]))
"""
    )
    answers = [show(tmp_path, program) for _ in range(5)]
    assert all(answer[1:] == [100, False] for answer in answers)
    cost = min(answer[0] for answer in answers)  # noise only adds
    print(f"100 descriptions: {cost:.2f} ms")
    assert cost <= 5


def test_loading_costs_little_beyond_the_linker(tmp_path: Path) -> None:
    path = plugin("liar.c")
    program = """
import ctypes, json, os, sys, time
import mica
mica.ones(3) + mica.ones(3)
# Of the processor: what else runs on the machine has no part in it.
start = time.process_time()
ctypes.CDLL(sys.argv[2], mode=os.RTLD_NOW | os.RTLD_LOCAL)
linker = time.process_time() - start
start = time.process_time()
mica.load_plugin(sys.argv[1])
print(json.dumps([(time.process_time() - start) * 1e3, linker * 1e3]))
"""
    costs = []
    for i in range(7):
        pair = [tmp_path / f"{i}{j}.so" for j in range(2)]
        for copy in pair:
            copy.write_bytes(path.read_bytes())
        result = python(program, *map(str, pair))
        assert result.returncode == 0, result.stderr
        load, linker = json.loads(result.stdout)
        costs.append(load - linker)
    cost = statistics.median(costs)
    print(f"beyond the linker: {cost:.2f} ms")
    assert cost <= 5
