"""mica.futures: values that come later, with torch.futures' names, over concurrent.futures."""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")
S = TypeVar("S")


class Future(Generic[T]):
    """A value that comes later: one thread waits for it, another one sets it.

    As `torch.futures.Future`.

    Args:
        devices (list of device, optional): No effect. Default: None.

    Example:
        >>> future = mica.futures.Future()
        >>> doubled = future.then(lambda done: 2 * done.value())
        >>> future.set_result(21)
        >>> doubled.wait()
        42
    """

    def __init__(self, *, devices: Any = None) -> None:
        self._future: concurrent.futures.Future[T] = concurrent.futures.Future()

    def done(self) -> bool:
        """Returns whether there is a value, or an exception, already."""
        return self._future.done()

    def wait(self) -> T:
        """Waits for the value and returns it; raises the exception that was set instead."""
        return self._future.result()

    def value(self) -> T:
        """Returns the value, which must be there already; RuntimeError where it is not."""
        if not self.done():
            raise RuntimeError("The Future has no value yet; wait() waits for it.")
        return self._future.result()

    def set_result(self, result: T) -> None:
        """Sets the value and wakes whoever waits; once.

        Args:
            result (object): The value that `wait()` returns.

        Raises:
            RuntimeError: There is a value or an exception already.
        """
        self._once(lambda: self._future.set_result(result))

    def set_exception(self, result: BaseException) -> None:
        """Makes `wait()` and `value()` raise an exception instead; once.

        Args:
            result (Exception): The exception that `wait()` raises.

        Raises:
            AssertionError: `result` is no Exception.
            RuntimeError: There is a value or an exception already.
        """
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type ({type(result).__name__}), not an Exception.")
        self._once(lambda: self._future.set_exception(result))

    @staticmethod
    def _once(set_it: Callable[[], None]) -> None:
        try:
            set_it()
        except concurrent.futures.InvalidStateError:
            raise RuntimeError("The Future has a value already; it is set once.") from None

    def add_done_callback(self, callback: Callable[[Future[T]], Any]) -> None:
        """Calls a function when the value comes, at once if it is there; its result and errors are not used.

        Args:
            callback (callable): `callback(future)`, with this Future.
        """
        self._future.add_done_callback(lambda _: callback(self))

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """Makes a Future of what a function computes of this one, when its value comes.

        Args:
            callback (callable): `callback(future)`, with this Future, whose `value()` is there.

        Returns:
            Future: Of what `callback` returns; where that raises, `wait()` raises RuntimeError with the
            cause.
        """
        following: Future[S] = Future()

        def run(done: Future[T]) -> None:
            try:
                following.set_result(callback(done))
            except Exception as error:  # noqa: BLE001 - whatever the callback raises is its result
                failed = RuntimeError(f"The callback of then() raised {type(error).__name__}: {error}")
                failed.__cause__ = error
                following.set_exception(failed)

        self.add_done_callback(run)
        return following


def collect_all(futures: list[Future[Any]]) -> Future[list[Future[Any]]]:
    """Makes a Future that is done when all of the given ones are.

    As `torch.futures.collect_all`.

    Args:
        futures (list of Future): What is waited for.

    Returns:
        Future: Its value is the list of Futures, all done.

    Example:
        >>> a, b = mica.futures.Future(), mica.futures.Future()
        >>> both = mica.futures.collect_all([a, b])
        >>> a.set_result(1)
        >>> b.set_result(2)
        >>> [future.value() for future in both.wait()]
        [1, 2]
    """
    collected: Future[list[Future[Any]]] = Future()
    missing, lock = len(futures), threading.Lock()
    if missing == 0:
        collected.set_result(futures)

    def one(_: Future[Any]) -> None:
        nonlocal missing
        with lock:
            missing -= 1
            last = missing == 0
        if last:
            collected.set_result(futures)

    for future in futures:
        future.add_done_callback(one)
    return collected


def wait_all(futures: list[Future[Any]]) -> list[Any]:
    """Waits for all of the given Futures and returns their values.

    As `torch.futures.wait_all`.

    Args:
        futures (list of Future): What is waited for.

    Returns:
        list: The values, in order; the first exception among them is raised.

    Example:
        >>> future = mica.futures.Future()
        >>> future.set_result("done")
        >>> mica.futures.wait_all([future])
        ['done']
    """
    return [future.wait() for future in collect_all(futures).wait()]
