"""Helpers of the distributions: broadcast parameters, probabilities and logits, lazy properties."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any

import mica
from mica._C import Tensor

euler_constant = 0.57721566490153286060


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Makes tensors of one shape: numbers become tensors of the dtype and device of the first tensor given.

    As `torch.distributions.utils.broadcast_all`.

    Args:
        *values (Tensor or number): What to broadcast; without a Tensor they take the default dtype.

    Returns:
        tuple of Tensor: Views of the broadcast shape.

    Raises:
        ValueError: A value is neither a Tensor nor a number.

    Example:
        >>> mica.distributions.utils.broadcast_all(mica.zeros(2), 1.0)
        (tensor([0., 0.]), tensor([1., 1.]))
    """
    for v in values:
        if not isinstance(v, (Tensor, int, float, complex)):
            raise ValueError(
                f"A parameter is a Tensor or a number; this one is of type ({type(v).__name__})."
            )
    tensors = [v for v in values if isinstance(v, Tensor)]
    options: dict[str, Any] = {"dtype": mica.get_default_dtype()}
    if tensors:
        options = {"dtype": tensors[0].dtype, "device": tensors[0].device}
    made = [v if isinstance(v, Tensor) else mica.tensor(v, **options) for v in values]
    return tuple(mica.broadcast_tensors(*made))


def _standard_normal(shape: Any, dtype: Any, device: Any) -> Tensor:
    return mica.normal(
        mica.zeros(shape, dtype=dtype, device=device), mica.ones(shape, dtype=dtype, device=device)
    )


def _sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """The sum over the last `dim` dimensions."""
    return value if dim == 0 else value.reshape(*value.shape[: value.dim() - dim], -1).sum(-1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Keeps probabilities off 0 and 1 by the dtype's epsilon, so that their logarithms are finite.

    As `torch.distributions.utils.clamp_probs`.

    Args:
        probs (Tensor): Probabilities in [0, 1], floating.

    Returns:
        Tensor: Of the shape of `probs`.

    Example:
        >>> mica.distributions.utils.clamp_probs(mica.tensor([0.0, 0.5])).log()
        tensor([-15.9424,  -0.6931])
    """
    eps = mica.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities from logits: the sigmoid of log odds, or the softmax of log probabilities.

    As `torch.distributions.utils.logits_to_probs`.

    Args:
        logits (Tensor): Log odds, or log probabilities along the last dimension.
        is_binary (bool): They are log odds. Default: False.

    Returns:
        Tensor: Probabilities, of the shape of `logits`.

    Example:
        >>> mica.distributions.utils.logits_to_probs(mica.tensor([0.0, 0.0]))
        tensor([0.5000, 0.5000])
    """
    return mica.sigmoid(logits) if is_binary else logits.softmax(-1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Logits from probabilities: log odds, or log probabilities, kept finite.

    As `torch.distributions.utils.probs_to_logits`.

    Args:
        probs (Tensor): Probabilities in [0, 1].
        is_binary (bool): Return log odds. Default: False.

    Returns:
        Tensor: Of the shape of `probs`.

    Example:
        >>> mica.distributions.utils.probs_to_logits(mica.tensor([0.5, 0.25]), is_binary=True)
        tensor([ 0.0000, -1.0986])
    """
    ps = clamp_probs(probs)
    return mica.log(ps) - mica.log1p(-ps) if is_binary else mica.log(ps)


class lazy_property:
    """Decorator: a property that is computed on first use, with gradients on, and kept in the instance.

    As `torch.distributions.utils.lazy_property`.

    Args:
        wrapped (callable): The method, without arguments.

    Example:
        >>> class Circle:
        ...     @mica.distributions.utils.lazy_property
        ...     def area(self):
        ...         print("computed")
        ...         return mica.tensor(3.0)
        >>> circle = Circle()
        >>> circle.area
        computed
        tensor(3.)
        >>> circle.area
        tensor(3.)
    """

    def __init__(self, wrapped: Callable[[Any], Any]) -> None:
        self.wrapped = wrapped
        update_wrapper(self, wrapped)  # type: ignore[arg-type]

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return property(self.wrapped)
        with mica.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The elements of the lower triangle of matrices, row by row.

    As `torch.distributions.utils.tril_matrix_to_vec`.

    Args:
        mat (Tensor): `(*, K, K)`.
        diag (int): Last diagonal that is taken: 0 the main one, -1 that below it. Default: 0.

    Returns:
        Tensor: `(*, elements)`.

    Example:
        >>> mica.distributions.utils.tril_matrix_to_vec(mica.tensor([[1, 2], [3, 4]]))
        tensor([1, 3, 4])
    """
    rows, columns = mica.tril_indices(mat.shape[-2], mat.shape[-1], diag)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Lower triangular matrices of these elements, row by row: the inverse of tril_matrix_to_vec.

    As `torch.distributions.utils.vec_to_tril_matrix`.

    Args:
        vec (Tensor): `(*, elements)`.
        diag (int): Last diagonal that is filled: 0 the main one, -1 that below it. Default: 0.

    Returns:
        Tensor: `(*, K, K)`.

    Raises:
        ValueError: No triangle has this number of elements.

    Example:
        >>> mica.distributions.utils.vec_to_tril_matrix(mica.tensor([1, 2, 3]))
        tensor([[1, 0],
                [2, 3]])
    """
    n = (-(1 + 2 * diag) + ((1 + 2 * diag) ** 2 + 8 * vec.shape[-1] + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    if abs(n - round(n)) > 1e-8:
        raise ValueError(f"{vec.shape[-1]} elements make no lower triangle with the diagonal ({diag}).")
    size = round(n)
    rows, columns = mica.tril_indices(size, size, diag)
    places = (rows * size + columns).expand(vec.shape)
    flat = vec.new_zeros((*vec.shape[:-1], size * size))
    return flat.scatter(-1, places, vec).reshape(*vec.shape[:-1], size, size)
