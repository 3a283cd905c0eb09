"""Futures: what torch.futures says of values that come later, mica.futures says too."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch

import mica


def _kind(f: Any) -> str:
    try:
        return str(f())
    except Exception as error:  # noqa: BLE001 - the kind is compared
        return type(error).__name__


def in_order(L: Any) -> list[Any]:
    first, seen = L.futures.Future(), []
    second = first.then(lambda f: f.value() + 1)
    third = second.then(lambda f: f.value() / 0)
    first.add_done_callback(lambda f: seen.append(f.wait()))
    found = [first.done(), second.done(), _kind(first.value)]
    first.set_result(4)
    found += [first.done(), second.wait(), seen, first.value(), _kind(third.wait), _kind(third.value)]
    failed = L.futures.Future()
    failed.set_exception(KeyError("x"))
    return [
        *found,
        _kind(failed.wait),
        _kind(lambda: first.set_result(5)),
        _kind(lambda: failed.set_exception(3)),
    ]


def from_threads(L: Any) -> list[Any]:
    futures = [L.futures.Future() for _ in range(20)]
    threads = [threading.Thread(target=f.set_result, args=(k,)) for k, f in enumerate(futures)]
    every = L.futures.collect_all(futures)
    for thread in threads:
        thread.start()
    return [L.futures.wait_all(futures), [f.value() for f in every.wait()], L.futures.collect_all([]).wait()]


@pytest.mark.parametrize("program", [in_order, from_threads])
def test_programs(program: Any) -> None:
    assert program(mica) == program(torch)
