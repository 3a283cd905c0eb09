"""The layout of every type of the border is what ABI 1.0 recorded: abidiff over
typed probes, and the values of the constants. That the comparison can fail is shown
by changed headers, a row each."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest
from record import BASELINE, constants, layout, probes

from build import INCLUDE

# T1: these grow at their end, and only there.
APPEND_ONLY = {
    "MicaHost",
    "MicaRegistrar",
    "MicaDeviceTable",
    "MicaDeviceProperties",
    "MicaCall",
    "MicaKernelRecord",
    "MicaClassRecord",
    "MicaManifest",
    "MicaProgram",
    "MicaOperatorRecord",
    "MicaOperatorsExtension",
}
HOST = "const void* (*extension)(MicaStr name, uint32_t minimum_minor);\n"
# (what is changed, by what, whether a minor version may do it)
CHANGES = {
    "nothing": ("", "", True),
    "a host function is appended": (HOST, HOST + "  int64_t (*later)(void);\n", True),
    "a host function is inserted": (HOST, "  int64_t (*later)(void);\n" + HOST, False),
    "a host function is taken away": (HOST, "", False),
    "a host function's argument changes": (HOST, HOST.replace("uint32_t", "uint64_t"), False),
    "two functions change places": (
        "void (*tensor_retain)(MicaTensor*);\n  void (*tensor_release)(MicaTensor*);",
        "void (*tensor_release)(MicaTensor*);\n  void (*tensor_retain)(MicaTensor*);",
        False,
    ),
    "a record grows at its end": (
        "  const char* signature;\n} MicaKernelRecord;",
        "  const char* signature;\n  int64_t later;\n} MicaKernelRecord;",
        True,
    ),
    "a function of one argument is appended": (
        "ROW2(X, MVLGAMMA, mvlgamma)",
        "ROW2(X, MVLGAMMA, mvlgamma) ROW1(X, LATER, later)",
        True,
    ),
    "a function of one argument is inserted": ("ROW2(X, ZETA", "ROW1(X, LATER, later) ROW2(X, ZETA", False),
    "the tensor's face grows": ("  MicaDLTensor dl;\n", "  MicaDLTensor dl;\n  uint64_t later;\n", False),
    "a scalar's tag widens": ("  int32_t tag;\n  int32_t reserved; /* INT", "  int64_t tag; /* INT", False),
    "a kind of value is added": ("    MicaObject* object;\n", "    MicaObject* object;\n    void* later;\n", True),
    "a kind of value is taken away": ("    MicaGenerator* generator;\n", "", False),
    "a kind of value changes": ("    MicaGenerator* generator;\n", "    MicaTensor* generator;\n", False),
    "a kind of value is too large": ("    MicaObject* object;\n", "    void* object[3];\n", False),
    "a constant changes": ("#define MICA_F32 11", "#define MICA_F32 12", False),
    "a constant is taken away": ("#define MICA_F8E5M2 16\n", "", False),
    "an opcode is inserted": ("X(STORE, 1, N) ", "X(LATER, 1, N) X(STORE, 1, N) ", False),
    "a constant is added": ("#define MICA_F8E5M2 16\n", "#define MICA_F8E5M2 16\n#define MICA_LATER 17\n", True),
}  # fmt: skip


def recorded_constants() -> dict[str, str]:
    """Those of the recording, and the functions that became opcodes and the kinds of values that were added
    before 1.0 was published."""
    names = ("constants.txt", "functions.txt", "values.txt")
    lines = [line for name in names for line in (BASELINE / name).read_text().splitlines()]
    return dict(line.split(" ", 1) for line in lines)


def kinds_of_values(described: str) -> set[str]:
    """The members of the union in MicaValue, with their types. It takes further ones as long as it keeps its
    size; abidiff calls another type of the same size harmless, and even the loss of one."""
    root = ElementTree.fromstring(described)
    types = {e.get("id"): e for e in root.iter() if e.get("id")}

    def name(type_id: str | None) -> str:
        found = types[type_id]
        return found.get("name") or f"{name(found.get('type-id'))}*"

    [value] = [e for e in root.iter("class-decl") if e.get("name") == "MicaValue"]
    [union] = [e.get("type-id") for e in value.iter("var-decl") if e.get("name") == "u"]
    return {f"{name(e.get('type-id'))} {e.get('name')}" for e in types[union].iter("var-decl")}


def as_recorded(now: str) -> str:
    """The layout `now` without what the append-only tables got after the recording.

    A member of a T1 table that lies behind the table's recorded size is left out, and
    the size is the recorded one; all else stands as it is, for abidiff to compare.
    """

    def tables(text: str) -> tuple[ElementTree.Element, dict[str, ElementTree.Element]]:
        root = ElementTree.fromstring(text)
        return root, {e.get("name", ""): e for e in root.iter("class-decl") if e.get("name") in APPEND_ONLY}

    root, current = tables(now)
    for name, old in tables((BASELINE / "layout.abi").read_text())[1].items():
        size = old.get("size-in-bits")
        if name not in current or size is None:
            continue
        for member in current[name].findall("data-member"):
            if int(member.get("layout-offset-in-bits", "0")) >= int(size):
                current[name].remove(member)
                current[name].set("size-in-bits", size)
    return ElementTree.tostring(root, encoding="unicode")


def is_kept(include: Path, folder: Path) -> tuple[bool, str]:
    """Whether these headers keep what was recorded, and what differs."""
    now = constants(include)
    lost = [name for name, value in recorded_constants().items() if now.get(name) != value]
    # These two say which version it is, and how many there are of an open list.
    lost = [name for name in lost if name not in ("MICA_ABI_MINOR", "MICA_DTYPE_COUNT")]
    described = folder / "layout.abi"
    described.write_text(as_recorded(layout(probes(include, folder / "probes.so"))))
    lost += kinds_of_values((BASELINE / "layout.abi").read_text()) - kinds_of_values(described.read_text())
    result = subprocess.run(
        ["abidiff", str(BASELINE / "layout.abi"), str(described)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return not lost and result.returncode == 0, f"{lost}\n{result.stdout}{result.stderr}"


@pytest.mark.parametrize("change", CHANGES)
def test_layout_is_compared_with_the_recorded_one(change: str, tmp_path: Path) -> None:
    old, new, kept = CHANGES[change]
    include = tmp_path / "include"
    shutil.copytree(INCLUDE, include)
    [header, *more] = [path for path in sorted(include.rglob("*.h")) if old in path.read_text()]
    assert not more or not old
    # The headers' own asserts stop most changes; here abidiff alone must see them.
    for path in include.rglob("*.h"):
        lines = path.read_text().splitlines(True)
        path.write_text("".join(line for line in lines if not line.startswith("MICA_LAYOUT_ASSERT(")))
    header.write_text(header.read_text().replace(old, new, 1))
    same, difference = is_kept(include, tmp_path)
    assert same is kept, difference
