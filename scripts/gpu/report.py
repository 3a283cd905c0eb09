"""Runs the sections of this folder on a device within a time, and writes a report as JSON and Markdown.

    report.py --device cuda --seconds 400 --out report [--sections hello,speed] [--limit speed=120]

Each section runs in a process of its own (child.py); a row that crashes, hangs or breaks the
device costs itself alone: the section goes on behind it in a new process. The report is written
after every section, so that a run that is cut off leaves what it has.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import re
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from pages import brief, markdown

HERE = Path(__file__).resolve().parent
# In the order of their worth, with the most seconds that each takes.
SECTIONS = {
    "hello": 60.0,
    "tests": 90.0,
    "digits": 60.0,
    "conformance": 150.0,
    "speed": 120.0,
    "memory": 40.0,
    "errors": 60.0,
    "sanitizer": 100.0,
}
RESTARTS = 8
LOG = 8_000_000  # bytes that are kept of log.txt
ABOUT = """
import json, sys
import numpy
about = {"Python": sys.version.split()[0], "NumPy": numpy.__version__}
try:
    import torch
    about["torch"] = torch.__version__
    about["torch sees"] = torch.cuda.get_device_name(0) if torch.cuda.is_available() else "no GPU"
except Exception as error:
    about["torch"] = f"{type(error).__name__}: {error}"
import mica
about["Mica"] = f"{mica.__version__}, {mica.__file__}"
try:
    about["device"] = {k: str(v) for k, v in mica.device_properties(sys.argv[1]).items()} if sys.argv[1] != "cpu" else {}
except Exception as error:
    about["device"] = f"{type(error).__name__}: {error}"
about["plugins"] = [
    {k: p[k] for k in ("name", "version", "path", "state", "reason", "notes", "runtime_version")}
    for p in mica.plugins()
    if p["asked"] or p["state"] not in ("found", "loaded") or f"backend:{mica.device(sys.argv[1]).type}" in p["provides"]
]
print(json.dumps(about))
"""


class Run:
    """One run: its time, its log and what has been found."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.device: str = arguments.device
        self.out: Path = arguments.out
        self.arguments = arguments
        self.start = time.monotonic()
        self.end = self.start + arguments.seconds
        self.log = open(self.out / "log.txt", "w")  # noqa: SIM115 - as long as the run
        self.report: dict[str, Any] = {"about": {}, "sections": {}}

    def left(self) -> float:
        return self.end - time.monotonic()

    def say(self, text: str) -> None:
        """A line with the seconds since the start."""
        line = f"{time.monotonic() - self.start:6.1f} s  {text}"
        print(line[:150], flush=True)
        self.log.write(line + "\n")
        self.log.flush()

    def write(self) -> None:
        """The report as it is now."""
        self.report["took"] = round(time.monotonic() - self.start, 1)
        (self.out / "report.json").write_text(json.dumps(self.report, indent=1, default=str))
        (self.out / "report.md").write_text(markdown(self.report))


def first_line(*command: str) -> str:
    """What a program prints, or why it does not."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
        return done.stdout.strip() or done.stderr.strip()[-300:]
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{type(error).__name__}: {error}"


def about(run: Run) -> dict[str, Any]:
    """The machine and what is installed on it."""
    query = "name,driver_version,memory.total,clocks.sm,clocks.max.sm,power.limit,temperature.gpu"
    cpu = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    done = subprocess.run(
        [sys.executable, "-c", ABOUT, run.device], capture_output=True, text=True, timeout=90
    )
    try:
        here = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        here = {"error": f"import mica ended with ({done.returncode}): {done.stderr[-1500:]}"}
    return {
        "date": time.strftime("%Y-%m-%d %H:%M:%S %Z"),
        "device": run.device,
        "GPU": first_line("nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"),
        "nvcc": (first_line("nvcc", "--version").splitlines() or [""])[-1],
        "CPU": f"{os.cpu_count()} x {cpu[0].partition(': ')[2] if cpu else platform.machine()}",
        "system": f"{platform.platform()}, {' '.join(platform.libc_ver())}",
        "MICA_PLUGINS": os.environ.get("MICA_PLUGINS", ""),
        **here,
    }


class Child:
    """A process that runs a section's rows, and its lines."""

    def __init__(self, run: Run, section: str, skip: list[str], seconds: float, before: list[str]) -> None:
        self.fd, theirs = os.pipe()
        options = {
            "seconds": seconds,
            "scale": run.arguments.scale,
            "processes": run.arguments.processes,
            "out": str(run.out),
            "more": json.loads(run.arguments.more),
        }
        command = [
            *before,
            sys.executable,
            str(HERE / "child.py"),
            "--section",
            section,
            "--device",
            run.device,
        ]
        command += ["--fd", str(theirs), "--skip", json.dumps(skip), "--options", json.dumps(options)]
        self.where = run.log.tell()
        self.process = subprocess.Popen(
            command, pass_fds=[theirs], stdout=run.log, stderr=run.log, start_new_session=True
        )
        os.close(theirs)
        self.rest = b""

    def line(self, until: float) -> dict[str, Any] | None:
        """The next line; None at the end. TimeoutError when none came in time."""
        while b"\n" not in self.rest:
            wait = until - time.monotonic()
            if wait <= 0 or not select.select([self.fd], [], [], wait)[0]:
                raise TimeoutError
            part = os.read(self.fd, 1 << 16)
            if not part:
                return None
            self.rest += part
        line, self.rest = self.rest.split(b"\n", 1)
        return json.loads(line)

    def end(self) -> int:
        """Ends it and what it started; its exit status."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            # A child that is done needs a moment for its own end; a hang there is killed, and seen.
            self.process.wait(15 if not self.rest else 0.1)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        os.close(self.fd)
        return self.process.wait()


def section(
    run: Run, name: str, module: str, limit: float, before: list[str] | None = None
) -> dict[str, Any]:
    """The rows of a section, however often its process has to be started."""
    start = time.monotonic()
    until = min(start + limit, run.end)
    rows: dict[str, dict[str, Any]] = {}
    found: dict[str, Any] = {"rows": rows}
    for restart in range(RESTARTS + 1):
        child = Child(run, module, list(rows), until - time.monotonic(), before or [])
        current, done, hung, row_until = "", False, False, until + 15
        try:
            while (said := child.line(min(row_until, until + 15))) is not None:
                if "begin" in said:
                    current = said["begin"]
                    rows[current] = {"status": "running"}
                    row_until = time.monotonic() + float(said["limit"])
                elif "end" in said:
                    rows[said.pop("end")] = said
                    if said["status"] != "skipped" or "is over" not in said["error"]:
                        run.say(f"{name}: {current}: {brief(said)}")
                    current, row_until = "", time.monotonic() + 60
                else:
                    done = True
        except TimeoutError:
            hung = True
            child.process.kill()
        status = child.end()
        over = time.monotonic() > until
        if current:
            what = "It did not end in its time" if hung else f"Its process ended with ({status})"
            rows[current] = {"status": "out of time" if hung and over else "crashed", "error": f"{what}. {tail(run, child.where)}"}  # fmt: skip
            run.say(f"{name}: {current}: {rows[current]['status']}: {rows[current]['error'][:200]}")
        elif not done and not rows:
            found["error"] = f"The process ended with ({status}). {tail(run, child.where)}"
            run.say(f"{name}: {found['error'][-250:]}")
            break
        if done and status != 0:
            found["error"] = f"All rows ran, and the process ended with ({status}). {tail(run, child.where)}"
            run.say(f"{name}: {found['error'][:200]}")
        if done or over:
            break
        if restart == RESTARTS:
            found["error"] = f"The process was started ({RESTARTS + 1}) times; no further."
    found["seconds"] = round(time.monotonic() - start, 1)
    return found


def tail(run: Run, where: int) -> str:
    """The end of what a child wrote to the log."""
    run.log.flush()
    with open(run.out / "log.txt", errors="replace") as file:
        file.seek(where)
        lines = file.read().splitlines()
    return "\n".join(line for line in lines if not re.match(r" *[0-9.]+ s  ", line)).strip()[-1200:]


def sanitizer(run: Run, limit: float) -> dict[str, Any]:
    """`hello` and `checked` under compute-sanitizer: what memcheck finds, and the rows."""
    program = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    if not Path(program).exists():
        return {"error": "compute-sanitizer is not here.", "rows": {}, "seconds": 0}
    start = time.monotonic()
    found: dict[str, Any] = {"rows": {}}
    tools = run.arguments.tools.split(",")
    for tool, module in [(tool, module) for tool in tools for module in ("hello", "checked")]:
        left = limit - (time.monotonic() - start)
        if left < 15:
            break
        log = run.out / f"sanitizer_{tool}_{module}.txt"
        command = [program, "--tool", tool, "--print-limit", "1000", "--log-file", str(log)]
        if tool == "memcheck":  # a driver that answers "no" is no error: what a kernel does is looked at
            command[3:3] = ["--report-api-errors", "no"]
        # Of checked, which has many rows, as much as the time allows.
        part = section(run, f"sanitizer {tool}", module, left * 0.6 if module == "hello" else left, command)
        found["rows"].update({f"{tool}: {name}": row for name, row in part["rows"].items()})
        text = log.read_text(errors="replace") if log.exists() else "It wrote no log."
        log.write_text(text[:2_000_000])
        found[f"{tool}, {module}"] = (text.strip().splitlines() or [""])[-1]
        if "error" in part:
            found["error"] = part["error"]
        run.say(f"sanitizer {tool}, {module}: {found[f'{tool}, {module}']}")
    found["seconds"] = round(time.monotonic() - start, 1)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seconds", type=float, default=400, help="for everything")
    parser.add_argument("--out", type=Path, default=Path())
    parser.add_argument("--sections", default=",".join(SECTIONS), help="in the order in which they run")
    parser.add_argument("--limit", action="append", default=[], metavar="SECTION=SECONDS")
    parser.add_argument("--processes", type=int, default=min(14, os.cpu_count() or 1), help="of conformance")
    parser.add_argument("--scale", type=float, default=1.0, help="of the sizes of speed and memory")
    parser.add_argument("--tools", default="memcheck", help="of compute-sanitizer: memcheck,racecheck")
    parser.add_argument(
        "--more", default="{}", help='for a section: {"ops": [...], "dtypes": [...], "epochs": 5}'
    )
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    limits = {**SECTIONS, **{k: float(v) for k, _, v in (text.partition("=") for text in arguments.limit)}}
    sections = arguments.sections.split(",")
    if unknown := set(sections) - set(SECTIONS):
        raise SystemExit(f"There is no section ({unknown.pop()}); there are: {', '.join(SECTIONS)}.")
    run = Run(arguments)
    run.report["about"] = about(run)
    for key, value in run.report["about"].items():
        run.say(f"{key}: {value}")
    for name in sections:
        limit = min(limits[name], run.left() - 3)
        if limit < 8:
            run.report["sections"][name] = {"rows": {}, "error": "No time was left."}
            run.say(f"{name}: no time is left")
            continue
        run.say(f"{name}: at most {limit:.0f} s")
        try:
            run.report["sections"][name] = sanitizer(run, limit) if name == "sanitizer" else section(run, name, name, limit)  # fmt: skip
        except Exception as error:  # noqa: BLE001 - written down, and the next runs
            run.report["sections"][name] = {"rows": {}, "error": f"{type(error).__name__}: {error}"}
            run.say(f"{name}: {type(error).__name__}: {error}")
        run.write()
        if (
            name == "hello"
            and run.report["sections"][name]["rows"].get("count", {}).get("status") != "passed"
        ):
            run.say("The device is not there: nothing else runs.")
            break
    run.write()
    run.log.flush()
    if run.log.tell() > LOG:
        os.truncate(run.out / "log.txt", LOG)
    bad = [f"{s}: {n}" for s, part in run.report["sections"].items() for n, r in part["rows"].items() if r["status"] in ("failed", "crashed", "out of time")]  # fmt: skip
    run.say(f"done; {len(bad)} rows failed: {'; '.join(bad)}"[:280])
    return 0


if __name__ == "__main__":
    sys.exit(main())
