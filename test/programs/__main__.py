"""Random programs on torch and Mica: `python test/programs [--seed S] [--programs N | --seconds S]`.

Each program has a number: the run's seed times a million and its place. A program that shows a
difference is shrunk and printed with both results; those listed in known.txt are counted. The
seed is the day's, or MICA_FUZZ_SEED. With `--silent` only silent differences fail, where both libraries go on;
one that an exception tells of is printed, to be mended or listed. `--only N` draws that one program again, `--file PATH` runs one
from a file. The programs run in a process apart (apart.py): where one ends that process, the next run in another.
The last line printed counts the programs.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Callable
from datetime import date
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch and Mica start their threads
# torch's transposed convolutions of bfloat16 end the process with AMX.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")

import apart  # noqa: E402
import known  # noqa: E402
import steps_autograd  # noqa: E402, F401
import steps_layers  # noqa: E402, F401
import steps_values  # noqa: E402, F401
import steps_views  # noqa: E402, F401
from draw import grow  # noqa: E402
from session import Difference, confirmed, run  # noqa: E402
from shrink import shrunk  # noqa: E402


def arguments() -> argparse.Namespace:
    today = os.environ.get("MICA_FUZZ_SEED") or date.today().strftime("%y%m%d")
    parser = argparse.ArgumentParser(prog="test/programs", description=__doc__)
    parser.add_argument("--seed", type=int, default=int(today))
    parser.add_argument("--programs", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=0, help="as many programs as run in this time")
    parser.add_argument("--only", type=int, help="the number of one program")
    parser.add_argument("--file", type=Path, help="a program's text, without its imports")
    parser.add_argument(
        "--silent", action="store_true", help="pass where an exception tells of the difference"
    )
    parser.add_argument("--shrink", type=float, default=60, help="seconds to spend on a difference")
    return parser.parse_args()


def text(program: list[str]) -> str:
    return "\n".join(["import torch  # or: import mica as torch", "log = []", *program])


def tell(how: str, number: int, program: list[str], difference: Difference, seconds: float) -> None:
    """Prints a difference with the smallest program that shows it."""
    kinds = difference.kind
    small = shrunk(program, lambda tried: confirmed(tried, kinds, 1) is not None, seconds)
    shown = confirmed(small, kinds) or difference
    print(f"{how} program {number}: {shown}\n{text(small)}", flush=True)
    print(f"  again: python test/programs --only {number}\n", flush=True)


def one(number: int, listed: known.Known, options: argparse.Namespace) -> str:
    """Runs a program and says how it ended."""
    program, difference, end = grow(number)
    if difference is None:
        return end
    if listed.has(program, difference):
        return "known"
    if confirmed(program, difference.kind) is None:
        return "chaotic"
    passes = options.silent and not difference.silent
    tell("loud" if passes else "FAILED", number, program, difference, options.shrink)
    return "loud" if passes else "found"


def work(send: Callable[[str], None], options: argparse.Namespace, place: int, deadline: float) -> None:
    """Runs the programs from a place on, and sends how each ended."""
    listed = known.Known()
    while time.monotonic() < deadline if options.seconds else place < options.programs:
        send(one(options.seed * 1_000_000 + place, listed, options))
        place += 1


def fatal(number: int, signal: str) -> str:
    """Says whose program ended the process."""
    library, program = apart.ended(number)
    if library == "torch":
        print(f"torch ended the process ({signal}) in program {number}, which Mica alone runs to its end.")
        return "ended by torch"
    whose = "Mica alone ends" if library else "neither library alone ends"
    print(f"FAILED program {number} ended the process ({signal}); {whose} it:\n{text(program)}")
    return "found"


def run_all(options: argparse.Namespace) -> Counter[str]:
    """How many programs ended in each way."""
    ends: Counter[str] = Counter()
    deadline = time.monotonic() + options.seconds
    running = True
    while running:
        try:
            for end in apart.messages(work, options, ends.total(), deadline):
                ends[end] += 1
            running = False
        except apart.Died as died:
            ends[fatal(options.seed * 1_000_000 + ends.total(), str(died))] += 1
    return ends


def main() -> int:
    options = arguments()
    if options.file is not None:
        found = run(known.statements(options.file.read_text()))
        print("no difference" if found is None else f"after statement ({found[0]}): {found[1]}")
        return int(found is not None)
    listed = known.Known()
    if options.only is not None:
        print(text([]))
        grow(options.only, print)
        print(one(options.only, listed, options))
        return 0
    print(f"seed ({options.seed})")
    ends = run_all(options)
    mended = listed.mended()
    for entry in mended:
        print(f"FAILED The listed difference ({entry.reason}) is gone; take it off test/programs/known.txt.")
    failed = ends["found"] + len(mended)
    print(", ".join(f"({count}) {end}" for end, count in ends.most_common()))
    print(f"{ends.total() - ends['found']} passed, {failed} failed")
    return int(failed > 0 or ends["chaotic"] > ends.total() // 5)


if __name__ == "__main__":
    sys.exit(main())
