"""Damaged safetensors files, each with a word of the sentence by which the package refuses it.

A file is a length, a header in JSON and the tensors' bytes. The package reads the header itself and
asks the shim for storages only then, so its own errors must come through, from bytes, from a path and
from safe_open() alike; nothing is built and nothing ends the process.
"""

from __future__ import annotations

import json
import struct
import tempfile
from pathlib import Path
from typing import Any

DATA = struct.pack("<2f", 1.0, 2.0)
ENTRY: dict[str, Any] = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


def file(header: Any, data: bytes = DATA, length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(**changes: Any) -> bytes:
    return file({"a": {**ENTRY, **changes}})


GOOD = file({"a": ENTRY})
HOSTILE: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "too small"),
    "shorter than a length": (GOOD[:5], "too small"),
    "header beyond the file": (file({"a": ENTRY}, length=1 << 20), "header length"),
    "header of 2^63 bytes": (file({"a": ENTRY}, length=1 << 63), "too large"),
    "cut header": (file(b'{"a": {"dtype"'), "JSON"),
    "header of other bytes": (file(b"\xff\xfe{}"), "UTF-8"),
    "header that is a list": (file(b"[1, 2]"), "JSON"),
    "unknown dtype": (entry(dtype="F33"), "F33"),
    "overlapping tensors": (file({"a": ENTRY, "b": ENTRY}), "offset"),
    "bytes between tensors": (
        file({"a": ENTRY, "b": {**ENTRY, "data_offsets": [12, 20]}}, DATA * 3),
        "offset",
    ),
    "offsets beyond the file": (entry(shape=[20], data_offsets=[0, 80]), "not fully covered"),
    "offsets in reverse": (entry(data_offsets=[8, 0]), "offset"),
    "one offset": (entry(data_offsets=[0]), "length 1"),
    "offset above 2^64": (entry(data_offsets=[0, 1 << 65]), "JSON"),
    "more elements than bytes": (entry(shape=[3]), "shape"),
    "negative size": (entry(shape=[-2]), "-2"),
    "sizes that overflow": (entry(shape=[1 << 62, 1 << 62]), "overflow"),
    "no shape": (file({"a": {"dtype": "F32", "data_offsets": [0, 8]}}), "shape"),
    "bytes after the tensors": (GOOD + b"xx", "not fully covered"),
    "cut tensors": (GOOD[:-3], "not fully covered"),
    "metadata of numbers": (file({"__metadata__": {"x": 3}, "a": ENTRY}), "JSON"),
}


def check_hostile_files() -> None:
    """Asserts that every file is refused, by the package's error, however it is read."""
    from safetensors import SafetensorError, safe_open
    from safetensors.torch import load, load_file

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.safetensors"
        ways = (
            lambda content: load(content),
            lambda content: load_file(path),
            lambda content: safe_open(path, framework="pt"),
        )
        for name, (content, word) in {"good": (GOOD, ""), **HOSTILE}.items():
            path.write_bytes(content)
            for read in ways:
                try:
                    read(content)
                except SafetensorError as error:
                    assert word and word in str(error), f"{name}: {error}"
                else:
                    assert not word, f"{name}: the file was read"
