"""Records what ABI 1.0 is: the layout baseline and the golden plugins.

    python test/abi/record.py baseline     test/abi/baseline/<major>.<minor>/{layout.abi,constants.txt}
    python test/abi/record.py golden       test/abi/golden/<major>.<minor>/{gcc,clang,c,objects}.so
    python test/abi/record.py schemas      test/abi/baseline/<major>.<minor>/schemas.txt, with the built package

A recording is made when a minor version is published, and never again for that
version: all three refuse to write over one (golden records the plugins that lack). What is
recorded is built by the compilers of Debian 12 (gcc 12, clang 14), stripped.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from build import CLANGXX, CXX, INCLUDE, ROOT, SOURCES, C, plugin

HERE = Path(__file__).resolve().parent
BASELINE = HERE / "baseline" / "1.0"  # what every later version of the major keeps
SMALL = ("-s", "-ffunction-sections", "-Wl,--gc-sections", "-fno-ident", f"-ffile-prefix-map={ROOT}=mica")
HEADERS = ("abi.h", "program.h", "operators.h")
ABIDW = ("abidw", "--no-comp-dir-path", "--no-show-locs", "--no-corpus-path", "--no-write-default-sizes")


def probes(include: Path, target: Path) -> Path:
    """The probes as a shared object with debug information, against these headers."""
    command = [*C, "-g", "-O0", "-fPIC", "-shared", f"-I{include}", str(SOURCES / "probes.c")]
    subprocess.run([*command, "-o", str(target)], check=True, cwd=target.parent)
    return target


def layout(library: Path) -> str:
    """abidw's description of the probes."""
    command = [*ABIDW, str(library)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return re.sub(r" (path|soname)='[^']*'", "", text)


def constants(include: Path) -> dict[str, str]:
    """Every MICA_ constant of the headers that has a value, and the number of every opcode."""
    source = "".join(f'#include "mica/{name}"\n' for name in HEADERS)
    command = [*C, f"-I{include}", "-E", "-x", "c", "-"]
    macros = subprocess.run(
        [*command, "-dM"], input=source, capture_output=True, text=True, check=True
    ).stdout
    values = {}
    for name, text in re.findall(r"^#define (MICA_[A-Z0-9_]+) (.+)$", macros, re.M):
        if re.fullmatch(r"[-()0-9xUINT64_Ca-f<> +|]+|INT32_MIN|\"[^\"]*\"", text):
            values[name] = text
    names = "MICA_FORALL_OPCODES(NAME_OF)"
    opcodes = subprocess.run(
        [*command, "-P", "-DNAME_OF(name, arity, result)=opcode name"],
        input=source + names, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    for i, name in enumerate(re.findall(r"opcode (\w+)", opcodes)):
        values[f"MICA_OP_{name}"] = str(i)
    return values


def version() -> str:
    """Of the headers: "1.0"."""
    text = (INCLUDE / "mica" / "abi.h").read_text()
    return ".".join(re.findall(r"#define MICA_ABI_(?:MAJOR|MINOR) (\d+)", text))


def record(path: Path, content: bytes) -> None:
    """Writes what is recorded once."""
    if path.exists():
        raise SystemExit(f"({path}) is recorded already; a recording is never replaced.")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    print(f"{path}: {len(content)} bytes")


def record_baseline() -> None:
    folder = HERE / "baseline" / version()
    library = probes(INCLUDE, Path("/tmp") / "mica_probes.so")
    record(folder / "layout.abi", layout(library).encode())
    library.unlink()
    lines = [f"{name} {value}\n" for name, value in sorted(constants(INCLUDE).items())]
    record(folder / "constants.txt", "".join(lines).encode())


def schemas() -> set[str]:
    """Every schema that a kernel may have been built for, today's and earlier ones, of Mica's operators
    but those whose names begin with an underscore, which are its own business."""
    from mica import _C

    texts = set()
    for name in _C._operator_names():
        if name.startswith("mica::") and not name.startswith("mica::_"):
            operator = _C._find_operator(name)
            texts.update([operator.schema, *operator.earlier_schemas])
    return texts


def record_schemas() -> None:
    lines = [f"{text}\n" for text in sorted(schemas())]
    record(HERE / "baseline" / version() / "schemas.txt", "".join(lines).encode())


def golden(variant: str) -> Path:
    """A build of the golden plugin as it is recorded; "objects": of the plugin of objects."""
    if variant == "objects":
        return plugin("objects.c", *SMALL)
    name = f'-DVARIANT="{variant}"'
    if variant == "c":
        return plugin("golden.c", name, *SMALL)
    compiler = CLANGXX if variant.startswith("clang") else CXX
    return plugin("golden.cc", name, *SMALL, compiler=compiler)


def record_golden() -> None:
    folder = HERE / "golden" / version()
    variants = ("gcc", "clang", "c", "objects")
    for variant in [v for v in variants if not (folder / f"{v}.so").exists()] or variants:
        record(folder / f"{variant}.so", golden(variant).read_bytes())


if __name__ == "__main__":
    {"baseline": record_baseline, "golden": record_golden, "schemas": record_schemas}[sys.argv[1]]()
