"""The table of a profile, with torch's columns."""

from __future__ import annotations

from typing import Any

_UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0}


def microseconds(value: float, unit: str | None = None) -> str:
    """A time with its unit: the one given, or the largest in which it is at least 1."""
    if unit is None:
        unit = next((name for name, size in _UNITS.items() if value >= size), "us")
    if unit not in _UNITS:
        raise ValueError(f"The unit ({unit}) of time is unknown; expected s, ms or us.")
    return f"{value / _UNITS[unit]:.3f}{unit}"


def amount(bytes_: int) -> str:
    """A number of bytes with its unit."""
    for unit, size in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if abs(bytes_) >= size:
            return f"{bytes_ / size:.2f} {unit}"
    return f"{bytes_} B"


def _short(text: str, width: int) -> str:
    return text if width < 0 or len(text) <= width else text[: max(width - 3, 0)] + "..."


def table(
    rows: list[Any],
    total: float,
    shows: Any,
    widths: tuple[int, int, int],
    header: str | None,
    unit: str | None,
) -> str:
    """The rows as text; `shows` are the options of the profile, which decide on the columns."""

    def share(value: float) -> str:
        return f"{100 * value / total:.2f}%" if total else "--"

    columns: list[tuple[str, Any]] = [
        ("Self CPU %", lambda e: share(e.self_cpu_time_total)),
        ("Self CPU", lambda e: microseconds(e.self_cpu_time_total, unit)),
        ("CPU total %", lambda e: share(e.cpu_time_total)),
        ("CPU total", lambda e: microseconds(e.cpu_time_total, unit)),
        ("CPU time avg", lambda e: microseconds(e.cpu_time, unit)),
    ]
    if shows is not None and shows.memory:
        columns += [
            ("CPU Mem", lambda e: amount(e.cpu_memory_usage)),
            ("Self CPU Mem", lambda e: amount(e.self_cpu_memory_usage)),
        ]
    columns.append(("# of Calls", lambda e: str(e.count)))
    if any(e.input_shapes for e in rows):
        columns.append(("Input Shapes", lambda e: _short(str(e.input_shapes or []), widths[1])))
    if any(e.stack for e in rows):
        columns.append(("Source Location", lambda e: _short(e.stack[0] if e.stack else "", widths[2])))
    if shows is not None and shows.flops:
        columns.append(("Total FLOPs", lambda e: f"{e.flops:,}" if e.flops else "--"))
    names = [_short(e.key, widths[0]) for e in rows]
    cells = [["Name", *names], *([title, *(of(e) for e in rows)] for title, of in columns)]
    sizes = [max(12, *(len(cell) for cell in column)) for column in cells]
    rule = "  ".join("-" * size for size in sizes)
    lines = [
        "  ".join(column[k].rjust(size) for column, size in zip(cells, sizes)) for k in range(len(rows) + 1)
    ]
    top = [header] if header else []
    end = f"Self CPU time total: {microseconds(total, unit)}"
    return "\n".join([*top, rule, lines[0], rule, *lines[1:], rule, end, ""])
