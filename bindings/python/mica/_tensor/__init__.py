"""Methods of Tensor that are written in Python: autograd, NumPy, DLPack, pickle."""

from __future__ import annotations

from mica import _C
from mica._C import Tensor
from mica._devices import methods
from mica._tensor import dlpack, lazy
from mica._tensor.removable_handle import RemovableHandle

TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any


def backward(
    self: Tensor,
    gradient: Tensor | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Computes the gradients of this tensor and adds them to the `.grad` of the leaves that it was made of.

    As `torch.Tensor.backward`.

    Args:
        gradient (Tensor, optional): The gradient with respect to this tensor, in its shape. Default:
            None, 1, for a tensor of one element.
        retain_graph (bool, optional): Keeps what the graph saved, for another backward. Default:
            `create_graph`.
        create_graph (bool): Records the computation, for gradients of gradients. Default: False.
        inputs (Tensor or sequence of Tensor, optional): The tensors whose `.grad` is written. Default:
            None, all leaves that require gradients.

    Raises:
        RuntimeError: Nothing requires gradients, the graph was freed by an earlier backward, or there is
            no `gradient` and more than one element.

    Example:
        >>> x = mica.tensor([1.0, 2.0], requires_grad=True)
        >>> (x * x).sum().backward()
        >>> x.grad
        tensor([2., 4.])
    """
    if create_graph:
        from mica.autograd import _warn_of_cycle

        _warn_of_cycle()
    _C._backward(self, gradient, inputs, create_graph if retain_graph is None else retain_graph, create_graph)


def register_hook(self: Tensor, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
    """Calls a function with this tensor's gradient whenever a backward computes it.

    As `torch.Tensor.register_hook`.

    Args:
        hook (callable): `hook(grad)`; a tensor that it returns takes the gradient's place.

    Returns:
        RemovableHandle: `.remove()` takes the hook away.

    Raises:
        RuntimeError: The tensor does not require gradients.

    Example:
        >>> x = mica.ones(2, requires_grad=True)
        >>> handle = x.register_hook(lambda grad: 10 * grad)
        >>> x.sum().backward()
        >>> x.grad
        tensor([10., 10.])
    """
    if not self.requires_grad:
        raise RuntimeError("A hook needs a tensor that requires grad; this one does not.")
    return RemovableHandle(_C._add_tensor_hook(self, hook))


def register_post_accumulate_grad_hook(self: Tensor, hook: Callable[[Tensor], None]) -> RemovableHandle:
    """Calls a function with this leaf once a backward has written its `.grad`.

    As `torch.Tensor.register_post_accumulate_grad_hook`: an optimizer's step may run in it.

    Args:
        hook (callable): `hook(tensor)`.

    Returns:
        RemovableHandle: `.remove()` takes the hook away.

    Raises:
        RuntimeError: The tensor is no leaf that requires gradients.

    Example:
        >>> x = mica.ones(2, requires_grad=True)
        >>> handle = x.register_post_accumulate_grad_hook(lambda leaf: print(leaf.grad))
        >>> x.sum().backward()
        tensor([1., 1.])
    """
    return RemovableHandle(_C._add_accumulate_hook(self, hook))


def numpy(self: Tensor, *, force: bool = False) -> Any:
    """Returns a NumPy array over this tensor's memory.

    As `torch.Tensor.numpy`.

    Args:
        force (bool): Detaches, copies from a device, and resolves a conjugated view. Default: False.

    Returns:
        numpy.ndarray: What is written to it is seen in the tensor, unless `force` copied.

    Raises:
        RuntimeError: The tensor requires gradients, or `conj()` made it.
        TypeError: It is on a device, or NumPy lacks its dtype.

    Example:
        >>> x = mica.zeros(2)
        >>> x.numpy()[0] = 5
        >>> x
        tensor([5., 0.])
    """
    import numpy as np

    if force:
        self = self.detach().cpu().resolve_conj().resolve_neg()
    if self.requires_grad and _C.is_grad_enabled():
        raise RuntimeError(
            "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
        )
    return np.asarray(_C._TensorBuffer(self, True))


def __array__(self: Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
    import numpy as np

    array = numpy(self)
    if dtype is not None and array.dtype != dtype:
        if copy is False:
            raise ValueError(
                f"A copy is needed to convert from {array.dtype} to {dtype}, and copy=False forbids it."
            )
        return array.astype(dtype)
    return np.array(array) if copy else array


def __array_wrap__(self: Tensor, array: Any, context: Any = None, return_scalar: bool = False) -> Tensor:
    """What NumPy's functions give of a tensor: a tensor, whose truth values are uint8 as in torch."""
    result = _C.as_tensor(array)
    return result.to(_C.uint8) if result.dtype == _C.bool else result


def __array_namespace__(self: Tensor, /, *, api_version: str | None = None) -> Any:
    """The namespace of the Python array API standard."""
    from mica import array_api

    if api_version not in (None, *array_api.VERSIONS):
        raise ValueError(
            f"The array API version ({api_version}) is not supported; there are: {', '.join(array_api.VERSIONS)}."
        )
    return array_api


def to_device(self: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """Returns the tensor on a device, by the name that the array API standard has for `to()`.

    Args:
        device (str or device): The device.
        stream (Stream, optional): The stream that copies. Default: None, the current one.

    Returns:
        Tensor: The copy; the tensor itself if it is there.

    Example:
        >>> mica.ones(2).to_device("cpu").device
        device(type='cpu')
    """
    if stream is None:
        return self.to(device)
    from mica._devices import stream as running_on

    with running_on(stream):
        return self.to(device)


def __format__(self: Tensor, spec: str) -> str:
    if self.ndim == 0 and type(self) is Tensor and self.device.type != "meta":
        return format(self.item(), spec)
    return object.__format__(self, spec)


def __complex__(self: Tensor) -> complex:
    return complex(self.item())


def __reversed__(self: Tensor) -> Tensor:
    return self if self.ndim == 0 else self.flip(0)


def __rmatmul__(self: Tensor, other: Any) -> Any:
    return NotImplemented


def __deepcopy__(self: Tensor, memo: dict[int, Any]) -> Tensor:
    if id(self) in memo:
        return memo[id(self)]
    if not self.is_leaf:
        raise RuntimeError(
            "Only leaf tensors can be copied deeply; use x.detach().clone() for an interior one."
        )
    import copy
    import copyreg

    from mica.serialization._tensors import clone_storage

    with_history = self.requires_grad
    holds_another = type(self).clone is not Tensor.clone and self.device.type == "meta"
    if holds_another or _C._is_wrapper(self):
        result = self.clone() if holds_another else self.detach().clone()
        if type(result) is not type(self):
            raise RuntimeError(
                f"A wrapper subclass is copied by clone(), which returned a ({type(result).__name__}) where a "
                f"({type(self).__name__}) is expected; its __mica_dispatch__ must return its own class."
            )
    else:
        result = clone_storage(self.detach(), memo)
        if type(self) is not Tensor:
            result = Tensor._make_subclass(type(self), result)
    if with_history:
        result.requires_grad_()
    memo[id(self)] = result
    if self.grad is not None:
        result.grad = copy.deepcopy(self.grad, memo)
    if type(self) is not Tensor:
        for slot in copyreg._slotnames(type(self)):  # type: ignore[attr-defined]
            if hasattr(self, slot):
                setattr(result, slot, copy.deepcopy(getattr(self, slot), memo))
    if self.__dict__:
        result.__dict__.update(copy.deepcopy(self.__dict__, memo))
    return result


def __copy__(self: Tensor) -> Tensor:
    """A tensor of the same class over the same memory, with what hangs on it."""
    result = self.detach()
    if type(result) is not type(self):
        result = Tensor._make_subclass(type(self), result)
    if self.requires_grad:
        result.requires_grad_()
    if self.__dict__:
        result.__dict__.update(self.__dict__)
    return result


def __reduce_ex__(self: Tensor, protocol: Any) -> Any:
    from mica.serialization._tensors import reduce_tensor

    return reduce_tensor(self)


def new_tensor(
    self: Tensor, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Makes a tensor of data with this tensor's dtype and device.

    As `torch.Tensor.new_tensor`.

    Args:
        data (Any): Numbers in lists, a NumPy array, ...; copied.
        dtype (dtype, optional): Default: this tensor's.
        device (device, optional): Default: this tensor's.
        requires_grad (bool): Whether gradients are recorded. Default: False.

    Returns:
        Tensor: The new tensor.

    Example:
        >>> mica.ones(1, dtype=mica.float64).new_tensor([1, 2])
        tensor([1., 2.], dtype=mica.float64)
    """
    return _C.tensor(
        data, dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad
    )


_TYPE_NAMES = {
    "float32": "FloatTensor",
    "float64": "DoubleTensor",
    "float16": "HalfTensor",
    "bfloat16": "BFloat16Tensor",
    "int64": "LongTensor",
    "int32": "IntTensor",
    "int16": "ShortTensor",
    "int8": "CharTensor",
    "uint8": "ByteTensor",
    "bool": "BoolTensor",
    "complex64": "ComplexFloatTensor",
    "complex128": "ComplexDoubleTensor",
}


def type_(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """Names the tensor's type as old programs do, or converts it.

    As `torch.Tensor.type`.

    Args:
        dtype (dtype, str or type, optional): Converts to a dtype, or to that of an old type or its name.
            Default: None.
        non_blocking (bool): Does not wait for a copy from or to pinned memory. Default: False.

    Returns:
        str or Tensor: "mica.FloatTensor"; with `dtype`, the tensor in it, itself if it has it.

    Raises:
        ValueError: A string names no type.
        TypeError: `dtype` is something else.

    Example:
        >>> mica.ones(2).type()
        'mica.FloatTensor'
        >>> mica.ones(2).type(mica.int64)
        tensor([1, 1])
    """
    if dtype is None:
        name = repr(self.dtype).rpartition(".")[2]
        place = "" if self.device.type == "cpu" else f"{self.device.type}."
        return f"{_C._library_name()}.{place}{_TYPE_NAMES.get(name, name)}"
    wanted = _C.get_default_dtype() if dtype is Tensor else getattr(dtype, "_dtype", dtype)
    if isinstance(dtype, str):
        module, _, name = dtype.rpartition(".")
        found = next((n for n, t in _TYPE_NAMES.items() if t == name), None)
        if found is None or module not in ("mica", "torch"):
            raise ValueError(
                f"Argument `dtype` ('{dtype}') names no type; expected one as {_C._library_name()}.FloatTensor."
            )
        wanted = getattr(_C, found)
    if not isinstance(wanted, _C.dtype):
        raise TypeError(f"Argument `dtype` ({dtype!r}) is no dtype, tensor type or name of one.")
    return self.to(wanted, non_blocking=non_blocking)


def apply_(self: Tensor, function: Callable[[Any], Any]) -> Tensor:
    """Replaces each element by what a Python function makes of it; slow.

    As `torch.Tensor.apply_`.

    Args:
        function (callable): `function(number)` returns a number.

    Returns:
        Tensor: The tensor itself.

    Example:
        >>> mica.tensor([1.0, 2.0]).apply_(lambda v: v * 10)
        tensor([10., 20.])
    """
    flat = [function(v) for v in self.reshape(-1).tolist()]
    return self.copy_(_C.tensor(flat, dtype=self.dtype).reshape(self.shape))


def dim_order(self: Tensor, *, ambiguity_check: Any = False) -> tuple[int, ...]:
    """Lists the dimensions from the slowest to the fastest in memory.

    As `torch.Tensor.dim_order`.

    Args:
        ambiguity_check (bool or list of memory_format): True raises where another order fits as well; a
            list raises unless exactly one of the formats fits. Default: False.

    Returns:
        tuple of int: The dimensions.

    Raises:
        RuntimeError: The check fails.
        TypeError: It is neither.

    Example:
        >>> mica.ones(2, 3).T.dim_order()
        (1, 0)
    """
    formats = ambiguity_check if isinstance(ambiguity_check, list) else None
    if not isinstance(ambiguity_check, bool) and (
        formats is None or not all(isinstance(f, _C.memory_format) for f in formats)
    ):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    if formats is not None and sum(self.is_contiguous(memory_format=f) for f in formats) != 1:
        raise RuntimeError(f"The tensor does not fit exactly one of the memory formats {formats}.")
    if ambiguity_check is True:
        places = [(size, stride) for size, stride in zip(self.shape, self.stride()) if size != 1]
        strides = {stride for _, stride in places}
        if len(places) < self.ndim or len(strides) < len(places) or self.numel() == 0:
            raise RuntimeError("The tensor does not have unique dim order.")
    return tuple(sorted(range(self.ndim), key=lambda d: -self.stride(d)))


def split(self: Tensor, split_size: Any, dim: int = 0) -> Any:
    """Cuts the tensor into parts along a dimension, as views.

    As `torch.Tensor.split`.

    Args:
        split_size (int or list of int): The size of every part, the last may be smaller; or the sizes,
            which sum to that of the dimension.
        dim (int): The dimension. Default: 0.

    Returns:
        tuple of Tensor: The parts.

    Raises:
        RuntimeError: The sizes sum to another number, or one is negative.

    Example:
        >>> mica.arange(5).split(2)
        (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    if isinstance(split_size, (list, tuple)):
        return Tensor.split_with_sizes(self, split_size, dim)
    return _generated_split(self, split_size, dim)


def nonzero(self: Tensor, *, as_tuple: bool = False) -> Any:
    """Finds the indices of the elements other than 0.

    As `torch.Tensor.nonzero`.

    Args:
        as_tuple (bool): Gives a vector for each dimension, by which the tensor may be indexed. Default: False.

    Returns:
        Tensor or tuple of Tensor: int64, `(count, ndim)`, an element's indices a row; with `as_tuple`, `ndim`
        vectors `(count,)`.

    Example:
        >>> mica.tensor([0, 5, 7]).nonzero()
        tensor([[1],
                [2]])
    """
    return tuple(Tensor.nonzero_numpy(self)) if as_tuple else _nonzero(self)


def norm(
    self: Tensor,
    p: Any = "fro",
    dim: Any = None,
    keepdim: bool = False,
    dtype: Any = None,
    *,
    out: Any = None,
) -> Tensor:
    """Computes the p-norm of all elements, or along dimensions: `(sum |x|^p)^(1/p)`.

    As `torch.Tensor.norm`; new programs call `mica.linalg.vector_norm` or `matrix_norm`.

    Args:
        p (float or str): The order; "fro" is 2, "nuc" the sum of a matrix's singular values. Default: "fro".
        dim (int or tuple of int, optional): Dimensions to reduce. Default: None, all.
        keepdim (bool): Keeps reduced dimensions, of size 1. Default: False.
        dtype (dtype, optional): Converts to it first. Default: None.
        out (Tensor, optional): Where the result is written. Default: None.

    Returns:
        Tensor: The norms.

    Example:
        >>> mica.tensor([3.0, 4.0]).norm()
        tensor(5.)
    """
    options = {} if dtype is None else {"dtype": dtype}
    if out is not None:
        options["out"] = out
    if p == "nuc":
        dims = tuple(range(self.dim())) if dim is None else dim
        return _C._functions[""]["linalg_matrix_norm"](self, p, dims, keepdim, **options)
    return _vector_norm(self, 2 if p is None or p == "fro" else p, dim, keepdim, **options)


def where(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """Returns this tensor's elements where a condition holds, and those of another elsewhere.

    As `torch.Tensor.where`; the three broadcast.

    Args:
        condition (Tensor): bool; broadcasts with both tensors.
        other (Tensor or float): The other elements.

    Returns:
        Tensor: In the common shape.

    Example:
        >>> x = mica.tensor([-1.0, 2.0])
        >>> x.where(x > 0, 0.0)
        tensor([0., 2.])
    """
    return _where(condition, self, other)


def untyped_storage(self: Tensor) -> Any:
    """Returns the memory that this tensor and its views share, as bytes: an `UntypedStorage`."""
    from mica.storage import UntypedStorage

    return UntypedStorage(self)


def storage(self: Tensor) -> Any:
    """Returns the memory that this tensor and its views share, as elements: a `TypedStorage`."""
    from mica.storage import TypedStorage

    return TypedStorage(self)


def get_device(self: Tensor) -> int:
    """Returns the number of the tensor's device; -1 on the CPU."""
    return -1 if self.device.type in ("cpu", "meta") else self.device.index or 0


_generated_split = Tensor.split
_vector_norm = _C._functions[""]["linalg_vector_norm"]
_nonzero = _C._functions[""]["nonzero"]
_where = _C._functions[""]["where"]


def set_(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Makes the tensor a view of a storage or of another tensor's memory, in place.

    As `torch.Tensor.set_`.

    Args:
        *args (Any): `source`, a tensor or a storage of this tensor's dtype and device (default: no
            elements); `storage_offset`, an int (default: 0); `size`, the new shape (default: the
            source's); `stride` (default: contiguous).
        **kwargs (Any): The same by name.

    Returns:
        Tensor: The tensor itself.

    Raises:
        RuntimeError: Dtypes or devices differ, or the tensor is a leaf that requires gradients.
        TypeError: The source is neither a tensor nor a storage.

    Example:
        >>> x = mica.arange(6)
        >>> mica.empty(0, dtype=mica.int64).set_(x.untyped_storage(), 2, (2, 2))
        tensor([[2, 3],
                [4, 5]])
    """
    from mica._tensor.set_storage import set_

    return set_(self, *args, **kwargs)


def to_dense(self: Tensor, dtype: Any = None, *, masked_grad: Any = None) -> Tensor:
    """Returns the tensor itself, which is dense, as every tensor of Mica.

    Args:
        dtype (dtype, optional): Converts to it. Default: None.
        masked_grad (bool, optional): Ignored. Default: None.

    Returns:
        Tensor: The tensor.

    Example:
        >>> mica.ones(2).to_dense()
        tensor([1., 1.])
    """
    return self if dtype is None else self.to(dtype)


def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Returns whether two tensors are the same view of one storage.

    As `torch.Tensor.is_set_to`.

    Args:
        tensor (Tensor): The other one.

    Returns:
        bool: Whether address, shape and strides are equal.

    Example:
        >>> x = mica.ones(2)
        >>> x.is_set_to(x.detach()), x.is_set_to(x.clone())
        (True, False)
    """
    return (
        self.data_ptr() == tensor.data_ptr()
        and self.shape == tensor.shape
        and self.stride() == tensor.stride()
        and self._storage_ptr() == tensor._storage_ptr()
    )


def dense_dim(self: Tensor) -> int:
    """Counts the dense dimensions: all, tensors are dense."""
    return self.dim()


def _constant(value: Any, text: str) -> Any:
    """A method that says the same of every tensor."""

    def says(self: Tensor) -> Any:
        return value

    says.__doc__ = text
    return says


_C._add_tensor_attributes(
    {
        # What torch's Tensor has of backends that nobody brings; methods.py adds those of the others.
        **{b: methods.to_backend(b) for b in ("cuda", "xpu", "ipu", "mtia")},
        **{f"is_{b}": methods.is_on(b) for b in ("mps", "xpu", "ipu", "maia", "mtia", "xla", "vulkan")},
        "is_mkldnn": False,
        "is_sparse_csr": False,
        "to_dense": to_dense,
        "is_set_to": is_set_to,
        "set_": set_,
        "name": None,
        "_conj": lazy.conj_view,
        "_neg_view": lazy.neg_view,
        "is_distributed": _constant(False, "Says whether the tensor lies in several processes: False."),
        "is_coalesced": _constant(
            False, "Says whether a sparse tensor is coalesced: False, tensors are dense."
        ),
        "sparse_dim": _constant(0, "Counts the sparse dimensions: 0, tensors are dense."),
        "dense_dim": dense_dim,
        "backward": backward,
        "register_hook": register_hook,
        "register_post_accumulate_grad_hook": register_post_accumulate_grad_hook,
        "numpy": numpy,
        "__array__": __array__,
        "__array_wrap__": __array_wrap__,
        "__array_priority__": 1000,
        "__dlpack__": dlpack.__dlpack__,
        "__dlpack_device__": dlpack.__dlpack_device__,
        "__array_namespace__": __array_namespace__,
        "to_device": to_device,
        "__format__": __format__,
        "__complex__": __complex__,
        "__reversed__": __reversed__,
        "__copy__": __copy__,
        "__deepcopy__": __deepcopy__,
        "__reduce_ex__": __reduce_ex__,
        "__module__": "mica",
        "new_tensor": new_tensor,
        "type": type_,
        "apply_": apply_,
        "dim_order": dim_order,
        "split": split,
        "nonzero": nonzero,
        "norm": norm,
        "where": where,
        "untyped_storage": untyped_storage,
        "storage": storage,
        "get_device": get_device,
    }
)

from mica._tensor import absent as absent, legacy as legacy  # noqa: E402  (their names come last)

methods.follow(Tensor, methods.of_tensor)
_C._tell_of_backends(methods.note)
