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
    """Returns whether an object is a Tensor.

    As `torch.is_tensor`.

    Args:
        obj (Any): The object.

    Returns:
        bool: Whether it is one, of a subclass too.

    Example:
        >>> mica.is_tensor(mica.ones(2)), mica.is_tensor([1.0])
        (True, False)
    """
    return isinstance(obj, Tensor)


def is_storage(obj: object) -> bool:
    """Returns whether an object is a storage, typed or not.

    As `torch.is_storage`.

    Args:
        obj (Any): The object.

    Returns:
        bool: Whether it is one.

    Example:
        >>> mica.is_storage(mica.ones(2).untyped_storage())
        True
    """
    from mica.storage import TypedStorage, UntypedStorage

    return isinstance(obj, (TypedStorage, UntypedStorage))


def is_floating_point(input: Tensor) -> bool:
    """Returns whether a tensor's dtype is a floating-point one.

    As `torch.is_floating_point`.

    Args:
        input (Tensor): The tensor, of any shape.

    Returns:
        bool: Whether it is; False of complex numbers.

    Example:
        >>> mica.is_floating_point(mica.ones(2)), mica.is_floating_point(mica.arange(2))
        (True, False)
    """
    return Tensor.is_floating_point(input)


def is_complex(input: Tensor) -> bool:
    """Returns whether a tensor's dtype is complex.

    As `torch.is_complex`.

    Args:
        input (Tensor): The tensor, of any shape.

    Returns:
        bool: Whether it is.

    Example:
        >>> mica.is_complex(mica.ones(2, dtype=mica.complex64))
        True
    """
    return Tensor.is_complex(input)


def numel(input: Tensor) -> int:
    """Counts the elements of a tensor.

    As `torch.numel`.

    Args:
        input (Tensor): The tensor, of any shape.

    Returns:
        int: How many there are.

    Example:
        >>> mica.numel(mica.ones(2, 3))
        6
    """
    return Tensor.numel(input)


def typename(obj: object) -> str:
    """Names an object's type, with its module.

    As `torch.typename`.

    Args:
        obj (Any): An object, a class or a function.

    Returns:
        str: "mica.FloatTensor" of a tensor, "str" of a built-in.

    Example:
        >>> mica.typename(mica.ones(2)), mica.typename("text")
        ('mica.FloatTensor', 'str')
    """
    if isinstance(obj, Tensor):
        return str(obj.type())
    own = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(own, "__module__", None) or ""
    return own.__qualname__ if module in ("builtins", "") else f"{module}.{own.__qualname__}"


def get_default_device() -> Any:
    """Returns the default device, on which this thread makes tensors that are given none.

    As `torch.get_default_device`.

    Returns:
        device: The CPU, unless `set_default_device()` or `with mica.device(...):` says otherwise.

    Example:
        >>> mica.get_default_device()
        device(type='cpu')
    """
    return _C._default_device()


def set_default_device(device: Any) -> None:
    """Sets the default device, on which this thread makes tensors that are given none.

    As `torch.set_default_device`.

    Args:
        device (str, device or None): The device; None for the CPU.

    Raises:
        RuntimeError: No plugin provides the device.

    Example:
        >>> mica.set_default_device("meta")
        >>> mica.ones(2).device
        device(type='meta')
        >>> mica.set_default_device(None)
    """
    _C._set_default_device(_C.device("cpu" if device is None else device))


def _on_device(device: Any, function: Any) -> Any:
    """What `@device` makes of a function."""
    import functools

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        with device:
            return function(*args, **kwargs)

    return run


def set_default_tensor_type(t: Any) -> None:
    """Sets the default dtype and device by one of torch's old tensor types.

    As `torch.set_default_tensor_type`; new programs call `set_default_dtype()` and `set_default_device()`.

    Args:
        t (type or str): `mica.DoubleTensor`, or "mica.cuda.FloatTensor".

    Raises:
        TypeError: It names no tensor type, or one whose numbers are not floating-point.

    Example:
        >>> mica.set_default_tensor_type(mica.DoubleTensor)
        >>> mica.ones(2).dtype
        mica.float64
        >>> mica.set_default_tensor_type("mica.FloatTensor")
    """
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


_PRECISIONS = ("highest", "high", "medium")  # by the number of the setting


def get_float32_matmul_precision() -> str:
    """Returns the precision that `set_float32_matmul_precision()` set.

    As `torch.get_float32_matmul_precision`.

    Returns:
        str: "highest", "high" or "medium".

    Example:
        >>> mica.get_float32_matmul_precision()
        'highest'
    """
    return _PRECISIONS[_C._setting("float32_matmul_precision")]


def set_float32_matmul_precision(precision: str) -> None:
    """Sets how exact products of float32 matrices must be on devices that have faster ones; the CPU's are in any case.

    As `torch.set_float32_matmul_precision`.

    Args:
        precision (str): "highest", the setting at the start: float32 itself; "high": rounded to TF32 (10 bits of
            mantissa); "medium": to bfloat16 or better.

    Raises:
        ValueError: It is another.

    Example:
        >>> mica.set_float32_matmul_precision("high")
        >>> mica.get_float32_matmul_precision()
        'high'
        >>> mica.set_float32_matmul_precision("highest")
    """
    if precision not in _PRECISIONS:
        raise ValueError(f"The precision ({precision}) is unknown; expected 'highest', 'high' or 'medium'.")
    _C._set_setting("float32_matmul_precision", _PRECISIONS.index(precision))


def broadcast_shapes(*shapes: Any) -> Any:
    """Computes the shape that tensors of these shapes broadcast to.

    As `torch.broadcast_shapes`.

    Args:
        *shapes (Size, sequence of int or int): The shapes; an int is a shape of one dimension.

    Returns:
        Size: The common shape.

    Raises:
        RuntimeError: In some dimension two sizes differ and neither is 1.

    Example:
        >>> mica.broadcast_shapes((3, 1), (4,))
        mica.Size([3, 4])
    """
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
    """Multiplies tensors and sums over named dimensions: `einsum("ij,jk->ik", a, b)` is `a @ b`.

    As `torch.einsum`. A letter that occurs in the operands and not behind the arrow is summed over; `...`
    stands for further dimensions, which broadcast. Without an arrow the letters that occur once remain, in
    the order of the alphabet.

    Args:
        *args (str, Tensor or list of int): The equation and then the operands; or each operand followed
            by a list of numbers from 0 to 51 that name its dimensions, and last a list for the result:
            `einsum(a, [0, 1], b, [1, 2], [0, 2])`.

    Returns:
        Tensor: With one dimension for each letter behind the arrow.

    Raises:
        ValueError: There is no operand.
        TypeError: The first argument is neither an equation nor a tensor.
        RuntimeError: The equation does not fit the shapes.

    Example:
        >>> a, b = mica.arange(6.0).reshape(2, 3), mica.ones(3, 2)
        >>> mica.einsum("ij,jk->ik", a, b)
        tensor([[ 3.,  3.],
                [12., 12.]])
        >>> mica.einsum("ii", mica.eye(3))
        tensor(3.)
    """
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
    """Expands tensors to their common shape, as views.

    As `torch.broadcast_tensors`.

    Args:
        *tensors (Tensor): The tensors, or one list of them; their shapes broadcast.

    Returns:
        tuple of Tensor: The views.

    Raises:
        RuntimeError: The shapes do not broadcast.

    Example:
        >>> x, y = mica.broadcast_tensors(mica.ones(3, 1), mica.ones(4))
        >>> x.shape, y.shape
        (mica.Size([3, 4]), mica.Size([3, 4]))
    """
    items = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    return _generated["broadcast_tensors"](list(items))


def block_diag(*tensors: Tensor) -> Tensor:
    """Makes a matrix with the given ones along its diagonal, and zeros elsewhere.

    As `torch.block_diag`.

    Args:
        *tensors (Tensor): Each `(m, n)`; one of `(n,)` or `()` counts as one row.

    Returns:
        Tensor: The sums of the heights and of the widths are its sizes.

    Raises:
        RuntimeError: A tensor has more than two dimensions.

    Example:
        >>> mica.block_diag(mica.ones(1, 2), mica.tensor([[5.0]]))
        tensor([[1., 1., 0.],
                [0., 0., 5.]])
    """
    return _generated["block_diag"](list(tensors)) if tensors else _generated["empty"]([1, 0])


def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Makes coordinates of all points of a grid from coordinates along its axes.

    As `torch.meshgrid`. The results are views: clone before you write.

    Args:
        *tensors (Tensor): The coordinates along each axis, `(n,)` or `()`, or one list of them.
        indexing (str, optional): "ij": the i-th input varies along dimension i; "xy": the first two
            dimensions of the results are swapped. Default: None, "ij" with a warning.

    Returns:
        tuple of Tensor: For each input its coordinate at every point, `(n_0, n_1, ...)`.

    Raises:
        RuntimeError: There is no input, one has two dimensions, or dtypes or devices differ.

    Example:
        >>> rows, columns = mica.meshgrid(mica.arange(2), mica.arange(3), indexing="ij")
        >>> rows
        tensor([[0, 0, 0],
                [1, 1, 1]])
        >>> columns
        tensor([[0, 1, 2],
                [0, 1, 2]])
    """
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
    """Lists all combinations of the elements of several vectors.

    As `torch.cartesian_prod`.

    Args:
        *tensors (Tensor): Each `(n_i,)`, of one dtype.

    Returns:
        Tensor: `(n_0 * n_1 * ..., number of vectors)`, a combination a row, the last varying fastest. Of
        one vector, the vector.

    Raises:
        RuntimeError: A tensor has two dimensions, or dtypes differ.

    Example:
        >>> mica.cartesian_prod(mica.tensor([1, 2]), mica.tensor([8, 9]))
        tensor([[1, 8],
                [1, 9],
                [2, 8],
                [2, 9]])
    """
    if len(tensors) == 1:
        return tensors[0]
    grids = meshgrid(*tensors, indexing="ij")
    return _generated["stack"]([g.reshape(-1) for g in grids], 1)


def nonzero(input: Tensor, *, out: Tensor | None = None, as_tuple: bool = False) -> Any:
    """Finds the indices of the elements other than 0.

    As `torch.nonzero`.

    Args:
        input (Tensor): The tensor, of any shape.
        out (Tensor, optional): Where the result is written. Default: None.
        as_tuple (bool): Gives a vector for each dimension, by which the tensor may be indexed. Default: False.

    Returns:
        Tensor or tuple of Tensor: int64, `(count, ndim)`, an element's indices a row, in order; with
        `as_tuple`, `ndim` vectors `(count,)`.

    Raises:
        RuntimeError: `out` together with `as_tuple`.

    Example:
        >>> x = mica.tensor([[0, 5], [7, 0]])
        >>> mica.nonzero(x)
        tensor([[0, 1],
                [1, 0]])
        >>> x[mica.nonzero(x, as_tuple=True)]
        tensor([5, 7])
    """
    if as_tuple:
        if out is not None:
            kind = RuntimeError if isinstance(out, Tensor) else TypeError
            raise kind("nonzero() with `as_tuple` (True) gives several tensors and takes no `out`.")
        return tuple(_generated["nonzero_numpy"](input))
    return _generated["nonzero"](input, **({} if out is None else {"out": out}))


def tensordot(a: Tensor, b: Tensor, dims: Any = 2, out: Tensor | None = None) -> Tensor:
    """Sums products of two tensors over several dimensions of both.

    As `torch.tensordot`.

    Args:
        a (Tensor): The first tensor.
        b (Tensor): The second tensor.
        dims (int or pair of lists of int): How many dimensions are summed over, the last of `a` and the
            first of `b`; or which of `a` and which of `b`, in pairs of equal size. Default: 2.
        out (Tensor, optional): Where the result is written. Default: None.

    Returns:
        Tensor: The other dimensions of `a`, then those of `b`.

    Raises:
        RuntimeError: `dims` is negative or more than there are, or sizes differ.
        TypeError: `dims` is neither, or an argument is no tensor.

    Example:
        >>> a, b = mica.ones(2, 3, 4), mica.ones(4, 3, 5)
        >>> mica.tensordot(a, b, dims=([1, 2], [1, 0])).shape
        mica.Size([2, 5])
    """
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
    """Computes the p-norm of all elements, or along dimensions: `(sum |x|^p)^(1/p)`.

    As `torch.norm`; new programs call `mica.linalg.vector_norm` or `matrix_norm`.

    Args:
        input (Tensor): The tensor, floating-point or complex.
        p (float or str): The order; "fro" is 2, "nuc" the sum of a matrix's singular values. Default: "fro".
        dim (int or tuple of int, optional): Dimensions to reduce. Default: None, all.
        keepdim (bool): Keeps reduced dimensions, of size 1. Default: False.
        out (Tensor, optional): Where the result is written. Default: None.
        dtype (dtype, optional): Converts to it first. Default: None.

    Returns:
        Tensor: The norms.

    Example:
        >>> mica.norm(mica.tensor([3.0, 4.0]))
        tensor(5.)
        >>> mica.norm(mica.ones(2, 3), p=1, dim=1)
        tensor([3., 3.])
    """
    return Tensor.norm(input, p, dim, keepdim, dtype, out=out)


def chain_matmul(*matrices: Tensor, out: Tensor | None = None) -> Tensor:
    """Multiplies several matrices in the order of the least work.

    As `torch.chain_matmul`; `mica.linalg.multi_dot` does the same.

    Args:
        *matrices (Tensor): Each `(n_i, n_i+1)`.
        out (Tensor, optional): Where the result is written. Default: None.

    Returns:
        Tensor: The product, `(n_0, n_last)`; of one matrix, that matrix.

    Example:
        >>> mica.chain_matmul(mica.ones(2, 3), mica.ones(3, 4), mica.ones(4, 1))
        tensor([[12.],
                [12.]])
    """
    return _C._functions[""]["chain_matmul"](list(matrices), out=out)


def lu(A: Tensor, pivot: bool = True, get_infos: bool = False, out: Any = None) -> tuple[Tensor, ...]:
    """Factors matrices into a lower and an upper triangle with row exchanges.

    As `torch.lu`; `mica.linalg.lu_factor` and `mica.linalg.lu` are the newer forms, `mica.lu_unpack` takes the
    result apart.

    Args:
        A (Tensor): `(..., m, n)`.
        pivot (bool): Exchanges rows for stability; False raises RuntimeError on the CPU. Default: True.
        get_infos (bool): Returns a number for each matrix in place of raising LinAlgError. Default: False.
        out (tuple of Tensor, optional): Where the results are written. Default: None.

    Returns:
        tuple of Tensor: One matrix `(..., m, n)` with U on and above the diagonal and L below it (L's diagonal is
        ones, not stored); `pivots` `(..., min(m, n))`, int32: in step `i`, from 1 on, row `i` changed places with
        row `pivots[i - 1]`; and with `get_infos` an int32 for each matrix, 0 for success, `k` if `U[k, k]`, from
        1 on, is 0.

    Raises:
        RuntimeError: `A` has fewer than 2 dimensions, or a dtype other than float32, float64 or complex.
        LinAlgError: A matrix is singular, and `get_infos` is False.

    Example:
        >>> factors, pivots = mica.lu(mica.tensor([[1.0, 2.0], [4.0, 4.0]]))
        >>> factors
        tensor([[4.0000, 4.0000],
                [0.2500, 1.0000]])
        >>> pivots
        tensor([2, 2], dtype=mica.int32)
    """
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
    """Approximates the largest singular values of a matrix and their vectors: `A = U diag(S) V^H`, about.

    As `torch.svd_lowrank`: random projections (Halko, Martinsson, Tropp, 2009), drawn from the default generator. For
    large matrices of low rank; `mica.linalg.svd` is exact.

    Args:
        A (Tensor): `(..., m, n)`.
        q (int, optional): How many; somewhat more than the rank that is expected. Default: 6.
        niter (int, optional): Rounds that make it more exact. Default: 2.
        M (Tensor, optional): Is subtracted from `A`; broadcasts to its shape. Default: None.

    Returns:
        tuple of 3 Tensor: `U` `(..., m, q)`, `S` `(..., q)` from the greatest down, `V` `(..., n, q)`.

    Example:
        >>> u, s, v = mica.svd_lowrank(mica.outer(mica.ones(4), mica.ones(9)), q=2)
        >>> round(s[0].item(), 3)
        6.0
    """
    from mica._functions import low_rank as _lowrank

    return _lowrank.svd_lowrank(A, q, niter, M)


def pca_lowrank(
    A: Tensor, q: int | None = None, center: bool = True, niter: int = 2
) -> tuple[Tensor, Tensor, Tensor]:
    """Approximates the largest principal components of the rows of a matrix.

    As `torch.pca_lowrank`: `svd_lowrank()` of the centred matrix.

    Args:
        A (Tensor): `(..., m, n)`: `m` samples of `n` features.
        q (int, optional): How many components. Default: the least of 6, `m` and `n`.
        center (bool): Subtracts each column's mean first. Default: True.
        niter (int): Rounds that make it more exact. Default: 2.

    Returns:
        tuple of 3 Tensor: `U` `(..., m, q)`, the singular values `S` `(..., q)` from the greatest down, and `V`
        `(..., n, q)`, whose columns are the directions: the centred `A` is about `U @ diag(S) @ V^H`.

    `S**2 / (m - 1)` are the variances along the directions, and `(A - mean) @ V` the samples in `q` numbers. The
    method is random, from the default generator: `mica.manual_seed` repeats it, a greater `niter` is closer.

    Raises:
        ValueError: `q` is not in `[0, min(m, n)]`, `niter` is negative, or `A` has fewer than 2 dimensions.

    Example:
        >>> samples = mica.tensor([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
        >>> u, s, v = mica.pca_lowrank(samples, q=1)
        >>> v.abs()
        tensor([[0.7071],
                [0.7071]])
    """
    from mica._functions import low_rank as _lowrank

    return _lowrank.pca_lowrank(A, q, center, niter)


def split(tensor: Tensor, split_size_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Cuts a tensor into parts along a dimension, as views.

    As `torch.split`.

    Args:
        tensor (Tensor): The tensor.
        split_size_or_sections (int or list of int): The size of every part, the last may be smaller; or
            the sizes, which sum to that of the dimension.
        dim (int): The dimension along which it is cut. Default: 0.

    Returns:
        tuple of Tensor: The parts.

    Raises:
        RuntimeError: The sizes sum to another number, or one is negative.

    Example:
        >>> mica.split(mica.arange(5), 2)
        (tensor([0, 1]), tensor([2, 3]), tensor([4]))
        >>> mica.split(mica.arange(5), [1, 4])
        (tensor([0]), tensor([1, 2, 3, 4]))
    """
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
