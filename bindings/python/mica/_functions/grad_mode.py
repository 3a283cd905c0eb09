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
    """Records no gradients inside: for evaluation, and for updates of parameters.

    As `torch.no_grad`, a context manager or a decorator. Results do not require grad; parameters stay
    as they are. It holds for this thread.

    Args:
        orig_func (callable, optional): The function, where `@mica.no_grad` decorates it without
            parentheses.

    Example:
        >>> x = mica.ones(2, requires_grad=True)
        >>> with mica.no_grad():
        ...     y = 2 * x
        >>> y.requires_grad
        False
    """

    _enabled = False


class enable_grad(_GradMode):
    """Records gradients inside, also within `no_grad`.

    As `torch.enable_grad`, a context manager or a decorator.

    Args:
        orig_func (callable, optional): The function, where `@mica.enable_grad` decorates it without
            parentheses.

    Example:
        >>> x = mica.ones(2, requires_grad=True)
        >>> with mica.no_grad():
        ...     with mica.enable_grad():
        ...         y = 2 * x
        >>> y.requires_grad
        True
    """


class set_grad_enabled(_Mode):
    """Switches the recording of gradients on or off, at once; as a `with` block, until its end.

    As `torch.set_grad_enabled`; also a decorator.

    Args:
        mode (bool): Whether gradients are recorded.

    Example:
        >>> x = mica.ones(2, requires_grad=True)
        >>> training = False
        >>> with mica.set_grad_enabled(training):
        ...     y = 2 * x
        >>> y.requires_grad
        False
    """

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
    """Sets whether backward may use several threads; kept for programs that ask, without effect.

    As `torch.autograd.set_multithreading_enabled`: at once, and as a `with` block until its end. Mica
    runs the nodes of a backward pass in the caller's thread.

    Args:
        mode (bool): What `is_multithreading_enabled` shall return.

    Example:
        >>> with mica.autograd.set_multithreading_enabled(False):
        ...     mica.autograd.is_multithreading_enabled()
        False
    """

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
    """Returns what `set_multithreading_enabled` said last.

    Returns:
        bool: True at first.

    Example:
        >>> mica.autograd.is_multithreading_enabled()
        True
    """
    return set_multithreading_enabled._enabled


class inference_mode(_Mode):
    """Like `no_grad`, for code that will never be differentiated: Tensors made inside are cheaper.

    As `torch.inference_mode`, a context manager or a decorator. Outside of the mode such Tensors can
    neither be saved for a backward pass nor be written in place.

    Args:
        mode (bool or callable): False switches an outer block off; a function is decorated.
            Default: True.

    Example:
        >>> with mica.inference_mode():
        ...     y = mica.ones(2) * 2
        >>> y.is_inference(), y.requires_grad
        (True, False)
    """

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
