"""Events of a profile: what ran, for how long, inside of what; and their averages by name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from mica.profiler._record import Record
from mica.profiler._table import microseconds, table


class Interval(NamedTuple):
    """Start and end in microseconds."""

    start: float
    end: float

    def elapsed_us(self) -> float:
        return self.end - self.start


class _Times:
    """What single events and averages share: the times under torch's names, in microseconds.

    No kernel of a device is timed by itself: device times are 0, and the time of an operator is the
    host's, which for a device that computes asynchronously is that of queueing the work.
    """

    count: int
    cpu_time_total: float
    self_cpu_time_total: float
    device_time = device_time_total = self_device_time_total = cuda_time = 0.0
    device_memory_usage = self_device_memory_usage = 0
    use_device = None
    node_id = -1
    is_async = is_remote = is_legacy = False

    @property
    def cpu_time(self) -> float:
        """The mean time of a call, in microseconds."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def cpu_time_str(self) -> str:
        """The mean time of a call as text with its unit."""
        return microseconds(self.cpu_time)

    @property
    def cpu_time_total_str(self) -> str:
        """The time of all calls as text with its unit."""
        return microseconds(self.cpu_time_total)

    @property
    def self_cpu_time_total_str(self) -> str:
        """The time of all calls, without what ran inside of them, as text with its unit."""
        return microseconds(self.self_cpu_time_total)

    device_time_str = device_time_total_str = self_device_time_total_str = "0.000us"


class FunctionEvent(_Times):
    """One range of time that a profile saw: an operator, a block of `record_function`, or a module's call.

    As `torch.autograd.profiler_util.FunctionEvent`. `profile.events()` makes them. Times are microseconds of
    the host; device times are 0, since kernels of a device are not timed by themselves.

    Args:
        id (int): Its number, from 1 on, in the order of the starts.
        name (str): "aten::mm", or the block's name.
        thread (int): The thread that ran it, as `threading.get_ident()` names it.
        start_us (float): Its start, microseconds after the profile's.
        end_us (float): Its end, likewise.
        overload_name (str): "Tensor" of "aten::add.Tensor". Default: "".
        kind (str): "operator", "block" or "module". Default: "operator".
        input_shapes (list, optional): The shape of each argument, `[]` for what is no tensor.
        input_dtypes (list of str, optional): The dtype of each argument.
        stack (iterable of str): The program's frames, innermost first. Default: ().
        cpu_memory_usage (int): Bytes that the CPU's allocator held more at its end. Default: 0.
        flops (int): Floating-point operations. Default: 0.
        node_id (int): Kept for programs of torch. Default: -1.

    Attributes:
        key (str): The name, by which averages group.
        cpu_time_total (float): Microseconds from start to end.
        self_cpu_time_total (float): The same without the ranges inside of it.
        cpu_parent (FunctionEvent or None): The range that it is inside of.
        cpu_children (list of FunctionEvent): The ranges directly inside of it.

    Example:
        >>> with mica.profiler.profile(record_shapes=True) as p:
        ...     product = mica.ones(2, 3) @ mica.ones(3, 4)
        >>> event = p.events()[-1]
        >>> event.name, event.input_shapes
        ('aten::mm', [[2, 3], [3, 4]])
    """

    count = 1

    def __init__(
        self,
        id: int,
        name: str,
        thread: int,
        start_us: float,
        end_us: float,
        *,
        overload_name: str = "",
        kind: str = "operator",
        input_shapes: Any = None,
        input_dtypes: Any = None,
        stack: Iterable[str] = (),
        cpu_memory_usage: int = 0,
        flops: int = 0,
        node_id: int = -1,
    ) -> None:
        self.id = id
        self.name = self.key = self.trace_name = name
        self.overload_name = overload_name
        self.kind = kind
        self.time_range = Interval(start_us, end_us)
        self.thread = thread
        self.input_shapes = [_listed(s) for s in input_shapes or ()]
        self.input_dtypes = list(input_dtypes or ())
        self.cpu_memory_usage = cpu_memory_usage
        self.flops = flops
        self.stack = list(stack)
        self.node_id = node_id
        self.is_user_annotation = kind == "block"
        self.scope = 7 if kind == "block" else 0
        self.cpu_parent: FunctionEvent | None = None
        self.cpu_children: list[FunctionEvent] = []

    @classmethod
    def of(cls, number: int, record: Record, origin: int) -> FunctionEvent:
        """Makes the event of what a recorder noted.

        Args:
            number (int): Its number.
            record (Record): What was noted.
            origin (int): The nanosecond of `time.perf_counter_ns()` from which its times count.

        Returns:
            FunctionEvent: The event.
        """
        return cls(
            number,
            record.name,
            record.thread,
            (record.start - origin) / 1000,
            (record.end - origin) / 1000,
            overload_name=record.overload,
            kind=record.kind,
            input_shapes=record.shapes,
            input_dtypes=record.dtypes,
            stack=record.stack,
            cpu_memory_usage=record.memory,
            flops=record.flops,
        )

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]
        """Microseconds from its start to its end."""
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:  # type: ignore[override]
        """Microseconds from its start to its end, less those of the ranges inside of it."""
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        """Bytes that the allocator held more at its end, less those of the ranges inside of it."""
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} cpu_time={self.cpu_time_str} "
            f"start_us={self.time_range.start:.3f} end_us={self.time_range.end:.3f} thread={self.thread} "
            f"cpu_children={[child.id for child in self.cpu_children]} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage}>"
        )


def _listed(shape: Any) -> Any:
    return [_listed(s) for s in shape] if isinstance(shape, tuple) else shape


class FunctionEventAvg(_Times):
    """The events of one name together: a row of a profile's table.

    As `torch.autograd.profiler_util.FunctionEventAvg`. `profile.key_averages()` makes them.

    Attributes:
        key (str): The events' name.
        count (int): How many they are.
        cpu_time_total (float): Microseconds in all of them.
        self_cpu_time_total (float): The same without what ran inside of them.
        cpu_time (float): Microseconds in one, on average.
        cpu_memory_usage (int): Bytes that they left allocated.
        flops (int): Floating-point operations in all of them.

    Example:
        >>> with mica.profiler.profile() as p:
        ...     for _ in range(3):
        ...         total = mica.ones(2).sum()
        >>> {row.key: row.count for row in p.key_averages()}
        {'aten::ones': 3, 'aten::sum': 3}
    """

    def __init__(self) -> None:
        self.key: str | None = None
        self.overload_name = ""
        self.count = 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0
        self.flops = 0
        self.input_shapes: Any = None
        self.stack: list[str] = []
        self.is_user_annotation = False
        self.scope = 0
        self.cpu_parent: Any = None
        self.cpu_children: list[Any] = []

    def add(self, other: Any) -> FunctionEventAvg:
        """Takes an event, or another average, in.

        Args:
            other (FunctionEvent or FunctionEventAvg): What is added to the sums.

        Returns:
            FunctionEventAvg: This one.
        """
        if self.key is None:
            self.key, self.stack, self.scope = other.key, other.stack, other.scope
            self.overload_name, self.is_user_annotation = other.overload_name, other.is_user_annotation
        for name in ("cpu_time_total", "self_cpu_time_total", "cpu_memory_usage", "self_cpu_memory_usage"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.count += other.count
        self.flops += other.flops
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} cpu_time={self.cpu_time_str} "
            f"count={self.count} input_shapes={self.input_shapes or ''} cpu_memory_usage={self.cpu_memory_usage}>"
        )


class EventList(list[Any]):
    """A list of events, or of averages, that can show itself as a table and write traces.

    As `torch.autograd.profiler_util.EventList`. `profile.events()` and `profile.key_averages()` return one.

    Args:
        events (iterable): What it holds. Default: none.
        shows (Any, optional): The profile's options, which decide on the table's columns.
        recorder (Any, optional): What the events come from; a trace needs it.

    Example:
        >>> with mica.profiler.profile() as p:
        ...     total = mica.ones(2).sum()
        >>> [event.name for event in p.events()]
        ['aten::ones', 'aten::sum']
    """

    def __init__(self, events: Iterable[Any] = (), *, shows: Any = None, recorder: Any = None) -> None:
        super().__init__(events)
        self._shows, self._recorder = shows, recorder

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds in all of them, each moment counted once."""
        return sum(event.self_cpu_time_total for event in self)

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """One average for each name, in the order of the first calls.

        Args:
            group_by_input_shapes (bool): Calls with other shapes have a row of their own. Default: False.
            group_by_stack_n (int): Calls that differ in this many innermost frames of the program have a row
                of their own; the profile needs `with_stack`. Default: 0.
            group_by_overload_name (bool): Each overload has a row of its own. Default: False.

        Returns:
            EventList: The averages.
        """
        groups: dict[Any, FunctionEventAvg] = {}
        for event in self:
            key = (
                event.key,
                str(event.input_shapes) if group_by_input_shapes else "",
                tuple(event.stack[:group_by_stack_n]),
                event.overload_name if group_by_overload_name else "",
                event.is_user_annotation,
            )
            if key not in groups:
                groups[key] = FunctionEventAvg()
            groups[key].add(event)
            groups[key].input_shapes = event.input_shapes if group_by_input_shapes else ""
            groups[key].stack = event.stack[:group_by_stack_n]
        return EventList(groups.values(), shows=self._shows, recorder=self._recorder)

    def total_average(self) -> FunctionEventAvg:
        """All of them as one average with the key "Total"."""
        total = FunctionEventAvg()
        for event in self:
            total.add(event)
        total.key = "Total"
        return total

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """The events as a table for people.

        Args:
            sort_by (str, optional): The attribute to sort by, greatest first: "cpu_time_total",
                "self_cpu_time_total", "cpu_memory_usage", "count", ... Default: None, as they are.
            row_limit (int): At most this many rows; -1 for all. Default: 100.
            max_src_column_width (int): Characters of the column of sources. Default: 75.
            max_name_column_width (int): Characters of the column of names. Default: 55.
            max_shapes_column_width (int): Characters of the column of shapes. Default: 80.
            header (str, optional): A line above the table. Default: None.
            top_level_events_only (bool): Leaves out what ran inside of another event. Default: False.
            time_unit (str, optional): "s", "ms" or "us". Default: None, the one that fits each number.

        Returns:
            str: The table.

        Raises:
            ValueError: `sort_by` is no attribute, or the unit is unknown.
        """
        rows = [e for e in self if not (top_level_events_only and e.cpu_parent is not None)]
        if sort_by is not None:
            by = sort_by.replace("cuda", "device")
            if rows and not hasattr(rows[0], by):
                raise ValueError(f"The column ({sort_by}) to sort by is none of a profile's.")
            rows.sort(key=lambda e: getattr(e, by), reverse=True)
        widths = (max_name_column_width, max_shapes_column_width, max_src_column_width)
        total = self.self_cpu_time_total
        return table(
            rows[: None if row_limit < 0 else row_limit], total, self._shows, widths, header, time_unit
        )

    def export_chrome_trace(self, path: str) -> None:
        """Writes the profile as a trace that Perfetto and chrome://tracing open.

        Args:
            path (str): The JSON file; compressed if its name ends with ".gz".
        """
        from mica.profiler._trace import write

        write(path, self, self._recorder, {})

    def supported_export_stacks_metrics(self) -> list[str]:
        """The metrics that `export_stacks()` takes."""
        return ["self_cpu_time_total"]

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes a line for each stack, `outermost;...;innermost microseconds`, as flame graphs take it.

        Args:
            path (str): The text file.
            metric (str): "self_cpu_time_total", the only one.

        Raises:
            ValueError: The metric is another.
        """
        if metric not in self.supported_export_stacks_metrics():
            raise ValueError(f"The metric ({metric}) is unknown; expected self_cpu_time_total.")
        with open(path, "w", encoding="utf-8") as file:
            for event in self:
                if event.stack and int(event.self_cpu_time_total) > 0:
                    frames = (line.replace(";", ",") for line in reversed(event.stack))
                    file.write(f"{';'.join(frames)} {int(event.self_cpu_time_total)}\n")

    def __str__(self) -> str:
        return self.table()


def events_of(recorder: Any) -> EventList:
    """The events of a recorder in the order of their starts, each knowing what it is inside of."""
    records = sorted(recorder.records, key=lambda r: (r.start, -r.end))
    events = [FunctionEvent.of(n, record, recorder.began) for n, record in enumerate(records, 1)]
    inside: dict[int, list[FunctionEvent]] = {}  # by thread: the ranges that are open
    for event in events:
        stack = inside.setdefault(event.thread, [])
        while stack and stack[-1].time_range.end < event.time_range.end:
            stack.pop()
        if stack:
            event.cpu_parent = stack[-1]
            stack[-1].cpu_children.append(event)
        stack.append(event)
    return EventList(events, shows=recorder.options, recorder=recorder)
