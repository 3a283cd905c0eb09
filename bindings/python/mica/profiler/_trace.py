"""Traces in the Chrome format: Perfetto, chrome://tracing and TensorBoard's plugin open them."""

from __future__ import annotations

import gzip
import json
import os
import sys
import time
from typing import Any

_CATEGORY = {"operator": "cpu_op", "block": "user_annotation", "module": "python_function"}


def _event(event: Any, process: int, origin: float) -> dict[str, Any]:
    args: dict[str, Any] = {"External id": event.id}
    if event.input_shapes:
        args["Input Dims"] = event.input_shapes
        args["Input type"] = event.input_dtypes
    if event.stack:
        args["Call stack"] = event.stack
    if event.flops:
        args["flops"] = event.flops
    if event.cpu_memory_usage:
        args["Bytes"] = event.cpu_memory_usage
    return {
        "ph": "X",
        "cat": _CATEGORY[event.kind],
        "name": event.name,
        "pid": process,
        "tid": event.thread,
        "ts": origin + event.time_range.start,
        "dur": event.cpu_time_total,
        "args": args,
    }


def write(path: str, events: Any, recorder: Any, metadata: dict[str, Any]) -> None:
    """Writes the events; gzipped where the name ends in .gz."""
    process = os.getpid()
    origin = (recorder.began if recorder is not None else 0) / 1000
    found = [_event(e, process, origin) for e in events if hasattr(e, "time_range")]
    if not found and len(events):
        raise RuntimeError("Averages have no times; export_chrome_trace() is for the events themselves.")
    for moment, held in recorder.memory if recorder is not None else ():
        found.append(
            {
                "ph": "C",
                "name": "memory allocated",
                "pid": process,
                "ts": moment / 1000,
                "args": {"cpu bytes": held},
            }
        )
    names = [
        {
            "ph": "M",
            "name": "process_name",
            "pid": process,
            "tid": 0,
            "args": {"name": sys.argv[0] or "python"},
        }
    ]
    whole = {
        "schemaVersion": 1,
        "deviceProperties": [],
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": time.time_ns() - time.perf_counter_ns(),
        **metadata,
        "traceEvents": [*names, *found],
        "traceName": path,
    }
    if path.endswith(".gz"):
        with gzip.open(path, "wt", encoding="utf-8") as file:
            json.dump(whole, file)
    else:
        with open(path, "w", encoding="utf-8") as file:
            json.dump(whole, file)
