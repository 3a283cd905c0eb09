"""Builds the wheel, installs it beside Mica and calls an operator: nobody imports acme_ops.

wheel_test.py <source folder> <prefix of the installed Mica> <folder to work in>
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

source, prefix, work = sys.argv[1], sys.argv[2], Path(sys.argv[3])
shutil.rmtree(work, ignore_errors=True)
work.mkdir(parents=True)
pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
build = [*pip, "wheel", source, "--no-deps", "--no-build-isolation", "-w", str(work)]
subprocess.run(build, check=True, env=dict(os.environ, CMAKE_PREFIX_PATH=prefix))
(wheel,) = work.glob("*.whl")
assert "-py3-none-" in wheel.name, wheel.name  # for every Python
site = work / "site"
subprocess.run([*pip, "install", "--no-deps", "--target", str(site), str(wheel)], check=True)

program = """
import sys
import mica
assert "acme_ops" not in sys.modules
x = mica.ones(2, requires_grad=True)
mica.ops.acme.swiglu(x, x).sum().backward()
q = mica.randn(1, 2, 2)
assert mica.ops.acme.fused_attention(q, q, q).shape == (1, 2, 2)
from acme_ops.operators import fused_attention
assert fused_attention(q, q, q).shape == (1, 2, 2)
print("1 passed, 0 failed")
"""
environment = dict(os.environ)
environment.pop("MICA_PLUGINS", None)
environment["PYTHONPATH"] = os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])
sys.exit(subprocess.call([sys.executable, "-c", program], env=environment))
