"""Section `tests`: the files of test/gpu that do not need the simulated GPU, by pytest, each in a process of its own
and all at once: most of their time compiles kernels."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from row import Options, Row, Skipped

FOLDER = Path(__file__).resolve().parent.parent / "tests"


def rows(device: str, options: Options) -> Iterator[Row]:
    files = [f for f in sorted(FOLDER.glob("test_*.py")) if "gpu_device" in f.read_text()]

    def run(file: Path) -> dict[str, Any]:
        command = [sys.executable, "-m", "pytest", "-q", "-rf", "-p", "no:cacheprovider", "-c", os.devnull]
        done = subprocess.run(
            [*command, "--rootdir", str(FOLDER), str(file)],
            env={**os.environ, "MICA_TEST_DEVICE": device},
            capture_output=True,
            text=True,
            timeout=options.seconds,
        )
        (Path(options.out) / f"tests_{file.stem}.txt").write_text(
            done.stdout[-200_000:] + done.stderr[-20_000:]
        )
        last = (done.stdout.strip().splitlines() or [done.stderr[-500:]])[-1]
        if "No module named pytest" in done.stderr:
            raise Skipped("pytest is not here.")
        failed = re.findall(r"^FAILED \S*?::(.*)$", done.stdout, re.M)
        if done.returncode != 0:
            raise AssertionError(f"{last} {'; '.join(failed)}"[:1500])
        return {"said": last}

    with ThreadPoolExecutor(len(files)) as pool:
        running = {pool.submit(run, file): file.stem for file in files}
        for future in as_completed(running):
            yield Row(running[future], future.result, limit=options.seconds)
