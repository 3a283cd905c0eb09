"""Runs torch's own test files on Mica under torch's name, and writes docs/reference/torch_tests.md.

    ./dev torch-tests [test_autograd.py...] --from FOLDER [--sample N] [--seed WORD] [--write]

FOLDER holds the test files of a release of torch (`test/` of its repository; the wheel has none). A test
is in the sample by the hash of its name, so that the sample stays when tests come and go. Each test of it
runs on torch first (.venv-oracle; kept in build/torch-tests), and those that torch passes on Mica: the
others say nothing. test/torch_tests/excluded.txt lists what is left out, and why. Tests run in shards, in
processes of their own (test/torch_tests/worker.py): a crash or a test beyond --limit seconds is the failure
of one test. Without --from, MICA_TORCH_TESTS names the folder.

The last line printed counts. --least P ends with a failure where less than P percent pass.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import select
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTS = ROOT / "test" / "torch_tests"
BUILD = Path(os.environ.get("MICA_BUILD_DIR", ROOT / "build" / "release"))
ORACLE = Path(os.environ.get("MICA_ORACLE", ROOT / ".venv-oracle" / "bin" / "python"))
PAGE = ROOT / "docs" / "reference" / "torch_tests.md"
KEPT = ROOT / "build" / "torch-tests"
# torch's core test files, which run where none is named.
CORE = [
    "autograd",
    "torch",
    "nn",
    "tensor_creation_ops",
    "serialization",
    "linalg",
    "reductions",
    "indexing",
    "spectral_ops",
    "ops",
    "unary_ufuncs",
    "binary_ufuncs",
    "ops_gradients",
    "transformers",
    "shape_ops",
    "view_ops",
    "type_promotion",
    "sort_and_select",
]
START_S = 300  # importing a test file


@dataclass
class Outcome:
    """What became of one test."""

    outcome: str  # passed, failed, skipped
    text: str = ""
    seconds: float = 0.0


class Process:
    """A worker, and the lines that it writes."""

    def __init__(self, library: str, file: Path, what: str, ids: list[str]) -> None:
        read, write = os.pipe()
        environment = {
            **os.environ,
            "MICA_RESULTS": str(write),
            "OMP_NUM_THREADS": "1",
            "PYTHONHASHSEED": "0",
            "PYTORCH_TESTING_DEVICE_ONLY_FOR": "cpu",
            "PYTHONPATH": str(BUILD / "python") if library == "mica" else "",
        }
        site = next((ORACLE.parent.parent / "lib").glob("python*/site-packages"))
        words = [str(ORACLE), "-W", "ignore", str(TESTS / "worker.py"), library, str(site), str(file), what]
        self.said = tempfile.TemporaryFile("w+")  # noqa: SIM115 (read after the end)
        with tempfile.TemporaryFile("w+") as names:
            names.write("\n".join(ids))
            names.seek(0)
            self.child = subprocess.Popen(
                words,
                stdin=names,
                stdout=self.said,
                stderr=self.said,
                env=environment,
                pass_fds=(write,),
                start_new_session=True,
            )
        os.close(write)
        self._read, self._rest = read, b""

    def line(self, seconds: float) -> dict[str, object] | None:
        """The next line; None at the end. TimeoutError after so many seconds without one."""
        end = time.monotonic() + seconds
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self._read], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                raise TimeoutError
            more = os.read(self._read, 1 << 16)
            if not more:
                return None
            self._rest += more
        first, _, self._rest = self._rest.partition(b"\n")
        return dict(json.loads(first))

    def end(self) -> str:
        """Ends it and what it started; how it ended, with the last words that it printed."""
        try:
            self.child.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(self.child.pid, 9)
            self.child.wait()
        os.close(self._read)
        self.said.seek(0)
        return f"the process ends with status {self.child.returncode}: {self.said.read()[-300:].strip()}"


def listed(library: str, file: Path) -> tuple[list[str], str]:
    """The ids of a file's tests, or none and what stopped its import."""
    process = Process(library, file, "list", [])
    try:
        line = process.line(START_S)
    except TimeoutError:
        os.killpg(process.child.pid, 9)
        line = None
    how = process.end()
    return (list(line["ids"]), "") if line else ([], how)  # type: ignore[call-overload]


def run(library: str, file: Path, ids: list[str], limit: float) -> dict[str, Outcome]:
    """Runs tests of a file, in a new process after each crash or hang."""
    found: dict[str, Outcome] = {}
    left = list(ids)
    while left:
        process = Process(library, file, "run", left)
        under_way, patience = "", float(START_S)
        classes: dict[str, Outcome] = {}
        try:
            while (line := process.line(patience)) is not None:
                patience = limit
                if "start" in line:
                    under_way = str(line["start"])
                elif "of" in line:
                    name = re.sub(r".*\.(\w+)\)$", r"\1", str(line["of"]))
                    classes[name] = Outcome(str(line["outcome"]), str(line["text"]))
                else:
                    found[str(line["id"])] = Outcome(
                        str(line["outcome"]), str(line["text"]), float(str(line["seconds"]))
                    )
                    under_way = ""
            how = process.end()
        except TimeoutError:
            os.killpg(process.child.pid, 9)
            process.end()
            how = f"takes more than {limit:.0f} s"
        for test in left:
            if test not in found and test.partition(".")[0] in classes:
                found[test] = classes[test.partition(".")[0]]
        left = [test for test in left if test not in found]
        if left:  # the one under way, or the first where none had begun
            victim = under_way if under_way in left else left[0]
            found[victim] = Outcome("failed", how, limit)
            left.remove(victim)
    return found


def sampled(file: str, ids: list[str], share: float, seed: str) -> list[str]:
    """The tests whose hash falls into the share."""

    def place(test: str) -> float:
        digest = hashlib.sha256(f"{seed} {file}::{test}".encode()).digest()
        return int.from_bytes(digest[:8], "big") / 2**64

    return [test for test in ids if place(test) < share]


def rules() -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """excluded.txt: (pattern, reason) of names, and of errors."""
    names, errors = [], []
    for line in (TESTS / "excluded.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            pattern, _, reason = line.rpartition("  ")
            if pattern.startswith("error "):
                errors.append((pattern.removeprefix("error "), reason))
            else:
                names.append((pattern, reason))
    return names, errors


def reason(text: str, patterns: list[tuple[str, str]]) -> str | None:
    """Why a name, or an error, is left out."""
    return next((why for pattern, why in patterns if re.search(pattern, text)), None)


def on_torch(file: Path, ids: list[str], limit: float) -> dict[str, Outcome]:
    """What torch makes of tests; kept from run to run, by the file's text."""
    mark = hashlib.sha256(file.read_bytes()).hexdigest()[:16]
    kept = KEPT / f"{file.stem}-{mark}.json"
    known = {k: Outcome(**v) for k, v in json.loads(kept.read_text()).items()} if kept.exists() else {}
    new = [test for test in ids if test not in known]
    if new:
        known.update(run("torch", file, new, limit))
        KEPT.mkdir(parents=True, exist_ok=True)
        kept.write_text(json.dumps({k: asdict(v) for k, v in known.items()}))
    return {test: known[test] for test in ids}


def cause(text: str) -> str:
    """A failure's text without what differs from test to test: numbers, names, shapes."""
    first = text.split("\n")[0]
    wrapped = re.search(r'(".*" does not match ".*)', text, re.S)
    if wrapped:
        return "AssertionError: a sentence that does not match"
    first = re.sub(r"0x[0-9a-f]+", "0x…", first)
    first = re.sub(r"'[^']{30,}'", "'…'", first)
    first = re.sub(r"\d+(\.\d+)?(e[-+]?\d+)?", "N", first)
    first = re.sub(r"\[[N, ]*\]", "[…]", first)
    first = re.sub(r"\b(u?int|float|complex|bfloat)N\b", "dtype", first)
    return first[:110]


@dataclass
class Row:
    """One file."""

    file: str
    passed: int
    failed: dict[str, Outcome]
    left_out: Counter[str]
    said: str = ""


def of_file(file: Path, options: argparse.Namespace) -> Row:
    """Samples a file and runs it on both."""
    names, errors = rules()
    ids, how = listed("torch", file) if file.exists() else ([], "the file is not there")
    if not ids:
        return Row(file.name, 0, {}, Counter(), f"torch cannot import it: {how}")
    why = {test: reason(f"{file.name}::{test}", names) for test in ids}
    left_out = Counter(r for r in why.values() if r is not None)
    counted = [test for test in ids if why[test] is None]
    wanted = sampled(
        file.name, counted, options.sample / len(counted) if options.sample else 1.0, options.seed
    )
    theirs = [t for t, o in on_torch(file, wanted, options.limit).items() if o.outcome == "passed"]
    ours = run("mica", file, theirs, options.limit)
    failed = {}
    for test, outcome in ours.items():
        beyond = reason(outcome.text, errors) if outcome.outcome == "failed" else None
        if beyond is not None:
            left_out[beyond] += 1
        elif outcome.outcome != "passed":
            failed[test] = outcome
    passed = sum(o.outcome == "passed" for o in ours.values())
    print(f"{file.name}: {passed} of {passed + len(failed)}", flush=True)
    return Row(file.name, passed, failed, left_out)


def page(rows: list[Row], options: argparse.Namespace) -> str:
    """The page: files, causes, what is left out."""
    passed, failed = sum(r.passed for r in rows), sum(len(r.failed) for r in rows)
    text = [
        "# torch's own tests on Mica\n",
        f"`./dev torch-tests --from FOLDER --sample {options.sample} --seed {options.seed} --write` wrote this "
        f"page: {passed} of {passed + failed} tests of the sample that torch 2.13 passes, Mica passes.",
        "The files are those of a release of torch, unchanged but for names that torch 2.13 no longer has;",
        "they run under `python -m mica.torch`'s shim, compared by torch's own testing package.\n",
        "| file | passed | failed | share |\n|---|---|---|---|",
    ]
    for row in rows:
        count = row.passed + len(row.failed)
        share = f"{100 * row.passed / count:.1f} %" if count else row.said[:80] or "–"
        text.append(f"| {row.file} | {row.passed} | {len(row.failed)} | {share} |")
    causes: Counter[tuple[str, str]] = Counter()
    example: dict[tuple[str, str], str] = {}
    for row in rows:
        for test, outcome in row.failed.items():
            key = (row.file, cause(outcome.text))
            causes[key] += 1
            example.setdefault(key, test)
    text += ["\n## Causes\n", "| tests | file | cause | for example |\n|---|---|---|---|"]
    for (file, why), count in sorted(causes.items(), key=lambda item: (-item[1], item[0])):
        text.append(f"| {count} | {file} | {why.replace('|', '/')} | `{example[file, why]}` |")
    left_out: Counter[str] = sum((r.left_out for r in rows), Counter())
    text += [
        "\n## Left out\n",
        "`test/torch_tests/excluded.txt` is the list.\n",
        "| tests | why |\n|---|---|",
    ]
    text += [f"| {count} | {why} |" for why, count in left_out.most_common()]
    return "\n".join(text) + "\n"


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="Runs torch's own test files on Mica.")
    parser.add_argument(
        "files", nargs="*", help="names of test files; torch's core files where none is named"
    )
    parser.add_argument("--from", dest="folder", default=os.environ.get("MICA_TORCH_TESTS"))
    parser.add_argument("--sample", type=int, default=300, help="about so many tests of each file; 0 for all")
    parser.add_argument("--seed", default="mica", help="another word draws another sample")
    parser.add_argument("--limit", type=float, default=60, help="seconds for one test")
    parser.add_argument("--least", type=float, default=0.0, help="percent that must pass")
    parser.add_argument("--write", action="store_true", help="write the page")
    parser.add_argument("--json", help="write each failure to this file")
    return parser.parse_args()


def main() -> int:
    options = parsed()
    if not options.folder:
        print("No folder with torch's test files is given (--from, or MICA_TORCH_TESTS).", file=sys.stderr)
        return 2
    names = options.files or [f"test_{name}.py" for name in CORE]
    rows = [of_file(Path(options.folder).resolve() / name, options) for name in names]
    if options.json:
        failures = {r.file: {t: asdict(o) for t, o in r.failed.items()} for r in rows}
        Path(options.json).write_text(json.dumps(failures, indent=1))
    text = page(rows, options)
    if options.write:
        PAGE.write_text(text)
    else:
        print(text)
    passed, failed = sum(r.passed for r in rows), sum(len(r.failed) for r in rows)
    print(f"{passed} passed, {failed} failed")
    return int(100 * passed < options.least * (passed + failed) or passed == 0)


if __name__ == "__main__":
    sys.exit(main())
