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
    """What a schedule says of a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


class ProfilerActivity(enum.Enum):
    """What torch profiles. Mica times the host, whose operators include the queueing of a device's work."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


def supported_activities() -> set[ProfilerActivity]:
    """The host's alone: kernels of devices are not timed by themselves."""
    return {ProfilerActivity.CPU}


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """A schedule: after `skip_first` steps, cycles of `wait` steps off, `warmup` and `active` steps recorded.

    `repeat` cycles, or without end if 0; with `skip_first_wait` the first cycle does not wait.
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
    """An `on_trace_ready` that writes each trace into a folder, named as TensorBoard's plugin expects."""

    def handler(found: Any) -> None:
        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        end = ".pt.trace.json" + (".gz" if use_gzip else "")
        found.export_chrome_trace(os.path.join(dir_name, f"{worker}.{time.time_ns()}{end}"))

    return handler


class profile:
    """`with profile(...) as p:` records the operators of this thread, backward passes included, and the
    blocks of record_function(); p.step() ends a step for the schedule.

    Operators are those that run below Autograd. Times are the host's: of a device that computes
    asynchronously, the time that queueing takes. Other threads are recorded by profiles of their own.
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
        """Begins, at step 0 of the schedule."""
        self._enter(self.current_action)
        self._begin_step()

    def stop(self) -> None:
        """Ends; what was being recorded is handed to on_trace_ready."""
        self._end_step()
        if self._recorder is not None:
            self._leave(save=self.current_action is not ProfilerAction.WARMUP)

    def step(self) -> None:
        """Ends a step."""
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
        """The averages by name."""
        return self.events().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def export_chrome_trace(self, path: str) -> None:
        """Writes the last trace for Perfetto or chrome://tracing."""
        from mica.profiler._trace import write

        write(path, self.events(), self._finished, self._metadata)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes the stacks for a flame graph; the profile needs with_stack=True."""
        self.events().export_stacks(path, metric)

    def export_memory_timeline(self, path: str, device: Any = None) -> None:
        raise NotImplementedError(
            "export_memory_timeline() is not there; the Chrome trace has the allocated bytes."
        )

    def add_metadata(self, key: str, value: str) -> None:
        """Puts a text into the trace."""
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Puts a value, given as JSON, into the trace."""
        self._metadata[key] = json.loads(value)

    preset_metadata_json = add_metadata_json

    def toggle_collection_dynamic(self, enable: bool, activities: Iterable[Any]) -> None:
        """Pauses or goes on with the recording of operators."""
        if self._recorder is not None:
            self._recorder.paused = not enable

    def set_custom_trace_id_callback(self, callback: Callable[[], str]) -> None:
        self._trace_id = callback

    def get_trace_id(self) -> str | None:
        """What the callback gives, or None."""
        return None if self._trace_id is None else self._trace_id()
