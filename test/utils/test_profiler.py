"""mica.profiler: what is recorded, how it is summed up, written and scheduled."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import mica
from mica import _C, nn
from mica.profiler import ProfilerActivity, profile, record_function, schedule, tensorboard_trace_handler
from mica.profiler._record import _active
from mica.utils.flop_counter import FlopCounterMode
from mica.utils.python_dispatch import DispatchMode


def network() -> Any:
    mica.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 2))


def train(model: Any) -> None:
    model(mica.ones(3, 6)).sum().backward()


def counts(p: Any) -> dict[str, int]:
    return {e.key: e.count for e in p.key_averages()}


def test_operators_of_both_passes_and_blocks() -> None:
    model = network()
    with profile(activities=[ProfilerActivity.CPU]) as p, record_function("outer"):
        with record_function("inner"):
            train(model)
        mica.ones(2)
    found = counts(p)
    assert found["aten::addmm"] == 2 and found["aten::relu"] == 1 and found["aten::threshold_backward"] == 1
    assert found["aten::mm"] >= 3 and found["outer"] == found["inner"] == 1
    events = {e.name: e for e in p.events()}
    assert events["inner"].cpu_parent is events["outer"] and events["outer"].cpu_parent is None
    assert events["aten::relu"].cpu_parent is events["inner"]
    outer = events["outer"]
    children = sum(c.cpu_time_total for c in outer.cpu_children)
    assert outer.self_cpu_time_total == pytest.approx(outer.cpu_time_total - children)
    assert 0 < children < outer.cpu_time_total
    total = p.key_averages().self_cpu_time_total
    assert total == pytest.approx(sum(e.cpu_time_total for e in p.events() if e.cpu_parent is None))
    starts = [e.time_range.start for e in p.events()]
    assert starts == sorted(starts) and starts[0] >= 0


def test_nothing_is_recorded_outside() -> None:
    p = profile()
    with record_function("before"):
        mica.ones(1)
    with p:
        mica.ones(2)
    mica.ones(3)
    assert counts(p) == {"aten::ones": 1}
    assert not _active and not _C._dispatch_modes()


def test_shapes_memory_flops_stacks_and_modules(tmp_path: Path) -> None:
    model = network()
    with FlopCounterMode(display=False) as counter:
        train(model)
    with profile(
        record_shapes=True, profile_memory=True, with_flops=True, with_stack=True, with_modules=True
    ) as p:
        train(model)
        kept = mica.zeros(1000)
    found = {e.key: e for e in p.key_averages(group_by_input_shape=True)}
    assert found["aten::relu"].input_shapes == [[3, 5]]
    assert sum(e.flops for e in p.key_averages()) == counter.get_total_flops() > 0
    assert found["aten::zeros"].cpu_memory_usage >= kept.numel() * 4
    assert found["nn.Module: Linear"].count == 2
    zeros = next(e for e in p.events() if e.name == "aten::zeros")
    assert "test_profiler.py" in zeros.stack[0] and "test_shapes_memory" in zeros.stack[0]
    shapes = [e.input_shapes for e in p.key_averages(group_by_input_shape=True) if e.key == "aten::addmm"]
    assert [[5], [3, 6], [6, 5]] in [s[:3] for s in shapes] and len(shapes) == 2
    p.export_stacks(str(tmp_path / "stacks"))
    for line in (tmp_path / "stacks").read_text().splitlines():
        assert line.rpartition(" ")[2].isdigit() and ";" in line


def test_table() -> None:
    with profile(record_shapes=True, profile_memory=True) as p:
        train(network())
    text = p.key_averages().table(sort_by="cpu_time_total", row_limit=3)
    assert len(text.splitlines()) == 8 and "Self CPU time total" in text and "CPU Mem" in text
    averages = sorted(p.key_averages(), key=lambda e: -e.cpu_time_total)
    assert text.splitlines()[3].split()[0] == averages[0].key
    assert "Input Shapes" in p.key_averages(group_by_input_shape=True).table()
    assert text.splitlines()[1].split("  ")[-1] == "# of Calls"
    with pytest.raises(ValueError, match="nonsense"):
        p.key_averages().table(sort_by="nonsense")
    with pytest.raises(AssertionError, match="no trace"):
        profile().events()


@pytest.mark.parametrize("name", ["trace.json", "trace.json.gz"])
def test_chrome_trace(tmp_path: Path, name: str) -> None:
    with profile(record_shapes=True, profile_memory=True) as p, record_function("block"):
        train(network())
    p.add_metadata("who", "me")
    p.add_metadata_json("what", '{"a": 1}')
    path = tmp_path / name
    p.export_chrome_trace(str(path))
    with gzip.open(path, "rt") if name.endswith("gz") else open(path) as file:
        trace = json.load(file)
    assert trace["who"] == "me" and trace["what"] == {"a": 1}
    ranges = [e for e in trace["traceEvents"] if e["ph"] == "X"]
    assert len(ranges) == len(p.events())
    assert all(e["dur"] >= 0 and {"name", "cat", "pid", "tid", "ts"} <= set(e) for e in ranges)
    (block,) = (e for e in ranges if e["cat"] == "user_annotation")
    for e in ranges:
        assert block["ts"] <= e["ts"] and e["ts"] + e["dur"] <= block["ts"] + block["dur"] + 1e-3
    assert any(e["args"].get("Input Dims") == [[3, 5]] for e in ranges)
    assert any(e["ph"] == "C" for e in trace["traceEvents"])


def test_schedule_and_handler(tmp_path: Path) -> None:
    seen: list[tuple[int, dict[str, int]]] = []

    def ready(p: Any) -> None:
        seen.append((p.step_num, counts(p)))
        tensorboard_trace_handler(str(tmp_path / "traces"))(p)

    plan = schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    with profile(schedule=plan, on_trace_ready=ready) as p:
        for step in range(12):
            mica.ones(step + 1)
            p.step()
    names = [{k for k in found if k.startswith("ProfilerStep")} for _, found in seen]
    assert names == [{"ProfilerStep#3", "ProfilerStep#4"}, {"ProfilerStep#7", "ProfilerStep#8"}]
    assert all(found["aten::ones"] == 2 for _, found in seen)
    assert len(list((tmp_path / "traces").glob("*.pt.trace.json"))) == 2


def test_errors_modes_and_decorators() -> None:
    class Other(DispatchMode):
        def __mica_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {}))

    @record_function("called")
    def called() -> Any:
        return mica.ones(2) + mica.ones(3)

    p, other = profile(), Other()
    p.start()
    for _ in range(2):
        with pytest.raises(RuntimeError):
            called()
    other.__enter__()
    p.stop()
    assert _C._dispatch_modes() == [other]
    other.__exit__()
    found = counts(p)
    assert found["called"] == 2 and found["aten::ones"] == 4 and found["aten::add"] == 2
    with pytest.raises(AssertionError):
        schedule(wait=-1, warmup=0, active=1)
    with pytest.raises(AssertionError):
        profile(activities=[])


def test_profile_of_autograd() -> None:
    with mica.autograd.profiler.profile(record_shapes=True) as p:
        train(network())
    assert p is not None
    assert "aten::addmm" in p.key_averages().table() and "aten::addmm" in str(p)
    assert p.total_average().count == len(p.function_events)
    with mica.autograd.profiler.profile(enabled=False) as off:
        mica.ones(1)
    assert off is None and not _active
