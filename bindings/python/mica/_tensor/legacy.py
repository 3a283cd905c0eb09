"""Attributes of Tensor that torch keeps for old programs or for its own use, and that libraries ask for."""

from __future__ import annotations

from mica import _C
from mica._C import Tensor

TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def resize(self: Tensor, *sizes: Any) -> Tensor:
    """Returns the elements in another shape, with a warning: use `reshape()`.

    As `torch.Tensor.resize`.

    Args:
        *sizes (int): The shape, or one sequence of them.

    Returns:
        Tensor: The view or copy.
    """
    import warnings

    warnings.warn("non-inplace resize is deprecated", UserWarning, stacklevel=2)
    shape = sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
    return self.reshape(tuple(shape))


def resize_as(self: Tensor, tensor: Tensor) -> Tensor:
    """Returns the elements in another tensor's shape, with a warning: use `reshape()`.

    Args:
        tensor (Tensor): Its shape is taken.

    Returns:
        Tensor: The view or copy.
    """
    return resize(self, tuple(tensor.shape))


def new(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Makes a tensor of this one's dtype and device, as old programs do; new ones call `new_empty()` or `new_tensor()`.

    As `torch.Tensor.new`.

    Args:
        *args (Any): Sizes: an undefined tensor; a storage: its memory; a tensor: a view of it; data: a copy.
        **kwargs (Any): As of `new_empty()` or `new_tensor()`.

    Returns:
        Tensor: The new tensor.

    Raises:
        TypeError: A tensor of another dtype or device.

    Example:
        >>> mica.ones(2).new([1, 2])
        tensor([1., 2.])
    """
    from mica._tensor.set_storage import tensor_of
    from mica.storage import _Memory

    if not args:
        return self.new_empty(kwargs.pop("size", (0,)), **kwargs)
    if isinstance(args[0], _Memory):
        return tensor_of(args[0], self.dtype)
    if all(isinstance(a, int) for a in args):
        return self.new_empty(args, **kwargs)
    if isinstance(args[0], _C.Size):
        return self.new_empty(tuple(args[0]), **kwargs)
    if not isinstance(args[0], Tensor):
        return self.new_tensor(args[0], **kwargs)
    other = args[0]
    if other.dtype != self.dtype or other.device != self.device:
        raise TypeError(
            f"new() takes a Tensor of its own dtype ({self.dtype}) and device ({self.device}), and this one is of dtype "
            f"({other.dtype}) on the device ({other.device})."
        )
    return other[...]


def map_(self: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replaces each element by what a Python function makes of it and another tensor's; slow.

    As `torch.Tensor.map_`.

    Args:
        tensor (Tensor): The other tensor; broadcasts to this one's shape.
        callable (callable): `callable(own, other)` returns a number.

    Returns:
        Tensor: The tensor itself.

    Raises:
        RuntimeError: A tensor requires gradients.

    Example:
        >>> mica.tensor([1.0, 2.0]).map_(mica.tensor([3.0, 4.0]), lambda a, b: a + b)
        tensor([4., 6.])
    """
    return _mapped(self, (tensor,), callable)


def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """Replaces each element by what a Python function makes of it and two other tensors'; slow.

    As `torch.Tensor.map2_`.

    Args:
        x (Tensor): Broadcasts to this one's shape.
        y (Tensor): The third argument, likewise.
        callable (callable): `callable(own, of_x, of_y)` returns a number.

    Returns:
        Tensor: The tensor itself.

    Raises:
        RuntimeError: A tensor requires gradients.
    """
    return _mapped(self, (x, y), callable)


def _mapped(self: Tensor, others: tuple[Tensor, ...], function: Any) -> Tensor:
    if any(t.requires_grad for t in (self, *others)):
        name = "map_()" if len(others) == 1 else "map2_()"
        raise RuntimeError(
            f"Can't call {name} with a Tensor that requires grad: Python's function has none. Use detach()."
        )
    lists = [t.expand(self.shape).reshape(-1).tolist() for t in (self, *others)]
    return self.copy_(
        _C.tensor([function(*values) for values in zip(*lists)], dtype=self.dtype).reshape(self.shape)
    )


def module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """Returns what `Module.load_state_dict()` puts in this tensor's place.

    As `torch.Tensor.module_load`.

    Args:
        other (Tensor): The loaded tensor.
        assign (bool): Takes `other` itself. Default: False, this tensor with the values of `other`.

    Returns:
        Tensor: The tensor, without history.
    """
    return other.detach() if assign else self.detach().copy_(other)


def lu(self: Tensor, pivot: bool = True, get_infos: bool = False) -> Any:
    """Factors this matrix into a lower and an upper triangle; see `mica.lu`.

    Args:
        pivot (bool): Exchanges rows for stability; False raises RuntimeError on the CPU. Default: True.
        get_infos (bool): Returns a number for each matrix in place of raising LinAlgError. Default: False.

    Returns:
        tuple of Tensor: One matrix with U on and above the diagonal and L, without its ones, below it; the row
        exchanges; and with `get_infos` an int32 for each matrix, 0 for success.
    """
    import mica

    return mica.lu(self, pivot, get_infos)


def const_data_ptr(self: Tensor) -> int:
    """The address of the first element, as data_ptr(), to be read alone."""
    return self.data_ptr()


def storage_type(self: Tensor) -> Any:
    """The class of old storages of the dtype: `mica.FloatStorage`."""
    import mica

    return getattr(mica, self.type().rpartition(".")[2].replace("Tensor", "Storage"))


def _reinforce(self: Tensor, reward: Any) -> None:
    """Raises RuntimeError: torch removed it; use `log_prob()` of `mica.distributions`.

    Args:
        reward (Any): Ignored.
    """
    raise RuntimeError("Tensor.reinforce() went from torch long ago; use log_prob() of mica.distributions.")


def _refuse(name: str, there: str) -> Any:
    raise RuntimeError(
        f"This function was deprecated since version 1.9 and is now removed: {name}(); use mica.linalg.{there}()."
    )


def eig(self: Tensor, eigenvectors: bool = False) -> Any:
    """Raises RuntimeError: torch removed it; use `mica.linalg.eig`.

    Args:
        eigenvectors (bool): Ignored. Default: False.

    Returns:
        Tensor: Never.
    """
    _refuse("eig", "eig")


def symeig(self: Tensor, eigenvectors: bool = False) -> Any:
    """Raises RuntimeError: torch removed it; use `mica.linalg.eigh`.

    Args:
        eigenvectors (bool): Ignored. Default: False.

    Returns:
        Tensor: Never.
    """
    _refuse("symeig", "eigh")


def lstsq(self: Tensor, other: Tensor) -> Any:
    """Raises RuntimeError: torch removed it; use `mica.linalg.lstsq`.

    Args:
        other (Tensor): Ignored.

    Returns:
        Tensor: Never.
    """
    _refuse("lstsq", "lstsq")


def solve(self: Tensor, other: Tensor) -> Any:
    """Raises RuntimeError: torch removed it; use `mica.linalg.solve`.

    Args:
        other (Tensor): Ignored.

    Returns:
        Tensor: Never.
    """
    _refuse("solve", "solve")


def matrix_rank(self: Tensor, tol: float | None = None, symmetric: bool = False) -> Any:
    """Raises RuntimeError: torch removed it; use `mica.linalg.matrix_rank`.

    Args:
        tol (float, optional): Ignored.
        symmetric (bool): Ignored. Default: False.

    Returns:
        Tensor: Never.
    """
    _refuse("matrix_rank", "matrix_rank")


_C._add_tensor_attributes(
    {
        "eig": eig,
        "symeig": symeig,
        "lstsq": lstsq,
        "solve": solve,
        "resize": resize,
        "resize_as": resize_as,
        "new": new,
        "map_": map_,
        "map2_": map2_,
        "lu": lu,
        "module_load": module_load,
        "storage_type": storage_type,
        "reinforce": _reinforce,
        "const_data_ptr": const_data_ptr,
        "_typed_storage": lambda self: self.storage(),
        "_is_all_true": lambda self: self.all(),
        "_is_any_true": lambda self: self.any(),
        "__nonzero__": lambda self: bool(self),
        "__long__": lambda self: int(self),
        "_cdata": property(lambda self: id(self)),
        "_grad": property(lambda self: self.grad, lambda self, grad: setattr(self, "grad", grad)),
        "_grad_fn": property(lambda self: self.grad_fn),
        "_backward_hooks": None,
        "_post_accumulate_grad_hooks": None,
        "volatile": False,
    }
)
