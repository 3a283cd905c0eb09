"""Functions of `mica` that are written in Python."""

from __future__ import annotations

from mica import _C
from mica._C import Tensor
from mica._functions.determinism import (
    are_deterministic_algorithms_enabled,
    is_deterministic_algorithms_warn_only_enabled,
    use_deterministic_algorithms,
)
from mica._interception.function_modes import install as _install

TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

__all__ = [
    "block_diag",
    "broadcast_shapes",
    "broadcast_tensors",
    "cartesian_prod",
    "chain_matmul",
    "einsum",
    "get_default_device",
    "set_default_device",
    "set_default_tensor_type",
    "is_complex",
    "is_floating_point",
    "is_storage",
    "is_tensor",
    "lu",
    "meshgrid",
    "nonzero",
    "norm",
    "numel",
    "pca_lowrank",
    "split",
    "svd_lowrank",
    "tensordot",
    "typename",
    "are_deterministic_algorithms_enabled",
    "get_float32_matmul_precision",
    "is_deterministic_algorithms_warn_only_enabled",
    "set_float32_matmul_precision",
    "use_deterministic_algorithms",
]

_generated = _C._functions[""]


def is_tensor(obj: object) -> bool:
    """Whether `obj` is a mica.Tensor."""
    return isinstance(obj, Tensor)


def is_storage(obj: object) -> bool:
    """Whether it is a storage, typed or not."""
    from mica.storage import TypedStorage, UntypedStorage

    return isinstance(obj, (TypedStorage, UntypedStorage))


def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype is a floating-point one."""
    return Tensor.is_floating_point(input)


def is_complex(input: Tensor) -> bool:
    """Whether the dtype is complex."""
    return Tensor.is_complex(input)


def numel(input: Tensor) -> int:
    """The number of elements."""
    return Tensor.numel(input)


def typename(obj: object) -> str:
    """The type's name with its module."""
    if isinstance(obj, Tensor):
        return str(obj.type())
    own = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(own, "__module__", None) or ""
    return own.__qualname__ if module in ("builtins", "") else f"{module}.{own.__qualname__}"


def get_default_device() -> Any:
    """Where factories of this thread make tensors."""
    return _C._default_device()


def set_default_device(device: Any) -> None:
    """Where factories of this thread make tensors from now on; None says cpu."""
    _C._set_default_device("cpu" if device is None else device)


def _on_device(device: Any, function: Any) -> Any:
    """What `@device` makes of a function."""
    import functools

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        with device:
            return function(*args, **kwargs)

    return run


def set_default_tensor_type(t: Any) -> None:
    """Sets the default dtype, and the default device, by an old tensor type or its name."""
    name = t if isinstance(t, str) else f"{t.__module__}.{t.__name__}"
    module, _, kind = name.rpartition(".")
    library, _, backend = module.partition(".")
    import mica

    legacy = getattr(mica, kind, None)
    if library not in ("mica", "torch") or not hasattr(legacy, "_dtype"):
        raise TypeError(f"Argument `t` ({t!r}) names no tensor type; expected one as torch.FloatTensor.")
    if not legacy._dtype.is_floating_point:
        raise TypeError(f"The default tensor type is of floating-point numbers; ({name}) is not.")
    set_default_device(backend or "cpu")
    _C.set_default_dtype(legacy._dtype)


_precision = ["highest"]


def get_float32_matmul_precision() -> str:
    """What set_float32_matmul_precision() allows."""
    return _precision[0]


def set_float32_matmul_precision(precision: str) -> None:
    """Allows products of float32 to be less exact; the CPU's make no use of it."""
    if precision not in ("highest", "high", "medium"):
        raise ValueError(f"The precision ({precision}) is unknown; expected 'highest', 'high' or 'medium'.")
    _precision[0] = precision


def broadcast_shapes(*shapes: Any) -> Any:
    """The shape that all `shapes` broadcast to."""
    result: list[int] = []
    for number, shape in enumerate(shapes):
        given = sizes = [shape] if isinstance(shape, int) else list(shape)
        length = max(len(result), len(sizes))
        result = [1] * (length - len(result)) + result
        sizes = [1] * (length - len(sizes)) + sizes
        for i, (a, b) in enumerate(zip(result, sizes)):
            if a != b and 1 not in (a, b):
                raise RuntimeError(
                    f"Shape ({number}), {given}, has the size ({b}) in dimension ({i}) of the result, where the shapes "
                    f"before it have ({a}); a dimension broadcasts only when one size is 1."
                )
            result[i] = b if a == 1 else a
    return _C.Size(result)


def einsum(*args: Any) -> Tensor:
    """Sums of products over named dimensions: einsum("ij,jk->ik", a, b), or with lists of numbers from 0 to 51
    that name them: einsum(a, [0, 1], b, [1, 2], [0, 2])."""
    if len(args) >= 2 and isinstance(args[0], Tensor):
        from mica._functions.einsum_lists import of_lists

        return _generated["einsum"](*of_lists(args))
    operands = args[1] if len(args) == 2 and isinstance(args[1], (list, tuple)) else args[1:]
    if not operands:
        raise ValueError(
            "einsum(): must specify the equation string and at least one operand; the call has no operand."
        )
    if not isinstance(args[0], str):
        raise TypeError("einsum() takes an equation and then its operands.")
    return _generated["einsum"](args[0], list(operands))


def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """The tensors expanded to their common shape."""
    items = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    return _generated["broadcast_tensors"](list(items))


def block_diag(*tensors: Tensor) -> Tensor:
    """A matrix with the given ones along its diagonal."""
    return _generated["block_diag"](list(tensors)) if tensors else _generated["empty"]([1, 0])


def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Grids of coordinates: one tensor for each input, expanded over all others."""
    items = list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else list(tensors)
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError(
            f'meshgrid: indexing must be one of "xy" or "ij", but the indexing ({indexing}) is received.'
        )
    if indexing is None:
        _C._warn_once(
            "meshgrid", "meshgrid: in an upcoming release, it will be required to pass the indexing argument."
        )
    if not items:
        raise RuntimeError("meshgrid expects a non-empty TensorList; expected at least one vector.")
    for t in items:
        if Tensor.dim(t) > 1:
            raise RuntimeError(
                f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got one of shape {tuple(t.shape)}."
            )
        if t.dtype != items[0].dtype:
            raise RuntimeError(
                f"meshgrid expects all tensors to have the same dtype; these are {items[0].dtype} and {t.dtype}."
            )
        if t.device != items[0].device:
            raise RuntimeError(
                f"meshgrid expects all tensors to have the same device; these are on {items[0].device} and {t.device}."
            )
    swap = indexing == "xy" and len(items) >= 2
    if swap:
        items[0], items[1] = items[1], items[0]
    shape = [Tensor.numel(t) for t in items]
    grids = []
    for i, t in enumerate(items):
        view = t.reshape([shape[i] if j == i else 1 for j in range(len(items))])
        grids.append(view.expand(shape))
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All combinations of the inputs' elements, one a row."""
    if len(tensors) == 1:
        return tensors[0]
    grids = meshgrid(*tensors)
    return _generated["stack"]([g.reshape(-1) for g in grids], 1)


def nonzero(input: Tensor, *, out: Tensor | None = None, as_tuple: bool = False) -> Any:
    """The indices of elements other than 0: one row each, or with `as_tuple` one tensor a dimension."""
    if as_tuple:
        if out is not None:
            kind = RuntimeError if isinstance(out, Tensor) else TypeError
            raise kind("nonzero() with `as_tuple` (True) gives several tensors and takes no `out`.")
        return tuple(_generated["nonzero_numpy"](input))
    return _generated["nonzero"](input, **({} if out is None else {"out": out}))


def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor:
    """Sums of products over the last `dims` dimensions of `a` and the first of `b`, or over two lists of them."""
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if not (isinstance(a, Tensor) and isinstance(b, Tensor)):
        raise TypeError(
            f"tensordot() takes two Tensors; these are of types ({type(a).__name__}, {type(b).__name__})."
        )
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}.")
        if dims > min(a.ndim, b.ndim):
            raise RuntimeError(
                f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}: `a` has ({a.ndim}) dimensions and "
                f"`b` ({b.ndim})."
            )
        dims = (list(range(a.ndim - dims, a.ndim)), list(range(dims)))
    if (
        not isinstance(dims, (list, tuple))
        or len(dims) != 2
        or not all(isinstance(d, (int, list, tuple)) for d in dims)
    ):
        raise TypeError(
            f"tensordot() takes as `dims` a number of dimensions or two lists of them; this is ({dims})."
        )
    of_a, of_b = ([d] if isinstance(d, int) else list(d) for d in dims)
    options = {} if out is None else {"out": out}
    return _generated["tensordot"](a, b, of_a, of_b, **options)


def norm(
    input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, out: Any = None, dtype: Any = None
) -> Tensor:
    """The p-norm of all elements, or over `dim`; "fro" is 2."""
    return Tensor.norm(input, p, dim, keepdim, dtype, out=out)


def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """The product of several matrices, as linalg.multi_dot; one is its own."""
    return _C._functions[""]["chain_matmul"](list(matrices), out=out)


def lu(A: Tensor, pivot: bool = True, get_infos: bool = False, out: Any = None) -> tuple[Tensor, ...]:
    """LU factors in one matrix and pivots; with `get_infos` LAPACK's word on each matrix, else a failure raises."""
    factors = _C._functions[""]["linalg_lu_factor_ex"](A, pivot=pivot, check_errors=not get_infos)
    result = tuple(factors)[: 3 if get_infos else 2]
    if out is None:
        return result
    for target, value in zip(out, result, strict=True):
        target.resize_(value.shape).copy_(value)
    return tuple(out)


def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """The `q` largest singular values of `A` (less `M`), about, and their vectors."""
    from mica._functions import low_rank as _lowrank

    return _lowrank.svd_lowrank(A, q, niter, M)


def pca_lowrank(
    A: Tensor, q: int | None = None, center: bool = True, niter: int = 2
) -> tuple[Tensor, Tensor, Tensor]:
    """The `q` largest principal components of the rows of `A`, about."""
    from mica._functions import low_rank as _lowrank

    return _lowrank.pca_lowrank(A, q, center, niter)


def split(tensor: Tensor, split_size_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of a tensor along `dim`, as views."""
    return Tensor.split(tensor, split_size_or_sections, dim)


# What takes no tensors, asks of any object, or is no operator's.
_install(
    globals(),
    ignored=(
        "are_deterministic_algorithms_enabled",
        "broadcast_shapes",
        "get_default_device",
        "get_float32_matmul_precision",
        "is_deterministic_algorithms_warn_only_enabled",
        "is_storage",
        "is_tensor",
        "set_default_device",
        "set_default_tensor_type",
        "set_float32_matmul_precision",
        "typename",
        "use_deterministic_algorithms",
    ),
)
