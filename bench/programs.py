"""The programs of examples/pytorch on torch and on Mica, each in a process of its own.

`Program(name, on)` is one of them in its process; `run(steps)` trains from the seed and says
losses, measures and seconds. `step_seconds` takes a short run from a long one, so that data,
evaluation and the first step do not count.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

NAMES = ["digits", "gpt", "resnet", "tagger", "vae", "dqn"]
SHORT = 5


class Program:
    def __init__(self, name: str, on: str, child_file: str = "program_child.py") -> None:
        child = [str(Path(__file__).with_name(child_file)), name]
        command = [sys.executable, *(["-m", "mica.torch"] if on == "mica" else []), *child]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._what = f"{child_file} {name} on {on}"

    def run(self, steps: int, threads: int = 1, onednn: bool = True) -> dict[str, Any]:
        assert self._process.stdin and self._process.stdout
        task = {"steps": steps, "threads": threads, "onednn": onednn, "seed": 0}
        self._process.stdin.write(json.dumps(task) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._what} ended with status {self._process.wait()}; its output is above.")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def step_seconds(self, steps: int, threads: int = 1) -> float:
        short = self.run(SHORT, threads)["seconds"]
        return float(self.run(SHORT + steps, threads)["seconds"] - short) / steps

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(60)
