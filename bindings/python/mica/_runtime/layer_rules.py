"""What mica.library makes of a batch rule and of an autocast policy: kernels at those layers.

Each is called with the operator's arguments inside of its layer. A batch rule sees the values
of all examples, in the frame that surrounds the vmap; a policy casts and calls again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mica
from mica import _C
from mica._C import Tensor, dtype

_RANDOMNESS = ("error", "same", "different")
_POLICIES = ("lower", "float32", "promote")


@dataclass(frozen=True)
class VmapInfo:
    """What a batch rule is told of its vmap."""

    batch_size: int
    randomness: str


def opened(value: Any) -> tuple[Any, Any]:
    """What all examples have in the place of an argument, and where the batch stands there."""
    if isinstance(value, Tensor):
        inner, batched = _C._vmap_open(value)
        return inner, 0 if batched else None
    if isinstance(value, (list, tuple)):
        pairs = [opened(v) for v in value]
        return type(value)([v for v, _ in pairs]), type(value)([d for _, d in pairs])
    return value, None


def _any_batched(dims: Any) -> bool:
    return any(map(_any_batched, dims)) if isinstance(dims, (list, tuple)) else dims is not None


def info_of_vmap() -> VmapInfo:
    """Of the current one."""
    size, randomness = _C._vmap_info()
    return VmapInfo(size, _RANDOMNESS[randomness])


def wrapped(name: str, found: Any, size: int) -> Any:
    """What a rule returned, (output, out_dims), as results of an example."""
    if not (isinstance(found, tuple) and len(found) == 2):
        raise RuntimeError(
            f"The batch rule of {name} must return (output, out_dims), but it returned a {type(found).__name__}."
        )
    return _wrapped(name, *found, size)


def _wrapped(name: str, result: Any, dim: Any, size: int) -> Any:
    """`dim` is where the batch stands, None if there is none."""
    if isinstance(result, (list, tuple)):
        dims = dim if isinstance(dim, (list, tuple)) else [dim] * len(result)
        if len(dims) != len(result):
            raise RuntimeError(
                f"The batch rule of {name} returned ({len(result)}) results and out_dims for ({len(dims)})."
            )
        return type(result)([_wrapped(name, r, d, size) for r, d in zip(result, dims)])
    if not isinstance(result, Tensor):
        return result
    if dim is None:
        return _C._frame_constant(result)
    if not -result.dim() <= dim < result.dim() or result.shape[dim] != size:
        raise RuntimeError(
            f"The batch rule of {name} returned a tensor of shape {tuple(result.shape)}, whose dimension "
            f"({dim}) does not hold the ({size}) examples that out_dims says it holds."
        )
    return _C._vmap_batch(result, dim)


def vmap_kernel(op: Any, rule: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel of the operator at the layer vmap that runs its batch rule."""

    def kernel(*args: Any, **kwargs: Any) -> Any:
        values, in_dims = opened(args)
        named = {k: opened(v) for k, v in kwargs.items()}
        if any(_any_batched(d) for _, d in named.values()):
            raise NotImplementedError(
                f"{op.name()} is mapped over a keyword argument, of which a batch rule is not told in in_dims. "
                "Make the argument a positional one of the schema."
            )
        info = info_of_vmap()
        batched = _any_batched(in_dims)
        keywords = {k: v for k, (v, _) in named.items()}
        left = _C._frame_leave()
        try:
            found = rule(info, in_dims, *values, **keywords) if batched else (op(*values, **keywords), None)
        finally:
            _C._frame_return(left)
        return wrapped(op.name(), found, info.batch_size)

    return kernel


def checked_device_type(device_type: Any) -> str:
    """The name; a sentence for what is none."""
    if not isinstance(device_type, str):
        raise ValueError(f"A device type is a str such as 'cpu', but it is a {type(device_type).__name__}.")
    return mica.device(device_type).type


def checked_policy(policy: Any) -> dtype | str:
    """The dtype or the policy; a sentence for what is neither."""
    if isinstance(policy, dtype) and policy.is_floating_point:
        return policy
    if policy in _POLICIES:
        return str(policy)
    raise ValueError(
        f"cast_inputs is ({policy}), but it must be a floating dtype or one of {', '.join(_POLICIES)}."
    )


def _tensors(value: Any) -> list[Tensor]:
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in _tensors(v)]
    return [value] if isinstance(value, Tensor) else []


def _cast(value: Any, device_type: str, to: dtype) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)([_cast(v, device_type, to) for v in value])
    fits = isinstance(value, Tensor) and value.is_floating_point() and value.device.type == device_type
    return value.to(to) if fits and value.dtype not in (mica.float64, to) else value


def _target(policy: dtype | str, device_type: str, tensors: list[Tensor]) -> dtype:
    if isinstance(policy, dtype):
        return policy
    wide = policy == "float32" or (policy == "promote" and any(t.dtype == mica.float32 for t in tensors))
    return mica.float32 if wide else mica.get_autocast_dtype(device_type)


def autocast_kernel(op: Any, policies: dict[str, dtype | str]) -> Callable[..., Any]:
    """The kernel of the operator at the layer Autocast; `policies` by device type, which may grow."""

    def kernel(*args: Any, **kwargs: Any) -> Any:
        tensors = [t for t in _tensors([*args, *kwargs.values()]) if t.is_floating_point()]
        for device_type in {t.device.type for t in tensors} & policies.keys():
            if not mica.is_autocast_enabled(device_type):
                continue
            to = _target(policies[device_type], device_type, tensors)
            with mica.autocast(device_type, enabled=False):
                cast = _cast(list(args), device_type, to)
                return op(*cast, **{k: _cast(v, device_type, to) for k, v in kwargs.items()})
        return op.redispatch_below("Autocast", *args, **kwargs)

    return kernel
