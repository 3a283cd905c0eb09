"""Embeddings of mica.nn.functional: rows of a table, looked up one by one or in bags."""

from __future__ import annotations

import mica
from mica._C import Tensor
from mica.nn._operators import OPERATORS, checked_padding, values_known


def _limit_rows(weight: Tensor, rows: Tensor, max_norm: float, norm_type: float) -> None:
    """Scales the rows that are looked up, in place, to a norm of at most max_norm."""
    with mica.no_grad():
        used = rows.reshape(-1).unique()
        values = weight[used]
        norms = mica.linalg_vector_norm(values, norm_type, 1, True)
        factor = mica.where(norms > max_norm, max_norm / (norms + 1e-7), mica.ones_like(norms))
        weight[used] = values * factor


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Looks up rows of a table by index: `weight[input]`.

    As `torch.nn.functional.embedding`.

    Args:
        input (Tensor): Indices of rows, int64 or int32, of any shape.
        weight (Tensor): The table, `(rows, E)`.
        padding_idx (int, optional): Row that gets no gradient; negative ones count from the end.
            Default: None.
        max_norm (float, optional): Rows that are looked up and have a larger norm are first scaled
            down to it, in `weight` itself. Default: None.
        norm_type (float): Order of that norm. Default: 2.
        scale_grad_by_freq (bool): Divide the gradient of a row by how often `input` names it.
            Default: False.
        sparse (bool): Give `weight` a sparse gradient. Default: False.

    Returns:
        Tensor: `(*input.shape, E)`.

    Raises:
        IndexError: An index is not in [0, rows).
        AssertionError: `padding_idx` is no row.
        RuntimeError: `input` is neither int64 nor int32, or `weight` is no matrix.

    Example:
        >>> table = mica.tensor([[0.0, 0.0], [1.0, 10.0], [2.0, 20.0]])
        >>> mica.nn.functional.embedding(mica.tensor([2, 1, 2]), table)
        tensor([[ 2., 20.],
                [ 1., 10.],
                [ 2., 20.]])
    """
    if max_norm is not None:
        _limit_rows(weight, input, max_norm, norm_type)
    padding = -1 if padding_idx is None else checked_padding(padding_idx, weight.size(0))
    return OPERATORS["embedding"](weight, input, padding, scale_grad_by_freq, sparse)


def _check_offsets(offsets: Tensor, length: int) -> None:
    """Raises where the first bag does not begin at the first index, or the last one beyond the end."""
    if not values_known(offsets):
        return
    first, last = offsets[0].item(), offsets[-1].item()
    if first != 0:
        raise RuntimeError(f"offsets[0] has to be 0, where the first bag begins; it is ({first}).")
    if last > length:
        raise RuntimeError(f"offsets[-1] can not be greater than input's length ({length}); it is ({last}).")


_BAG_MODES = {"sum": 0, "mean": 1, "max": 2}


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """Sum, mean or maximum of the rows of a table that each bag of indices names.

    As `torch.nn.functional.embedding_bag`: `embedding` and a reduction, without the rows in memory.

    Args:
        input (Tensor): Indices of rows: `(B, L)`, each row a bag, or `(L)`, cut by `offsets`.
        weight (Tensor): The table, `(rows, E)`.
        offsets (Tensor, optional): `(B)`: where each bag begins in a 1-d `input`; the first is 0.
            Default: None.
        max_norm (float, optional): Rows that are looked up and have a larger norm are first scaled
            down to it, in `weight` itself. Default: None.
        norm_type (float): Order of that norm. Default: 2.
        scale_grad_by_freq (bool): Divide the gradient of a row by how often `input` names it. Not
            with mode max. Default: False.
        mode (str): `"sum"`, `"mean"` or `"max"`. Default: `"mean"`.
        sparse (bool): Give `weight` a sparse gradient. Not with mode max. Default: False.
        per_sample_weights (Tensor, optional): Factors of the rows, of the shape of `input`; with mode
            sum alone. Default: None.
        include_last_offset (bool): `offsets` has one more element, where the last bag ends.
            Default: False.
        padding_idx (int, optional): Row that counts in no bag and gets no gradient. Default: None.

    Returns:
        Tensor: `(B, E)`; zeros for an empty bag.

    Raises:
        ValueError: The mode is unknown, shapes do not fit, `offsets` is missing for a vector or
            given for a matrix, or mode max is combined with what it excludes.
        NotImplementedError: `per_sample_weights` with another mode than sum.
        RuntimeError: An index is not in [0, rows), or `offsets` does not begin with 0 or ends beyond
            `input`.

    Example:
        >>> table = mica.tensor([[0.0, 0.0], [1.0, 10.0], [2.0, 20.0]])
        >>> bags = mica.tensor([[1, 2], [0, 1]])
        >>> mica.nn.functional.embedding_bag(bags, table)
        tensor([[ 1.5000, 15.0000],
                [ 0.5000,  5.0000]])
        >>> mica.nn.functional.embedding_bag(mica.tensor([1, 2, 1]), table, mica.tensor([0, 2]), mode="sum")
        tensor([[ 3., 30.],
                [ 1., 10.]])
    """
    if mode not in _BAG_MODES:
        raise ValueError(f"The mode ({mode}) is unknown; expected sum, mean or max.")
    if per_sample_weights is not None and per_sample_weights.shape != input.shape:
        raise ValueError(
            f"Shape {tuple(per_sample_weights.shape)} of `per_sample_weights` differs from that {tuple(input.shape)} of `input`."
        )
    if weight.ndim != 2:
        raise ValueError(f"Number of dimensions ({weight.ndim}) of `weight` is not 2.")
    if mode == "max" and (scale_grad_by_freq or sparse):
        raise ValueError("Mode (max) has neither gradients scaled by frequency nor sparse ones.")
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(f"Weights of samples for mode ({mode}) do not exist; use mode sum.")
    if input.ndim == 2:
        if offsets is not None:
            raise ValueError(
                "Argument `offsets` has no meaning for a matrix of indices, whose rows are bags."
            )
        offsets = mica.arange(0, input.numel(), max(input.size(1), 1), dtype=input.dtype, device=input.device)
        input = input.reshape(-1)
        include_last_offset = False
        per_sample_weights = None if per_sample_weights is None else per_sample_weights.reshape(-1)
    elif input.ndim != 1:
        raise ValueError(f"Number of dimensions ({input.ndim}) of `input` is not 1 or 2.")
    elif offsets is None or offsets.ndim != 1:
        raise ValueError("A vector of indices needs a vector `offsets`: where each bag begins.")
    else:
        _check_offsets(offsets, input.size(0))
    if max_norm is not None:
        _limit_rows(weight, input, max_norm, norm_type)
    return OPERATORS["embedding_bag"](
        weight,
        input,
        offsets,
        scale_grad_by_freq,
        _BAG_MODES[mode],
        sparse,
        per_sample_weights,
        include_last_offset,
        padding_idx,
    )[0]
