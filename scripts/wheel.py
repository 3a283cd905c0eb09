"""Builds Mica's own wheel and uses it as a stranger would: away from the source tree.

The wheel is installed into a folder of its own, build/wheel-test/site, beside the
dependencies of the environment that runs this. There `import mica` computes, `mica
doctor` finds its plugins, a network trains, and `mica sdk` leads CMake and mica-gen to
what a vendor needs: examples/null_device is built against it and computes. The last
line printed counts the steps.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "wheel-test"
SITE = FOLDER / "site"
PYTHON = sys.executable

COMPUTES = """
import mica
assert mica.__file__.startswith({site!r}), mica.__file__
assert (mica.ones(2) + 1).tolist() == [2.0, 2.0]
x = mica.randn(4, 4, requires_grad=True)
(x @ x).sum().backward()
assert x.grad.shape == (4, 4)
"""
DEVICE = """
import sys, mica
mica.load_plugin(sys.argv[1])
assert (mica.ones(3).to("null") + 1).cpu().tolist() == [2.0, 2.0, 2.0]
"""


def environment() -> dict[str, str]:
    """Without this tree's package and plugins."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("MICA_")}
    return {**kept, "PYTHONPATH": str(SITE)}


def run(*command: str, clean: bool = True) -> str:
    """What a command prints; its output is shown when it fails."""
    # The compilers by the names that the presets' builds have: ccache goes by them.
    here = {**os.environ, "CC": os.environ.get("CC", "cc"), "CXX": os.environ.get("CXX", "c++")}
    result = subprocess.run(
        command, cwd=FOLDER if clean else ROOT, env=environment() if clean else here,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip
    if result.returncode != 0:
        print(result.stdout[-4000:], flush=True)
        raise SystemExit(f"{' '.join(command)[:200]} ended with {result.returncode}\n0 passed, 1 failed")
    return result.stdout


def main() -> int:
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    pip = [PYTHON, "-m", "pip", "--disable-pip-version-check", "-q"]
    run(*pip, "wheel", "--no-build-isolation", "--no-deps", "-w", str(FOLDER), ".", clean=False)
    [wheel] = FOLDER.glob("mica-*.whl")
    run(*pip, "install", "--no-deps", "--target", str(SITE), str(wheel))
    run(PYTHON, "-c", COMPUTES.format(site=str(SITE)))
    run(PYTHON, "-m", "mica", "doctor")
    run(PYTHON, str(ROOT / "examples" / "digits" / "train.py"), "--epochs", "1")
    prefix = run(PYTHON, "-m", "mica", "sdk").strip()
    build = FOLDER / "null_device"
    run("cmake", "-S", str(ROOT / "examples" / "null_device"), "-B", str(build), "-G", "Ninja",
        f"-DCMAKE_PREFIX_PATH={prefix}")  # fmt: skip
    run("cmake", "--build", str(build))
    [plugin] = build.rglob("*null*.so")
    run(PYTHON, "-c", DEVICE, str(plugin))
    yaml = Path(prefix) / "share" / "mica" / "native_functions.yaml"
    run(str(Path(prefix) / "bin" / "mica-gen"), "--native", str(yaml), "--stats")
    size = sum(f.stat().st_size for f in SITE.rglob("*") if f.is_file())
    print(f"the installed package: {size / 1e6:.1f} MB\n9 passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
