"""Other people's own test suites on Mica: what runs, what fails and why, for scripts/torch_users.py.

The tests come with the packages: einops' in its wheel, those of accelerate, pytorch-ignite and timm in
their source distributions (scripts/requirements/users_tests.txt), torchmetrics' as the examples of its
documentation. A failure is sorted by its own text: what asks for a package, a download or a file that is not
there says nothing about Mica. The others must match a line of test/users/known.txt, which has the reason.
"""

from __future__ import annotations

import os
import re
import subprocess
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".venv-users"
SOURCES = HOME / "sources"
TESTS = ROOT / "scripts" / "requirements" / "users_tests.txt"
KNOWN = ROOT / "test" / "users" / "known.txt"
JUNIT = HOME / "results.xml"


@dataclass(frozen=True)
class Suite:
    """One package's tests."""

    package: str
    args: tuple[str, ...]  # of pytest, or of doctests.py
    folder: str = ""  # of the source distribution; "" for the wheel's own tests
    doctests: bool = False
    quick: tuple[str, ...] = ()  # what `--check` runs instead, where all takes long


# pytorch-ignite: test_lr_finder.py fetches MNIST, waiting for a lock of its own.
_IGNITE = ("tests/ignite/engine", "tests/ignite/metrics", "tests/ignite/handlers", "tests/ignite/base")
_LR_FINDER = "--ignore=tests/ignite/handlers/test_lr_finder.py"
# timm: test_models.py builds each of 1,200 models; the others of these need files that are not shipped.
_NOT_SHIPPED = ("test_models", "test_train_resume", "test_sweep", "test_sweep_fuzz")
_TIMM = ("tests", *(f"--ignore=tests/{name}.py" for name in _NOT_SHIPPED))
SUITES = [
    Suite("einops", ("--pyargs", "einops.tests")),
    Suite("torchmetrics", ("torchmetrics",), doctests=True, quick=("torchmetrics.regression",)),
    Suite(
        "pytorch-ignite",
        (*_IGNITE, _LR_FINDER),
        "pytorch_ignite",
        quick=("tests/ignite/engine/test_engine.py", "tests/ignite/metrics/regression", "tests/ignite/base"),
    ),
    Suite(
        "timm",
        _TIMM,
        "timm",
        quick=("tests/test_layers.py", "tests/test_layers_pos_embed.py", "tests/test_utils.py"),
    ),
    Suite(
        "accelerate", ("tests",), "accelerate", quick=("tests/test_modeling_utils.py", "tests/test_hooks.py")
    ),
]

# Failures that say nothing about Mica: a pattern of their text, and what is missing.
ELSEWHERE = [
    (r"No module named '(?!torch\b|mica)([\w.]+)'", "packages that are not installed"),
    (
        r"(?:requires?|needs?|Missing|Need).{0,90}(?:to be installed|is installed|are installed|pandas|`torch_linear|installed\. Please)|package `piq`",
        "packages that are not installed",
    ),
    (
        r"name '(?:PerceptualEval|DeepNoise|NonIntrusive|SpeechRev|ShortTime|speech_rev|video_multi|VideoMulti|Frechet)",
        "packages that are not installed",
    ),
    (
        r"Mica downloads nothing|Repo for model|offline mode|couldn't connect|outgoing traffic|LocalEntryNotFound|OfflineMode|nltk\.download",
        "downloads",
    ),
    (
        r"(?:FileNotFoundError|Config file|configuration file).{0,120}(?:tests/test_configs|examples|accelerate-launch|does not exist|not found)",
        "files that are not shipped",
    ),
    (r"no attribute 'original_config'", "files that are not shipped"),
]


@dataclass
class Outcome:
    """What a suite gave."""

    package: str
    passed: int = 0
    skipped: int = 0
    elsewhere: dict[str, int] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)  # test: the error's first line
    seconds: float = 0.0


def sources(python: Path) -> None:
    """Fetches and unpacks the source distributions, once."""
    mark = SOURCES / "fetched.txt"
    if mark.exists() and mark.read_text() == TESTS.read_text():
        return
    SOURCES.mkdir(parents=True, exist_ok=True)
    options = ["--no-deps", "--no-binary", ":all:", "-d", str(SOURCES)]
    subprocess.run([str(python), "-m", "pip", "download", "-q", *options, "-r", str(TESTS)], check=True)
    for archive in SOURCES.glob("*.tar.gz"):
        with tarfile.open(archive) as file:
            file.extractall(SOURCES, filter="data")
    mark.write_text(TESTS.read_text())


def known() -> dict[str, str]:
    """Reasons of failures that are known, by a pattern of "test | error": lines "pattern  reason"."""
    lines = [line for line in KNOWN.read_text().splitlines() if line and not line.startswith("#")]
    return {pattern: reason.strip() for pattern, _, reason in (line.partition("  ") for line in lines)}


def pattern_of(test: str, error: str, patterns: dict[str, str]) -> str | None:
    """The first pattern of known() that a failure matches."""
    return next((p for p in patterns if re.search(p, f"{test} | {error}")), None)


def run(suite: Suite, python: Path, quick: bool) -> Outcome:
    """Runs a package's tests under the shim."""
    quiet = {
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "OMP_NUM_THREADS": "1",
        "MPLBACKEND": "agg",
    }
    path = f"{python.parent}{os.pathsep}{os.environ.get('PATH', '')}"
    environment = {**os.environ, **quiet, "PATH": path, "EINOPS_TEST_BACKENDS": "torch,numpy"}
    words = [str(python), "-W", "ignore", "-m", "mica.torch"]
    args = suite.quick if quick and suite.quick else suite.args
    if suite.doctests:
        words += [str(ROOT / "test" / "users" / "doctests.py"), *args, str(JUNIT)]
    else:
        words += [
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "--continue-on-collection-errors",
            "--tb=short",
        ]
        words += [f"--junitxml={JUNIT}", *args]
    folder = next(SOURCES.glob(f"{suite.folder}-*/")) if suite.folder else HOME
    JUNIT.unlink(missing_ok=True)
    try:
        done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
    except subprocess.TimeoutExpired:
        return Outcome(suite.package, failed={f"{suite.package}::(the run)": "takes more than 600 s"})
    if not JUNIT.exists():
        return Outcome(suite.package, failed={f"{suite.package}::(the run)": done.stderr[-300:]})
    return read(suite.package)


def read(package: str) -> Outcome:
    """Sorts the cases of the JUnit file."""
    found = Outcome(package)
    for case in ElementTree.parse(JUNIT).getroot().iter("testcase"):
        found.seconds += float(case.get("time") or 0)
        name = "::".join(filter(None, (case.get("classname"), case.get("name"))))
        name = re.sub(
            r"^\.venv-users\.(?:lib\.python[\d.]+\.site-packages|sources\.[\w-]+?-[\d.]+)\.", "", name
        )
        wrong = [child for child in case if child.tag in ("failure", "error")]
        if any(child.tag == "skipped" for child in case):
            found.skipped += 1
        elif not wrong:
            found.passed += 1
        else:
            text = f"{wrong[0].get('message') or ''}\n{wrong[0].text or ''}"
            missing = next((what for pattern, what in ELSEWHERE if re.search(pattern, text, re.S)), None)
            if missing is None:
                found.failed[f"{package}::{name}"] = first_line(text)
            else:
                found.elsewhere[missing] = found.elsewhere.get(missing, 0) + 1
    return found


def first_line(text: str) -> str:
    """The error's own line, for people: pytest's last, the first of a documentation's examples."""
    kind = r"((?:\w+\.)*\w*(?:Error|Exception|Exit|Failed)\b[^\n]*|assert [^\n]*)"
    ours = re.findall(rf"^E\s+{kind}", text, re.M)
    wanted = re.search(r"^Expected:\n(.*?)^Got:\n(.*?)(?:^\*{9}|\Z)", text, re.M | re.S)
    plain = re.findall(rf"^\s+{kind}", text, re.M)
    if ours:
        line = ours[-1]
    elif wanted and not plain:
        line = f"prints {wanted.group(2).strip()} for {wanted.group(1).strip()}"
    else:
        line = plain[0] if plain else text.strip().split("\n")[0]
    return " ".join(line.split())[:160]
