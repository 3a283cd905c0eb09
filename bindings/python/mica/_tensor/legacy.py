"""Attributes of Tensor that torch keeps for old programs or for its own use, and that libraries ask for."""

from __future__ import annotations

from mica import _C
from mica._C import Tensor

TYPE_CHECKING = False  # importing typing takes as long as all of mica
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def resize(self: Tensor, *sizes: Any) -> Tensor:
    """A resized view of the same elements, as torch's deprecated resize() gives it."""
    import warnings

    warnings.warn("non-inplace resize is deprecated", UserWarning, stacklevel=2)
    shape = sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
    return self.reshape(tuple(shape))


def resize_as(self: Tensor, tensor: Tensor) -> Tensor:
    """resize() to the shape of another tensor."""
    return resize(self, tuple(tensor.shape))


def new(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """A tensor of this one's dtype and device: of sizes, undefined; of a storage, its memory; of data, a copy; of a
    tensor, a view."""
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
    """Replaces each element by callable(element, that of `tensor`); slow, for tests."""
    return _mapped(self, (tensor,), callable)


def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
    """Replaces each element by callable(element, those of `x` and `y`); slow, for tests."""
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
    """What load_state_dict() puts in this tensor's place: `other` itself with `assign`, else a copy in it."""
    return other.detach() if assign else self.detach().copy_(other)


def lu(self: Tensor, pivot: bool = True, get_infos: bool = False) -> Any:
    """mica.lu() of this matrix."""
    import mica

    return mica.lu(self, pivot, get_infos)


def storage_type(self: Tensor) -> Any:
    """The class of old storages of the dtype, as FloatStorage."""
    import mica

    return getattr(mica, self.type().rpartition(".")[2].replace("Tensor", "Storage"))


def _reinforce(self: Tensor, reward: Any) -> None:
    """Refuses: gradients through samples are those of mica.distributions."""
    raise RuntimeError("Tensor.reinforce() went from torch long ago; use log_prob() of mica.distributions.")


def _refuse(name: str, there: str) -> Any:
    raise RuntimeError(
        f"This function was deprecated since version 1.9 and is now removed: {name}(); use mica.linalg.{there}()."
    )


def eig(self: Tensor, eigenvectors: bool = False) -> Any:
    """Refuses: see mica.linalg.eig."""
    _refuse("eig", "eig")


def symeig(self: Tensor, eigenvectors: bool = False) -> Any:
    """Refuses: see mica.linalg.eigh."""
    _refuse("symeig", "eigh")


def lstsq(self: Tensor, other: Tensor) -> Any:
    """Refuses: see mica.linalg.lstsq."""
    _refuse("lstsq", "lstsq")


def solve(self: Tensor, other: Tensor) -> Any:
    """Refuses: see mica.linalg.solve."""
    _refuse("solve", "solve")


def matrix_rank(self: Tensor, tol: float | None = None, symmetric: bool = False) -> Any:
    """Refuses: see mica.linalg.matrix_rank."""
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
        "const_data_ptr": lambda self: self.data_ptr(),
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
