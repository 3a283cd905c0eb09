"""Builds Mica's wheel for each CPython: build_wheels.py [--pythons FOLDER] [--out FOLDER].

For the interpreter that runs this, and for those of `--pythons`, a folder in which each
folder is an installation (bin/python3 and headers), as pyenv's versions/ and uv's python/
are. An interpreter older than 3.10, without headers or without pip is left out, and said to
be. The first builds with the packages of its environment; for each of the others pip makes
an environment. Only mica._C differs from one Python to the next; ccache brings the rest.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ASK = """
import importlib.util, os, sys, sysconfig
header = os.path.join(sysconfig.get_paths()["include"], "Python.h")
print("it is not CPython" if sys.implementation.name != "cpython"
      else "it is older than 3.10" if sys.version_info < (3, 10)
      else f"it has no {header}" if not os.path.exists(header)
      else "it has no pip" if importlib.util.find_spec("pip") is None
      else sys.implementation.cache_tag)
"""


def build(python: str, out: Path) -> Path:
    """The wheel that this interpreter's pip builds into `out`, where no other of its tag lies."""
    isolation = ["--no-build-isolation"] if python == sys.executable else []
    # The compilers by the names that the presets' builds have: ccache goes by them.
    environment = {"CC": "cc", "CXX": "c++", **os.environ}
    before = set(out.glob("mica-*.whl"))
    command = [python, "-m", "pip", "--disable-pip-version-check", "-q", "wheel", "--no-deps", *isolation]
    subprocess.run([*command, "-w", str(out), "."], cwd=ROOT, env=environment, check=True)
    [wheel] = set(out.glob("mica-*.whl")) - before
    return wheel


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pythons", type=Path, help="a folder of installations of Python")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "wheels", help="(default: build/wheels)")
    arguments = parser.parse_args()
    pythons = [sys.executable]
    if arguments.pythons:
        pythons += map(str, sorted(arguments.pythons.glob("*/bin/python3")))
    built: set[str] = set()
    for python in pythons:
        answer = subprocess.check_output([python, "-c", ASK], text=True).strip()
        if not answer.startswith("cpython-"):
            print(f"{python} is left out: {answer}.")
        elif answer not in built:
            built.add(answer)
            for old in arguments.out.glob(f"mica-*-{answer.replace('cpython-', 'cp')}-*.whl"):
                old.unlink()
            wheel = build(python, arguments.out)
            print(f"{wheel}: {wheel.stat().st_size / 1e6:.1f} MB", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
