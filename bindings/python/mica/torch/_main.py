"""Functions of torch's main namespace that Mica has as methods, in a module or not at all.

names.txt says under which names they stand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mica
from mica._C import Tensor
from mica.nn import functional as F

detach_, get_device, is_conj, is_inference, is_neg, is_signed = (
    getattr(Tensor, name)
    for name in ("detach_", "get_device", "is_conj", "is_inference", "is_neg", "is_signed")
)
_interop_threads = [1]


def dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """dropout in place."""
    return F.dropout(input, p, train, inplace=True)


def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """dropout of whole channels."""
    return mica.ops.mica.feature_dropout(input, p, train)  # type: ignore[no-any-return]


def feature_dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """feature_dropout in place."""
    return mica.ops.mica.feature_dropout_(input, p, train)  # type: ignore[no-any-return]


def embedding_renorm_(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Scales the rows that the indices name down to the norm max_norm, in place."""
    rows = indices.reshape(-1).unique()
    with mica.no_grad():
        weight[rows] = weight[rows].renorm(norm_type, 0, max_norm)
    return weight


def range_(start: float = 0, end: float | None = None, step: float = 1, **options: Any) -> Tensor:
    """Numbers from start to end, end among them, in the default dtype; arange leaves the end out."""
    if end is None:
        start, end = 0, start
    if step == 0 or (end - start) / step < 0:
        raise RuntimeError(f"From ({start}) to ({end}) no number of steps of ({step}) leads.")
    out = options.pop("out", None)
    options.setdefault("dtype", mica.get_default_dtype() if out is None else out.dtype)
    found = mica.arange(int((end - start) / step) + 1, **options) * step + start
    if out is None:
        return found
    if out.numel() != found.numel():
        out.resize_(found.shape)
    return out.copy_(found.view(out.shape))


def batch_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """nn.functional.batch_norm with torch's order of arguments."""
    return F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


def instance_norm(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Tensor:
    """nn.functional.instance_norm with torch's order of arguments."""
    return F.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """The norms over all dimensions but one, which stay as sizes of 1; dim=-1 leaves none out."""
    if dim == -1:
        return v.norm(pow)
    others = [d for d in range(v.dim()) if d != dim % v.dim()]
    return mica.linalg.vector_norm(v, pow, others, keepdim=True)


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Any = ()) -> Any:
    """Calls one of two functions, by a bool or a tensor of one element."""
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Both branches of cond() must be functions.")
    return (true_fn if bool(pred) else false_fn)(*operands)


def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any) -> Any:
    """Calls body_fn on what it gave before, as long as cond_fn holds of it."""
    carried = tuple(carried_inputs)
    while bool(cond_fn(*carried)):
        result = body_fn(*carried)
        carried = tuple(result) if isinstance(result, (tuple, list)) else (result,)
    return carried


def set_num_interop_threads(threads: int) -> None:
    """Remembered: Mica's operators follow each other in one thread."""
    if threads <= 0:
        raise RuntimeError(f"The number of threads ({threads}) must be above 0.")
    _interop_threads[0] = threads


def get_num_interop_threads() -> int:
    """What set_num_interop_threads() said, 1 before."""
    return _interop_threads[0]


def set_warn_always(b: bool, /) -> None:
    """Whether warnings that are given once in a process are given each time."""
    mica._C._set_warn_always(bool(b))


def is_warn_always_enabled() -> bool:
    """What set_warn_always() said, False before."""
    return mica._C._is_warn_always()
