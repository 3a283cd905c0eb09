"""Which of torch's OpInfos are Mica's to agree with, in which dtypes, on which samples.

The database is torch's own (torch.testing._internal.common_methods_invocations.op_db).
What is left out is left out by a pattern with its reason, here and nowhere else.
"""

from __future__ import annotations

import fnmatch
import zlib
from collections.abc import Iterator
from typing import Any

import torch
from torch.testing._internal import common_utils
from torch.testing._internal.common_methods_invocations import op_db

# Of no use here: torch.manual_seed keeps a stack trace for each absent kind of GPU, which
# takes most of the time of making samples.
torch.random._manual_seed_impl = lambda seed: torch.default_generator.manual_seed(int(seed))
# Nor this: each list of samples looks through the stack, and its sources, for the test that asks.
common_utils.extract_test_fn = lambda: None

# Patterns of `key`, and why such an entry is not compared.
OUT_OF_SCOPE = {
    "jiterator_*": "compiles CUDA source",
    "sparse.*": "sparse tensors",
    "to_sparse": "sparse tensors",
    "torch._scaled_mm*": "a private operator for GPUs",
    "torch.ops.aten.*": "a private operator",
    "_[!_]*": "a private operator",
    "*_backward": "a private operator",
    "*_backward_data": "a private operator",
    "native_*": "a private form of an operator that is compared by its public name",
    "chalf": "complex32",
}


def words(text: str) -> list[str]:
    """A list, written as a line of words."""
    return text.split()


DTYPES = words(
    "bool uint8 int8 uint16 int16 uint32 int32 uint64 int64 float16 bfloat16 float32 float64 "
    "complex64 complex128 float8_e4m3fn float8_e5m2"
)

# Those in which forward mode is compared: its rules are one for all dtypes.
FORWARD_MODE_DTYPES = (torch.float32, torch.float64, torch.complex128)

# Samples of one operator in one dtype where a share of them is run, taken evenly. Only cross
# products of every argument's values have more: max_pool2d, logspace, unique and a few of their kind.
CAP = 64


def key(op: Any) -> str:
    """`name`, or `name:variant`, as the table and the command line spell an entry."""
    return f"{op.name}:{op.variant_test_name}" if op.variant_test_name else op.name


def why_left_out(op: Any) -> str:
    """The reason, or "" for an entry in scope."""
    return next((why for pattern, why in OUT_OF_SCOPE.items() if fnmatch.fnmatchcase(key(op), pattern)), "")


def entries(patterns: list[str]) -> list[Any]:
    """The OpInfos in scope that a pattern names (by key or by name); all for no pattern."""
    chosen = [op for op in op_db if not why_left_out(op)]
    if patterns:
        chosen = [
            op
            for op in chosen
            if any(fnmatch.fnmatchcase(key(op), p) or fnmatch.fnmatchcase(op.name, p) for p in patterns)
        ]
    return sorted(chosen, key=key)


# From float16 these make complex32.
_TO_COMPLEX = ("complex", "polar", "view_as_complex")


def dtypes(op: Any, wanted: list[str]) -> list[torch.dtype]:
    """Dtypes that torch's CPU supports for this operator and Mica has."""
    supported = op.supported_dtypes("cpu")
    if op.name in _TO_COMPLEX:
        supported = supported - {torch.float16}
    return [getattr(torch, d) for d in wanted or DTYPES if getattr(torch, d) in supported]


def evenly(items: list[Any], count: int) -> list[Any]:
    """At most `count` of the items, the first and evenly spaced others."""
    if len(items) <= count:
        return items
    return [items[k * len(items) // count] for k in range(count)]


def samples(op: Any, dtype: torch.dtype, grad: bool, share: float) -> Iterator[Any]:
    """The operator's sample inputs, the same in every run; all, or `share` of them, 1 to CAP."""
    torch.manual_seed(zlib.crc32(key(op).encode()))
    found = list(op.sample_inputs("cpu", dtype, requires_grad=grad))
    yield from found if share == 1 else evenly(found, max(1, min(CAP, round(len(found) * share))))
