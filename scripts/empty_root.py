"""An empty root: a folder that holds a Python, the C and C++ run times and nothing else of a machine.

A program that runs in one needs nothing more. It is made of the files of the interpreter
that runs this, as hard links where the file system has them, and entered, by root, with unshare
and chroot: no network, processes of its own, and nothing that is mounted outlives the command.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

# Of the standard library, what no installed package needs.
LEFT_OUT = ("site-packages", "dist-packages", "test", "tests", "tkinter", "_tkinter*", "config-*", "*.a")
# What glibc and GCC bring to every machine beside what Python itself loads.
RUN_TIMES = ("libstdc++.so.6", "libgcc_s.so.1", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1")

ENTER = """set -e
mount --rbind /dev "$0/dev"
mount -t proc proc "$0/proc"
exec env -i PATH=/env/bin HOME=/tmp LANG=C.UTF-8 "$(command -v chroot)" "$0" "$@"
"""


def link(source: str | Path, target: str | Path) -> None:
    """`target` becomes the file `source`, symbolic links followed; one that is there stays."""
    source = Path(source).resolve()
    Path(target).parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except FileExistsError:  # lists of a package's files name some twice
        pass
    except OSError:  # another file system
        shutil.copy2(source, target)


def loaded_by(programs: Iterable[Path]) -> set[Path]:
    """The shared libraries that the loader opens for these files, itself among them."""
    command = ["ldd", *map(str, programs)]
    listing = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    return {Path(path) for path in re.findall(r"^\s+(?:\S+ => )?(/\S+) \(0x", listing, re.M)}


class EmptyRoot:
    """The folder, with a virtual environment in /env whose packages `install` links there."""

    def __init__(self, folder: Path) -> None:
        """Makes it anew."""
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        for name in ("dev", "proc", "tmp"):
            (folder / name).mkdir(parents=True)
        interpreter = Path(sys.executable).resolve()
        library = Path(sysconfig.get_path("stdlib"))
        ignore = shutil.ignore_patterns(*LEFT_OUT)
        shutil.copytree(library, self.inside(library), ignore=ignore, copy_function=link)
        programs = [interpreter, *self.inside(library / "lib-dynload").glob("*.so")]
        link(interpreter, self.inside(interpreter))
        for name in RUN_TIMES:
            where = subprocess.check_output(["c++", f"-print-file-name={name}"], text=True).strip()
            programs.append(Path(os.path.normpath(where)))
            link(where, self.inside(programs[-1]))
        for path in loaded_by(programs):
            link(path, self.inside(path))
        subprocess.run(self.enter(str(interpreter), "-m", "venv", "--without-pip", "/env"), check=True)

    def inside(self, path: str | Path) -> Path:
        """Where the root's file `path` lies for those outside."""
        return self.folder / Path(path).relative_to("/")

    def install(self, package: str) -> None:
        """Links the files of a package of this interpreter's environment into /env."""
        for file in importlib.metadata.files(package) or []:
            source = Path(os.path.normpath(file.locate()))  # type: ignore[arg-type]
            if source.exists() and source.is_relative_to(sys.prefix):
                link(source, self.inside("/env") / source.relative_to(sys.prefix))

    def enter(self, *command: str) -> list[str]:
        """The command that runs `command` in the root, in / and with no other variables than these."""
        apart = ["unshare", "--mount", "--net", "--pid", "--fork"]
        return [*apart, "sh", "-c", ENTER, str(self.folder), *command]
