"""Recorded work of a stream for one backend by name: torch.cuda's CUDAGraph, graph and what belongs to them.

In a docstring, `mica.cuda` stands for the backend's module and CUDAGraph for its class.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import mica
from mica import _C

MODES = ("global", "thread_local", "relaxed")
CLASSES = {"cuda": "CUDAGraph", "xpu": "XPUGraph"}


class Recorded:
    """What graph classes share. `_stream()` is the stream that is recorded."""

    def __init__(self) -> None:
        self._graph = _C._new_graph()

    def _stream(self) -> Any:
        raise NotImplementedError

    def _begin(self, pool: tuple[int, int] | None, mode: str) -> None:
        if mode not in MODES:
            raise ValueError(
                f"The capture_error_mode ({mode!r}) is unknown; expected one of {', '.join(MODES)}."
            )
        stream = self._stream()
        number = 0 if pool is None else _pool_number(pool)
        _C._graph_begin(self._graph, stream.device, stream.handle, number)

    def _abandon(self) -> None:
        _C._graph_abandon(self._graph)

    def capture_end(self) -> None:
        """Ends the recording; from now on the graph can be replayed.

        Raises:
            RuntimeError: Nothing is recorded, or the device could not record what was called; the graph is
                empty then.
        """
        _C._graph_end(self._graph)

    def replay(self) -> None:
        """Runs the recorded work in the current stream of its device, and does not wait for it.

        Raises:
            RuntimeError: The graph holds no recording.
        """
        _C._graph_replay(self._graph)

    def reset(self) -> None:
        """Gives up what was recorded, and the memory that only it uses."""
        _C._graph_reset(self._graph)

    def instantiate(self) -> None:
        """Does nothing: a graph is ready to be replayed when its recording ends.

        Raises:
            RuntimeError: The graph holds no recording.
        """
        self.pool()

    def pool(self) -> tuple[int, int]:
        """Returns what stands for the graph's memory, for other recordings to share it.

        Returns:
            tuple of 2 int: A name without further meaning.

        Raises:
            RuntimeError: The graph holds no recording.
        """
        place = _C._graph_place(self._graph)
        if place is None:
            raise RuntimeError("The graph has no pool of memory before its first recording.")
        return (0, place[1])

    def enable_debug_mode(self) -> None:
        """Does nothing: what is needed for `debug_dump()` is not kept."""

    def debug_dump(self, debug_path: str) -> None:
        """Raises, since the device table tells nothing of what a graph holds.

        Args:
            debug_path (str): Ignored.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError(
            f"What a graph holds cannot be written to ({debug_path}): the device table does not tell it."
        )


def _pool_number(pool: Any) -> int:
    if not (isinstance(pool, tuple) and len(pool) == 2 and all(isinstance(n, int) for n in pool)):
        raise TypeError(
            f"pool must be what graph_pool_handle() or a graph's pool() returned, not a value of type ({type(pool).__name__})."
        )
    return int(pool[1])


def functions(backend: str, needed: Callable[[str], None], queues: dict[str, Any]) -> dict[str, Any]:
    """The functions and classes for a backend; `queues` has its functions of streams, by name."""
    calls = SimpleNamespace(**queues)

    class CUDAGraph(Recorded):
        """Work of a stream that is recorded once and run again with one call.

        As `torch.cuda.CUDAGraph`. While it records, operators compute nothing. Each replay reads what lies in the
        tensors that were read, and writes into those that were made: copy new values into the inputs before, and
        copy results that must stay before the next replay. Random numbers are others each time.

        Args:
            keep_graph (bool): Kept as an attribute: a recording is ready when it ends. Default: False.

        Raises:
            RuntimeError: There is no device.

        Example:
            >>> if mica.cuda.is_available():
            ...     x, g = mica.ones(2, device="cuda"), mica.cuda.CUDAGraph()
            ...     with mica.cuda.graph(g):
            ...         y = x * 2
            ...     x.fill_(21)
            ...     g.replay()
            ...     assert y.tolist() == [42, 42]
        """

        def __init__(self, keep_graph: bool = False) -> None:
            needed(backend)
            super().__init__()
            self.keep_graph = keep_graph

        def _stream(self) -> Any:
            return calls.current_stream()

        def capture_begin(
            self,
            pool: tuple[int, int] | None = None,
            capture_error_mode: str = "global",
            check_input_liveness: bool = False,
        ) -> None:
            """Begins to record what this thread calls on the current stream, which is not the default one.

            Args:
                pool (tuple of 2 int, optional): Memory to share: `graph_pool_handle()` or another graph's
                    `pool()`. Default: None, memory of its own.
                capture_error_mode (str): "global", "thread_local" or "relaxed", which mean the same here: what other
                    threads do never ends the recording. Default: "global".
                check_input_liveness (bool): Must be False. Default: False.

            Raises:
                RuntimeError: The stream is the default one, this thread records already, or the graph holds a
                    recording.
                NotImplementedError: The device records nothing, or `check_input_liveness` is true.
            """
            if check_input_liveness:
                raise NotImplementedError(
                    "A graph does not watch its inputs; leave out check_input_liveness= and keep them alive."
                )
            self._begin(pool, capture_error_mode)

        def register_generator_state(self, state: Any) -> None:
            """Does nothing: a recording finds the generators that it uses itself.

            Args:
                state (Generator): Ignored.
            """

    class graph:
        """A block whose work is recorded into a graph.

        As `torch.cuda.graph`. The block runs on a stream of its own. If it raises, the graph stays empty.

        Args:
            cuda_graph (CUDAGraph): The graph, empty.
            pool (tuple of 2 int, optional): Memory to share; see `CUDAGraph.capture_begin()`. Default: None.
            stream (Stream, optional): The stream to record. Default: None, one that all such blocks share.
            capture_error_mode (str): See `CUDAGraph.capture_begin()`. Default: "global".
            enable_annotations (bool): Ignored. Default: False.
            check_input_liveness (bool): Must be False. Default: False.

        Raises:
            RuntimeError: On entering: as `CUDAGraph.capture_begin()`.

        Example:
            >>> if mica.cuda.is_available():
            ...     x, g = mica.ones(2, device="cuda"), mica.cuda.CUDAGraph()
            ...     with mica.cuda.graph(g):
            ...         x += 1
            ...     g.replay()
        """

        default_capture_stream: Any = None

        def __init__(
            self,
            cuda_graph: CUDAGraph,
            pool: tuple[int, int] | None = None,
            stream: Any = None,
            capture_error_mode: str = "global",
            enable_annotations: bool = False,
            check_input_liveness: bool = False,
        ) -> None:
            kind = type(self)
            if stream is None:
                if kind.default_capture_stream is None or (
                    kind.default_capture_stream.device.index != calls.current_device()
                ):
                    kind.default_capture_stream = calls.Stream()
                stream = kind.default_capture_stream
            self.capture_stream = stream
            self.stream_ctx = calls.stream(stream)
            self.cuda_graph = cuda_graph
            self._arguments = (pool, capture_error_mode, check_input_liveness)

        def __enter__(self) -> None:
            calls.synchronize(self.capture_stream.device)
            mica.empty_cache(self.capture_stream.device)
            self.stream_ctx.__enter__()
            try:
                self.cuda_graph.capture_begin(*self._arguments)
            except BaseException:
                self.stream_ctx.__exit__(None, None, None)
                raise

        def __exit__(self, kind: Any, *rest: object) -> None:
            try:
                if kind is None:
                    self.cuda_graph.capture_end()
                else:
                    self.cuda_graph._abandon()
            finally:
                self.stream_ctx.__exit__(kind, *rest)

    def graph_pool_handle() -> tuple[int, int]:
        """Returns a name for memory that recordings share.

        As `torch.cuda.graph_pool_handle`.

        Returns:
            tuple of 2 int: A name without further meaning, for `pool=`.

        Example:
            >>> mica.cuda.graph_pool_handle() != mica.cuda.graph_pool_handle()
            True
        """
        return (0, _C._new_pool_id())

    def is_current_stream_capturing() -> bool:
        """Returns whether this thread records what it calls on the current device.

        As `torch.cuda.is_current_stream_capturing`.

        Returns:
            bool: Whether it does; False where there is no device.

        Example:
            >>> mica.cuda.is_current_stream_capturing()
            False
        """
        return _C._device_count(backend) > 0 and _C._is_recording(
            _C.device(f"{backend}:{calls.current_device()}")
        )

    def make_graphed_callables(
        callables: Any,
        sample_args: Any,
        num_warmup_iters: int = 3,
        allow_unused_input: bool = False,
        pool: tuple[int, int] | None = None,
    ) -> Any:
        """Returns functions or modules that replay recorded graphs, forward and backward.

        As `torch.cuda.make_graphed_callables`. A module is changed in place: its `forward` replays while the
        module is in the mode (training or not) that it was recorded in, and computes as before in the other.
        Arguments must have the shapes, dtypes and `requires_grad` of the samples; gradients of gradients are
        not there. Results, and gradients of arguments, lie in the graph's memory, which the next
        call writes over.

        Args:
            callables (Module, callable or tuple of these): What to record, in the order in which it will run.
            sample_args (tuple of Tensor, or tuple of such tuples): For each one its arguments, tensors alone.
            num_warmup_iters (int): How often each is run before it is recorded. Default: 3.
            allow_unused_input (bool): Inputs that no output depends on get no gradient, where they would raise
                otherwise. Default: False.
            pool (tuple of 2 int, optional): Memory to share; see `CUDAGraph.capture_begin()`. Default: None.

        Returns:
            Module, callable or tuple of these: As `callables`.

        Raises:
            RuntimeError: There is no device, autocast keeps casts (`cache_enabled=False` is needed), a module has
                hooks or a buffer that requires grad, or an argument is no tensor.

        Example:
            >>> if mica.cuda.is_available():
            ...     layer = mica.nn.Linear(4, 4).cuda()
            ...     layer = mica.cuda.make_graphed_callables(layer, (mica.ones(2, 4, device="cuda"),))
            ...     layer(mica.ones(2, 4, device="cuda")).sum().backward()
        """
        from mica._devices.graphed_callables import graphed  # what few programs need

        needed(backend)
        pool = graph_pool_handle() if pool is None else pool
        return graphed(
            SimpleNamespace(
                Graph=CUDAGraph,
                graph=graph,
                stream=calls.stream,
                Stream=calls.Stream,
                current_stream=calls.current_stream,
                synchronize=calls.synchronize,
            ),
            callables,
            sample_args,
            num_warmup_iters,
            allow_unused_input,
            pool,
        )

    name = CLASSES.get(backend, "Graph")
    CUDAGraph.__name__ = CUDAGraph.__qualname__ = name
    for described in (CUDAGraph, graph, make_graphed_callables):
        described.__doc__ = (described.__doc__ or "").replace("CUDAGraph", name)
    return {
        name: CUDAGraph,
        "graph": graph,
        "graph_pool_handle": graph_pool_handle,
        "is_current_stream_capturing": is_current_stream_capturing,
        "make_graphed_callables": make_graphed_callables,
    }
