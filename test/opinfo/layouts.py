"""The same samples in other layouts: three of ten inputs are made non-contiguous, expanded,
offset or empty. Which sample gets which layout follows from its number alone.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import torch

# Of ten samples, which layout; None leaves the sample out of this check.
_PLAN = {0: "stepped", 1: "transposed", 2: "offset", 3: "expanded", 4: "empty"}


def layout_of(key: str, dtype: torch.dtype, number: int) -> str | None:
    """The layout of this sample: each of the five for 6 % of the samples."""
    return _PLAN.get(zlib.crc32(f"{key} {dtype} {number}".encode()) % 17)


def _stepped(x: torch.Tensor) -> torch.Tensor:
    if x.ndim == 0:
        return _offset(x)
    wide = torch.zeros([*x.shape[:-1], x.shape[-1] * 2], dtype=x.dtype)
    return wide[..., ::2].copy_(x)


def _transposed(x: torch.Tensor) -> torch.Tensor:
    return x if x.ndim < 2 else x.transpose(0, -1).contiguous().transpose(0, -1)


def _offset(x: torch.Tensor) -> torch.Tensor:
    wide = torch.zeros(x.numel() + 3, dtype=x.dtype)
    return wide[3:].view(x.shape).copy_(x)


def _expanded(x: torch.Tensor) -> torch.Tensor:
    return x if x.ndim == 0 or x.shape[0] == 0 else x[:1].expand_as(x)


def _repeated(dims: slice) -> Callable[[torch.Tensor], torch.Tensor]:
    """Along these dimensions the first element, in all places."""

    def change(x: torch.Tensor) -> torch.Tensor:
        made = x
        for d in range(x.ndim)[dims]:
            made = made.narrow(d, 0, min(x.shape[d], 1))
        return made.clone().expand(x.shape)

    return change


def _channels_last(x: torch.Tensor) -> torch.Tensor:
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    return x.clone(memory_format=formats[x.ndim]) if x.ndim in formats else x


def _empty(size: int) -> Callable[[torch.Tensor], torch.Tensor]:
    def apply(x: torch.Tensor) -> torch.Tensor:
        return torch.zeros([0 if s == size else s for s in x.shape], dtype=x.dtype)

    return apply


def map_tensors(value: Any, change: Callable[[torch.Tensor], Any]) -> Any:
    """The value with every tensor changed."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, torch.Size):
        return value
    if isinstance(value, (tuple, list)):
        return type(value)(map_tensors(v, change) for v in value)
    if isinstance(value, dict):
        return {k: map_tensors(v, change) for k, v in value.items()}
    return value


def relaid(arguments: Any, layout: str) -> Any:
    """The arguments with every tensor in this layout."""
    change: Callable[[torch.Tensor], torch.Tensor]
    if layout == "empty":
        sizes: list[int] = []
        map_tensors(arguments, lambda x: sizes.extend(x.shape[-1:]))
        change = _empty(next((s for s in sizes if s > 1), 1))
    else:
        change = {
            "stepped": _stepped,
            "transposed": _transposed,
            "offset": _offset,
            "expanded": _expanded,
            "number": _repeated(slice(None)),
            "rows": _repeated(slice(-2, -1)),
            "columns": _repeated(slice(-1, None)),
            "channels_last": _channels_last,
        }[layout]

    def keep(x: torch.Tensor) -> torch.Tensor:
        return change(x.detach().resolve_conj().resolve_neg()).requires_grad_(x.requires_grad)

    return map_tensors(arguments, keep)
