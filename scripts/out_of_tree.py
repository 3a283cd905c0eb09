"""Builds the out-of-tree examples against the installed SDK, as a vendor would.

Installs the release build into build/install, then configures, builds and tests
(ctest) every examples/<name> that has a CMakeLists.txt, in build/examples/<name>,
with nothing but CMAKE_PREFIX_PATH pointing at the installation. The counts are
ctest's. Their programs find libmica's Python package through PYTHONPATH.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("MICA_BUILD_DIR", ROOT / "build" / "release"))
INSTALL = ROOT / "build" / "install"


def run(*command: str) -> int:
    """Runs a command and shows its output when it fails."""
    result = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, cwd=ROOT
    )
    if result.returncode != 0 or command[0] == "ctest":
        print(result.stdout, flush=True)
    return result.returncode


def main() -> int:
    shutil.rmtree(INSTALL, ignore_errors=True)
    if run("cmake", "--install", str(BUILD), "--prefix", str(INSTALL)):
        return 1
    status = 0
    for listing in sorted((ROOT / "examples").glob("*/CMakeLists.txt")):
        source = listing.parent
        build = ROOT / "build" / "examples" / source.name
        print(f"== {source.name}")
        status |= (
            run(
                *["cmake", "-S", str(source), "-B", str(build), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"],
                *[f"-DCMAKE_PREFIX_PATH={INSTALL}", f"-DPython_EXECUTABLE={sys.executable}"],
            )
            or run("cmake", "--build", str(build))
            or run("ctest", "--test-dir", str(build), "--output-on-failure")
        )
    return 1 if status else 0


if __name__ == "__main__":
    sys.exit(main())
