"""Which way scaled_dot_product_attention goes: Mica chooses by itself, so that a wish is kept and
has no effect, as torch treats one that it cannot fulfil by the same numbers."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class SDPBackend(enum.Enum):
    """The ways that torch names; int() gives their numbers, to which they are not equal."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    def __int__(self) -> int:
        return int(self.value)

    __index__ = __int__


# The ways that are wished for, by the names that torch.backends.cuda has for them.
switches = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True}
_SWITCH = {
    SDPBackend.FLASH_ATTENTION: "flash",
    SDPBackend.EFFICIENT_ATTENTION: "mem_efficient",
    SDPBackend.MATH: "math",
    SDPBackend.CUDNN_ATTENTION: "cudnn",
}


@contextmanager
def sdpa_kernel(backends: Any, set_priority: bool = False) -> Iterator[None]:
    """A block in which these ways are wished for; results are the same by any of them."""
    wanted = backends if isinstance(backends, (list, tuple, set)) else [backends]
    for backend in wanted:
        if not isinstance(backend, SDPBackend):
            raise AssertionError(f"The backend ({backend!r}) is no SDPBackend.")
    before = dict(switches)
    switches.update(dict.fromkeys(switches, False) | {_SWITCH[b]: True for b in wanted if b in _SWITCH})
    try:
        yield
    finally:
        switches.update(before)
