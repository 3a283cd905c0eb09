"""What holds for every test in Python, and the devices from outside that several files test with."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

# The array API's tests have a pytest.ini of their own.
sys.path.append(str(Path(__file__).parent / "support"))
from layers import absent_layer  # noqa: E402

# Memory that nobody wrote is NaN, -1 or a wild index: see tensor/poison.h. Before Mica is imported.
os.environ.setdefault("MICA_POISON_MEMORY", "255")

ROOT = Path(__file__).resolve().parents[1]
# The environment with torch runs test_<subject>_torch.py, the other one the rest. A file that the
# command line names runs in either.
TORCH = importlib.util.find_spec("torch") is not None


def pytest_ignore_collect(collection_path):
    name = collection_path.name
    return True if name.startswith("test_") and name.endswith("_torch.py") != TORCH else None


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    """A layer's folder can be deleted, and what needs the layer is then skipped: those are its tests."""
    report = (yield).get_result()
    if report.failed and (layer := absent_layer(report.longreprtext)):
        report.outcome = "skipped"
        report.longrepr = (item.location[0], item.location[1], f"keys/ has no layer {layer}")


@pytest.fixture(scope="session")
def null_device(tmp_path_factory):
    """examples/null_device, built and loaded; its memory cannot be read by the host."""
    import mica

    source = ROOT / "examples" / "null_device" / "null.cc"
    library = tmp_path_factory.mktemp("null") / "mica_null.so"
    include = ROOT / "sdk" / "include"
    subprocess.run(
        ["c++", "-std=c++17", "-O1", "-shared", "-fPIC", f"-I{include}", source, "-o", library], check=True
    )
    mica.load_plugin(str(library))
    return library


@pytest.fixture(scope="session")
def late_device(tmp_path_factory):
    """test/conformance/late_device.cc, built: a device that is truly late, for processes that name it."""
    built = tmp_path_factory.mktemp("late") / "mica_late.so"
    command = ["c++", "-std=c++17", "-O1", "-shared", "-fPIC", "-fvisibility=hidden", "-pthread"]
    source = ROOT / "test" / "conformance" / "late_device.cc"
    subprocess.run([*command, f"-I{ROOT / 'sdk' / 'include'}", "-o", built, source], check=True)
    return built


@pytest.fixture(scope="session")
def python_device():
    """A backend in Python with two devices and one kernel."""
    import mica

    device = mica.library.register_device("py.test", count=2)

    @device.kernel("mul.out")
    def mul(self, other, *, out):
        np.multiply(self, other, out=out, casting="same_kind")

    return device
