"""Functions of torch's main namespace that Mica has as methods, in a module or not at all.

names.txt says under which names they stand.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import mica
from mica._C import Tensor
from mica._functions import grouped_mm as _grouped_mm
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
    warnings.warn(
        "torch.range is deprecated and will be removed: it takes the end in, as Python's range does not; use arange.",
        UserWarning,
        stacklevel=2,
    )
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


def sym_ite(b: Any, t: Any, f: Any) -> Any:
    """`t` where `b` holds, else `f`."""
    return t if b else f


def sym_int(a: Any) -> Any:
    """The whole part of a number; a traced one stays."""
    from mica.fx._symint import SymInt

    return a if isinstance(a, SymInt) else int(a)


def sym_float(a: Any) -> Any:
    """A number as a float."""
    return float(a)


def sym_max(a: Any, b: Any) -> Any:
    """The greater of two numbers, a float where one is."""
    return float(max(a, b)) if isinstance(a, float) or isinstance(b, float) else max(a, b)


def sym_min(a: Any, b: Any) -> Any:
    """The lesser of two numbers, a float where one is."""
    return float(min(a, b)) if isinstance(a, float) or isinstance(b, float) else min(a, b)


def kl_div(input: Tensor, target: Tensor, reduction: int = 1, *, log_target: bool = False) -> Tensor:
    """The operator: `reduction` is 0 (none), 1 (mean over all elements) or 2 (sum)."""
    return mica.ops.mica.kl_div(input, target, reduction, log_target=log_target)


def grouped_mm(
    self: Tensor, mat2: Tensor, offs: Any = None, bias: Any = None, out_dtype: Any = None
) -> Tensor:
    """torch._grouped_mm: nn.functional.grouped_mm by position."""
    return _grouped_mm.grouped_mm(self, mat2, offs=offs, bias=bias, out_dtype=out_dtype)


def assert_async(condition: Any, message: str = "") -> None:
    """Raises RuntimeError with the message where the condition is false."""
    if not condition:
        raise RuntimeError(message or "_assert_async() is given a value that is zero.")


def coo_to_csr(indices: Tensor, size: int, *, out_int32: bool = False) -> Tensor:
    """torch._convert_indices_from_coo_to_csr: where each of `size` rows begins in sorted row numbers."""
    rows = mica.arange(size + 1, dtype=indices.dtype, device=indices.device)
    return mica.searchsorted(indices, rows, out_int32=out_int32)


def csr_to_coo(
    crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False, transpose: bool = False
) -> Tensor:
    """torch._convert_indices_from_csr_to_coo: the rows and columns of each element, or the other way round."""
    dtype = mica.int32 if out_int32 else crow_indices.dtype
    numbers = mica.arange(crow_indices.shape[-1] - 1, dtype=dtype, device=crow_indices.device)
    rows = mica.repeat_interleave(numbers, crow_indices.diff())
    pair = [rows, col_indices.to(dtype)]
    return mica.stack(pair[::-1] if transpose else pair)


def softmax_backward_data(grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any) -> Tensor:
    """The gradient of softmax from its output, in the input's dtype."""
    product = grad_output * output
    return (product - output * product.sum(dim, keepdim=True)).to(input_dtype)


def int_mm(self: Tensor, mat2: Tensor) -> Tensor:
    """The product of two int8 matrices, in int32."""
    for name, matrix in (("self", self), ("mat2", mat2)):
        if matrix.dim() != 2 or matrix.dtype != mica.int8:
            raise RuntimeError(
                f"`{name}` must be a matrix of int8; it is of {matrix.dim()} dimensions and {matrix.dtype}."
            )
    return self.to(mica.int32) @ mat2.to(mica.int32)


def shape_as_tensor(x: Tensor) -> Tensor:
    """The sizes, as an int64 tensor."""
    return mica.tensor(list(x.shape), dtype=mica.int64)


def _said_by(message: Any, otherwise: str) -> str:
    return otherwise if message is None else str(message())


def check_with(error_type: type[Exception], cond: Any, message: Any = None) -> None:
    """Raises error_type, with what message() gives, unless cond holds."""
    if not isinstance(cond, bool):
        raise TypeError(f"The condition must be a bool; it is of type ({type(cond).__name__}).")
    if not cond:
        raise error_type(_said_by(message, "A condition that must hold does not."))


def check_is_size(i: int, message: Any = None, *, max: int | None = None) -> None:
    """Raises unless 0 <= i <= max."""
    check_with(RuntimeError, i >= 0 and (max is None or i <= max), message)


def check_tensor_all_with(error_type: type[Exception], cond: Tensor, message: Any = None) -> None:
    """Raises error_type, with what message() gives, unless all elements hold."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"The condition must be a Tensor; it is of type ({type(cond).__name__}).")
    if cond.dtype != mica.bool:
        raise TypeError(f"The condition must be of bool; its dtype is ({cond.dtype}).")
    check_with(error_type, bool(cond.all()), message)


def check_tensor_all(cond: Tensor, message: Any = None) -> None:
    """Raises RuntimeError unless all elements hold."""
    check_tensor_all_with(RuntimeError, cond, message)


def set_default_tensor_type(t: Any) -> None:
    """The dtype of an old tensor type ("torch.DoubleTensor", torch.DoubleTensor) becomes the default."""
    found = getattr(mica, t.rpartition(".")[2], None) if isinstance(t, str) else t
    dtype = getattr(found, "_dtype", None)
    if dtype is None:
        raise TypeError(f"A tensor type or its name is expected; this is ({t!r}).")
    mica.set_default_dtype(dtype)


_DEBUG_MODES = ("default", "warn", "error")


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """use_deterministic_algorithms() by a word or number: "default", "warn" or "error"; 0, 1 or 2."""
    mode = _DEBUG_MODES.index(debug_mode) if debug_mode in _DEBUG_MODES else debug_mode
    if mode not in (0, 1, 2):
        raise (RuntimeError if isinstance(mode, (int, str)) else TypeError)(
            f"The mode ({debug_mode!r}) is unknown; expected 'default', 'warn' or 'error', or 0, 1 or 2."
        )
    mica.use_deterministic_algorithms(mode != 0, warn_only=mode == 1)


def get_deterministic_debug_mode() -> int:
    """0, 1 or 2: what nondeterministic operators do is nothing, a warning or an error."""
    if not mica.are_deterministic_algorithms_enabled():
        return 0
    return 1 if mica.is_deterministic_algorithms_warn_only_enabled() else 2
