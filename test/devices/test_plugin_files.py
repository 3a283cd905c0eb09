"""Plugins' files that are missing, cut short, foreign or of another machine: `import mica`
works, meta tensors work, and whoever needs the plugin is told which file and why."""

from __future__ import annotations

import os
import shutil
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from process import printed

LIB = Path(os.environ["MICA_BUILD_DIR"]) / "lib"

# What still works without the CPU's plugin, the error of what does not, and the list of plugins.
WITHOUT_CPU = """
import mica
assert (mica.ones(2, 3, device="meta") @ mica.ones(3, 4, device="meta")).shape == (2, 4)
try:
    print(mica.ones(2) + 1)
except NotImplementedError as error:
    print(error)
print([(p["name"], p["state"], p["reason"]) for p in mica.plugins()])
"""
WITH_CPU = """
import mica
assert (mica.ones(2) + 1).tolist() == [2, 2]
print([(p["path"], p["state"], p["reason"]) for p in mica.plugins()])
"""


def cut(share: float) -> Callable[[Path], None]:
    def change(file: Path) -> None:
        os.truncate(file, int(file.stat().st_size * share))

    return change


def cut_into_the_last_segment(file: Path) -> None:
    data = file.read_bytes()
    (start,), (size, count) = struct.unpack_from("<Q", data, 32), struct.unpack_from("<HH", data, 54)
    headers = [struct.unpack_from("<IIQQQQ", data, start + i * size) for i in range(count)]
    os.truncate(file, max(h[2] + h[5] for h in headers if h[0] == 1) - 100)  # PT_LOAD: offset and length


def write(at: int, data: bytes) -> Callable[[Path], None]:
    def change(file: Path) -> None:
        with file.open("r+b") as f:
            f.seek(at)
            f.write(data)

    return change


def text(file: Path) -> None:
    file.write_text("This is no shared object.\n")


# What is done to a copy of mica_cpu.so.
DAMAGE: dict[str, Callable[[Path], None]] = {
    "moved away": Path.unlink,
    "empty": cut(0),
    "half": cut(0.5),
    "all but the last bytes that are loaded": cut_into_the_last_segment,
    "text": text,
    "ARM": write(18, b"\xb7\x00"),  # e_machine: EM_AARCH64
    "32 bits": write(4, b"\x01"),  # EI_CLASS: ELFCLASS32
    "no ELF": write(0, b"MZ"),
    "a folder": lambda file: (file.unlink(), file.mkdir())[1],
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_without_the_cpu_plugin(damage: str, tmp_path: Path) -> None:
    shutil.copytree(LIB, tmp_path / "lib", symlinks=True, ignore=shutil.ignore_patterns("cmake", "*.a"))
    plugins = tmp_path / "lib" / "mica" / "plugins"
    DAMAGE[damage](plugins / "mica_cpu.so")
    said = printed(WITHOUT_CPU, LD_LIBRARY_PATH=str(tmp_path / "lib"))
    assert "no kernel for the backend (cpu)" in said
    assert str(plugins) in said
    assert "('cpu', 'refused'" in said or "backend:cpu" in said


@pytest.mark.parametrize("damage", DAMAGE)
def test_beside_the_cpu_plugin(damage: str, tmp_path: Path) -> None:
    file = tmp_path / "vendor.so"
    shutil.copy(LIB / "mica" / "plugins" / "mica_cpu.so", file)
    DAMAGE[damage](file)
    said = printed(WITH_CPU, MICA_PLUGINS=str(file))
    assert f"('{file}', 'loaded'" not in said
    assert str(file) in said


def test_a_foreign_library_is_refused() -> None:
    foreign = Path(sys.modules["_struct"].__file__ or "") if "_struct" in sys.modules else LIB / "libmica.so"
    said = printed(WITH_CPU, MICA_PLUGINS=str(foreign))
    assert f"('{foreign}', 'loaded'" not in said and str(foreign) in said
