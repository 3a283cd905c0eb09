"""The generated stubs, as mypy --strict sees them: a right program passes, wrong ones do not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PACKAGE = Path(os.environ["MICA_BUILD_DIR"]) / "python"


def run_mypy(program: Path, cache: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--follow-imports=silent",
            "--cache-dir",
            str(cache),
            str(program),
        ],
        env={**os.environ, "MYPYPATH": str(PACKAGE)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mypy")


@pytest.mark.parametrize("program", ["typed_program.py", "typed_training.py"])
def test_a_typed_program_passes(cache: Path, program: str) -> None:
    result = run_mypy(HERE / program, cache)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("mica.zeros(2).no_such_method()", 'has no attribute "no_such_method"'),
        ("mica.no_such_function(1)", "has no attribute"),
        ("mica.exp('x')", "incompatible type"),
        ("mica.cat(3)", "incompatible type"),
        ("x: int = mica.zeros(2).sum()", "Incompatible types in assignment"),
        ("mica.zeros(2).max(1).value", 'has no attribute "value"'),
    ],
)
def test_a_wrong_line_fails(tmp_path: Path, cache: Path, line: str, message: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(f"import mica\n\n{line}\n")
    result = run_mypy(program, cache)
    assert result.returncode == 1
    assert message in result.stdout
