"""Calls everything that the extension module and the public namespaces offer with arguments that make no sense.

Each callable has a process of its own, so that what it sets is gone for the next; a callable that ends its process
by a signal is printed with the arguments of that call. The last line counts the callables.
"""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import mica

NAMESPACES = (mica._C, mica, mica.autograd, mica.nn.functional, mica.linalg, mica.fft, mica.special)
# What a class has of Python's own and what makes subclasses, which are classes and not calls.
LEFT_OUT = {"__class__", "__init_subclass__", "__subclasshook__", "__new__"}


class Index:
    """A number, says `__index__`."""

    def __index__(self) -> int:
        return 3


class Unkind:
    """An object whose attributes raise."""

    def __getattr__(self, name: str) -> Any:
        raise ValueError(name)


def junk() -> list[Any]:
    leaf, matrix = mica.ones(3, requires_grad=True), mica.ones(2, 3)
    return [
        *(None, 3.0, -1, 2**70, True, 1j, float("nan"), "a", b"x", (), [], [3.0], {"a": 1}, slice(None), len),
        *(object(), Unkind(), Index(), np.ones(3), [leaf], (matrix, None), [[1], [2, 3]], (leaf for _ in [1])),
        *(leaf, matrix, mica.arange(3), mica.ones(0), mica.float32, mica.device("cpu"), mica.Tensor, mica.Generator()),
        *(mica.nn.Linear(2, 3), mica.Size([1, 2])),
    ]  # fmt: skip


def callables() -> Iterator[tuple[str, Callable[..., Any], list[Any]]]:
    """The name of each, and the arguments that always come first."""
    seen = set()
    for space in NAMESPACES:
        for name, value in sorted(vars(space).items()):
            own = space is mica._C or str(getattr(value, "__module__", "")).startswith("mica")
            if callable(value) and own and not isinstance(value, type) and id(value) not in seen:
                seen.add(id(value))
                yield f"{space.__name__}.{name}", value, []
    for cls in [value for value in vars(mica._C).values() if isinstance(value, type)]:
        for name in sorted(set(dir(cls)) - LEFT_OUT):
            value = getattr(cls, name, None)
            if callable(value):
                yield f"{cls.__name__}.{name}", value, []
                if cls is mica.Tensor:
                    yield f"{cls.__name__}.{name} of a matrix", value, [mica.ones(2, 3)]


def calls(count: int) -> Iterator[list[Any]]:
    """Each piece of junk alone, then two or three of them."""
    for place in range(len(junk())):
        yield [junk()[place]]
    draw = random.Random(count)
    for _ in range(12):
        yield draw.sample(junk(), draw.choice([2, 3]))


def give_up(*_: object) -> None:
    raise TimeoutError  # a count of 2 ** 70 things is made as slowly as it is asked for


def child(function: Callable[..., Any], first: list[Any], seed: int, log: int) -> None:
    silent = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(silent, stream)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 22, 1 << 22))
    signal.signal(signal.SIGALRM, give_up)
    for arguments in calls(seed):
        with contextlib.suppress(BaseException):
            os.write(log, (repr([type(a).__name__ for a in arguments]) + "\n").encode())
            signal.alarm(2)
            function(*first, *arguments)
    os._exit(0)


def ended(function: Callable[..., Any], first: list[Any], seed: int) -> str:
    """The signal that ended its process, and the types of the last arguments; "" if none did."""
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        os.close(reader)
        child(function, first, seed, writer)
    os.close(writer)
    with os.fdopen(reader) as lines:
        last = ([""] + lines.read().splitlines())[-1]
    status = os.waitpid(process, 0)[1]
    return f"{signal.Signals(os.WTERMSIG(status)).name} with {last}" if os.WIFSIGNALED(status) else ""


def main() -> None:
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    asked = sys.argv[1:]
    count = 0
    for seed, (name, function, first) in enumerate(callables()):
        if asked and name not in asked:
            continue
        count += 1
        if how := ended(function, first, seed):
            print(f"{name}: {how}")
    print(f"{count} callables")


if __name__ == "__main__":
    main()
