"""The simulated GPU (plugins/simt), which runs the kernels of every GPU backend on the CPU."""

import os
from pathlib import Path

import pytest
from gpu_device import IS_SIMULATED

ROOT = Path(__file__).resolve().parents[2]
SIMT = Path(os.environ.get("MICA_BUILD_DIR", ROOT / "build" / "release")) / "simt" / "mica_simt.so"


@pytest.fixture(scope="session")
def simt_plugin():
    """Its file, for processes that name it."""
    return str(SIMT)


@pytest.fixture(scope="session")
def simt(simt_plugin):
    """Loaded into this process; devices simt:0 and simt:1."""
    import mica

    if IS_SIMULATED:
        mica.load_plugin(simt_plugin)
    return simt_plugin


@pytest.fixture(autouse=True)
def _counts_of_this_test_alone():
    """Tests say that nothing fell back to the CPU: what others of the process counted is none of theirs."""
    import mica

    mica.fallback_counts(reset=True)
