"""Whether an exception's sentence says what its reader needs: which argument, and which values.

`lacks` is asked of every exception that Mica raises for torch's error inputs. A sentence ends
in a full stop (or a colon, before a list of what is right), names an argument in backticks or
by its noun, and holds values of this very call: as many as torch's own sentence does, up to
two, and one where torch's holds none. Signature errors show the types of all arguments, which
is both. Sentences of Python itself ("descriptor '__radd__' requires ...") are let through.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import torch

# An argument's noun, where a sentence that serves many operators calls it so.
_NOUNS = re.compile(
    r"`\w+`|\b(?:dimensions?|dims|shape|size|tensor|sample|element|label|operand|range|class|index|indices|storage) \(|"
    r"\b(?:shapes?|sizes|strides|dimensions) '?\[|"
    # torch's own ways: a noun and its value, a name and what it must be.
    r"\b(?:dim|dims:|dimension|dimensions cannot be identical|dimension specified as|index|shifts:|\w+ must be [^,]+, got) -?\d|"
    r"\btensor with \d|"
    r"'\w+'|\bkeyword\b|=",
    re.I,
)
_SIGNATURE = re.compile(
    r"^\w+\(\) received an invalid combination of arguments|\bargument '\w+'.* must be .+, not \w|missing 1 required"
    r"|\btakes? .+, not \w|^'?descriptor |has no `"
)
_TOKEN = re.compile(r"0-d|-?\d+(?:\.\d+)?(?:e[-+]?\d+)?|-?\binf\b|\bnan\b|'[^']*'|\b[A-Za-z]\w*\b")
# Torch's names of dtypes.
_DTYPES = {
    "float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16", "bool": "bool",
    "byte": "uint8", "char": "int8", "short": "int16", "int": "int32", "long": "int64",
    "complexfloat": "complex64", "complexdouble": "complex128",
}  # fmt: skip


def _plain(token: str) -> str:
    """One spelling of a number, a dtype or a word."""
    try:
        return f"{float(token):g}"
    except ValueError:
        return _DTYPES.get(token.lower(), token.strip("'"))


def values(argument: Any) -> Iterator[str]:
    """What a sentence may say of an argument: sizes, numbers of dimensions, dtypes, numbers, words."""
    if isinstance(argument, torch.Tensor):
        yield str(argument.dtype).removeprefix("torch.")
        for n in (argument.ndim, argument.numel(), *argument.shape, *argument.stride()):
            yield str(n)
        yield argument.device.type
        yield from () if argument.ndim else ("0-d",)
        yield from () if argument.numel() else ("empty",)
        if argument.numel() <= 64 and argument.device.type == "cpu":
            for x in argument.detach().flatten().tolist():
                yield str(x)
    elif isinstance(argument, (tuple, list)):
        yield str(len(argument)) if argument else "empty"
        for each in argument:
            yield from values(each)
    elif isinstance(argument, dict):
        for each in argument.values():
            yield from values(each)
    elif isinstance(argument, str):
        yield argument
    else:
        yield str(argument).removeprefix("torch.")


def _said(sentence: str, of_call: set[str]) -> set[str]:
    """The values of the call that a sentence holds."""
    return {_plain(t) for t in _TOKEN.findall(sentence)} & of_call


def lacks(mine: str, theirs: str, call: Any) -> str:
    """What Mica's sentence lacks, or "". `theirs` is torch's; `call` all arguments."""
    sentence = mine.split("\n  in ")[0].strip()
    if _SIGNATURE.search(sentence):
        return ""
    first = sentence.splitlines()[0].rstrip() if sentence else ""
    if not first.endswith((".", ":", "?")):
        return "is no full sentence"
    if not _NOUNS.search(sentence):
        return "names no argument"
    of_call = {_plain(v) for v in values(call)}
    in_theirs = _said(theirs.splitlines()[0] if theirs else "", of_call) - {"empty", "0-d"}
    dtypes = in_theirs & set(_DTYPES.values())  # one of them tells where the call is, two that they differ
    wanted = max(1, min(2, len(in_theirs) - (len(dtypes) == 1)))
    held = _said(sentence, of_call)
    if len(held) < wanted:
        return f"holds {len(held)} of this call's values, expected {wanted}"
    return ""
