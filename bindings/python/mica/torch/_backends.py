"""Switches of torch.backends that a program sets and reads back.

They choose among kernels of CUDA, which Mica's CPU has not: a switch remembers its value, as in
torch's build without a GPU. That of cuDNN is obeyed (attention_library of <mica/settings.h>); the others change no
result.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mica.nn.attention import _set_switches, switches as _switches

_reduced_math = [False]


def _setter(switch: str, name: str) -> Any:
    def enable(enabled: bool) -> None:
        """Sets the switch."""
        _set_switches({switch: bool(enabled)})

    enable.__name__ = enable.__qualname__ = name
    return enable


def _getter(switch: str, name: str) -> Any:
    def enabled() -> bool:
        """Whether the switch is on."""
        return _switches[switch]

    enabled.__name__ = enabled.__qualname__ = name
    return enabled


for _kind in ("flash", "mem_efficient", "math", "cudnn"):
    globals()[f"enable_{_kind}_sdp"] = _setter(_kind, f"enable_{_kind}_sdp")
    globals()[f"{_kind}_sdp_enabled"] = _getter(_kind, f"{_kind}_sdp_enabled")


def allow_fp16_bf16_reduction_math_sdp(enabled: bool) -> None:
    """Sets the switch."""
    _reduced_math[0] = bool(enabled)


def fp16_bf16_reduction_math_sdp_allowed() -> bool:
    """Whether the switch is on."""
    return _reduced_math[0]


@contextmanager
def sdp_kernel(
    enable_flash: bool = True,
    enable_math: bool = True,
    enable_mem_efficient: bool = True,
    enable_cudnn: bool = True,
) -> Iterator[dict[str, bool]]:
    """A block with these switches of attention; the old values come back after it."""
    before = dict(_switches)
    _set_switches(
        {
            "flash": enable_flash,
            "math": enable_math,
            "mem_efficient": enable_mem_efficient,
            "cudnn": enable_cudnn,
        }
    )
    try:
        yield {}
    finally:
        _set_switches(before)


@contextmanager
def cudnn_flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
) -> Iterator[None]:
    """A block with these attributes of torch.backends.cudnn; the old values come back after it."""
    from mica.torch._modules import module

    cudnn = module("torch.backends.cudnn")
    wanted = {
        "enabled": enabled,
        "benchmark": benchmark,
        "benchmark_limit": benchmark_limit,
        "deterministic": deterministic,
        "allow_tf32": allow_tf32,
    }
    before = {name: getattr(cudnn, name) for name in wanted}
    try:
        for name, value in wanted.items():
            setattr(cudnn, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(cudnn, name, value)
