"""Dropout of mica.nn.functional: of elements, of whole channels, and for selu."""

from __future__ import annotations

import warnings

from mica._C import Tensor
from mica.nn._operators import OPERATORS, check_probability


def _dropout(name: str, input: Tensor, p: float, training: bool, inplace: bool) -> Tensor:
    check_probability(p)
    return OPERATORS[name + "_" if inplace else name](input, p, training)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes elements at random and divides the others by `1 - p`, so that the expected value stays.

    As `torch.nn.functional.dropout`. The default generator draws.

    Args:
        input (Tensor): Floating, of any shape.
        p (float): Probability of zero for each element, in [0, 1]. Default: 0.5.
        training (bool): False returns `input` as it is. Default: True.
        inplace (bool): Overwrite `input` with the result. Default: False.

    Returns:
        Tensor: Of the shape and dtype of `input`.

    Raises:
        ValueError: `p` is not in [0, 1].
        RuntimeError: `input` holds integers, in training.

    Example:
        >>> _ = mica.manual_seed(0)
        >>> mica.nn.functional.dropout(mica.ones(8), p=0.5)
        tensor([0., 0., 2., 0., 0., 0., 2., 2.])
    """
    return _dropout("dropout", input, p, training, inplace)


def _channel_dropout(input: Tensor, dims: int, p: float, training: bool, inplace: bool) -> Tensor:
    if input.ndim not in (dims + 1, dims + 2):
        text = f"Number of dimensions ({input.ndim}) of `input` is not ({dims + 1}) or ({dims + 2})."
        if dims == 1:
            raise RuntimeError(text)
        warnings.warn(f"{text} The first counts as that of the channels.", stacklevel=4)
    if input.ndim == dims + 2:
        return _dropout("feature_dropout", input, p, training, inplace)
    return _dropout("feature_dropout", input.unsqueeze(0), p, training, inplace).squeeze(0)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes whole channels of sequences at random and divides the others by `1 - p`.

    As `torch.nn.functional.dropout1d`.

    Args:
        input (Tensor): `(N, C, L)` or `(C, L)`, floating.
        p (float): Probability of zero for each channel of each sample, in [0, 1]. Default: 0.5.
        training (bool): False returns `input` as it is. Default: True.
        inplace (bool): Overwrite `input` with the result. Default: False.

    Returns:
        Tensor: Of the shape and dtype of `input`.

    Raises:
        ValueError: `p` is not in [0, 1].
        RuntimeError: `input` has neither 2 nor 3 dimensions.

    Example:
        >>> _ = mica.manual_seed(0)
        >>> mica.nn.functional.dropout1d(mica.ones(3, 4))
        tensor([[0., 0., 0., 0.],
                [0., 0., 0., 0.],
                [2., 2., 2., 2.]])
    """
    return _channel_dropout(input, 1, p, training, inplace)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes whole channels of images at random and divides the others by `1 - p`.

    As `torch.nn.functional.dropout2d`: the first two dimensions are batch and channels, whatever the
    number of the others. With other than 4 dimensions it warns.

    Args:
        input (Tensor): `(N, C, H, W)`, floating.
        p (float): Probability of zero for each channel of each sample, in [0, 1]. Default: 0.5.
        training (bool): False returns `input` as it is. Default: True.
        inplace (bool): Overwrite `input` with the result. Default: False.

    Returns:
        Tensor: Of the shape and dtype of `input`.

    Raises:
        ValueError: `p` is not in [0, 1].
        RuntimeError: `input` has fewer than 2 dimensions, in training.

    Example:
        >>> _ = mica.manual_seed(0)
        >>> mica.nn.functional.dropout2d(mica.ones(1, 6, 2, 2))[0, :, 0, 0]
        tensor([0., 0., 2., 0., 0., 0.])
    """
    if input.ndim != 4:
        what = (
            "(N, C, L), as dropout1d() does"
            if input.ndim == 3
            else f"({input.ndim}) dimensions, which dropout() is for"
        )
        warnings.warn(f"dropout2d() was called with a tensor of {what}; expected (N, C, H, W).", stacklevel=2)
    return _dropout("feature_dropout", input, p, training, inplace)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Zeroes whole channels of volumes at random and divides the others by `1 - p`.

    As `torch.nn.functional.dropout3d`. With other than 4 or 5 dimensions it warns and takes the first
    for the channels.

    Args:
        input (Tensor): `(N, C, D, H, W)` or `(C, D, H, W)`, floating.
        p (float): Probability of zero for each channel of each sample, in [0, 1]. Default: 0.5.
        training (bool): False returns `input` as it is. Default: True.
        inplace (bool): Overwrite `input` with the result. Default: False.

    Returns:
        Tensor: Of the shape and dtype of `input`.

    Raises:
        ValueError: `p` is not in [0, 1].

    Example:
        >>> _ = mica.manual_seed(0)
        >>> mica.nn.functional.dropout3d(mica.ones(6, 2, 2, 2))[:, 0, 0, 0]
        tensor([0., 0., 2., 0., 0., 0.])
    """
    return _channel_dropout(input, 3, p, training, inplace)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout for selu: what it drops takes selu's limit, and mean 0 and variance 1 stay.

    As `torch.nn.functional.alpha_dropout`.

    Args:
        input (Tensor): Floating, of any shape.
        p (float): Probability with which each element is dropped, in [0, 1]. Default: 0.5.
        training (bool): False returns `input` as it is. Default: False.
        inplace (bool): Overwrite `input` with the result. Default: False.

    Returns:
        Tensor: Of the shape and dtype of `input`.

    Raises:
        ValueError: `p` is not in [0, 1].

    Example:
        >>> _ = mica.manual_seed(0)
        >>> mica.nn.functional.alpha_dropout(mica.ones(4), training=True)
        tensor([-0.7792, -0.7792,  1.6656, -0.7792])
    """
    return _dropout("alpha_dropout", input, p, training, inplace)


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """alpha_dropout of whole channels: all elements of a channel stay, or none does.

    As `torch.nn.functional.feature_alpha_dropout`.

    Args:
        input (Tensor): `(N, C, ...)`, floating.
        p (float): Probability with which each channel of each sample is dropped, in [0, 1]. Default: 0.5.
        training (bool): False returns `input` as it is. Default: False.
        inplace (bool): Overwrite `input` with the result. Default: False.

    Returns:
        Tensor: Of the shape and dtype of `input`.

    Raises:
        ValueError: `p` is not in [0, 1].
        RuntimeError: `input` has fewer than 2 dimensions, in training.

    Example:
        >>> _ = mica.manual_seed(0)
        >>> mica.nn.functional.feature_alpha_dropout(mica.ones(1, 4, 2), training=True)
        tensor([[[-0.7792, -0.7792],
                 [-0.7792, -0.7792],
                 [ 1.6656,  1.6656],
                 [-0.7792, -0.7792]]])
    """
    return _dropout("feature_alpha_dropout", input, p, training, inplace)
