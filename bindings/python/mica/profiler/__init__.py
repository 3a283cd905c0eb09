"""mica.profiler: what a program spends its time and memory on, with torch.profiler's names.

`with profile(record_shapes=True) as p: ...`, then `print(p.key_averages().table(sort_by="cpu_time_total"))`
or `p.export_chrome_trace("trace.json")` for Perfetto. Without a running profile nothing is recorded
and nothing costs time.
"""

from mica.profiler._events import (
    EventList as EventList,
    FunctionEvent as FunctionEvent,
    FunctionEventAvg as FunctionEventAvg,
)
from mica.profiler._profile import (
    ProfilerAction as ProfilerAction,
    ProfilerActivity as ProfilerActivity,
    profile as profile,
    schedule as schedule,
    supported_activities as supported_activities,
    tensorboard_trace_handler as tensorboard_trace_handler,
)
from mica.profiler._record import record_function as record_function

_KinetoProfile = profile
