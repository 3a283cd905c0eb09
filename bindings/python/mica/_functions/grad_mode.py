"""Context managers and decorators that switch gradient recording on and off."""

from __future__ import annotations

from mica import _C

TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    F = TypeVar("F", bound=Callable[..., Any])
_GENERATOR = 0x20  # inspect.CO_GENERATOR; importing inspect takes 10 ms


class _Mode:
    """A context manager that also decorates functions and generators."""

    def _fresh(self) -> _Mode:
        return type(self)()

    def __enter__(self) -> Any:
        raise NotImplementedError

    def __exit__(self, *exc: object) -> None:
        raise NotImplementedError

    def _run(self, inner: Any) -> Any:
        """A generator, in this mode whenever it runs, and not while it waits."""
        step, value = inner.send, None
        while True:
            with self._fresh():
                try:
                    found = step(value)
                except StopIteration as stop:
                    return stop.value
            try:
                step, value = inner.send, (yield found)
            except GeneratorExit:
                with self._fresh():
                    inner.close()
                raise
            except BaseException as error:
                step, value = inner.throw, error

    def __call__(self, function: F) -> F:
        import functools

        if isinstance(function, type):
            import warnings

            warnings.warn(
                "Decorating classes is deprecated, and a class made so can be no base of another; decorate its methods.",
                FutureWarning,
                stacklevel=2,
            )
        inside: Any = function
        while isinstance(inside, functools.partial):
            inside = inside.func
        code = getattr(inside, "__code__", None)
        if code is not None and code.co_flags & _GENERATOR:

            @functools.wraps(function)
            def generator(*args: Any, **kwargs: Any) -> Any:
                return (yield from self._run(function(*args, **kwargs)))

            return generator  # type: ignore[return-value]

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with self._fresh():
                return function(*args, **kwargs)

        return wrapper  # type: ignore[return-value]


class _GradMode(_Mode):
    _enabled = True

    def __enter__(self) -> None:
        self._previous = _C._set_grad_enabled(self._enabled)

    def __exit__(self, *exc: object) -> None:
        _C._set_grad_enabled(self._previous)

    def __new__(cls, orig_func: Any = None) -> Any:
        mode = super().__new__(cls)
        return mode(orig_func) if callable(orig_func) else mode


class no_grad(_GradMode):
    """Operators inside record no gradient."""

    _enabled = False


class enable_grad(_GradMode):
    """Operators inside record gradients, also inside no_grad."""


class set_grad_enabled(_Mode):
    """Switches recording on or off, at once and until the block ends."""

    def __init__(self, mode: bool) -> None:
        self._mode = mode
        self._previous = _C._set_grad_enabled(mode)

    def _fresh(self) -> set_grad_enabled:
        return set_grad_enabled(self._mode)

    def __call__(self, function: F) -> F:

        _C._set_grad_enabled(self._previous)
        return super().__call__(function)

    def __enter__(self) -> None:
        _C._set_grad_enabled(self._mode)

    def __exit__(self, *exc: object) -> None:
        _C._set_grad_enabled(self._previous)


class set_multithreading_enabled(_Mode):
    """Says whether backward may use threads, at once and until the block ends. It is kept for programs that ask:
    Mica queues all of a backward from the caller's thread."""

    _enabled = True

    def __init__(self, mode: bool) -> None:
        self._mode = mode
        self._previous = set_multithreading_enabled._enabled
        set_multithreading_enabled._enabled = bool(mode)

    def _fresh(self) -> set_multithreading_enabled:
        return set_multithreading_enabled(self._mode)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        set_multithreading_enabled._enabled = self._previous


def is_multithreading_enabled() -> bool:
    """What set_multithreading_enabled said last."""
    return set_multithreading_enabled._enabled


class inference_mode(_Mode):
    """Like no_grad; tensors made inside can never be used where a gradient is needed."""

    def __new__(cls, mode: Any = True) -> Any:
        instance = super().__new__(cls)
        if callable(mode):
            instance._mode = True
            return instance(mode)
        instance._mode = bool(mode)
        return instance

    _mode: bool

    def _fresh(self) -> inference_mode:
        return type(self)(self._mode)

    def __enter__(self) -> None:
        grad = False if self._mode else _C.is_grad_enabled()
        self._previous = _C._set_inference(self._mode, grad)

    def __exit__(self, *exc: object) -> None:
        _C._set_inference(*self._previous)
