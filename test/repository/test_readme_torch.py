"""What the README quotes of torch is what torch says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

README = Path(__file__).resolve().parents[2] / "README.md"
QUOTE = re.compile(r"^<!-- oracle: (.*?) -->\n```text\n(.*?)\n```$", re.M | re.S)


@pytest.mark.parametrize(("call", "said"), QUOTE.findall(README.read_text()))
def test_torch_says_so(call: str, said: str) -> None:
    with pytest.raises(Exception) as info:
        eval(call, {"torch": torch})
    assert f"{info.type.__name__}: {info.value}" == said


def test_something_is_quoted() -> None:
    assert QUOTE.search(README.read_text())
