"""Whether an operator's meta function agrees with the operator: shape, strides, dtype, errors.

The same call runs in Mica on the CPU and on tensors of the meta device, which have no values.
What may differ is data in otherwise.py: results whose shape the values decide, and refusals for
which the values are the reason.
"""

from __future__ import annotations

from typing import Any

from agree import flatten

import mica


def on_meta(value: Any, memo: dict[int, Any] | None = None) -> Any:
    """The same argument on the meta device; one tensor stays one tensor."""
    memo = {} if memo is None else memo
    if isinstance(value, mica.Tensor):
        if id(value) not in memo:
            options = {"dtype": value.dtype, "device": "meta"}
            places = value.untyped_storage().nbytes() // value.itemsize
            memo[id(value)] = (
                mica.empty(places, **options).as_strided(value.shape, value.stride(), value.storage_offset())
                if places > value.numel()  # as_strided may reach the rest of a part's memory
                else mica.empty_strided(list(value.shape), list(value.stride()), **options)
            )
        return memo[id(value)]
    if isinstance(value, mica.device):
        return mica.device("meta")
    if isinstance(value, (tuple, list)) and type(value) in (tuple, list):
        return type(value)(on_meta(v, memo) for v in value)
    if isinstance(value, dict):
        return {k: mica.device("meta") if k == "device" else on_meta(v, memo) for k, v in value.items()}
    return value


def says_device(value: Any) -> bool:
    """Whether a tensor, or an argument `device`, says where the result lies."""
    if isinstance(value, dict):
        return any(map(says_device, value.values())) or "device" in value
    if isinstance(value, (tuple, list)):
        return any(map(says_device, value))
    return isinstance(value, mica.Tensor)


def _strides(x: Any) -> list[int]:
    """Those that can matter: of dimensions with more than one element."""
    return [stride for size, stride in zip(x.shape, x.stride()) if size > 1] if x.numel() else []


def differs(real: Any, meta: Any) -> str:
    """What the meta function promises otherwise, or ""."""
    given, promised = flatten(real), flatten(meta)
    if len(given) != len(promised):
        return f"{len(given)} results, meta {len(promised)}"
    for k, (g, p) in enumerate(zip(given, promised)):
        if not isinstance(g, mica.Tensor):
            if type(g) is not type(p) or g != p:
                return f"result {k} is {g!r:.60}, meta {p!r:.60}"
            continue
        if not isinstance(p, mica.Tensor) or p.device.type != "meta":
            return f"result {k} on meta is {p!r:.60}"
        forms = {
            "dtype": (g.dtype, p.dtype),
            "shape": (tuple(g.shape), tuple(p.shape)),
            "strides": (_strides(g), _strides(p)),
        }
        for what, (of_real, of_meta) in forms.items():
            if of_real != of_meta:
                return f"result {k}: {what} {of_real}, meta {of_meta}"
    return ""
