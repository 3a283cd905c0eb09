"""Which way scaled_dot_product_attention goes: Mica chooses by itself, so that a wish is kept and
has no effect, as torch treats one that it cannot fulfil by the same numbers, but that for no cuDNN."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mica import _C


class SDPBackend(enum.Enum):
    """The ways to compute `scaled_dot_product_attention` that torch names.

    As `torch.nn.attention.SDPBackend`: MATH, FLASH_ATTENTION, EFFICIENT_ATTENTION, CUDNN_ATTENTION,
    OVERRIDEABLE and ERROR. `int()` gives their numbers.

    Example:
        >>> from mica.nn.attention import SDPBackend
        >>> int(SDPBackend.FLASH_ATTENTION)
        1
    """

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


def _set_switches(wanted: dict[str, bool]) -> None:
    """Sets switches. That of cuDNN is a setting, which the CUDA plugin reads."""
    switches.update(wanted)
    _C._set_setting("attention_library", int(switches["cudnn"]))


_SWITCH = {
    SDPBackend.FLASH_ATTENTION: "flash",
    SDPBackend.EFFICIENT_ATTENTION: "mem_efficient",
    SDPBackend.MATH: "math",
    SDPBackend.CUDNN_ATTENTION: "cudnn",
}


@contextmanager
def sdpa_kernel(backends: Any, set_priority: bool = False) -> Iterator[None]:
    """A block within which `scaled_dot_product_attention` is wished to go one of these ways.

    As `torch.nn.attention.sdpa_kernel`, except that Mica chooses the way by itself: the wish is kept, and
    seen by `torch.backends.cuda.flash_sdp_enabled` and its like. Without SDPBackend.CUDNN_ATTENTION, cuDNN is not
    asked; the others change nothing.

    Args:
        backends (SDPBackend or sequence of SDPBackend): The ways.
        set_priority (bool): Their order matters. Without effect. Default: False.

    Yields:
        None: Nothing.

    Raises:
        AssertionError: One is no SDPBackend.

    Example:
        >>> from mica.nn.attention import SDPBackend, sdpa_kernel
        >>> x = mica.ones(1, 2, 4, 8)
        >>> with sdpa_kernel(SDPBackend.MATH):
        ...     mica.nn.functional.scaled_dot_product_attention(x, x, x).shape
        mica.Size([1, 2, 4, 8])
    """
    wanted = backends if isinstance(backends, (list, tuple, set)) else [backends]
    for backend in wanted:
        if not isinstance(backend, SDPBackend):
            raise AssertionError(f"The backend ({backend!r}) is no SDPBackend.")
    before = dict(switches)
    _set_switches(dict.fromkeys(switches, False) | {_SWITCH[b]: True for b in wanted if b in _SWITCH})
    try:
        yield
    finally:
        _set_switches(before)
