"""Runs tests of one of torch's test files, on Mica under torch's name or on torch, for scripts/torch_tests.py.

    python worker.py (mica|torch) TORCH FILE list             prints the ids of the file's tests
    python worker.py (mica|torch) TORCH FILE run < IDS        runs these, in order

TORCH is the folder that holds an installed torch (a site-packages). One JSON object a line goes to the
descriptor that MICA_RESULTS names: {"start": id}, then {"id": id, "outcome": ..., "text": ..., "seconds": ...}
with the outcomes passed, failed and skipped. Whoever reads it sees which test was under way when a process
ends or hangs.
"""

from __future__ import annotations

import contextlib
import importlib.machinery
import importlib.util
import json
import os
import sys
import time
import traceback
import unittest
import warnings
from pathlib import Path
from typing import Any

import lent


def say(**fields: Any) -> None:
    """Writes one line for the reader."""
    os.write(int(os.environ["MICA_RESULTS"]), (json.dumps(fields) + "\n").encode())


def classes(module: Any) -> dict[str, type[unittest.TestCase]]:
    """The test classes of a file, by name."""
    found = {}
    for name, value in list(vars(module).items()):
        if (
            isinstance(value, type)
            and issubclass(value, unittest.TestCase)
            and value is not unittest.TestCase
        ):
            found[name] = value
    return found


def listed(module: Any) -> list[str]:
    """Ids "Class.test" of a file."""
    loader = unittest.TestLoader()
    found = {f"{name}.{test}" for name, of in classes(module).items() for test in loader.getTestCaseNames(of)}
    return sorted(found)


class Result(unittest.TestResult):
    """Writes each test's outcome as it ends."""

    def startTest(self, test: unittest.TestCase) -> None:
        super().startTest(test)
        self._outcome, self._text, self._began = "passed", "", time.monotonic()
        self.under_way = True
        say(start=_id(test))

    def stopTest(self, test: unittest.TestCase) -> None:
        super().stopTest(test)
        self.under_way = False
        seconds = round(time.monotonic() - self._began, 2)
        say(id=_id(test), outcome=self._outcome, text=self._text, seconds=seconds)

    def _wrong(self, test: Any, error: Any) -> None:
        text = _text(error)
        if isinstance(test, unittest.TestCase):
            self._outcome, self._text = "failed", text
        else:  # what prepares a class failed: none of its tests ran
            say(of=str(test), outcome="failed", text=text)

    def addError(self, test: Any, err: Any) -> None:
        self._wrong(test, err)

    def addFailure(self, test: Any, err: Any) -> None:
        self._wrong(test, err)

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        if err is not None:
            self._wrong(test, err)

    def addSkip(self, test: Any, reason: str) -> None:
        if isinstance(test, unittest.TestCase):
            if self._outcome == "passed":
                self._outcome, self._text = "skipped", str(reason)[:300]
        else:
            say(of=str(test), outcome="skipped", text=reason)

    def addUnexpectedSuccess(self, test: Any) -> None:
        self._outcome, self._text = "failed", "passes, which the test does not expect"


def _id(test: unittest.TestCase) -> str:
    return f"{type(test).__name__}.{test._testMethodName}"


def _text(error: Any) -> str:
    """The exception's class and words, and of what it came from; torch's tests wrap both."""
    kind, value, trace = error
    while value.__cause__ is not None:
        value = value.__cause__
    where = traceback.extract_tb(value.__traceback__ or trace)
    line = next((f for f in reversed(where) if f.name.startswith("test")), where[-1] if where else None)
    place = f"\n  line {line.lineno}: {line.line}" if line else ""
    return f"{type(value).__name__}: {value}"[:2000] + place


class _Source(importlib.machinery.SourceFileLoader):
    """Loads a test file; super(self.__class__, self) recurses in classes that torch 2.13 derives for devices."""

    def get_code(self, fullname: str) -> Any:
        source = Path(self.path).read_text().replace("super(self.__class__, self)", "super()")
        return compile(source, self.path, "exec")


def loaded(file: Path) -> Any:
    """Imports a test file by its stem."""
    with contextlib.suppress(ImportError):
        importlib.import_module("distutils.version")  # which test_spectral_ops.py takes for imported
    spec = importlib.util.spec_from_file_location(file.stem, file, loader=_Source(file.stem, str(file)))
    assert spec is not None and spec.loader is not None
    module = sys.modules[file.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def prepare(library: str, torch: Path, file: Path) -> Any:
    """Imports a test file on a library."""
    sys.path.insert(0, str(file.parent))
    os.chdir(file.parent)
    warnings.simplefilter("ignore")
    if library == "mica":
        import mica.torch

        mica.torch.install()
        lent.lend(torch)
    else:
        sys.path.append(str(torch))
        lent.tolerate()
    sys.argv = [str(file)]
    with lent.importing():
        module = loaded(file)
    sys.modules["__main__"].__dict__.update(__file__=str(file))
    return module


def main() -> None:
    library, torch, file, what = sys.argv[1:]
    module = prepare(library, Path(torch), Path(file).resolve())
    if what == "list":
        say(ids=listed(module))
        return
    found = classes(module)
    suite = unittest.TestSuite()
    result = Result()
    for test in sys.stdin.read().split():
        name, _, method = test.partition(".")
        if name in found and hasattr(found[name], method):
            suite.addTest(found[name](method))
        else:
            say(id=test, outcome="failed", text="the file has no such test here", seconds=0.0)
    warnings.resetwarnings()
    suite.run(result)
    os._exit(0)  # threads and hooks at exit say nothing about a test


if __name__ == "__main__":
    main()
