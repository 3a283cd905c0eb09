"""Section `conformance`: Mica's conformance kit, its operators spread over processes.

The kit runs what it runs in processes of its own and refuses fallbacks: what the device lacks
is unsupported. One dtype after the other, float32 first, as far as the time goes; all rows go
to conformance.json.
"""

from __future__ import annotations

import json
import os
import queue
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from row import Options, Row, Skipped

DTYPES = (
    *("float32", "int64", "bool", "bfloat16", "float16", "int32", "float64"),
    *("uint8", "complex64", "int8", "complex128"),
)
CHUNK = 12  # operators in one process, which takes about a second to start
CASE_LIMIT = 25.0  # seconds for one case
# What programs use most, tested first.
FIRST = [
    "add.Tensor",
    "sub.Tensor",
    "mul.Tensor",
    "div.Tensor",
    "exp",
    "sum.dim_IntList",
    "mean.dim",
    "mm",
    "bmm",
    "addmm",
    "_softmax",
    "_log_softmax",
    "embedding",
    "gather",
    "index_select",
    "cat",
    "where.self",
    "copy_",
    "clone",
    "nll_loss_forward",
    "convolution",
    "native_layer_norm",
    "native_batch_norm",
    "amax",
    "argmax",
    "gelu",
    "relu",
    "sigmoid",
    "tanh",
    "cumsum",
    "sort.stable",
    "topk",
    "arange.start_step",
    "fill_.Scalar",
    "full_like",
    "index.Tensor",
    "index_put",
    "scatter.src",
    "var_mean.correction",
]


def _unit(overload: str) -> int:
    return FIRST.index(overload) if overload in FIRST else len(FIRST)


class Pool:
    """Threads that each let a process of the kit run a chunk of tasks."""

    def __init__(self, chunks: list[list[Any]], processes: int, until: float) -> None:
        self.rows: list[Any] = []
        self.done: Counter[str] = Counter()
        self.until = until
        self.work: queue.SimpleQueue[list[Any]] = queue.SimpleQueue()
        for chunk in chunks:
            self.work.put(chunk)
        self.lock = threading.Lock()
        self.started = time.monotonic()
        self.threads = [threading.Thread(target=self._run, daemon=True) for _ in range(processes)]
        for thread in self.threads:
            thread.start()

    def _run(self) -> None:
        from mica.conformance.worker import run_isolated

        while time.monotonic() < self.until:
            try:
                chunk = self.work.get_nowait()
            except queue.Empty:
                return
            for task, rows in zip(chunk, run_isolated(chunk, CASE_LIMIT)):
                with self.lock:
                    self.rows += rows
                    self.done[task.kind] += 1
                if time.monotonic() > self.until:
                    return  # the generator's process ends with ours

    def wait(self) -> None:
        """Until all is done or the time is over; a process in a long case is left behind."""
        for thread in self.threads:
            thread.join(max(0.0, self.until + 5 - time.monotonic()))


def _summary(rows: list[Any]) -> dict[str, Any]:
    """By operator, the worst verdict of its rows; and each failure with its first detail."""
    from mica.conformance.results import FAILS, PASSES, UNSUPPORTED

    by_name: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        by_name[row.name].add(row.verdict)
    failed = sorted(n for n, v in by_name.items() if FAILS in v)
    passed = sorted(n for n, v in by_name.items() if v == {PASSES})
    partly = sorted(n for n, v in by_name.items() if v == {PASSES, UNSUPPORTED})
    lacking = sorted(n for n, v in by_name.items() if v == {UNSUPPORTED})
    details = [
        {
            "row": " ".join(filter(None, (row.check, row.name, row.dtype))),
            "cases": f"{len(row.failures)} of {row.cases}",
            "detail": row.failures[0].detail[:400],
            "line": row.failures[0].line[:600],
        }
        for row in rows
        if row.failures
    ]
    kinds = Counter(
        " ".join(filter(None, (d["row"].split()[0], d["detail"].split("(")[0].split(":")[0][:60])))
        for d in details
    )
    return {
        "rows": {v: sum(r.verdict == v for r in rows) for v in (PASSES, FAILS, UNSUPPORTED)},
        "operators": {
            "passed": len(passed), "failed": len(failed), "partly supported": len(partly), "fell back": len(lacking)
        },
        "failed": failed,
        "partly supported": partly,
        "fell back": lacking,
        "kinds of failures": dict(kinds.most_common(12)),
        "slowest": [f"{r.name} {r.check} {r.seconds:.1f} s" for r in sorted(rows, key=lambda r: -r.seconds)[:5]],
        "failures": details,
    }  # fmt: skip


def _write(options: Options, dtype: str, rows: list[Any]) -> None:
    """Adds the rows to conformance.json, short: of passing rows only the number of cases."""
    path = Path(options.out) / "conformance.json"
    known = json.loads(path.read_text()) if path.exists() else {}
    known[dtype] = [
        [
            row.check,
            row.name,
            row.verdict,
            row.cases,
            row.failures[0].detail[:300] if row.failures else row.reason[:120],
        ]
        for row in rows
    ]
    path.write_text(json.dumps(known, separators=(",", ":")))


def rows(device: str, options: Options) -> Iterator[Row]:
    os.environ["OMP_NUM_THREADS"] = "1"
    from mica.conformance import runtime
    from mica.conformance.kit import load_checks
    from mica.conformance.operator_checks import CHECKS, chosen
    from mica.conformance.worker import Task

    load_checks()
    until = time.monotonic() + options.seconds - 4
    entries = sorted(chosen(options.more.get("ops", [])), key=lambda e: _unit(e.overload))

    def run(tasks: list[Any], name: str, chunk: int = CHUNK) -> dict[str, Any]:
        if time.monotonic() > until - 5:
            raise Skipped("The time of the section is over.")
        first, rest = tasks[: len(FIRST)], tasks[len(FIRST) :]
        # Neighbours in the list resemble each other: they go to different processes.
        count = -(-len(rest) // chunk) or 1
        chunks = [first[k::8] for k in range(8)] + [rest[k::count] for k in range(count)]
        pool = Pool([c for c in chunks if c], options.processes, until)
        pool.wait()
        with pool.lock:
            found = list(pool.rows)
        _write(options, name, found)
        left = len(tasks) - sum(pool.done.values())
        took = round(time.monotonic() - pool.started, 1)
        return {"tasks": len(tasks), "not run": left, "took": took, **_summary(found)}

    def of_dtype(dtype: str) -> dict[str, Any]:
        return run([Task("operator", e.overload, device, (dtype,), tuple(CHECKS)) for e in entries], dtype)

    def of_device() -> dict[str, Any]:
        return run([Task("runtime", c.name, device) for c in runtime.CHECKS], "runtime", 4)

    limit = options.seconds + 20
    dtypes = options.more.get("dtypes", DTYPES)
    yield Row("runtime", of_device, limit)
    for dtype in dtypes:
        yield Row(dtype, lambda dtype=dtype: of_dtype(dtype), limit)
