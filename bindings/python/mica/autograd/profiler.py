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
    """Records the operators of this thread inside a `with` block, with their times.

    As `torch.autograd.profiler.profile`; new programs take `mica.profiler.profile`.

    Args:
        enabled (bool): False records nothing. Default: True.
        use_cuda (bool): Warn where there is an accelerator, whose work is not timed by itself.
            Default: False.
        use_device (str, optional): No effect. Default: None.
        record_shapes (bool): Record the shapes of the operators' inputs. Default: False.
        with_flops (bool): Count the floating-point operations of products and convolutions.
            Default: False.
        profile_memory (bool): Record allocations. Default: False.
        with_stack (bool): Record where in the program each operator was called. Default: False.
        with_modules (bool): Record the module that called it. Default: False.
        use_kineto (bool): No effect. Default: False.
        use_cpu (bool): No effect: the CPU is recorded always. Default: True.
        experimental_config (object, optional): No effect. Default: None.
        acc_events (bool): No effect. Default: False.
        custom_trace_id_callback (callable, optional): No effect. Default: None.
        post_processing_timeout_s (float, optional): No effect. Default: None.
        activity_filters (object, optional): No effect. Default: None.

    Raises:
        RuntimeError: It is entered a second time.

    Example:
        >>> x = mica.ones(2, 2)
        >>> with mica.autograd.profiler.profile() as recorded:
        ...     y = x.exp()
        >>> [event.name for event in recorded.function_events]
        ['aten::exp']
    """

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
        """The recorded events, in the order of their starts."""
        return self._profile.events()

    @property
    def self_cpu_time_total(self) -> float:
        """Time of all operators on the CPU, in microseconds, each without those that it called."""
        return self.function_events.self_cpu_time_total

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """Averages the events of one name.

        Args:
            group_by_input_shape (bool): Keep events of different input shapes apart. Default: False.
            group_by_stack_n (int): Keep events apart whose callers differ within so many frames.
                Default: 0.
            group_by_overload_name (bool): Keep an operator's overloads apart. Default: False.

        Returns:
            EventList: The averages; its `table()` prints them.
        """
        return self._profile.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def table(self, sort_by: str | None = None, row_limit: int = 100, **options: Any) -> str:
        """Prints the events into a table, each in a row.

        Args:
            sort_by (str, optional): Column to sort by, such as "cpu_time_total". Default: the order of
                their starts.
            row_limit (int): How many rows at most. Default: 100.
            **options: Further options of `EventList.table`.

        Returns:
            str: The table.
        """
        return self.function_events.table(sort_by, row_limit, **options)

    def total_average(self) -> FunctionEventAvg:
        """Returns the sum of all events as one."""
        return self.function_events.total_average()

    def export_chrome_trace(self, path: str) -> None:
        """Writes the events as a trace for Perfetto or chrome://tracing.

        Args:
            path (str): File to write, JSON.
        """
        self._profile.export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes the recorded stacks with their times, for a flame graph; needs `with_stack=True`.

        Args:
            path (str): File to write.
            metric (str): Which time: "self_cpu_time_total", or of the accelerator.
                Default: "self_cpu_time_total".
        """
        self._profile.export_stacks(path, metric)

    def __str__(self) -> str:
        return self.table() if self._profile._finished is not None else "<unfinished profile>"
