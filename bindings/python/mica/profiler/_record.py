"""What a profile records: a Recorder collects ranges of time, of operators, of blocks and of modules.

Operators come from a dispatch mode of the profiling thread, so that those of a backward pass are
seen, and nothing costs anything while no profile runs. A record is a tuple, made into events only
when someone asks for them.
"""

from __future__ import annotations

import functools
import threading
import traceback
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any, NamedTuple

import mica
from mica import _C
from mica._C import Tensor
from mica.utils.python_dispatch import DispatchMode


class Record(NamedTuple):
    """One range: times in nanoseconds of perf_counter_ns(), `kind` operator, block or module."""

    name: str
    kind: str
    start: int
    end: int
    thread: int
    shapes: tuple[Any, ...]  # of each argument; () for what is no tensor
    dtypes: tuple[str, ...]
    memory: int  # bytes that the allocator held more at the end than at the start
    flops: int
    stack: tuple[str, ...]
    overload: str


class Options(NamedTuple):
    """What is recorded beside the times."""

    shapes: bool = False
    memory: bool = False
    stack: bool = False
    flops: bool = False
    modules: bool = False


_active: list[Recorder] = []  # the recorders that run, innermost last
_PACKAGE: str = mica.__path__[0]


def _allocated() -> int:
    return int(mica.memory_allocated("cpu"))


def _tensors_of(args: tuple[Any, ...]) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    shapes, dtypes = [], []
    for value in args:
        if isinstance(value, Tensor):
            shapes.append(tuple(value.shape))
            dtypes.append(str(value.dtype).split(".")[-1])
        elif isinstance(value, (list, tuple)) and value and isinstance(value[0], Tensor):
            shapes.append(tuple(tuple(t.shape) for t in value if isinstance(t, Tensor)))
            dtypes.append("TensorList")
        else:
            shapes.append(())
            dtypes.append("Scalar" if isinstance(value, (int, float, complex)) else "")
    return tuple(shapes), tuple(dtypes)


def _user_stack() -> tuple[str, ...]:
    frames = [f for f in traceback.extract_stack()[:-2] if not f.filename.startswith(_PACKAGE)]
    return tuple(f"{f.filename}({f.lineno}): {f.name}" for f in reversed(frames[-32:]))


class Recorder(DispatchMode):
    """Records from start() to stop(); `records` keeps what was seen, in the order of the ends."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.records: list[Record] = []
        self.began = self.ended = 0
        self.memory: list[tuple[int, int]] = []  # (time, bytes allocated)
        self._hooks: list[Any] = []
        self.paused = False
        self._plain = not (options.shapes or options.memory or options.stack or options.flops)

    def start(self) -> None:
        """Begins to record the operators of this thread."""
        self._thread = threading.get_ident()
        if self.options.modules:
            self._watch_modules()
        _active.append(self)
        _C._push_dispatch_mode(self)
        self.began = perf_counter_ns()

    def stop(self) -> None:
        """Stops; modes that were entered since stay."""
        self.ended = perf_counter_ns()
        later = []
        while (mode := _C._pop_dispatch_mode()) is not self:
            later.append(mode)
        for mode in reversed(later):
            _C._push_dispatch_mode(mode)
        _active.remove(self)
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()

    def __mica_dispatch__(
        self,
        func: Any,
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if self.paused:
            return func(*args, **(kwargs or {}))
        if self._plain:
            start = perf_counter_ns()
            try:
                return func(*args, **kwargs) if kwargs else func(*args)
            finally:
                self._add(func, start, perf_counter_ns())
        memory = _allocated() if self.options.memory else 0
        shapes, dtypes = _tensors_of(args) if self.options.shapes else ((), ())
        stack = _user_stack() if self.options.stack else ()
        result = None
        start = perf_counter_ns()
        try:
            result = func(*args, **(kwargs or {}))
        finally:
            end = perf_counter_ns()
            held = _allocated() if self.options.memory else 0
            if held != memory:
                self.memory.append((end, held))
            flops = self._flops(func, args, kwargs or {}, result) if self.options.flops else 0
            self._add(func, start, end, shapes, dtypes, held - memory, flops, stack)
        return result

    def _add(
        self,
        func: Any,
        start: int,
        end: int,
        shapes: tuple[Any, ...] = (),
        dtypes: tuple[str, ...] = (),
        memory: int = 0,
        flops: int = 0,
        stack: tuple[str, ...] = (),
    ) -> None:
        name, overload = f"aten::{func._opname}", func._overloadname
        found = (name, "operator", start, end, self._thread, shapes, dtypes, memory, flops, stack, overload)
        self.records.append(Record(*found))

    def _flops(self, func: Any, args: Any, kwargs: Any, result: Any) -> int:
        from mica.utils.flop_counter import flop_registry, operations

        return 0 if result is None else operations(func, args, kwargs, result, flop_registry)

    def add_block(self, name: str, kind: str, start: int, memory: int) -> None:
        """Records a range of the program's own that ends now."""
        held = _allocated() - memory if self.options.memory else 0
        end, thread = perf_counter_ns(), threading.get_ident()
        self.records.append(Record(name, kind, start, end, thread, (), (), held, 0, (), ""))

    def _watch_modules(self) -> None:
        from mica.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

        open_: list[tuple[int, int]] = []

        def enter(module: Any, args: Any) -> None:
            open_.append((perf_counter_ns(), _allocated() if self.options.memory else 0))

        def leave(module: Any, args: Any, result: Any) -> None:
            if open_:
                self.add_block(f"nn.Module: {type(module).__name__}", "module", *open_.pop())

        self._hooks = [
            register_module_forward_pre_hook(enter),
            register_module_forward_hook(leave, always_call=True),
        ]


class record_function:
    """Names a range in the profiles that run: a block, or as a decorator each call of a function.

    As `torch.profiler.record_function`. It costs next to nothing where no profile runs.

    Args:
        name (str): The name in tables and traces.
        args (str, optional): Kept as the attribute `args`; profiles do not show it. Default: None.

    Example:
        >>> @mica.profiler.record_function("forward")
        ... def forward(x):
        ...     return x + 1
        >>> with mica.profiler.profile() as p:
        ...     y = forward(mica.ones(2))
        >>> [event.name for event in p.events()]
        ['aten::ones', 'forward', 'aten::add']
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args
        self._open: list[tuple[Recorder, int, int]] = []

    def __enter__(self) -> record_function:
        for recorder in _active:
            memory = _allocated() if recorder.options.memory else 0
            self._open.append((recorder, perf_counter_ns(), memory))
        return self

    def __exit__(self, *exc: object) -> None:
        for recorder, start, memory in self._open:
            recorder.add_block(self.name, "block", start, memory)
        self._open.clear()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return recorded
