"""Builds Mica's wheel and uses it as a stranger would: on a bare machine, without the source tree.

The wheel is installed in an empty root (scripts/empty_root.py), build/wheel-test/root, beside
the packages that it depends on. There the README's program trains, `mica doctor` finds the
plugins, a PyTorch program runs, mica-gen reads the operators, and a plugin computes that was
built against the SDK inside of the wheel: by the compiler outside, for want of one inside.
Each check is one test; the first that fails ends the run.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from build_wheels import build
from empty_root import EmptyRoot, link

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "wheel-test"
MEGABYTES = 12
# The packages that the wheel names, and pip, which finds them there: it has no network.
PACKAGES = ("pip", "numpy", "onednn-cpu-gomp", "scipy-openblas32")

# Under torch's name: a convolution (oneDNN), LAPACK (OpenBLAS) and their gradients, and one of each
# library in the process. With an argument, another package's OpenMP runtime was there first.
PROGRAM = """
import collections, ctypes, os, sys
theirs = [ctypes.CDLL(name) for name in sys.argv[1:]]
import torch
weight = torch.randn(4, 3, 3, 3, requires_grad=True)
seen = torch.nn.functional.conv2d(torch.ones(2, 3, 8, 8), weight)
assert torch.allclose(seen, weight.sum((1, 2, 3)).view(1, 4, 1, 1).expand_as(seen), atol=1e-5)
seen.sum().backward()
assert torch.allclose(weight.grad, torch.full((4, 3, 3, 3), 72.0))
matrix = torch.randn(64, 64, dtype=torch.float64) + 64 * torch.eye(64, dtype=torch.float64)
assert torch.allclose(torch.linalg.solve(matrix, matrix @ matrix), matrix)
paths = {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}
count = collections.Counter(os.path.basename(path).split("-")[0].split(".")[0] for path in paths)
for name in ("libmica", "libgomp", "libdnnl", "libscipy_openblas"):
    assert count[name] == 1, (name, sorted(paths))
assert not theirs or set(sys.argv[1:]) < paths, sorted(paths)
"""
DEVICE = """
import mica
mica.load_plugin("/tmp/mica_null.so")
assert (mica.ones(3).to("null") + 1).cpu().tolist() == [2.0, 2.0, 2.0]
"""


def run(*command: str) -> str:
    """What a command prints; its output is shown when it fails."""
    result = subprocess.run(
        command, cwd=FOLDER, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert result.returncode == 0, f"{command} ended with {result.returncode}:\n{result.stdout[-4000:]}"
    return result.stdout


def checks() -> Iterator[str]:
    """What holds, said as each has been shown."""
    wheel = build(sys.executable, FOLDER)
    assert wheel.name.endswith("-manylinux_2_34_x86_64.whl"), wheel
    size = wheel.stat().st_size / 1e6
    assert size <= MEGABYTES, size
    yield f"{wheel.name} has {size:.1f} MB"
    audit = json.loads(run(sys.executable, "-m", "auditwheel", "show", "--json", str(wheel)))
    assert set(audit["external_libs"]) == {"libdnnl.so.3", "libscipy_openblas.so"}, audit
    yield "it needs the libraries of the packages that it names, and no other"

    root = EmptyRoot(FOLDER / "root")
    for package in PACKAGES:
        root.install(package)
    link(wheel, root.inside("/tmp") / wheel.name)
    run(*root.enter("python", "-m", "pip", "install", "-q", "--no-index", f"/tmp/{wheel.name}"))
    yield "pip installs it in an empty root"
    link(ROOT / "docs" / "snippets" / "quick_start.py", root.inside("/tmp/quick_start.py"))
    run(*root.enter("python", "/tmp/quick_start.py"))
    yield "the README's program trains"
    run(*root.enter("mica", "doctor"))
    yield "mica doctor finds the plugins"
    root.inside("/tmp/program.py").write_text(PROGRAM)
    run(*root.enter("python", "-m", "mica.torch", "/tmp/program.py"))
    yield "a PyTorch program runs, with one of each library"
    prefix = run(*root.enter("mica", "sdk")).strip()
    # Another file, and no link to the same one, which the loader would know.
    shutil.copy(root.inside(prefix) / "lib" / "libgomp.so.1", root.inside("/tmp"))
    run(*root.enter("python", "-m", "mica.torch", "/tmp/program.py", "/tmp/libgomp.so.1"))
    yield "it shares an OpenMP runtime that is there already"

    sdk, plugin = root.inside(prefix), FOLDER / "null_device"
    run("cmake", "-S", str(ROOT / "examples" / "null_device"), "-B", str(plugin), "-G", "Ninja",
        f"-DCMAKE_PREFIX_PATH={sdk}")  # fmt: skip
    run("cmake", "--build", str(plugin))
    for file in ("mica_null.so", "null.json"):
        link(plugin / file, root.inside("/tmp") / file)
    run(*root.enter("python", "-c", DEVICE))
    yield "a plugin built against its SDK computes"
    operators = f"{prefix}/share/mica/native_functions.yaml"
    run(*root.enter(f"{prefix}/bin/mica-gen", "--native", operators, "--stats"))
    yield "mica-gen reads the operators"


def main() -> int:
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    passed = 0
    try:
        for held in checks():
            passed += 1
            print(held, flush=True)
    except (AssertionError, subprocess.CalledProcessError) as error:
        print(f"{error}\n{passed} passed, 1 failed")
        return 1
    print(f"{passed} passed, 0 failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
