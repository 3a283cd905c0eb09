"""The layers of keys/ on a host whose private structs are others.

Each is built against the SDK's headers alone, by gcc and by clang with another standard library, and put in
the place of Mica's own in the package of preset asan, which has numbers in front of what the host keeps to
itself (tensor/private_struct.h): what a layer knew of that would be wrong there, and is watched by the
sanitizers. The programs are those of test/abi/test_layers.py. Ends with "N passed, M failed".
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from fuzz_operators import environment

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "test" / "abi"), str(ROOT / "test" / "support")]

from test_layers import OWN  # noqa: E402

from build import CXX, LIBCXX, plugin  # noqa: E402


def complaint(layer: str, compiler: tuple[str, ...]) -> str:
    """What is wrong with a layer there; "" if nothing is."""
    path = str(plugin(str(ROOT / "keys" / layer), compiler=compiler))
    command = [sys.executable, "-c", "import json, sys, mica\n" + OWN[layer], path]
    run = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=300, check=False)
    if run.returncode != 0:
        return f"ended with {run.returncode}:\n{run.stderr[-3000:]}"
    ours, theirs, as_expected, where = json.loads(run.stdout)
    if where != [path]:
        return f"ran beside the test: {where} is loaded"
    return "" if ours == theirs and as_expected else f"computed {theirs}, where Mica's own gave {ours}"


def main() -> int:
    """Runs every layer by both compilers."""
    failed = 0
    for layer in OWN:
        for name, compiler in (("gcc", CXX), ("clang with libc++", LIBCXX)):
            wrong = complaint(layer, compiler)
            failed += bool(wrong)
            print(f"{layer}, built by {name}: {wrong or 'passed'}", flush=True)
    print(f"{2 * len(OWN) - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
