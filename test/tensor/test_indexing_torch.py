"""x[index] = value takes, casts or refuses what torch takes, casts or refuses.

Every kind of index x every kind of value x dtypes, with the result or the kind of the exception
compared. What differs must have its reason in DIFFERENT.
"""

from __future__ import annotations

import array
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from test_operands_torch import compare, outcome

import mica

DTYPES = ["bool", "uint8", "int8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64"]

# The index, as a function of the library, into a tensor of shape (3, 2).
INDICES: dict[str, Callable[[Any], Any]] = {
    "int": lambda M: 1,
    "negative int": lambda M: -1,
    "two ints": lambda M: (1, 0),
    "slice": lambda M: slice(0, 2),
    "empty slice": lambda M: slice(1, 1),
    "int and slice": lambda M: (1, slice(None)),
    "ellipsis": lambda M: ...,
    "ellipsis and int": lambda M: (..., 1),
    "None": lambda M: None,
    "None and int": lambda M: (None, 1),
    "True": lambda M: True,
    "False": lambda M: False,
    "list": lambda M: [0, 2],
    "list of one": lambda M: [0],
    "empty list": lambda M: [],
    "lists": lambda M: ([0, 2], [1, 1]),
    "list of bools": lambda M: [True, False, True],
    "tensor": lambda M: M.tensor([2, 0]),
    "0-d tensor": lambda M: M.tensor(1),
    "tensors": lambda M: (M.tensor([0, 2]), M.tensor([1, 0])),
    "tensor and slice": lambda M: (slice(None), M.tensor([1])),
    "mask": lambda M: M.tensor([True, False, True]),
    "full mask": lambda M: M.tensor([[True, False], [False, False], [True, True]]),
    "mask of nothing": lambda M: M.zeros(3, 2, dtype=M.bool),
    "uint8 mask": lambda M: M.tensor([1, 0, 1], dtype=M.uint8),
    "0-d mask": lambda M: M.tensor(True),
    "array": lambda M: np.array([0, 2]),
    "array mask": lambda M: np.array([True, False, True]),
    "number of numpy": lambda M: np.int64(1),
}
NUMBERS = [
    True, 0, 1, -1, 127, 128, 200, 255, 256, 300, -128, -129, -200, -300, 2**15, 2**31, 2**40, 2**62, 2**63, 2**64,
    1.0, 1.7, -1.7, 300.7, -300.7, 70000.0, 1e10, 1e39, 1e300, float("nan"), float("inf"), -float("inf"),
    1j, 2 + 0j, 1 + 1j, complex("nan"),
]  # fmt: skip
VALUES: dict[str, Callable[[Any], Any]] = {
    **{f"number {v!r}": (lambda M, v=v: v) for v in NUMBERS},
    **{
        f"0-d {d} {v}": (lambda M, d=d, v=v: M.tensor(v, dtype=getattr(M, d)))
        for d, v in [
            ("bool", True),
            ("uint8", 200),
            ("int64", 300),
            ("int64", -1),
            ("float32", 1.7),
            ("float64", 1e300),
            ("float32", 300.7),
            ("float32", float("nan")),
            ("complex64", 2 + 1j),
            ("float16", 2.5),
        ]
    },
    **{
        f"tensor {d} {shape}": (lambda M, d=d, shape=shape: M.full(shape, 2).to(getattr(M, d)))
        for d in ("bool", "uint8", "int64", "float32", "float64", "complex64")
        for shape in ((1,), (2,), (2, 2), (3, 2), (1, 1, 1), (1, 2, 2), (3,), (0,), (5, 5))
    },
    **{
        f"array {d}": (lambda M, d=d: np.array([1, 3]).astype(d))
        for d in ("bool", "uint8", "int64", "float16", "float32", "float64", "complex64", "uint16")
    },
    "array 0-d": lambda M: np.array(2.5),
    "array 0-d complex": lambda M: np.array(2.5j),
    "array of other size": lambda M: np.ones(3),
    "array reversed": lambda M: np.arange(2.0)[::-1],
    "array big-endian": lambda M: np.ones(2, ">f4"),
    "array of strings": lambda M: np.array(["a", "b"]),
    "float32 of numpy": lambda M: np.float32(2.5),
    "float64 of numpy": lambda M: np.float64(1e300),
    "int64 of numpy": lambda M: np.int64(300),
    "uint8 of numpy": lambda M: np.uint8(200),
    "list": lambda M: [1, 2],
    "list of floats": lambda M: [1.5, 300.7],
    "list of complex": lambda M: [1j, 2.0],
    "nested list": lambda M: [[1, 2], [3, 4]],
    "tuple": lambda M: (1, 2),
    "range": lambda M: range(2),
    "None": lambda M: None,
    "str": lambda M: "a",
    "memoryview": lambda M: memoryview(b"ab"),
    "array.array": lambda M: array.array("d", [1, 2]),
    "list of tensors": lambda M: [M.tensor(1), M.tensor(2)],
    "dict": lambda M: {},
    "gradient": lambda M: M.ones(2, requires_grad=True) * 2,
}

# Values that torch takes in no dtype, and Mica where the elements can hold them (test_indexing.py).
TAKEN = ("array", "list", "nested list", "tuple", "range", "memoryview", "float32 of numpy")


def _says(result: tuple[str, Any], text: str) -> bool:
    return result[0] == "error" and text in str(result[1])


# Why an assignment may differ, by (index, value, ours, theirs).
DIFFERENT: dict[str, Callable[[str, str, tuple[str, Any], tuple[str, Any]], bool]] = {
    "torch takes no arrays and sequences": lambda index, value, ours, theirs: (
        value.startswith(TAKEN) and _says(theirs, "can't assign")
    ),
    "torch fills no masks of uint8": lambda index, value, ours, theirs: _says(
        theirs, "masked_fill_ only supports boolean masks"
    ),
    "torch tells a mask of no dimensions from True": lambda index, value, ours, theirs: index == "0-d mask",
    "torch checks no real number of a mask for complex elements": lambda index, value, ours, theirs: (
        value == "0-d float64 1e+300" and _says(ours, "complex64")
    ),
    "x[False] = value looks at no value": lambda index, value, ours, theirs: index == "False",
    "torch reads integers as int64 first": lambda index, value, ours, theirs: _says(
        theirs, "Overflow when unpacking"
    ),
}


def cell(index: Callable[[Any], Any], value: Callable[[Any], Any], dtype: str) -> tuple[Any, Any]:
    def run(library: Any) -> Any:
        tensor = library.arange(6).reshape(3, 2).to(getattr(library, dtype))
        tensor[index(library)] = value(library)
        return tensor

    return outcome(lambda: run(mica)), outcome(lambda: run(torch))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("index", INDICES)
def test_assignment(index: str, dtype: str) -> None:
    found = []
    for name, value in VALUES.items():
        ours, theirs = cell(INDICES[index], value, dtype)
        why = compare(ours, theirs)
        if why and not any(matches(index, name, ours, theirs) for matches in DIFFERENT.values()):
            found.append(f"{name}: {why}")
    assert not found, f"{len(found)} values differ from torch:\n" + "\n".join(found[:60])


@pytest.mark.parametrize("index", [slice(None), slice(0, 3), slice(None, 9, 1), slice(-3, None), slice(1, 3)])
def test_what_was_written_over_is_forgotten(index: slice) -> None:
    """A slice of all elements leaves nothing of their history: hooks of it see no further gradient."""

    def run(library: Any) -> tuple[list[Any], list[Any]]:
        seen: list[Any] = []
        x = library.ones(3, requires_grad=True)
        y = x * x
        y.register_hook(lambda g: seen.append(g.tolist()))
        y[index] = 5.0
        (once,) = library.autograd.grad((y * y).sum(), [x], create_graph=True)
        (twice,) = library.autograd.grad(once.sum(), [x], allow_unused=True)
        return seen, [once.tolist(), None if twice is None else twice.tolist()]

    assert run(mica) == run(torch)
