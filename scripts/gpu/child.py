"""Runs the rows of one section and says each as a line of JSON to a file descriptor.

child.py --section speed --device cuda --fd 3 [--skip '["row", ...]'] [--options JSON]
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from row import Options, Row, Skipped  # noqa: E402

BROKEN = 99  # the exit status that says: the device no longer works in this process


def outcome(row: Row) -> dict[str, Any]:
    """What the row gave, or what it raised."""
    start = time.perf_counter()
    try:
        said = {"status": "passed", **row.run()}
    except Skipped as reason:
        said = {"status": "skipped", "error": str(reason)}
    except NotImplementedError as error:
        said = {"status": "unsupported", "error": (str(error).splitlines() or [""])[0]}
    except Exception as error:  # noqa: BLE001 - written down
        text = f"{type(error).__name__}: {error}".strip()
        where = [line.rstrip() for line in traceback.format_exc().splitlines()]
        said = {"status": "failed", "error": text[:1500], "traceback": where[-12:]}
    return {**said, "seconds": round(time.perf_counter() - start, 3)}


def works(device: str) -> bool:
    """Whether the device still computes."""
    import mica

    for _ in range(2):  # the first may be told of an error that the row left behind
        try:
            mica.synchronize(device)
            return (mica.ones(4, device=device) + 1).tolist() == [2.0] * 4
        except Exception:  # noqa: BLE001 - that is the answer
            pass
    return False


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--section", required=True)
    parser.add_argument("--device", required=True)
    parser.add_argument("--fd", type=int)
    parser.add_argument("--skip", type=json.loads, default=[])
    parser.add_argument("--only", default="")
    parser.add_argument("--options", type=json.loads, default={})
    arguments = parser.parse_args()
    out = sys.stdout if arguments.fd is None else os.fdopen(arguments.fd, "w", buffering=1)

    def say(**what: Any) -> None:
        out.write(json.dumps(what, default=str) + "\n")
        out.flush()

    module = importlib.import_module(arguments.section)
    for row in module.rows(arguments.device, Options(**arguments.options)):
        if row.name in arguments.skip or arguments.only not in row.name:
            continue
        say(begin=row.name, limit=row.limit)
        said = outcome(row)
        broken = said["status"] == "failed" and not works(arguments.device)
        say(end=row.name, **said, **({"device": "no longer works in this process"} if broken else {}))
        if broken:
            out.flush()
            os._exit(BROKEN)
    say(done=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
