"""Runs some tests on the release build, for the inner loop: what `./dev test` does with files and words.

    ./dev test test/transforms/test_func.py       a file; or path::name, a folder, test/unit/cpu/pooling_test.cc
    ./dev test -k "grad and not slow" [path]...   tests by name (pytest's -k); every other option is pytest's
    ./dev test --changed                          what the changed files reach, by their names and REACHES below

It builds what the tests need first. The last line printed counts.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from run_suites import BUILD, Counts, count_catch2, count_pytest

ROOT = Path(__file__).resolve().parent.parent
PYTHON = sys.executable
ORACLE = str(ROOT / ".venv-oracle" / "bin" / "python")
GRADIENTS = "test/autograd/test_gradients.py test/autograd/test_forward_mode.py"
PAGES = "test/repository/test_pages.py"
# Which tests a module's files need beside those that bear their names (`bearing`): paths from the root, by
# a pattern that a file's path begins with.
REACHES = {
    "codegen/": "test/operators/test_composites.py",
    "kernels/": "test/operators/test_composites.py test/operators/test_operators_torch.py",
    "derivatives.yaml": GRADIENTS,
    "operators/": GRADIENTS,
    "operators/nn_": "test/nn",
    "operators/nn_optimizers_steps": "test/optim",
    "dispatcher/": "test/abi",
    "sdk/": "test/abi",
    "keys/": "test/transforms",
    "plugins/cpu/contraction/": "test/operators/test_integer_products.py test/operators/test_linalg.py",
    "plugins/cpu/convolution/": GRADIENTS,
    "plugins/cpu/engine/": "test/operators/test_loops_by_layout_torch.py test/operators/test_hot_torch.py",
    "plugins/cpu/reduce/": "test/operators/test_row_folds.py test/operators/test_reduction_sizes.py",
    "plugins/cpu/sorting/": "test/operators/test_searching_torch.py",
    r"(plugins/cpu|kernels/\w+)/(attention|convolution|normalization|pooling|recurrent|resampling)": "test/nn",
    # The plugins of examples/ have a suite instead, `examples`.
    "examples/null_device/": "test/devices",
    "examples/python_device/": "test/devices/test_python_device.py",
    "examples/pytorch/": "test/optim/test_example_programs_torch.py test/repository/test_stubs.py",
    "bindings/python/src/": "test/tensor/test_tensor_object.py test/operators/test_library.py test/modes/test_modes.py",
    "bindings/python/mica/fx/": "test/trace",
    "bindings/python/mica/torch/": "test/torch_names",
    "scripts/": "test/repository/test_lint.py test/repository/test_suites.py",
    "docs/": PAGES,
    "CONTRIBUTING.md": PAGES,
    "README.md": f"{PAGES} test/repository/test_readme_torch.py",
}


def bearing(file: str) -> list[Path]:
    """The tests that bear the name of a file or of a folder above it: test/autograd and test/unit/autograd for the
    layer autograd, test_vision.py for plugins/vision/."""
    found = []
    for name in Path(file.removeprefix("bindings/python/")).with_suffix("").parts:
        folders = [ROOT / "test" / "unit" / name, ROOT / "test" / name]
        found += [folder for folder in folders if any(folder.glob("*test*.*"))]
        found += [*ROOT.glob(f"test/*/test_{name}.py"), *ROOT.glob(f"test/*/test_{name}_*.py")]
    return found


@dataclass
class Chosen:
    """What runs where."""

    programs: dict[str, list[str]] = field(default_factory=dict)  # a C++ program and its words
    python: list[str] = field(default_factory=list)
    oracle: list[str] = field(default_factory=list)
    options: list[str] = field(default_factory=list)  # pytest's

    def add(self, word: str) -> None:
        """A path of a test, with `::name` or without."""
        path, _, name = word.partition("::")
        parts = Path(path).parts
        if not (ROOT / path).exists():
            raise SystemExit(f"The path ({path}) does not exist; name a test file or a folder of tests.")
        if parts[:2] == ("test", "unit") and len(parts) > 2:
            words = self.programs.setdefault(f"unit_{parts[2]}", [])
            if len(parts) > 3:
                words += ["-#", f"[#{Path(path).stem}]"] if not name else [name]
        else:  # a folder has tests of both kinds
            needs_torch = path.endswith("_torch.py")
            if needs_torch or (ROOT / path).is_dir():
                self.oracle.append(word)
            if not needs_torch:
                self.python.append(word)


def reached(file: str) -> list[str]:
    """The tests that a file reaches: those of its name, and those of its rows in REACHES."""
    path = Path(file)
    if file.startswith("test/unit/"):
        return [file if path.stem.endswith("_test") else str(path.parent)]
    if file.startswith("test/"):
        return [file] if path.name.startswith("test_") and (ROOT / file).exists() else []
    found = bearing(file)
    for prefix, patterns in REACHES.items():
        if re.match(prefix, file):
            found += [test for pattern in patterns.split() for test in ROOT.glob(pattern)]
    return [str(test.relative_to(ROOT)) for test in sorted(found)]


def changed() -> list[str]:
    """The tests that the files which differ from HEAD reach; prints the files that reach none."""
    git = ["git", "-C", str(ROOT)]
    differ = subprocess.run([*git, "diff", "--name-only", "HEAD"], capture_output=True, text=True, check=True)
    new = subprocess.run(
        [*git, "ls-files", "--others", "--exclude-standard"], capture_output=True, text=True, check=True
    )
    files = [*differ.stdout.splitlines(), *new.stdout.splitlines()]
    tests = dict.fromkeys(test for file in files for test in reached(file))
    if missed := [file for file in files if not reached(file)]:
        print("no test is found by name for:", *missed, flush=True)
    if not tests:
        raise SystemExit("No changed file reaches a test; name one, or run ./dev test quick.")
    print("changed files reach:", *tests, flush=True)
    return list(tests)


def choose(words: list[str]) -> Chosen:
    """Reads the command line; options without paths search every folder of subjects."""
    chosen, value = Chosen(), False
    for word in words:
        if word == "--changed":
            for test in changed():
                chosen.add(test)
        elif word.startswith("-") or value:
            chosen.options.append(word)
            value = word in ("-k", "-m", "-n")
        else:
            chosen.add(word)
    if not (chosen.programs or chosen.python or chosen.oracle):
        chosen.python, chosen.oracle = ["test"], ["test"]
    return chosen


def prepare(chosen: Chosen) -> None:
    """Builds what the tests run on."""
    targets = [*chosen.programs, *(["package"] if chosen.python or chosen.oracle else [])]
    steps = [["build", "release", *targets]]
    if any(word.startswith("test/abi") for word in chosen.python):
        steps[0].append("bench_abi")
    if chosen.oracle:
        steps.append(["oracle"])
    for step in steps:
        if subprocess.run(["./dev", "setup", *step], cwd=ROOT, check=False).returncode:
            raise SystemExit("What the tests need could not be made.")


def run(command: list[str]) -> tuple[int, str]:
    """Runs a command, shows its output as it comes, and returns its status and output."""
    environment = {
        **os.environ,
        "MICA_POISON_MEMORY": "255",
        "MICA_BUILD_DIR": str(BUILD),
        "MICA_PYTHON": str(BUILD / "python"),
        "PYTHONPATH": str(BUILD / "python"),
    }
    lines = []
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as child:
        assert child.stdout is not None
        for line in child.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    return child.returncode, "".join(lines)


def main() -> int:
    chosen = choose(sys.argv[1:])
    prepare(chosen)
    total, bad = Counts(), False
    for program, words in chosen.programs.items():
        status, output = run([str(BUILD / "bin" / program), *words])
        total, bad = total + count_catch2(output), bad or status != 0
    for interpreter, tests in ((PYTHON, chosen.python), (ORACLE, chosen.oracle)):
        if tests:
            status, output = run([interpreter, "-m", "pytest", *chosen.options, *tests])
            # 5: no test of this half has the name that -k looks for.
            total, bad = total + count_pytest(output), bad or status not in (0, 5)
    print(f"{total.passed} passed, {total.failed} failed")
    return int(bad or total.passed == 0)


if __name__ == "__main__":
    sys.exit(main())
