"""profile: a profile of a block or of the steps that a schedule chooses, as torch.profiler has it."""

from __future__ import annotations

import enum
import json
import os
import socket
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import mica
from mica.profiler._events import EventList, events_of
from mica.profiler._record import Options, Recorder, record_function


class ProfilerAction(enum.Enum):
    """What a schedule says of a step of a profile.

    As `torch.profiler.ProfilerAction`: NONE is not seen, WARMUP is seen and dropped, RECORD is recorded,
    RECORD_AND_SAVE is the last that is recorded, after which the trace is ready.

    Example:
        >>> mica.profiler.schedule(wait=1, warmup=1, active=2)(3)
        <ProfilerAction.RECORD_AND_SAVE: 3>
    """

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


class ProfilerActivity(enum.Enum):
    """What a profile may watch: CPU is the host, the others are kinds of accelerators.

    As `torch.profiler.ProfilerActivity`. Mica times the host, whose operators include the queueing of a
    device's work; the kernels of a device are not timed by themselves.

    Example:
        >>> with mica.profiler.profile(activities=[mica.profiler.ProfilerActivity.CPU]) as p:
        ...     x = mica.ones(2)
        >>> len(p.events())
        1
    """

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


def supported_activities() -> set[ProfilerActivity]:
    """Returns what profiles watch: the host alone.

    As `torch.profiler.supported_activities`.

    Returns:
        set of ProfilerActivity: The host's.

    Example:
        >>> mica.profiler.supported_activities()
        {<ProfilerActivity.CPU: 0>}
    """
    return {ProfilerActivity.CPU}


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """Makes a schedule, which says of each step of a loop whether a profile records it.

    As `torch.profiler.schedule`. The steps are cycles of `wait + warmup + active`; `profile.step()` ends one.

    Args:
        wait (int): Steps of a cycle that are not seen.
        warmup (int): Steps after them that are seen and dropped, while caches fill.
        active (int): Steps after them that are recorded; the trace is ready after the last. At least 1.
        repeat (int): Cycles; 0 for no end. Default: 0.
        skip_first (int): Steps before the first cycle. Default: 0.
        skip_first_wait (int): If it is not 0, the first cycle does not wait. Default: 0.

    Returns:
        callable: From the number of a step, from 0 on, to its `ProfilerAction`.

    Raises:
        AssertionError: A number is negative, or `active` is 0.

    Example:
        >>> plan = mica.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
        >>> [plan(step).name for step in range(5)]
        ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise AssertionError(
            f"A schedule takes wait ({wait}), warmup ({warmup}), repeat ({repeat}) and skip_first ({skip_first}) of 0 or more, "
            f"and active ({active}) of 1 or more."
        )
    if warmup == 0:
        warnings.warn("Profiler won't be using warmup, this can skew profiler results", stacklevel=2)

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"The step ({step}) is negative.")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait != 0:
            step += wait
        cycle = wait + warmup + active
        if repeat > 0 and step // cycle >= repeat:
            return ProfilerAction.NONE
        place = step % cycle
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if place == cycle - 1 else ProfilerAction.RECORD

    return action


def _always(_: int) -> ProfilerAction:
    return ProfilerAction.RECORD


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False, use_python_export: bool = False
) -> Callable[[Any], None]:
    """Makes an `on_trace_ready` that writes each trace into a folder, named as TensorBoard's plugin expects.

    As `torch.profiler.tensorboard_trace_handler`.

    Args:
        dir_name (str): The folder; it is made if need be.
        worker_name (str, optional): What the file's name begins with. Default: host and process.
        use_gzip (bool): Compresses the files. Default: False.
        use_python_export (bool): Ignored. Default: False.

    Returns:
        callable: The handler, called with the profile.

    Example:
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     handler = mica.profiler.tensorboard_trace_handler(folder, worker_name="run")
        ...     with mica.profiler.profile(on_trace_ready=handler):
        ...         x = mica.ones(2)
        ...     print(len(os.listdir(folder)), "file")
        1 file
    """

    def handler(found: Any) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        end = ".pt.trace.json" + (".gz" if use_gzip else "")
        found.export_chrome_trace(os.path.join(dir_name, f"{worker}.{time.time_ns()}{end}"))

    return handler


class profile:
    """Records what operators run in a block, how long each takes and what memory it leaves allocated.

    As `torch.profiler.profile`. `with profile() as p:` records the operators of this thread that run below
    Autograd, those of a backward pass included, and the blocks of `record_function`. Times are the host's:
    of a device that computes asynchronously, the time that queueing takes. `events()` and the like work only after
    the block.

    Args:
        activities (iterable of ProfilerActivity, optional): What is watched; the host always is. Others
            than CPU are warned of where there is an accelerator. Default: None.
        schedule (callable, optional): Says which steps are recorded: `mica.profiler.schedule(...)`, and
            `p.step()` at each step's end. Default: None, all is recorded.
        on_trace_ready (callable, optional): Called with the profile when a trace is complete. Default:
            None.
        record_shapes (bool): Keeps the shapes and dtypes of arguments. Default: False.
        profile_memory (bool): Keeps by how many bytes each event raised what the CPU's allocator holds:
            `event.cpu_memory_usage`. Default: False.
        with_stack (bool): Keeps the program's frames at each operator. Default: False.
        with_flops (bool): Counts the floating-point operations of products and convolutions. Default: False.
        with_modules (bool): Records the calls of modules. Default: False.
        experimental_config (Any, optional): Ignored.
        execution_trace_observer (Any, optional): Must be None.
        acc_events (bool): Ignored. Default: False.
        use_cuda (bool, optional): As CUDA among the activities.
        custom_trace_id_callback (callable, optional): Gives the text of `get_trace_id()`.
        post_processing_timeout_s (float, optional): Ignored.

    Raises:
        AssertionError: `activities` is empty, or events are asked for before there is a trace.
        NotImplementedError: `execution_trace_observer` is given.

    Example:
        >>> with mica.profiler.profile(with_flops=True) as p:
        ...     with mica.profiler.record_function("layer"):
        ...         product = mica.ones(2, 3) @ mica.ones(3, 4)
        >>> [(event.name, event.flops) for event in p.events()]
        [('layer', 0), ('aten::ones', 0), ('aten::ones', 0), ('aten::mm', 48)]
        >>> table = p.key_averages().table(sort_by="cpu_time_total", row_limit=5)
    """

    def __init__(
        self,
        *,
        activities: Iterable[Any] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
        custom_trace_id_callback: Callable[[], str] | None = None,
        post_processing_timeout_s: float | None = None,
    ) -> None:
        wanted = {ProfilerActivity.CPU} if activities is None else set(activities)
        beyond = sorted(a.name for a in wanted if a is not ProfilerActivity.CPU)
        if not wanted:
            raise AssertionError("No valid profiler activities found")
        if (beyond or use_cuda) and mica.accelerator.is_available():
            warnings.warn(
                f"Kernels of a device ({', '.join(beyond) or 'CUDA'}) are not timed by themselves yet: the profile "
                "shows what the host did.",
                stacklevel=2,
            )
        if execution_trace_observer is not None:
            raise NotImplementedError("Execution traces are not there; use export_chrome_trace().")
        self.activities = wanted
        self.schedule = _always if schedule is None else schedule
        self.record_steps = schedule is not None
        self.on_trace_ready = on_trace_ready
        self.record_shapes, self.profile_memory = record_shapes or with_flops, profile_memory
        self.with_stack, self.with_flops, self.with_modules = with_stack, with_flops, with_modules
        self.step_num = 0
        self.current_action = self.schedule(0)
        self._options = Options(self.record_shapes, profile_memory, with_stack, with_flops, with_modules)
        self._recorder: Recorder | None = None
        self._finished: Recorder | None = None
        self._block: record_function | None = None
        self._metadata: dict[str, Any] = {}
        self._trace_id = custom_trace_id_callback

    def start(self) -> None:
        """Begins, at step 0 of the schedule; `with` does it."""
        self._enter(self.current_action)
        self._begin_step()

    def stop(self) -> None:
        """Ends; what was being recorded is handed to `on_trace_ready`. `with` does it."""
        self._end_step()
        if self._recorder is not None:
            self._leave(save=self.current_action is not ProfilerAction.WARMUP)

    def step(self) -> None:
        """Ends a step of the schedule, and begins the next."""
        self._end_step()
        before = self.current_action
        self.step_num += 1
        self.current_action = self.schedule(self.step_num)
        warm = before is ProfilerAction.WARMUP  # what is seen while warming up is dropped
        ends = before is ProfilerAction.RECORD_AND_SAVE or self.current_action is ProfilerAction.NONE
        if self._recorder is not None and (ends or (warm and self.current_action is not before)):
            self._leave(save=not warm)
        if self._recorder is None:
            self._enter(self.current_action)
        self._begin_step()

    def _enter(self, action: ProfilerAction) -> None:
        if action is not ProfilerAction.NONE:
            self._recorder = Recorder(self._options)
            self._recorder.start()

    def _leave(self, save: bool) -> None:
        assert self._recorder is not None
        self._recorder.stop()
        done, self._recorder = self._recorder, None
        if save:
            self._finished = done
            if self.on_trace_ready is not None:
                self.on_trace_ready(self)

    def _begin_step(self) -> None:
        if self.record_steps and self._recorder is not None:
            self._block = record_function(f"ProfilerStep#{self.step_num}").__enter__()

    def _end_step(self) -> None:
        if self._block is not None:
            self._block.__exit__()
            self._block = None

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    # -- what was found

    def events(self) -> EventList:
        """The events of the last trace, in the order of their starts."""
        if self._finished is None:
            raise AssertionError(
                "There is no trace yet: the profile has not ended, or its schedule recorded no step."
            )
        return events_of(self._finished)

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """The averages of the last trace, one for each name.

        Args:
            group_by_input_shape (bool): Calls with other shapes have a row of their own; the profile needs
                `record_shapes`. Default: False.
            group_by_stack_n (int): Calls that differ in this many innermost frames of the program have a row
                of their own; the profile needs `with_stack`. Default: 0.
            group_by_overload_name (bool): Each overload has a row of its own. Default: False.

        Returns:
            EventList: The averages; `.table()` shows them.

        Raises:
            AssertionError: There is no trace yet.
        """
        return self.events().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def export_chrome_trace(self, path: str) -> None:
        """Writes the last trace as JSON that Perfetto and chrome://tracing open.

        Args:
            path (str): The file; compressed if its name ends with ".gz".
        """
        from mica.profiler._trace import write

        write(path, self.events(), self._finished, self._metadata)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes the stacks of the last trace as flame graphs take them; the profile needs `with_stack=True`.

        Args:
            path (str): The text file.
            metric (str): "self_cpu_time_total", the only one.

        Raises:
            ValueError: The metric is another.
        """
        self.events().export_stacks(path, metric)

    def export_memory_timeline(self, path: str, device: Any = None) -> None:
        """Raises NotImplementedError: the trace of `export_chrome_trace()` has the allocated bytes.

        Args:
            path (str): Ignored.
            device (device, optional): Ignored.
        """
        raise NotImplementedError(
            "export_memory_timeline() is not there; the Chrome trace has the allocated bytes."
        )

    def add_metadata(self, key: str, value: str) -> None:
        """Puts a text into the trace that `export_chrome_trace()` writes.

        Args:
            key (str): Name of the entry.
            value (str): The text.
        """
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Puts a value, given as JSON, into the trace that `export_chrome_trace()` writes.

        Args:
            key (str): Name of the entry.
            value (str): The JSON.
        """
        self._metadata[key] = json.loads(value)

    preset_metadata_json = add_metadata_json

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[Any]) -> None:
        """Pauses the recording of operators, or goes on with it.

        Args:
            enable (bool): Whether to record.
            activities (iterable of ProfilerActivity): Ignored.
        """
        if self._recorder is not None:
            self._recorder.paused = not enable

    def set_custom_trace_id_callback(self, callback: Callable[[], str]) -> None:
        """Sets what gives the text of `get_trace_id()`.

        Args:
            callback (callable): Called without arguments; returns the text.
        """
        self._trace_id = callback

    def get_trace_id(self) -> str | None:
        """What the callback gives, or None without one."""
        return None if self._trace_id is None else self._trace_id()
