"""Runs some tests on the release build, for the inner loop: what `./dev test` does with files and words.

    ./dev test test/python/test_vmap.py           a file; or path::name, a folder, test/unit/cpu/pooling_test.cc
    ./dev test -k "vmap and not slow" [path]...   tests by name (pytest's -k); every other option is pytest's
    ./dev test --changed                          what the changed files reach, by REACHES below

It builds what the tests need first. The last line printed counts.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from run_suites import BUILD, Counts, count_catch2, count_pytest

ROOT = Path(__file__).resolve().parent.parent
PYTHON = sys.executable
ORACLE = str(ROOT / ".venv-oracle" / "bin" / "python")
# Which tests a module's files need: patterns of paths from the root. A test file that changed runs itself.
REACHES = {
    "tensor/": "test/unit/tensor test/python/test_tensor_object.py test/python/test_indexing.py",
    "schema/": "test/unit/schema test/oracle/test_schema_roundtrip.py",
    "codegen/": "test/unit/codegen test/python/test_composites.py",
    "operators/": "test/python/test_composites.py test/oracle/test_operators.py",
    "derivatives.yaml": "test/python/test_gradients.py test/python/test_forward_mode.py",
    "dispatcher/": "test/unit/dispatcher test/abi",
    "sdk/": "test/unit/sdk test/abi",
    "kernels/": "test/unit/kernels test/python/test_composites.py test/oracle/test_operators.py",
    "keys/autocast/": "test/python/test_autocast.py test/oracle/test_autocast.py",
    "keys/autograd/": "test/unit/autograd test/python/test_autograd*.py test/python/test_forward_*.py",
    "keys/batched/": "test/python/test_vmap*.py test/oracle/test_vmap.py",
    "keys/functionalize/": "test/python/test_functionalize*.py test/oracle/test_functionalize.py",
    "keys/trace/": "test/python/test_trace*.py",
    "plugins/cpu/": "test/unit/cpu",
    "plugins/cpu/contraction/": "test/python/test_integer_products.py test/python/test_linalg.py",
    "plugins/cpu/engine/": "test/oracle/test_loops_by_layout.py test/oracle/test_hot.py",
    "plugins/cpu/indexing/": "test/oracle/test_indexed_assignment.py test/python/test_indexing.py",
    "plugins/cpu/linalg/": "test/python/test_linalg.py",
    "plugins/cpu/reduce/": "test/python/test_row_folds.py test/python/test_reduction_sizes.py",
    "plugins/cpu/sorting/": "test/oracle/test_searching.py",
    "plugins/vision/": "test/python/test_vision.py",
    "bindings/python/src/": "test/python/test_tensor_object.py test/python/test_library.py test/python/test_modes.py",
    "bindings/python/mica/serialization": "test/python/*checkpoint*.py test/python/test_hostile_files.py "
    "test/oracle/test_checkpoints.py",
    "bindings/python/mica/nn/": "test/python/test_modules.py test/oracle/test_nn.py test/oracle/test_module*.py",
    "bindings/python/mica/optim/": "test/oracle/test_optim*.py test/oracle/test_schedules.py",
    "bindings/python/mica/func/": "test/python/test_func*.py test/oracle/test_func.py",
    "bindings/python/mica/fx/": "test/oracle/test_fx.py test/python/test_trace*.py",
    "bindings/python/mica/torch/": "test/python/test_torch_shim.py test/oracle/test_names.py",
    "bindings/python/mica/distributions/": "test/oracle/test_distributions.py",
    "bindings/python/mica/utils/data/": "test/python/test_data.py test/oracle/test_data.py",
    "scripts/": "test/python/test_lint.py test/python/test_suites.py",
}


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
        elif parts[:2] == ("test", "oracle"):
            self.oracle.append(word)
        else:
            self.python.append(word)


def changed() -> list[str]:
    """The tests that the files which differ from HEAD reach."""
    git = ["git", "-C", str(ROOT)]
    differ = subprocess.run([*git, "diff", "--name-only", "HEAD"], capture_output=True, text=True, check=True)
    new = subprocess.run(
        [*git, "ls-files", "--others", "--exclude-standard"], capture_output=True, text=True, check=True
    )
    tests: dict[str, None] = {}
    for file in [*differ.stdout.splitlines(), *new.stdout.splitlines()]:
        path = Path(file)
        if file.startswith("test/"):
            if file.startswith("test/unit/"):
                tests[file if path.stem.endswith("_test") else str(path.parent)] = None
            elif path.name.startswith("test_") and (ROOT / file).exists():
                tests[file] = None
            continue
        for prefix, patterns in REACHES.items():
            if file.startswith(prefix):
                for pattern in patterns.split():
                    tests.update(dict.fromkeys(str(p.relative_to(ROOT)) for p in sorted(ROOT.glob(pattern))))
    if not tests:
        raise SystemExit("No changed file reaches a test; name one, or run ./dev test quick.")
    print("changed files reach:", *tests, flush=True)
    return list(tests)


def choose(words: list[str]) -> Chosen:
    """Reads the command line; options without paths search test/python and test/oracle."""
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
        chosen.python, chosen.oracle = ["test/python"], ["test/oracle"]
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
