"""mica.utils.benchmark: time a statement, and compare measurements in a table, as torch.utils.benchmark.

A Timer runs a statement of Python many times in blocks; a Measurement holds the times of the blocks
and says what they are worth: median, spread, how many digits are significant. Statements of C++ and
counts of instructions are not offered.
"""

from __future__ import annotations

import math
import textwrap
import time
import timeit
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import mica

__all__ = ["Compare", "Measurement", "TaskSpec", "Timer", "select_unit", "timer", "trim_sigfig"]

_MAX_DIGITS = 4
_LEAST_INTERVAL = 25e-9  # seconds: no clock is trusted beyond
_UNITS = {-3: "ns", -2: "us", -1: "ms"}
_WORDS = {"ns": "nanoseconds", "us": "microseconds", "ms": "milliseconds", "s": "seconds"}


def timer() -> float:
    """Reads the clock, in seconds, after the accelerator has finished its work, if there is one.

    As `torch.utils.benchmark.timer`.

    Returns:
        float: Seconds since an arbitrary moment.

    Example:
        >>> begin = mica.utils.benchmark.timer()
        >>> mica.utils.benchmark.timer() >= begin
        True
    """
    if mica.accelerator.is_available():
        mica.accelerator.synchronize()
    return time.perf_counter()


def select_unit(t: float) -> tuple[str, float]:
    """Chooses the unit in which a time reads well.

    As `torch.utils.benchmark.select_unit`.

    Args:
        t (float): The time, in seconds.

    Returns:
        tuple: `(unit, seconds)`: "ns", "us", "ms" or "s", and its size.

    Example:
        >>> mica.utils.benchmark.select_unit(0.0021)
        ('ms', 0.001)
    """
    unit = _UNITS.get(int(math.log10(t) // 3), "s") if t > 0 else "s"
    return unit, {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}[unit]


def trim_sigfig(x: float, n: int) -> float:
    """Rounds a number to some significant digits.

    As `torch.utils.benchmark.trim_sigfig`.

    Args:
        x (float): The number that is rounded.
        n (int): Number of digits.

    Returns:
        float: The rounded number.

    Example:
        >>> mica.utils.benchmark.trim_sigfig(1234.5, 2)
        1200.0
    """
    if x == 0:
        return 0.0
    scale = 10 ** (math.ceil(math.log10(abs(x))) - n)
    return float(round(x / scale) * scale)


@dataclass(frozen=True)
class TaskSpec:
    """What a Timer measured: the statement, and what tables call it.

    As `torch.utils.benchmark.TaskSpec`. The Timer makes it.

    Args:
        stmt (str): The Python statement that is timed.
        setup (str): What ran once before.
        global_setup (str): Empty; for C++ only. Default: "".
        label (str, optional): Title of a table. Default: None.
        sub_label (str, optional): Name of a row. Default: None.
        description (str, optional): Name of a column. Default: None.
        env (str, optional): Where it ran, as the caller names it. Default: None.
        num_threads (int): Number of threads. Default: 1.

    Example:
        >>> mica.utils.benchmark.TaskSpec("x + 1", "x = 1", label="add").title
        'add'
    """

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or the statement, with the sub-label."""
        return (self.label or self.stmt) + (f": {self.sub_label}" if self.sub_label else "")

    def setup_str(self) -> str:
        """Returns the setup for printing; empty where there is none."""
        return "" if self.setup in ("pass", "") else f"setup: {self.setup}"

    def summarize(self) -> str:
        """Returns title, description and setup, in lines."""
        lines = [self.title, self.description or "", self.setup_str()]
        return "\n".join([lines[0], *(line for line in lines[1:] if line)])


@dataclass
class Measurement:
    """The times that a Timer took of a task, with statistics of them.

    As `torch.utils.benchmark.Measurement`.

    Args:
        number_per_run (int): How often the statement ran in a block.
        raw_times (list of float): Seconds that each block took.
        task_spec (TaskSpec): What was measured.
        metadata (dict, optional): Anything the caller keeps. Default: None.

    Example:
        >>> task = mica.utils.benchmark.TaskSpec("x + 1", "pass")
        >>> found = mica.utils.benchmark.Measurement(10, [0.2, 0.3, 0.4], task)
        >>> found.median, found.times
        (0.03, [0.02, 0.03, 0.04])
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = field(default=None)

    @property
    def times(self) -> list[float]:
        """Seconds of one run of the statement, by block."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def median(self) -> float:
        """Median time of a run, in seconds."""
        return float(np.median(self._some_times()))

    @property
    def mean(self) -> float:
        """Mean time of a run, in seconds."""
        return float(np.mean(self._some_times()))

    @property
    def iqr(self) -> float:
        """Distance between the first and the third quartile of the times, in seconds."""
        low, high = np.quantile(self._some_times(), [0.25, 0.75])
        return float(high - low)

    def _some_times(self) -> list[float]:
        if not self.raw_times:
            raise ValueError("The measurement holds no times.")
        return self.times

    @property
    def significant_figures(self) -> int:
        """How many digits of the median are worth showing, by the spread of the middle half of the times."""
        ordered = sorted(self._some_times())
        middle = ordered[len(ordered) // 4 : math.ceil(3 * len(ordered) / 4)]
        interval = max(1.645 * float(np.std(middle)) / math.sqrt(len(middle)), _LEAST_INTERVAL)
        return min(max(math.floor(math.log10(self.median / interval)), 1), _MAX_DIGITS)

    def meets_confidence(self, threshold: float = 0.1) -> bool:
        """Returns whether the spread is small enough to trust the median.

        Args:
            threshold (float): What `iqr / median` must be below. Default: 0.1.

        Returns:
            bool: True where it is.
        """
        return self.iqr / self.median < threshold

    @property
    def has_warnings(self) -> bool:
        """Whether the spread is too large to trust the median."""
        return not self.meets_confidence()

    @property
    def title(self) -> str:
        """The task's title."""
        return self.task_spec.title

    @property
    def env(self) -> str | None:
        """Where it was measured, as the caller named it."""
        return self.task_spec.env

    @property
    def as_row_name(self) -> str:
        """What names the measurement's row in a table."""
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    def __repr__(self) -> str:
        unit, size = select_unit(self.median)
        count = len(self.raw_times)
        digits = f".{max(self.significant_figures - math.ceil(math.log10(self.median / size)), 0)}f"
        lines = [object.__repr__(self), self.task_spec.summarize()]
        if count > 1:
            low, high = (float(q) / size for q in np.quantile(self.times, [0.25, 0.75]))
            lines.append(f"  Median: {self.median / size:.2f} {unit}")
            lines.append(f"  IQR:    {self.iqr / size:.2f} {unit} ({low:.2f} to {high:.2f})")
        else:
            lines.append(f"  {self.median / size:{digits}} {unit}")
        runs = f"{self.number_per_run} runs " + ("per measurement" if count > 1 else "")
        threads = self.task_spec.num_threads
        lines.append(
            f"  {count} measurement{'s' * (count > 1)}, {runs}, {threads} thread{'s' * (threads > 1)}"
        )
        if count > 1 and self.has_warnings:
            lines.append(f"  WARNING: the spread is {100 * self.iqr / self.median:.1f}% of the median.")
        return "\n".join(lines)

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """Joins the measurements of the same task.

        Args:
            measurements (iterable of Measurement): Measurements of one task.

        Returns:
            list of Measurement: One for each task, with the times of single runs.
        """
        grouped: dict[TaskSpec, list[Measurement]] = {}
        for measurement in measurements:
            grouped.setdefault(measurement.task_spec, []).append(measurement)
        return [Measurement(1, [t for m in group for t in m.times], task) for task, group in grouped.items()]


class Timer:
    """Times a statement of Python, with warm-up, the accelerator awaited, and a fixed number of threads.

    As `torch.utils.benchmark.Timer`, for Python only.

    Args:
        stmt (str): The Python statement that is timed. Default: "pass".
        setup (str): Runs once before each block; the statement sees its names. Default: "pass".
        global_setup (str): Must be empty. Default: "".
        timer (callable): The clock, in seconds. Default: `mica.utils.benchmark.timer`.
        globals (dict of str to object, optional): Names that the statement sees, such as `globals()`.
        label (str, optional): Title of a table. Default: the statement.
        sub_label (str, optional): Name of a row of a table. Default: None.
        description (str, optional): Name of a column of a table. Default: None.
        env (str, optional): Where it runs, as you name it. Default: None.
        num_threads (int): Number of threads that operators use. Default: 1.
        language (str): "python". Default: "python".

    Raises:
        ValueError: `stmt` is no string, or there is a `global_setup`.
        NotImplementedError: Another language.

    Example:
        >>> timer = mica.utils.benchmark.Timer("x + 1", globals={"x": mica.ones(8)})
        >>> measured = timer.timeit(100)
        >>> measured.number_per_run, measured.median > 0
        (100, True)
    """

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Any = "python",
    ) -> None:
        if not isinstance(stmt, str):
            raise ValueError(f"The statement must be a string; it is of type ({type(stmt).__name__}).")
        if str(language).rpartition(".")[2].lower() not in ("python", "py"):
            raise NotImplementedError(f"A Timer runs statements of Python, not of ({language}).")
        if global_setup:
            raise ValueError("`global_setup` is for statements of C++; statements of Python have `setup`.")
        stmt, setup = (textwrap.dedent(text).strip() for text in (stmt, setup))
        self._timer = timeit.Timer(stmt, setup, timer, {**(globals or {})})
        self._task_spec = TaskSpec(stmt, setup, global_setup, label, sub_label, description, env, num_threads)

    def _timeit(self, number: int) -> float:
        return max(self._timer.timeit(number), 1e-9)

    def _in_threads(self, run: Callable[[], Measurement]) -> Measurement:
        before = mica.get_num_threads()
        mica.set_num_threads(self._task_spec.num_threads)
        try:
            return run()
        finally:
            mica.set_num_threads(before)

    def timeit(self, number: int = 1000000) -> Measurement:
        """Measures one block of runs, after a few to warm up.

        Args:
            number (int): How often the statement runs. Default: 1000000.

        Returns:
            Measurement: One time.
        """

        def run() -> Measurement:
            self._timeit(max(number // 100, 2))
            return Measurement(number, [self._timeit(number)], self._task_spec)

        return self._in_threads(run)

    def _block_size(self, min_run_time: float) -> int:
        """So many runs that reading the clock costs little of a block's time."""
        overhead = float(np.median([self._timeit(0) for _ in range(5)]))
        number = 1
        while True:
            taken = self._timeit(number)
            if overhead / taken <= 1e-4 and taken >= min_run_time / 1000:
                return number
            if taken > min_run_time:
                return number
            number *= 10

    def _blocks(
        self, min_run_time: float, callback: Any, enough: Callable[[list[float], int], bool]
    ) -> Measurement:
        def run() -> Measurement:
            number = self._block_size(min_run_time)
            times: list[float] = []
            while not enough(times, number):
                times.append(self._timeit(number))
                if callback is not None:
                    callback(number, times[-1])
            return Measurement(number, times, self._task_spec)

        return self._in_threads(run)

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Measures blocks of runs until some time is over; the usual way.

        Args:
            callback (callable, optional): `f(number_per_run, seconds)`, after each block. Default: none.
            min_run_time (float): Seconds that all blocks take together, at least. Default: 0.2.

        Returns:
            Measurement: A time for each block.
        """
        return self._blocks(min_run_time, callback, lambda times, number: sum(times) >= min_run_time)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:
        """Measures blocks of runs until their spread is small.

        Args:
            threshold (float): What `iqr / median` shall be below. Default: 0.1.
            min_run_time (float): Seconds to measure at least. Default: 0.01.
            max_run_time (float): Seconds after which it ends anyway. Default: 10.0.
            callback (callable, optional): `f(number_per_run, seconds)`, after each block. Default: none.

        Returns:
            Measurement: A time for each block, four at least.
        """

        def enough(times: list[float], number: int) -> bool:
            if sum(times) < min_run_time or len(times) < 4:
                return False
            return sum(times) >= max_run_time or Measurement(number, times, self._task_spec).meets_confidence(
                threshold
            )

        return self._blocks(min_run_time, callback, enough)


class Compare:
    """Tables of measurements: one for each label, sub-labels in rows and descriptions in columns.

    As `torch.utils.benchmark.Compare`.

    Args:
        results (list of Measurement): The measurements that are compared.

    Raises:
        ValueError: Something in the list is no Measurement.

    Example:
        >>> from mica.utils.benchmark import Compare, Measurement, TaskSpec
        >>> def measured(sub_label, description, seconds):
        ...     task = TaskSpec("", "", "", "add", sub_label, description)
        ...     return Measurement(1, [seconds], task)
        >>> table = Compare([measured("8", "mica", 2e-6), measured("9", "mica", 3e-6)])
        >>> "Times are in microseconds" in str(table)
        True
    """

    def __init__(self, results: list[Measurement]) -> None:
        self._results: list[Measurement] = []
        self.extend_results(results)
        self._trim = False

    def __str__(self) -> str:
        by_label: dict[str, list[Measurement]] = {}
        for result in Measurement.merge(self._results):
            by_label.setdefault(result.task_spec.label or "", []).append(result)
        return "\n".join(self._table(label, group) for label, group in by_label.items())

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Adds measurements.

        Args:
            results (iterable of Measurement): The measurements that are compared.

        Raises:
            ValueError: One is no Measurement.
        """
        for result in results:
            if not isinstance(result, Measurement):
                raise ValueError(f"A Measurement is expected; this is of type ({type(result).__name__}).")
            self._results.append(result)

    def trim_significant_figures(self) -> None:
        """Shows no more digits than the spread warrants, from now on."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Does nothing: tables are plain text.

        Args:
            rowwise (bool): No effect. Default: False.
        """

    def highlight_warnings(self) -> None:
        """Does nothing: tables are plain text."""

    def print(self) -> None:
        """Prints the tables."""
        print(str(self))

    def _cell(self, result: Measurement | None, size: float) -> str:
        if result is None:
            return ""
        value = result.median / size
        if not self._trim:
            return f"{value:.1f}"
        figures = result.significant_figures
        decimals = min(1, max(figures - math.ceil(math.log10(value)), 0))
        return f"{trim_sigfig(value, figures):.{decimals}f}"

    def _table(self, label: str, results: list[Measurement]) -> str:
        unit, size = select_unit(min(r.median for r in results))
        columns = list(dict.fromkeys(r.task_spec.description or "" for r in results))
        rows = sorted(
            dict.fromkeys((r.task_spec.num_threads, r.as_row_name) for r in results), key=lambda row: row[0]
        )
        found = {(r.task_spec.num_threads, r.as_row_name, r.task_spec.description or ""): r for r in results}
        cells = [[self._cell(found.get((*row, column)), size) for column in columns] for row in rows]
        widths = [max(len(c) for c in (column, *each)) for column, each in zip(columns, zip(*cells))]
        first = max(6 + max(len(name) for _, name in rows), 8)

        def laid_out(name: str, texts: list[str]) -> str:
            return "  |  ".join([name.ljust(first), *texts])

        head = laid_out("", [column.center(width) for column, width in zip(columns, widths)])
        lines = [f"[{f' {label} '.center(len(head) - 2, '-')}]", head]
        threads = None
        for (number, name), texts in zip(rows, cells):
            if number != threads:
                lines.append(f"{number} threads: ".ljust(len(head), "-"))
                threads = number
            lines.append(laid_out(f"      {name}", [text.rjust(width) for text, width in zip(texts, widths)]))
        return "\n".join([*lines, "", f"Times are in {_WORDS[unit]} ({unit}).", ""])
