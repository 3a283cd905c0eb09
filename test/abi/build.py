"""Builds the small plugins of this folder with the system's compilers, and runs programs on them.

Each build is kept by the hash of its command and sources, under build/abi, so that
a second run builds nothing.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SOURCES = Path(__file__).resolve().parent / "plugins"
INCLUDE = ROOT / "sdk" / "include"
FOLDER = ROOT / "build" / "abi"
C = ("cc", "-std=gnu11")
CXX = ("c++", "-std=c++17", "-fvisibility-inlines-hidden", "-fno-gnu-unique")
CLANGXX = ("clang++-14", "-std=c++17", "-fvisibility-inlines-hidden")
LIBCXX = (*CLANGXX, "-stdlib=libc++")
OLD_STRING = (*CXX, "-D_GLIBCXX_USE_CXX11_ABI=0")


def plugin(source: str, *options: str, compiler: tuple[str, ...] = C) -> Path:
    """The shared object of plugins/<source>, built with these options; of a folder, all of its *.cc."""
    path = SOURCES / source
    sources = sorted(path.glob("*.cc")) if path.is_dir() else [path]
    headers = sorted([*(INCLUDE / "mica").glob("*.[hi]*"), *SOURCES.glob("*.h"), *path.glob("*.h")])
    content = b"".join(file.read_bytes() for file in [*sources, *headers])
    command = [
        *compiler, "-O2", "-g0", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall",
        f"-I{INCLUDE}", "-iquote", str(ROOT), *map(str, sources),
    ]  # fmt: skip
    link = [f"-Wl,--version-script={ROOT / 'cmake' / 'plugin.map'}", "-Wl,-z,now", *options]
    key = hashlib.sha256(" ".join(command + link).encode() + content).hexdigest()[:16]
    target = FOLDER / f"{Path(source).stem}-{key}.so"
    if not target.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        unfinished = target.with_suffix(f".{os.getpid()}")
        subprocess.run([*command, *link, "-o", str(unfinished)], check=True)
        unfinished.rename(target)
    return target


def python(program: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a program in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True, text=True, timeout=120, check=False, env={**os.environ, **environment},
    )  # fmt: skip
