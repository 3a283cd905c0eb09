"""Devices from outside that several files test with."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

import mica

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def null_device(tmp_path_factory):
    """examples/null_device, built and loaded; its memory cannot be read by the host."""
    source = ROOT / "examples" / "null_device" / "null.cc"
    library = tmp_path_factory.mktemp("null") / "mica_null.so"
    include = ROOT / "sdk" / "include"
    subprocess.run(
        ["c++", "-std=c++17", "-O1", "-shared", "-fPIC", f"-I{include}", source, "-o", library], check=True
    )
    mica.load_plugin(str(library))
    return library


@pytest.fixture(scope="session")
def python_device():
    """A backend in Python with two devices and one kernel."""
    device = mica.library.register_device("py.test", count=2)

    @device.kernel("mul.out")
    def mul(self, other, *, out):
        np.multiply(self, other, out=out, casting="same_kind")

    return device
