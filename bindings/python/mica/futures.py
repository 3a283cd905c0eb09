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
    """A value that another thread sets. `devices` is accepted as torch accepts it."""

    def __init__(self, *, devices: Any = None) -> None:
        self._future: concurrent.futures.Future[T] = concurrent.futures.Future()

    def done(self) -> bool:
        """Whether there is a value, or an exception."""
        return self._future.done()

    def wait(self) -> T:
        """The value as soon as there is one; raises the exception that was set instead."""
        return self._future.result()

    def value(self) -> T:
        """The value, which must be there already."""
        if not self.done():
            raise RuntimeError("The Future has no value yet; wait() waits for it.")
        return self._future.result()

    def set_result(self, result: T) -> None:
        """Sets the value, once."""
        self._once(lambda: self._future.set_result(result))

    def set_exception(self, result: BaseException) -> None:
        """Makes wait() and value() raise `result`."""
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
        """Calls `callback(self)` when the value comes, at once if it is there."""
        self._future.add_done_callback(lambda _: callback(self))

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """The Future of `callback(self)`, called when the value comes."""
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
    """A Future of the list, which is done when all of it are."""
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
    """All values, in order; raises the first exception among them."""
    return [future.wait() for future in collect_all(futures).wait()]
