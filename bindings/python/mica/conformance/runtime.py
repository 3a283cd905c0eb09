"""The checks of a device itself, beside its operators: a list that files of checks add to.

A check is a function of the device's name ("acme.npu:0"). It returns when all is well and
raises AssertionError with a sentence when it is not. NotImplementedError says that the
backend does not offer the thing (unsupported), `NotApplicable` that the question has no
meaning on this machine, as a copy between two devices where there is one; no row stands
for that.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import mica
from mica.conformance.results import Row

Function = Callable[[str], None]


@dataclass(frozen=True)
class RuntimeCheck:
    """A check and what it shows; `name` is its group and its function's name."""

    name: str
    about: str
    run: Function


class NotApplicable(Exception):
    """The question has no meaning here."""


CHECKS: list[RuntimeCheck] = []


def check(group: str) -> Callable[[Function], Function]:
    """Adds a function to the list; its docstring says what it shows."""

    def add(f: Function) -> Function:
        about = " ".join((f.__doc__ or "").split())
        CHECKS.append(RuntimeCheck(f"{group}: {f.__name__.replace('_', ' ')}", about, f))
        return f

    return add


def expect(condition: object, sentence: str) -> None:
    """Raises unless the condition holds."""
    if not condition:
        raise AssertionError(sentence)


def equal(got: object, expected: np.ndarray, sentence: str) -> None:
    """Raises unless a tensor of any device holds exactly these values."""
    values = got.to("cpu").numpy() if isinstance(got, mica.Tensor) else np.asarray(got)
    same = values.shape == expected.shape and np.array_equal(
        values, expected, equal_nan=values.dtype.kind in "fc"
    )
    expect(same, sentence)


def refused(kind: type[BaseException], f: Callable[[], object], *words: str) -> None:
    """Raises unless f raises this kind and the message holds all words."""
    try:
        f()
    except kind as error:
        lacking = [w for w in words if w not in str(error)]
        expect(not lacking, f"The message ({str(error)[:200]}) does not say ({', '.join(lacking)}).")
        return
    raise AssertionError(f"Nothing was raised; expected {kind.__name__}.")


def in_process(source: str, device: str, seconds: float = 40) -> str:
    """Runs a program in a process of its own and returns what it printed; `DEVICE` is the device."""
    program = f"DEVICE = {device!r}\nimport mica\n{source}"
    try:
        result = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
            env=dict(os.environ),
        )
    except subprocess.TimeoutExpired:
        raise AssertionError(f"The process did not end within {seconds:g} s.") from None
    if result.returncode != 0:
        last = (result.stderr.strip().splitlines() or ["nothing was printed"])[-1]
        raise AssertionError(f"The process ended with the status ({result.returncode}): {last}")
    return result.stdout


def run_check(name: str, device: str, watch: Callable[[str], None] = lambda line: None) -> list[Row]:
    """The row of one check; none where the question has no meaning."""
    row, line = Row("runtime", name), f"run({device!r}, {name!r})"
    watch(line)
    start = time.perf_counter()
    try:
        next(c for c in CHECKS if c.name == name).run(device)
        row.passed += 1
    except NotApplicable:
        return []
    except NotImplementedError as error:
        row.say_unsupported((str(error).splitlines() or [""])[0])
    except Exception as error:  # noqa: BLE001 - whatever a device raises is what the row says
        detail = str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
        row.fail((detail.splitlines() or [""])[0], line)
    row.seconds = time.perf_counter() - start
    return [row]


def run(device: str, name: str) -> None:
    """Runs one check of the device again and lets what it raises through."""
    next(c for c in CHECKS if c.name == name).run(device)
    print("passes")
