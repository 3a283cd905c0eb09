"""Runs tasks in a process of their own, so that a crash or a hang is a row of the report.

The process says each case before it runs it; when it dies, or is silent for too long,
the row names that case, and a new process goes on with the next task. Devices that live
in this process alone, as those written in Python, run here.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

from mica.conformance.results import Failure, Row

LIMIT = 90.0  # seconds that one case may take
Watch = Callable[[str], None]


@dataclass(frozen=True)
class Task:
    """The checks of an operator, or one check of the device ("runtime")."""

    kind: str  # "operator" or "runtime"
    name: str
    device: str
    dtypes: tuple[str, ...] = ()
    checks: tuple[str, ...] = ()


def run_task(task: Task, watch: Watch = lambda line: None) -> list[Row]:
    """The rows of a task, run here."""
    from mica.conformance import kit

    return kit.run_task(task, watch)


def _row(data: dict[str, Any]) -> Row:
    return Row(**{**data, "failures": [Failure(**f) for f in data["failures"]]})


def _lines(fd: int, limit: float) -> Iterator[str]:
    """Lines of a pipe until its end; TimeoutError after so many silent seconds."""
    rest = b""
    while True:
        if not select.select([fd], [], [], limit)[0]:
            raise TimeoutError
        part = os.read(fd, 1 << 16)
        if not part:
            return
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            yield line.decode()


class Worker:
    """One process and what it says."""

    def __init__(self, tasks: list[Task]) -> None:
        self.case = ""
        self.fd, theirs = os.pipe()
        command = [sys.executable, "-m", "mica.conformance.worker", str(theirs)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[theirs], text=True)
        os.close(theirs)
        assert self.process.stdin is not None
        with self.process.stdin as stdin:
            json.dump([asdict(task) for task in tasks], stdin)

    def results(self, limit: float) -> Iterator[list[Row]]:
        """The rows of one task after the other, as far as the process comes."""
        for line in _lines(self.fd, limit):
            said = json.loads(line)
            if isinstance(said, str):
                self.case = said
            else:
                yield [_row(data) for data in said]

    def end(self) -> str:
        """What became of the process, when it did not do all its tasks."""
        status = self.process.wait()
        os.close(self.fd)
        if status >= 0:
            return f"The process ended with the status ({status})."
        return f"The process crashed: {signal.Signals(-status).name}."

    def kill(self, limit: float) -> str:
        """Ends a process that hangs."""
        self.process.kill()
        self.end()
        return f"The call did not end within {limit:g} s."


def run_isolated(tasks: list[Task], limit: float = LIMIT) -> Iterator[list[Row]]:
    """The rows of each task, run in processes of their own."""
    pending = list(tasks)
    while pending:
        worker = Worker(pending)
        try:
            for rows in worker.results(limit):
                pending.pop(0)
                yield rows
            what = worker.end()
        except TimeoutError:
            what = worker.kill(limit)
        if pending:
            row = Row("runtime" if pending[0].kind == "runtime" else "crash", pending[0].name)
            row.fail(what, worker.case)
            pending.pop(0)
            yield [row]


def run_in_parallel(tasks: list[Task], jobs: int) -> Iterator[list[Row]]:
    """The rows of each task, in their order; so many processes at once for those of operators.

    Checks of the device run one after the other, as they measure it.
    """
    operators = [task for task in tasks if task.kind == "operator"]
    size = -(-len(operators) // (4 * jobs)) or 1  # a slow operator then holds few others up
    parts = [operators[i : i + size] for i in range(0, len(operators), size)]
    with ThreadPoolExecutor(jobs) as pool:
        for rows in pool.map(lambda part: list(run_isolated(part)), parts):
            yield from rows
    yield from run_isolated([task for task in tasks if task.kind != "operator"])


def main() -> None:
    """The other side: tasks on stdin, a line of JSON for each case and each task's rows."""
    with open(int(sys.argv[1]), "w", buffering=1) as out:

        def say(what: Any) -> None:
            out.write(json.dumps(what) + "\n")
            out.flush()

        for data in json.load(sys.stdin):
            task = Task(**data)
            say([asdict(row) for row in run_task(task, say)])


if __name__ == "__main__":
    main()
