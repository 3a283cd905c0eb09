"""Dropout."""

from __future__ import annotations

from mica._C import Tensor
from mica.nn import functional as F
from mica.nn._operators import check_probability
from mica.nn.modules.module import Module


class _DropoutNd(Module):
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        check_probability(p)
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """Zeroes each element with probability p while training and divides the others by `1 - p`.

    So the mean stays; in evaluation mode the input passes unchanged (Hinton et al., 2012). As
    `torch.nn.Dropout`.

    Args:
        p (float): Probability, in [0, 1], that an element is zeroed. Default: 0.5.
        inplace (bool): Write the result into the input. Default: False.

    Shape:
        - Input and output: any shape, the same.

    Raises:
        ValueError: `p` is not in [0, 1].

    Example:
        >>> _ = mica.manual_seed(0)
        >>> layer = mica.nn.Dropout(0.5)
        >>> layer(mica.ones(6))
        tensor([0., 0., 2., 0., 0., 0.])
        >>> layer.eval()(mica.ones(6))
        tensor([1., 1., 1., 1., 1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """Zeroes whole channels of images with probability p while training and divides the others by `1 - p`.

    As `torch.nn.Dropout2d`, also in this: three dimensions are taken as `(N, C, L)`, with a warning. Give
    an image without a batch one of size 1.

    Args:
        p (float): Probability, in [0, 1], that a channel is zeroed. Default: 0.5.
        inplace (bool): Write the result into the input. Default: False.

    Shape:
        - Input and output: `(N, C, H, W)`, the same.

    Raises:
        ValueError: `p` is not in [0, 1].

    Example:
        >>> _ = mica.manual_seed(0)
        >>> mica.nn.Dropout2d(0.5)(mica.ones(1, 3, 2, 2))[0, :, 0, 0]
        tensor([0., 0., 2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    """Zeroes whole channels of sequences with probability p while training and divides the others by `1 - p`.

    For neighbouring elements so alike that `Dropout` of single ones would not regularise (Tompson et al.,
    2015). As `torch.nn.Dropout1d`.

    Args:
        p (float): Probability, in [0, 1], that a channel is zeroed. Default: 0.5.
        inplace (bool): Write the result into the input. Default: False.

    Shape:
        - Input and output: `(N, C, L)` or `(C, L)`, the same.

    Raises:
        ValueError: `p` is not in [0, 1].
        RuntimeError: The input has neither 2 nor 3 dimensions.

    Example:
        >>> _ = mica.manual_seed(0)
        >>> mica.nn.Dropout1d(0.5)(mica.ones(4, 2))
        tensor([[0., 0.],
                [0., 0.],
                [2., 2.],
                [0., 0.]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """Zeroes whole channels of volumes with probability p while training and divides the others by `1 - p`.

    As `torch.nn.Dropout3d`. Inputs of other dimensions give a warning.

    Args:
        p (float): Probability, in [0, 1], that a channel is zeroed. Default: 0.5.
        inplace (bool): Write the result into the input. Default: False.

    Shape:
        - Input and output: `(N, C, D, H, W)` or `(C, D, H, W)`, the same.

    Raises:
        ValueError: `p` is not in [0, 1].

    Example:
        >>> _ = mica.manual_seed(0)
        >>> mica.nn.Dropout3d(0.5)(mica.ones(3, 1, 2, 2))[:, 0, 0, 0]
        tensor([0., 0., 2.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """Dropout for networks of SELU: keeps mean 0 and variance 1 (Klambauer et al., 2017).

    While training, an element becomes with probability p the value that SELU gives for large negative ones,
    and a scale and a shift restore mean and variance. As `torch.nn.AlphaDropout`.

    Args:
        p (float): Probability, in [0, 1], that an element is replaced. Default: 0.5.
        inplace (bool): Write the result into the input. Default: False.

    Shape:
        - Input and output: any shape, the same.

    Raises:
        ValueError: `p` is not in [0, 1].

    Example:
        >>> _ = mica.manual_seed(0)
        >>> mica.nn.AlphaDropout(0.5)(mica.ones(4))
        tensor([-0.7792, -0.7792,  1.6656, -0.7792])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.alpha_dropout(input, self.p, self.training, self.inplace)


class FeatureAlphaDropout(_DropoutNd):
    """AlphaDropout of whole channels.

    As `torch.nn.FeatureAlphaDropout`.

    Args:
        p (float): Probability, in [0, 1], that a channel is replaced. Default: 0.5.
        inplace (bool): Write the result into the input. Default: False.

    Shape:
        - Input and output: `(N, C, *)`, where `*` is any number of dimensions, the same.

    Raises:
        ValueError: `p` is not in [0, 1].
        RuntimeError: The input has fewer than 2 dimensions.

    Example:
        >>> _ = mica.manual_seed(0)
        >>> mica.nn.FeatureAlphaDropout(0.5)(mica.ones(1, 4, 2))[0, :, 0]
        tensor([-0.7792, -0.7792,  1.6656, -0.7792])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.feature_alpha_dropout(input, self.p, self.training, self.inplace)
