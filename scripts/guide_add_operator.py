"""Runs docs/guides/add-an-operator.md: adds its operator, builds, and calls it.

The guide's YAML blocks are appended to copies of its two files, a second build folder
(build/guide) is made from those, and the guide's check and its kit run on the package that comes out,
whose docstring of the operator is checked, too.
The source tree is not touched. Objects that did not change come from ccache, which knows
them by paths that count from the build folder: it stands as deep as the presets' ones.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
GUIDE = ROOT / "docs" / "guides" / "add-an-operator.md"
FOLDER = ROOT / "build" / "guide"
# The files that the guide makes longer, and its blocks.
LONGER = {"operators/nn_activations.yaml": "native", "derivatives.yaml": "derivatives"}

# Nothing is left to say elsewhere: the entry makes a docstring that scripts/docstrings.py takes.
DOCSTRING = """
import sys
sys.path.insert(0, "scripts")
import docstrings
[made] = [o for o in docstrings.operators() if o.name == "mica.softshrinkage"]
faults = list(docstrings.operator_faults(made))
assert not faults, faults
"""


def block(name: str) -> str:
    """The fenced block below the marker `<!-- guide: name -->`."""
    found = re.search(rf"<!-- guide: {name} -->\n```\w*\n(.*?)^```$", GUIDE.read_text(), re.M | re.S)
    if found is None:
        raise SystemExit(f"The guide has no block ({name}).")
    return found[1]


def run(*command: str, **options: object) -> None:
    result = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT, **options
    )
    if result.returncode != 0:
        print(result.stdout[-6000:])
        print("0 passed, 1 failed")
        sys.exit(1)


def main() -> None:
    (FOLDER / "operators").mkdir(parents=True, exist_ok=True)
    for source in (*ROOT.glob("*.yaml"), *(ROOT / "operators").glob("*.yaml")):
        file = str(source.relative_to(ROOT))
        text = source.read_text() + (block(LONGER[file]) if file in LONGER else "")
        if not (FOLDER / file).exists() or (FOLDER / file).read_text() != text:
            (FOLDER / file).write_text(text)
    arguments = [
        f"-DMICA_NATIVE_YAML={FOLDER / 'native_functions.yaml'}",
        f"-DMICA_DERIVATIVES_YAML={FOLDER / 'derivatives.yaml'}",
    ]
    run("cmake", "--preset", "release", "-B", str(FOLDER), "-DMICA_TESTS=OFF", "-DMICA_BENCH=OFF", *arguments)
    start = time.monotonic()
    run("cmake", "--build", str(FOLDER), "--target", "package")
    print(f"built in {time.monotonic() - start:.0f} s")
    environment = os.environ | {"PYTHONPATH": str(FOLDER / "python")}
    run(sys.executable, "-c", block("check"), env=environment)
    run(sys.executable, "-c", DOCSTRING, env=environment)
    run(*block("kit").replace("python", sys.executable, 1).split(), env=environment)
    print("3 passed, 0 failed")


if __name__ == "__main__":
    main()
