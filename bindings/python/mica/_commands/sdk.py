"""`mica sdk`: where the SDK of this Mica lies, for CMAKE_PREFIX_PATH."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import mica

HELP = "Prints the folder of the installed SDK: cmake -DCMAKE_PREFIX_PATH=$(mica sdk) ..."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """It has none."""
    parser.set_defaults()


def prefix() -> Path | None:
    """The folder with include/, lib/cmake/Mica and bin/mica-gen; None where this package has no SDK."""
    folder = Path(mica.__file__).resolve().parent
    return folder if (folder / "lib" / "cmake" / "Mica" / "MicaConfig.cmake").exists() else None


def run(arguments: argparse.Namespace) -> int:
    """Prints it, or says on stderr what to do instead."""
    folder = prefix()
    if folder is None:
        print(
            f"The package ({Path(mica.__file__).parent}) was built without the SDK; install Mica's wheel, or its "
            "tree with `cmake --install`, and give that prefix.",
            file=sys.stderr,
        )
        return 1
    print(folder)
    return 0
