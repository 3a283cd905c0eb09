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
        """The mean of a call."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def cpu_time_str(self) -> str:
        return microseconds(self.cpu_time)

    @property
    def cpu_time_total_str(self) -> str:
        return microseconds(self.cpu_time_total)

    @property
    def self_cpu_time_total_str(self) -> str:
        return microseconds(self.self_cpu_time_total)

    device_time_str = device_time_total_str = self_device_time_total_str = "0.000us"


class FunctionEvent(_Times):
    """One range that ran."""

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
        """The event of what a recorder noted, its times from `origin` on."""
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
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:  # type: ignore[override]
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
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
    """The events of one name together."""

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
        """Takes an event, or another average, in."""
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
    """Events, or averages, with their table and their trace."""

    def __init__(self, events: Iterable[Any] = (), *, shows: Any = None, recorder: Any = None) -> None:
        super().__init__(events)
        self._shows, self._recorder = shows, recorder

    @property
    def self_cpu_time_total(self) -> float:
        """The time in all of them, each moment once."""
        return sum(event.self_cpu_time_total for event in self)

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """One average for each name (and shapes, stack, overload), in the order of their first calls."""
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
        """All of them as one."""
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
        """A table for people."""
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
        """Writes the profile as a trace that Perfetto and chrome://tracing open."""
        from mica.profiler._trace import write

        write(path, self, self._recorder, {})

    def supported_export_stacks_metrics(self) -> list[str]:
        return ["self_cpu_time_total"]

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes one line for each stack, `outermost;...;innermost microseconds`, as flame graphs take it."""
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
