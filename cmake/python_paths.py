"""Prints the CMake prefixes of the build's pip packages, separated by `;`.

Run by cmake/MicaDependencies.cmake with the interpreter of the build. The
packages may stand in a virtual environment or in the overlay that pip makes for
an isolated build, so their own file lists are asked.
"""

from __future__ import annotations

import importlib.metadata
import sys

CONFIGS = {
    "onednn-devel-cpu-gomp": "dnnl-config.cmake",
    "scipy-openblas32": "OpenBLASConfig.cmake",
}


def config_folder(package: str, config: str) -> str | None:
    """The folder of `config` in `package`, or None if it is not installed."""
    try:
        files = importlib.metadata.files(package) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    for file in files:
        if file.name == config:
            return str(file.locate().resolve().parent)  # type: ignore[attr-defined]
    return None


folders = {package: config_folder(package, config) for package, config in CONFIGS.items()}
for package, folder in folders.items():
    if folder is None:
        print(f"The Python package ({package}) is not installed for ({sys.executable}).", file=sys.stderr)
print(";".join(folder for folder in folders.values() if folder))
