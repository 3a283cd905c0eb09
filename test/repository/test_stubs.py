"""The generated stubs, as mypy --strict sees them: a right program passes, wrong ones do not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from language_server import completions

HERE = Path(__file__).parent
PACKAGE = Path(os.environ["MICA_BUILD_DIR"]) / "python"


PROGRAMS = ["typed_program.py", "typed_training.py"]
# Lines that mypy refuses, and what it says of each.
WRONG_LINES = [
    ("mica.zeros(2).no_such_method()", 'has no attribute "no_such_method"'),
    ("mica.no_such_function(1)", "has no attribute"),
    ("mica.exp('x')", "incompatible type"),
    ("mica.cat(3)", "incompatible type"),
    ("x: int = mica.zeros(2).sum()", "Incompatible types in assignment"),
    ("mica.zeros(2).max(1).value", 'has no attribute "value"'),
]


def test_typed_programs_pass_and_wrong_lines_fail(tmp_path: Path) -> None:
    """In one run of mypy, which reads the stubs once."""
    wrong = tmp_path / "wrong.py"
    wrong.write_text("\n".join(["import mica", *(line for line, _ in WRONG_LINES)]) + "\n")
    options = ["--strict", "--follow-imports=silent", "--cache-dir", str(tmp_path / "cache")]
    result = subprocess.run(
        [sys.executable, "-m", "mypy", *options, *(str(HERE / name) for name in PROGRAMS), str(wrong)],
        env={**os.environ, "MYPYPATH": str(PACKAGE)},
        capture_output=True,
        text=True,
        check=False,
    )
    said = [line for line in result.stdout.splitlines() if ": error: " in line]
    assert len(said) == len(WRONG_LINES), result.stdout + result.stderr
    for number, ((_, message), line) in enumerate(zip(WRONG_LINES, said), 2):
        assert f"wrong.py:{number}: error: " in line and message in line, result.stdout


@pytest.fixture(scope="module")
def torch_stubs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that `python -m mica.torch --stubs` writes."""
    folder = tmp_path_factory.mktemp("stubs")
    done = subprocess.run(
        [sys.executable, "-m", "mica.torch", "--stubs", str(folder)],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    return folder


def check_torch_programs(folder: Path, cache: Path, *programs: Path) -> str:
    """What mypy says of programs that import torch, with the bodies of plain functions checked."""
    options = [
        "--config-file=",
        "--follow-imports=silent",
        "--check-untyped-defs",
        "--ignore-missing-imports",
    ]
    return subprocess.run(
        [sys.executable, "-m", "mypy", *options, "--cache-dir", str(cache), *map(str, programs)],
        env={**os.environ, "MYPYPATH": f"{folder}{os.pathsep}{PACKAGE}"},
        capture_output=True,
        text=True,
        timeout=200,
    ).stdout


# A program of torch whose lines 8 to 12 are wrong; the checkers say so of these alone.
WRONG = (
    "import torch\nfrom torch import nn\nfrom torch.optim.adam import Adam\n"
    "reveal_type(torch.zeros(2).sum())\nreveal_type(nn.Linear(1, 2))\n"
    "reveal_type(torch.float32)\nreveal_type(Adam)\n"
    "torch.zeros(2).no_such_method()\ntorch.no_such_function(1)\nx: int = torch.ones(1)\n"
    "nn.Linear('a', 2)\nnn.functional.relu(3)\n"
)
EXAMPLES = sorted((HERE.parent.parent / "examples" / "pytorch").glob("*.py"))


@pytest.mark.slow
def test_programs_that_import_torch_pass(torch_stubs: Path, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(WRONG)
    lines = check_torch_programs(torch_stubs, tmp_path / "cache", program, *EXAMPLES).splitlines()
    assert len(EXAMPLES) > 6
    assert [
        line for line in lines if "program.py" not in line and "error" in line and "Found" not in line
    ] == []
    said = [line.partition("program.py:")[2] for line in lines if "program.py:" in line]
    for part in ("4: note: Revealed type is", "Tensor", "Linear", "dtype", "Adam"):
        assert any(part in line for line in said), said
    assert [line.split(":")[0] for line in said if "error" in line] == ["8", "9", "10", "11", "12"], said


@pytest.fixture
def pyright_folder(torch_stubs: Path, tmp_path: Path) -> Path:
    """A folder with the stubs among pyright's extraPaths."""
    paths = [str(torch_stubs), str(PACKAGE), str(EXAMPLES[0].parent)]
    # Without types guessed from the source of packages that have none: scikit-learn's would be wrong.
    config = {"extraPaths": paths, "typeCheckingMode": "basic", "useLibraryCodeForTypes": False}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config))
    return tmp_path


@pytest.mark.slow
def test_pyright_checks_programs_that_import_torch(pyright_folder: Path) -> None:
    for example in EXAMPLES:
        (pyright_folder / example.name).write_text(example.read_text())
    (pyright_folder / "program.py").write_text(WRONG)
    checker = [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable, "--outputjson"]
    done = subprocess.run(checker, cwd=pyright_folder, capture_output=True, text=True, timeout=300)
    said = json.loads(done.stdout)
    assert said["summary"]["filesAnalyzed"] == len(EXAMPLES) + 1
    lines = [
        (Path(d["file"]).name, d["range"]["start"]["line"] + 1)
        for d in said["generalDiagnostics"]
        if d["severity"] == "error"
    ]
    assert sorted(set(lines)) == [("program.py", n) for n in (8, 9, 10, 11, 12)]
    types = " ".join(d["message"] for d in said["generalDiagnostics"] if d["severity"] == "information")
    for part in ("Tensor", "Linear", "dtype", "type[Adam]"):
        assert f'"{part}"' in types, types


@pytest.mark.slow
def test_pyright_completes(pyright_folder: Path) -> None:
    wanted = {
        "x.resh": {"reshape", "reshape_as"},
        "x.sum().": {"shape", "backward", "add_"},
        "nn.Lin": {"Linear", "LazyLinear"},
        "nn.functional.cross_": {"cross_entropy"},
        "nn.Linear(1, 2).weight.gra": {"grad", "grad_fn"},
        "torch.optim.lr_scheduler.Cos": {"CosineAnnealingLR"},
        "torch.cuda.is_av": {"is_available"},
    }
    lines = ["import torch", "from torch import nn", "x = torch.zeros(2)", *wanted]
    places = [(number, len(line)) for number, line in enumerate(lines)][3:]
    offered = completions(pyright_folder, "\n".join(lines) + "\n", places)
    assert [line for line, names in zip(wanted, offered) if not wanted[line] <= set(names)] == []
