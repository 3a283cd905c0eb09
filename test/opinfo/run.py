"""Runs operators in worker processes, two at a time.

A worker is a fork of this process, which has torch and Mica loaded and has run neither, and
runs one operator after the other. It writes the number of its case into shared memory before
it runs it; when it dies, or is silent for too long, that case becomes a failure and a new
process runs the operator's other cases.
"""

from __future__ import annotations

import copy
import dataclasses
import mmap
import multiprocessing
import os
import resource
import struct
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import batches
import checks
import kinds
import layouts
import scope
import sizes
import tangents
import torch
import translate
from agree import flatten
from otherwise import otherwise
from rules import UNGROWN, any_index, factors, goes_along, is_random, needs_rank
from translate import AbsentError, function

import mica

CHECKS = (
    "forward", "gradients", "tangents", "layouts", "kind", "out", "inplace", "meta", "vmap", "errors", "sizes"
)  # fmt: skip
# Asked for by name, and a part of it in the suite: an hour of the processor.
DEFAULT = tuple(check for check in CHECKS if check != "sizes")
_SILENCE = 30.0  # seconds of its processor that one case may take
_ASLEEP = 300.0  # seconds that it may take at all: others may use the machine, and a deadlock uses none of it
_CRASHES = 6  # of one operator, before the rest of it is given up
_MEMORY = 8 << 30  # bytes that a worker may map
_META_DTYPES = ("bool", "int64", "float16", "float32", "complex64")  # one of each kind, and a half
_KIND_DTYPES = ("int64", "bfloat16", "float32", "complex64")
_VMAP_DTYPES = ("int64", "float64", "complex128")
_SIZE_DTYPES = ("float32", "float64", "bfloat16", "int64", "uint8", "bool", "complex64")
_SIZE_CASES = 60  # of one operator and dtype, at sizes of the kernels' own
_SUITE_SIZE_DTYPES = ("float32", "bfloat16")  # of the suite, which runs few of them
_KEPT = 40  # failures of one operator that are kept in words


@dataclass
class Options:
    """What the command line asks for."""

    dtypes: list[str] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)
    share: float = 1.0
    suite: bool = False  # the checks of the suite, `sizes` in part
    device: str = "cpu"  # the backend that Mica's side runs on


@dataclass
class Report:
    """What one operator's checks found."""

    key: str
    absent: str = ""
    passed: Counter[tuple[str, str]] = field(default_factory=Counter)  # (check, dtype)
    failed: Counter[tuple[str, str]] = field(default_factory=Counter)
    excused: Counter[str] = field(default_factory=Counter)  # reasons, as otherwise.py gives them
    strides: int = 0  # results whose strides differ where they may
    failures: list[tuple[str, str, int, str]] = field(default_factory=list)  # check, dtype, sample, what
    seconds: float = 0.0

    def add(self, check: str, dtype: str, number: int, found: str, loose: bool) -> None:
        rule = otherwise(self.key, check, found) if found else None
        if rule is not None:
            self.excused[rule.why] += 1
            found = ""
        (self.failed if found else self.passed)[check, dtype] += 1
        self.strides += loose and not found
        if found and len(self.failures) < _KEPT:
            self.failures.append((check, dtype, number, found))

    def count(self, check: str) -> tuple[int, int]:
        """(agree, all) of one check."""
        agree = sum(n for (c, _), n in self.passed.items() if c == check)
        return agree, agree + sum(n for (c, _), n in self.failed.items() if c == check)


Case = tuple[str, str, int, Callable[[], Iterator[checks.Found]]]  # check, dtype, sample, the check


def _inplace(op: Any) -> Any:
    """Mica's in-place form, or None where torch has none."""
    if op.inplace_variant is None or op.inplace_variant is op.op:
        return None
    try:
        return function(op.inplace_variant, f"Tensor.{op.name}_")
    except AbsentError as error:
        missing = error

        def absent(*_: Any, **__: Any) -> Any:
            raise missing

        return absent


def _sample_cases(o: checks.Operator, ours: Any, dtype: torch.dtype, share: float) -> Iterator[Case]:
    """Those of the samples without gradients."""
    op, word = o.op, str(dtype).removeprefix("torch.")
    for n, s in enumerate(scope.samples(op, dtype, False, share)):
        args, kwargs = (s.input, *s.args), s.kwargs
        yield "forward", word, n, lambda a=args, k=kwargs: checks.forward(o, a, k)
        if word in _META_DTYPES:
            yield "meta", word, n, lambda a=args, k=kwargs: checks.meta(o, a, k)
        if word in _VMAP_DTYPES:
            yield "vmap", word, n, lambda a=args, k=kwargs, n=n: batches.vmap(o, a, k, n)
        layout = layouts.layout_of(scope.key(op), dtype, n)
        if layout and not (layout == "expanded" and needs_rank(op)):
            yield "layouts", word, n, lambda a=args, k=kwargs, y=layout: checks.layout(o, a, k, y)
        if op.supports_out:
            yield "out", word, n, lambda a=args, k=kwargs, n=n: checks.out(o, a, k, n)
        if ours is not None:
            yield "inplace", word, n, lambda a=args, k=kwargs: checks.inplace(o, ours, a, k)


def _kind_cases(o: checks.Operator, dtype: torch.dtype) -> Iterator[Case]:
    """Of all samples, each in one layout: they cost little."""
    word = str(dtype).removeprefix("torch.")
    if word in _KIND_DTYPES:
        for n, s in enumerate(scope.samples(o.op, dtype, False, 1)):
            yield "kind", word, n, lambda s=s, n=n: kinds.kind(o, (s.input, *s.args), s.kwargs, n)


def _gradient_cases(o: checks.Operator, dtype: torch.dtype, share: float) -> Iterator[Case]:
    op, word = o.op, str(dtype).removeprefix("torch.")
    ties = any_index(op) and dtype.itemsize < 4  # short dtypes have equal elements
    if op.supports_autograd and dtype in op.supported_backward_dtypes("cpu") and not ties:
        for n, s in enumerate(scope.samples(op, dtype, True, share)):
            yield "gradients", word, n, lambda s=s: checks.gradients(o, s)


def _tangent_cases(o: checks.Operator, dtype: torch.dtype, share: float) -> Iterator[Case]:
    op, word = o.op, str(dtype).removeprefix("torch.")
    there = op.supports_forward_ad and dtype in op.supported_backward_dtypes("cpu")
    if there and dtype in scope.FORWARD_MODE_DTYPES:
        for n, s in enumerate(scope.samples(op, dtype, True, share)):
            yield "tangents", word, n, lambda s=s: tangents.tangents(o, s)


def _at_size(o: checks.Operator, grower: sizes.Grower, k: int, back: bool) -> Iterator[checks.Found]:
    """A grown sample's results and gradients, on one thread or two."""
    layout, sample = grower.case(k) or ("", None)
    if sample is None or (layout == "expanded" and needs_rank(o.op)):
        return
    tensors = [x for x in flatten([sample.input, *sample.args]) if isinstance(x, torch.Tensor)]
    grown = copy.copy(o)
    grown.rules = dataclasses.replace(o.rules, terms=max(x.numel() for x in tensors))
    grown.by_norm = factors(o.op)
    mica.set_num_threads(1 + k % 2)
    try:
        found = list(checks.forward(grown, (sample.input, *sample.args), sample.kwargs))
        if back and not any(what for _, what, _ in found):
            found += checks.gradients(grown, sample)
    finally:
        mica.set_num_threads(1)
    shapes = " ".join(str(tuple(x.shape)) for x in tensors)
    for name, what, loose in found:
        yield "sizes", what and f"{name} {layout} {shapes}: {what}", loose


def _size_count(op: Any, word: str, options: Options) -> int:
    """How many samples of this dtype are grown.

    In the suite some of whatever goes along dimensions, and one of every second other operator.
    """
    if word not in _SIZE_DTYPES or is_random(op) or op.name in UNGROWN:
        return 0
    if not options.suite:
        return max(1, round(_SIZE_CASES * options.share))
    if goes_along(op):
        return 3 if word in _SUITE_SIZE_DTYPES else 0
    return int(word == _SUITE_SIZE_DTYPES[0] and zlib.crc32(scope.key(op).encode()) % 2 == 0)


def _size_cases(o: checks.Operator, dtype: torch.dtype, options: Options) -> Iterator[Case]:
    op, word = o.op, str(dtype).removeprefix("torch.")
    count = _size_count(op, word, options)
    if count == 0:
        return
    back = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu") and not any_index(op)
    found = sizes.shuffled(op, dtype, list(scope.samples(op, dtype, back, 1)))
    each, made = max(1, count // max(len(found), 1)), 0
    for n, sample in found:
        grower = sizes.Grower(op, dtype, n, sample)
        yield "sizes", word, n, lambda g=grower: iter(g.learn() or ())
        for k in range(each if grower.ways else 0):
            yield "sizes", word, n, lambda g=grower, k=k: _at_size(o, g, k, back)
            made += 1
        if made >= count:
            return


def cases(o: checks.Operator, options: Options) -> Iterator[Case]:
    """Every case of one operator that the options ask for, in an order that never changes."""
    op, ours = o.op, _inplace(o.op)
    asked = set(options.checks or (CHECKS if options.suite else DEFAULT))
    for dtype in scope.dtypes(op, options.dtypes):
        if asked - {"gradients", "tangents", "kind", "errors", "sizes"}:
            found = _sample_cases(o, ours, dtype, options.share)
            yield from (case for case in found if case[0] in asked)
        if "kind" in asked:
            yield from _kind_cases(o, dtype)
        if "gradients" in asked:
            yield from _gradient_cases(o, dtype, options.share)
        if "tangents" in asked:
            yield from _tangent_cases(o, dtype, options.share)
        if "sizes" in asked:
            yield from _size_cases(o, dtype, options)
    if asked & {"errors", "meta"} and op.error_inputs_func is not None:
        for n, e in enumerate(op.error_inputs("cpu")):
            s = e.sample_input
            if "errors" in asked:
                yield "errors", "", n, lambda s=s: checks.errors(o, s)
            if "meta" in asked:
                yield "meta", "", n, lambda s=s: checks.meta(o, (s.input, *s.args), s.kwargs)


def run_operator(op: Any, options: Options, note: Callable[[int], None], skip: dict[int, str]) -> Report:
    """Runs the operator's cases; those in `skip` fail with what is said there."""
    report, start = Report(scope.key(op)), time.monotonic()
    try:
        o = checks.Operator(op)
        for number, (check, dtype, sample, case) in enumerate(cases(o, options)):
            note(number)
            if number in skip:
                report.add(check, dtype, sample, skip[number], False)
                continue
            try:
                for name, found, loose in case():
                    report.add(name, dtype, sample, found, loose)
            except AbsentError:
                raise
            except Exception as error:  # a fault of the harness is shown, not hidden
                report.add(check, dtype, sample, f"not compared: {checks.say(error)}", False)
    except AbsentError as error:
        report = Report(scope.key(op), absent=str(error) or "absent")
    report.seconds = time.monotonic() - start
    return report


class _Worker:
    """A process that runs one operator after the other; a new one takes the place of a dead one."""

    def __init__(self, operators: list[Any], options: Options) -> None:
        self.operators, self.options = operators, options
        self.place = mmap.mmap(-1, 8)
        self.crashes = 0  # since another operator was given
        self.start()

    def start(self) -> None:
        fork = multiprocessing.get_context("fork")
        self.pipe, theirs = fork.Pipe()
        self.process = fork.Process(target=self._main, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()

    def _main(self, pipe: Any) -> None:
        if self.options.device == "cpu":  # devices reserve addresses that they never use
            resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        torch.set_num_threads(1)
        if self.options.device != "cpu":  # here, since a device that was used does not survive a fork
            translate.run_on(self.options.device)

        def note(number: int) -> None:
            self.place[:] = struct.pack("q", number)

        while True:
            which, skip = pipe.recv()
            pipe.send(run_operator(self.operators[which], self.options, note, skip))

    def give(self, which: int, skip: dict[int, str]) -> None:
        """Lets the process run an operator, but for the cases in `skip`."""
        self.which, self.skip = which, skip
        self.crashes = self.crashes + 1 if skip else 0
        self.place[:] = struct.pack("q", -1)
        self.seen, self.since, self.used = -1, time.monotonic(), self._processor()
        self.pipe.send((which, skip))

    def silent(self) -> bool:
        """Whether the current case takes too long."""
        (number,) = struct.unpack("q", self.place[:])
        if number != self.seen:
            self.seen, self.since, self.used = number, time.monotonic(), self._processor()
        return self._processor() - self.used > _SILENCE or time.monotonic() - self.since > _ASLEEP

    def _processor(self) -> float:
        """Seconds that the process has computed."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def finish(self) -> Report | None:
        """The report; None when the process died and another one goes on."""
        try:
            report: Report = self.pipe.recv()
            return report
        except EOFError:
            self.process.join()
            return self._again(f"the process ended with status {self.process.exitcode}")

    def give_up(self) -> Report | None:
        """Ends a silent process."""
        self.process.kill()
        self.process.join()
        return self._again(f"no end after {_SILENCE:.0f} seconds of the processor")

    def _again(self, what: str) -> Report | None:
        (number,) = struct.unpack("q", self.place[:])
        self.skip[number] = f"crash: {what}"
        self.start()
        if number >= 0 and self.crashes < _CRASHES:
            self.give(self.which, self.skip)
            return None
        report = Report(scope.key(self.operators[self.which]))
        for place, text in self.skip.items():
            report.add("forward", "", place, text, False)
        return report


def run(operators: list[Any], options: Options, processes: int, done: Callable[[Report], None]) -> None:
    """Runs all operators and hands each report to `done` as it comes."""
    left = list(range(len(operators)))[::-1]
    workers = [_Worker(operators, options) for _ in range(min(processes, len(operators)))]
    for worker in workers:
        worker.give(left.pop(), {})
    while workers:
        ready = wait([w.pipe for w in workers], timeout=1.0)
        for worker in list(workers):
            report = None
            if worker.pipe in ready:
                report = worker.finish()
            elif worker.silent():
                report = worker.give_up()
            if report is None:
                continue
            done(report)
            if left:
                worker.give(left.pop(), {})
            else:
                worker.process.kill()
                workers.remove(worker)
