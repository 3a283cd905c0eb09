"""A program in a process of its own: what it may do to the process, or what only a new one shows."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from typing import Any


def ran(
    program: str, *words: str, timeout: float = 120, **environment: str
) -> subprocess.CompletedProcess[str]:
    """What came of a Python program, however it ended; `environment` is beside this process's."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), *words],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def printed(program: str, *words: str, **options: Any) -> str:
    """What a program prints that must end well."""
    done = ran(program, *words, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
