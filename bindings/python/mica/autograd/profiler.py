"""autograd.profiler: the older face of mica.profiler, which records a block and has the events itself."""

from __future__ import annotations

from typing import Any

from mica.profiler import _profile
from mica.profiler._events import (
    EventList as EventList,
    FunctionEvent as FunctionEvent,
    FunctionEventAvg as FunctionEventAvg,
)
from mica.profiler._record import record_function as record_function


class profile:
    """`with profile() as p:` records the operators of this thread; p.key_averages().table() shows them."""

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: Any = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: Any = None,
        acc_events: bool = False,
        custom_trace_id_callback: Any = None,
        post_processing_timeout_s: float | None = None,
        activity_filters: Any = None,
    ) -> None:
        self.enabled = enabled
        self._profile = _profile.profile(
            record_shapes=record_shapes,
            with_flops=with_flops,
            profile_memory=profile_memory,
            with_stack=with_stack,
            with_modules=with_modules,
            use_cuda=use_cuda or None,
        )
        self.entered = False

    def __enter__(self) -> profile | None:  # type: ignore[return]
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self.entered = True
        self._profile.start()
        return self

    def __exit__(self, *exc: object) -> None:
        if self.enabled:
            self._profile.stop()

    @property
    def function_events(self) -> EventList:
        """The events, in the order of their starts."""
        return self._profile.events()

    @property
    def self_cpu_time_total(self) -> float:
        return self.function_events.self_cpu_time_total

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """The averages by name."""
        return self._profile.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def table(self, sort_by: str | None = None, row_limit: int = 100, **options: Any) -> str:
        """The events, each in a row."""
        return self.function_events.table(sort_by, row_limit, **options)

    def total_average(self) -> FunctionEventAvg:
        return self.function_events.total_average()

    def export_chrome_trace(self, path: str) -> None:
        """Writes the trace for Perfetto or chrome://tracing."""
        self._profile.export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        self._profile.export_stacks(path, metric)

    def __str__(self) -> str:
        return self.table() if self._profile._finished is not None else "<unfinished profile>"
