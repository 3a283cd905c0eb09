"""examples/python_device runs, in a process of its own, and trains."""

import os
import subprocess
import sys
from pathlib import Path

TOY = Path(__file__).resolve().parents[2] / "examples" / "python_device" / "toy.py"


def test_the_toy_device_trains():
    result = subprocess.run(
        [sys.executable, str(TOY)], capture_output=True, text=True, env=os.environ, timeout=120, check=False
    )
    assert result.returncode == 0, result.stderr
    assert "loss 0.00e+00" in result.stdout or "e-" in result.stdout, result.stdout
    assert "the backend's kernel for" in result.stdout, result.stdout
    assert len(TOY.read_text().splitlines()) < 100
