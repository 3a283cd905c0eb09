"""Plugins that were built long ago run on today's host, and fresh builds by other
compilers and with other standard libraries do. A golden plugin is recorded once for
each minor version, by record.py, and never built again."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from build import CLANGXX, LIBCXX, OLD_STRING, plugin, python

GOLDEN = sorted((Path(__file__).resolve().parent / "golden").glob("*/*.so"))
VARIANTS = ("gcc", "clang", "c")  # of the golden plugin; objects.so is used by test_object_plugin.py
BUILD = Path(os.environ["MICA_BUILD_DIR"])

USE = """
import sys, warnings, mica
variant = sys.argv[2]
mica.load_plugin(sys.argv[1])
mica.load_plugin(sys.argv[1])
space, device = getattr(mica.ops, "golden_" + variant), "golden." + variant
x = mica.tensor([1.0, -2.0, 3.0, 4.0])
assert space.affine(x, 2.0, 1.0).tolist() == [3.0, -3.0, 7.0, 9.0]
try:
    space.affine(mica.arange(3), 2.0, 1.0)
except TypeError as error:
    assert "needs contiguous float32" in str(error)
else:
    raise AssertionError("an int64 tensor was taken")
for index in range(2):
    there = x.to(f"{device}:{index}")
    assert str(there.device) == f"{device}:{index}", there.device
    assert mica.neg(there).cpu().tolist() == [-1.0, 2.0, -3.0, -4.0]
assert mica.device_count(device) == 2
if hasattr(space, "probe"):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        bits = space.probe(x)
    assert bits == (1 << 11) - 1, f"{bits:b}"
    assert [str(w.message) for w in caught] == ["golden probe was here"]
if hasattr(space, "raise"):
    fails = getattr(space, "raise")
    for which, kind, text in (
        (0, RuntimeError, "golden sum 45"),
        (1, IndexError, "golden sum 45"),
        (2, mica.OutOfMemoryError, "memory"),
        (3, RuntimeError, "no std::exception"),
        (4, RuntimeError, ""),
    ):
        try:
            fails(x, which)
        except kind as error:
            assert text in str(error), error
        else:
            raise AssertionError(f"raise({which}) returned")
    assert fails(x, 5) == 45
mica.disable_plugin("golden." + variant)
try:
    space.affine(x, 2.0, 1.0)
except (RuntimeError, AttributeError, NotImplementedError):
    pass
else:
    raise AssertionError("a disabled plugin answered")
mica.enable_plugin("golden." + variant)
assert space.affine(x, 2.0, 1.0).tolist() == [3.0, -3.0, 7.0, 9.0]
print("used")
"""


def use(path: Path, variant: str) -> None:
    result = python(USE, str(path), variant)
    assert result.stdout == "used\n", result.stdout + result.stderr


def test_every_minor_has_its_golden_plugins() -> None:
    versions = {path.parent.name for path in GOLDEN}
    assert "1.0" in versions
    for version in versions:
        assert {p.stem for p in GOLDEN if p.parent.name == version} == {*VARIANTS, "objects"}


@pytest.mark.parametrize(
    "path", [p for p in GOLDEN if p.stem in VARIANTS], ids=lambda p: f"{p.parent.name}-{p.stem}"
)
def test_golden_plugin_runs_on_todays_host(path: Path) -> None:
    use(path, path.stem)


@pytest.mark.parametrize("path", GOLDEN, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_golden_plugin_is_small_and_plain(path: Path) -> None:
    assert path.stat().st_size < 30 * 1024
    exported(path)


@pytest.mark.parametrize(
    ("variant", "compiler"), [("clang14", CLANGXX), ("libcxx", LIBCXX), ("old_string", OLD_STRING)]
)
def test_build_with_another_compiler_or_library_runs(variant: str, compiler: tuple[str, ...]) -> None:
    path = plugin("golden.cc", f'-DVARIANT="{variant}"', compiler=compiler)
    needed = subprocess.run(["readelf", "-d", str(path)], capture_output=True, text=True, check=True).stdout
    assert ("libc++.so" in needed) == (variant == "libcxx")
    use(path, variant)


def exported(path: Path) -> None:
    """Fails when a plugin exports more or less than its two entry symbols."""
    symbols = subprocess.run(
        ["nm", "-D", "--defined-only", str(path)], capture_output=True, text=True, check=True
    ).stdout
    names = {line.split()[-1] for line in symbols.splitlines()}
    assert names == {"mica_plugin_query_v1", "mica_plugin_init_v1"}
    sections = subprocess.run(
        ["readelf", "-sW", str(path)], capture_output=True, text=True, check=True
    ).stdout
    assert not re.search(r"\bUNIQUE\b", sections)


def test_backends_of_the_build_export_two_symbols() -> None:
    examples = [
        *(BUILD.parent / "examples").glob("*/mica_*.so"),
        *(BUILD.parent / "examples").glob("*/*/mica_*.so"),
    ]
    for path in [BUILD / "lib" / "mica" / "plugins" / "mica_cpu.so", *examples]:
        exported(path)
