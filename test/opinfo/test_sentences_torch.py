"""test/opinfo/sentences.py finds what a sentence lacks, and lets good ones through."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from sentences import lacks

X, Y = torch.ones(2, 3), torch.ones(2, 4, dtype=torch.float64)
SIZES = "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1"
ROWS: list[tuple[str, str, Any, str]] = [
    ("Size (4) of `other` differs from size (3) of `self`.", SIZES, [X, Y], ""),
    ("Size (4) of `other` does not fit.", SIZES, [X, Y], "holds 1 of this call's values, expected 2"),
    ("Sizes 4 and 3 differ.", SIZES, [X, Y], "names no argument"),
    ("Size (4) of `other` differs from size (3) of `self`", SIZES, [X, Y], "is no full sentence"),
    ("Sizes of `self` and `other` differ.", SIZES, [X, Y], "holds 0 of this call's values, expected 2"),
    ("Dtype (float32) of `self` differs from (float64) of `other`.", "got Float and Double", [X, Y], ""),
    ("Dtypes of `self` and `other` differ.", "got Float and Double", [X, Y], "holds 0 of this call's values"),
    ("List `tensors` is empty; expected one.", "expected a non-empty list", [[]], ""),
    (
        "f() received an invalid combination of arguments - got (Tensor, int), but expected one of:",
        "",
        [X, 2],
        "",
    ),
]


@pytest.mark.parametrize(("mine", "theirs", "call", "found"), ROWS)
def test_what_a_sentence_lacks(mine: str, theirs: str, call: Any, found: str) -> None:
    assert lacks(mine, theirs, call).startswith(found) and bool(lacks(mine, theirs, call)) == bool(found)
