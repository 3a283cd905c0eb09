"""Losses of one prediction and one target: modules around the functional forms."""

from __future__ import annotations

import dataclasses
import math
import warnings
from typing import Any

from mica._C import Tensor
from mica.nn import functional as F
from mica.nn.modules.linear import Linear
from mica.nn.modules.module import Module


def _reduction(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """`reduction`, unless one of the two arguments that said it before is given."""
    if size_average is None and reduce is None:
        return reduction
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


class _Loss(Module):
    def __init__(
        self, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
    ) -> None:
        super().__init__()
        self.reduction = _reduction(size_average, reduce, reduction)


class _WeightedLoss(_Loss):
    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class L1Loss(_Loss):
    """Mean absolute error: `|input - target|`.

    As `torch.nn.L1Loss`.

    Args:
        size_average (bool, optional): Deprecated; False asks for "sum", True for "mean". Default: None.
        reduce (bool, optional): Deprecated; False asks for "none". Default: None.
        reduction (str): "mean" of all elements, "sum", or "none" to leave a loss for each. Default: "mean".

    Shape:
        - input, target: any shape, the same.
        - Output: a scalar; with reduction "none" the input's shape.

    Raises:
        ValueError: The module is called and `reduction` is unknown.
        RuntimeError: The shapes cannot be broadcast; where they can, a warning says that they differ.

    Example:
        >>> mica.nn.L1Loss()(mica.tensor([1.0, 2.0, 5.0]), mica.tensor([1.0, 0.0, 2.0]))
        tensor(1.6667)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(input, target, reduction=self.reduction)


class MSELoss(_Loss):
    """Mean squared error: `(input - target) ** 2`.

    As `torch.nn.MSELoss`.

    Args:
        size_average (bool, optional): Deprecated; False asks for "sum", True for "mean". Default: None.
        reduce (bool, optional): Deprecated; False asks for "none". Default: None.
        reduction (str): "mean" of all elements, "sum", or "none" to leave a loss for each. Default: "mean".

    Shape:
        - input, target: any shape, the same.
        - Output: a scalar; with reduction "none" the input's shape.

    Raises:
        ValueError: The module is called and `reduction` is unknown.
        RuntimeError: The shapes cannot be broadcast; where they can, a warning says that they differ.

    Example:
        >>> mica.nn.MSELoss()(mica.tensor([1.0, 2.0, 5.0]), mica.tensor([1.0, 0.0, 2.0]))
        tensor(4.3333)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """Squared error where it is small and absolute error where it is large, scaled to a slope of 1.

    With `d = |input - target|`: `0.5 * d ** 2 / beta` where `d < beta`, else `d - 0.5 * beta`. It is
    `HuberLoss` divided by `beta`. As `torch.nn.SmoothL1Loss`.

    Args:
        size_average (bool, optional): Deprecated; False asks for "sum", True for "mean". Default: None.
        reduce (bool, optional): Deprecated; False asks for "none". Default: None.
        reduction (str): "mean" of all elements, "sum", or "none" to leave a loss for each. Default: "mean".
        beta (float): Where the square ends; 0 or more, and 0 gives `L1Loss`. Default: 1.

    Shape:
        - input, target: any shape, the same.
        - Output: a scalar; with reduction "none" the input's shape.

    Raises:
        ValueError: The module is called and `reduction` is unknown.
        RuntimeError: The module is called and `beta` is negative, or the shapes cannot be broadcast.

    Example:
        >>> loss = mica.nn.SmoothL1Loss(reduction="none")
        >>> loss(mica.tensor([1.0, 0.5, 5.0]), mica.tensor([1.0, 0.0, 2.0]))
        tensor([0.0000, 0.1250, 2.5000])
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """Squared error where it is small and absolute error where it is large.

    With `d = |input - target|`: `0.5 * d ** 2` where `d < delta`, else `delta * (d - 0.5 * delta)`. As
    `torch.nn.HuberLoss`.

    Args:
        reduction (str): "mean" of all elements, "sum", or "none" to leave a loss for each. Default: "mean".
        delta (float): Where the square ends; positive. Default: 1.

    Shape:
        - input, target: any shape, the same.
        - Output: a scalar; with reduction "none" the input's shape.

    Raises:
        ValueError: The module is called and `reduction` is unknown.
        RuntimeError: The module is called and `delta` is not positive, or the shapes cannot be broadcast.

    Example:
        >>> loss = mica.nn.HuberLoss(reduction="none", delta=2.0)
        >>> loss(mica.tensor([1.0, 1.0, 5.0]), mica.tensor([1.0, 0.0, 2.0]))
        tensor([0.0000, 0.5000, 4.0000])
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class KLDivLoss(_Loss):
    """Kullback-Leibler divergence of the target from the input: `target * (log(target) - input)`.

    The input holds log probabilities. As `torch.nn.KLDivLoss`, without its warning about "mean".

    Args:
        size_average (bool, optional): Deprecated; False asks for "sum", True for "mean". Default: None.
        reduce (bool, optional): Deprecated; False asks for "none". Default: None.
        reduction (str): "batchmean", the divergence: the sum divided by the size of dimension 0; "mean" of
            all elements; "sum"; or "none". Default: "mean".
        log_target (bool): Whether the target, too, holds log probabilities. Default: False.

    Shape:
        - input, target: any shape, the same.
        - Output: a scalar; with reduction "none" the input's shape.

    Raises:
        ValueError: The module is called and `reduction` is unknown.

    Example:
        >>> target = mica.tensor([[0.5, 0.5], [0.25, 0.75]])
        >>> input = mica.tensor([[0.25, 0.75], [0.5, 0.5]]).log()
        >>> mica.nn.KLDivLoss(reduction="batchmean")(input, target)
        tensor(0.1373)
    """

    def __init__(
        self,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class BCELoss(_WeightedLoss):
    """Binary cross entropy of probabilities: `-(target * log(input) + (1 - target) * log(1 - input))`.

    As `torch.nn.BCELoss`. The logarithms end at -100. `BCEWithLogitsLoss` takes what precedes a sigmoid and
    is more exact.

    Args:
        weight (Tensor, optional): A factor of each element's loss, of a shape that broadcasts to the
            input's. Default: None.
        size_average (bool, optional): Deprecated; False asks for "sum", True for "mean". Default: None.
        reduce (bool, optional): Deprecated; False asks for "none". Default: None.
        reduction (str): "mean" of all elements, "sum", or "none" to leave a loss for each. Default: "mean".

    Shape:
        - input, target: any shape, the same.
        - Output: a scalar; with reduction "none" the input's shape.

    Raises:
        ValueError: The shapes differ, or `reduction` is unknown.
        RuntimeError: On the CPU, an element of input or target is not in [0, 1].

    Example:
        >>> mica.nn.BCELoss()(mica.tensor([0.5, 0.25]), mica.tensor([1.0, 0.0]))
        tensor(0.4904)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """Binary cross entropy of logits: `BCELoss` of `sigmoid(input)`, computed without overflow.

    As `torch.nn.BCEWithLogitsLoss`.

    Args:
        weight (Tensor, optional): A factor of each element's loss, of a shape that broadcasts to the
            input's. Default: None.
        size_average (bool, optional): Deprecated; False asks for "sum", True for "mean". Default: None.
        reduce (bool, optional): Deprecated; False asks for "none". Default: None.
        reduction (str): "mean" of all elements, "sum", or "none" to leave a loss for each. Default: "mean".
        pos_weight (Tensor, optional): A factor of the loss where the target is 1, of a shape that broadcasts
            to the input's; for rare positives take negatives / positives. Default: None.

    Shape:
        - input, target: any shape, the same.
        - Output: a scalar; with reduction "none" the input's shape.

    Raises:
        ValueError: The shapes differ, or `reduction` is unknown.
        RuntimeError: A weight's shape does not broadcast to the input's.

    Example:
        >>> mica.nn.BCEWithLogitsLoss()(mica.tensor([0.0, 2.0]), mica.tensor([1.0, 0.0]))
        tensor(1.4100)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction
        )


class NLLLoss(_WeightedLoss):
    """Negative log likelihood of classes: `-weight[target] * input[target]` for each sample.

    The input holds log probabilities, as `LogSoftmax` gives them; `CrossEntropyLoss` takes logits. As
    `torch.nn.NLLLoss`.

    Args:
        weight (Tensor, optional): A factor for each class, `(C,)`. Default: ones.
        size_average (bool, optional): Deprecated; False asks for "sum", True for "mean". Default: None.
        ignore_index (int): Targets of this value have loss 0 and no share in the mean. Default: -100.
        reduce (bool, optional): Deprecated; False asks for "none". Default: None.
        reduction (str): "mean", the sum divided by the sum of the targets' weights; "sum"; or "none" to
            leave a loss for each sample. Default: "mean".

    Shape:
        - input: `(N, C)`, `(C,)`, or `(N, C, *)`, with a prediction at each place of `*`.
        - target: class indices from 0 to `C - 1`, int64 or uint8: `(N,)`, `()` or `(N, *)`.
        - Output: a scalar; with reduction "none" the target's shape.

    Raises:
        IndexError: A target is no class and not `ignore_index`.
        ValueError: The batch sizes differ, or `reduction` is unknown.
        RuntimeError: The target has another dtype, or `weight` another size.

    Example:
        >>> log_probs = mica.tensor([[0.5, 0.25, 0.25], [0.125, 0.5, 0.375]]).log()
        >>> mica.nn.NLLLoss()(log_probs, mica.tensor([0, 1]))
        tensor(0.6931)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(
            input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction
        )


class NLLLoss2d(NLLLoss):
    """`NLLLoss` by its old name for images; deprecated.

    As `torch.nn.NLLLoss2d`. Making one gives a FutureWarning.

    Args:
        weight (Tensor, optional): A factor for each class, `(C,)`. Default: ones.
        size_average (bool, optional): Deprecated; False asks for "sum", True for "mean". Default: None.
        ignore_index (int): Targets of this value have loss 0 and no share in the mean. Default: -100.
        reduce (bool, optional): Deprecated; False asks for "none". Default: None.
        reduction (str): "mean", the sum divided by the sum of the targets' weights; "sum"; or "none" to
            leave a loss for each pixel. Default: "mean".

    Shape:
        - input: `(N, C, H, W)`.
        - target: class indices from 0 to `C - 1`, `(N, H, W)`.
        - Output: a scalar; with reduction "none" the target's shape.

    Example:
        >>> loss = mica.nn.NLLLoss2d()
        >>> loss(mica.zeros(1, 3, 2, 2), mica.zeros(1, 2, 2, dtype=mica.int64)).shape
        mica.Size([])
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        text = "NLLLoss2d has been deprecated. Please use NLLLoss instead."
        warnings.warn(text, FutureWarning, stacklevel=2)
        super().__init__(weight, size_average, ignore_index, reduce, reduction)


class CrossEntropyLoss(_WeightedLoss):
    """Cross entropy of logits against classes: `-log(softmax(input))[target]` for each sample.

    The target holds class indices, or for each sample the probabilities of all classes. As
    `torch.nn.CrossEntropyLoss`.

    Args:
        weight (Tensor, optional): A factor for each class, `(C,)`. Default: ones.
        size_average (bool, optional): Deprecated; False asks for "sum", True for "mean". Default: None.
        ignore_index (int): Targets of this value have loss 0 and no share in the mean; for indices only.
            Default: -100.
        reduce (bool, optional): Deprecated; False asks for "none". Default: None.
        reduction (str): "mean", for indices the sum divided by the sum of the targets' weights, for
            probabilities by the number of samples; "sum"; or "none" to leave a loss for each sample.
            Default: "mean".
        label_smoothing (float): Share, in [0, 1], of the target that is spread over all classes. Default: 0.

    Shape:
        - input: `(N, C)`, `(C,)`, or `(N, C, *)`, with a prediction at each place of `*`.
        - target: class indices from 0 to `C - 1`, int64 or uint8: `(N,)`, `()` or `(N, *)`; or
          probabilities, floating, in the input's shape.
        - Output: a scalar; with reduction "none" `(N,)`, `()` or `(N, *)`.

    Raises:
        IndexError: A target is no class and not `ignore_index`.
        ValueError: The batch sizes differ, or `reduction` is unknown.
        RuntimeError: The target has another dtype, `weight` another size, `label_smoothing` is not in
            [0, 1], or `ignore_index` is given for probabilities.

    Example:
        >>> logits = mica.tensor([[2.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
        >>> mica.nn.CrossEntropyLoss()(logits, mica.tensor([0, 2]))
        tensor(0.8955)
        >>> mica.nn.CrossEntropyLoss()(logits, mica.tensor([[1.0, 0.0, 0.0], [0.0, 0.5, 0.5]]))
        tensor(0.6455)
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        ignore_index: int = -100,
        reduce: bool | None = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class LinearCrossEntropyLoss(_WeightedLoss):
    """The last linear layer of a classifier and its cross entropy in one module.

    `cross_entropy(linear(input), target)`, and the layer's weight is the module's parameter. As
    `torch.nn.LinearCrossEntropyLoss`; Mica computes the logits whole whatever `options` say.

    Args:
        in_features (int): Features of a sample.
        num_classes (int): Number of classes, C.
        out_features (tuple of int): Shape of the predictions that each sample makes. Default: `()`, one.
        bias (bool): Whether the layer has a bias. Default: False.
        device (device, optional): Where the parameters live. Default: the default device.
        dtype (dtype, optional): Of the parameters. Default: the default dtype.
        reduction (str): "mean", which divides by the sum of the targets' weights, of probabilities by the
            number of samples; "sum"; or "none" to leave a loss for each prediction. Default: "mean".
        weight (Tensor, optional): A factor for each class, `(C,)`. Default: ones.
        ignore_index (int, optional): Targets of this value have loss 0 and no share in the mean; for
            indices only. Default: -100.
        label_smoothing (float): Share, in [0, 1], of the target that is spread over all classes. Default: 0.
        options (LinearCrossEntropyOptions, optional): If given, half precision is computed in float32.
            Default: None.

    Attributes:
        linear (Linear): The layer, with `C * product of out_features` outputs, which reshaped to
            `(N, C, *out_features)` are the logits.

    Shape:
        - input: `(N, in_features)`, or `(in_features,)` if `out_features` is empty.
        - target: class indices, `(N, *out_features)` or `()`; or probabilities, `(N, C, *out_features)`
          or `(C,)`.
        - Output: a scalar; with reduction "none" `(N, *out_features)` or `()`.

    Raises:
        ValueError: The module is called and `reduction` is unknown.
        RuntimeError: A shape does not fit, `label_smoothing` is not in [0, 1], or `ignore_index` is given
            for probabilities.
        IndexError: A target is no class and not `ignore_index`.

    Example:
        >>> loss = mica.nn.LinearCrossEntropyLoss(in_features=4, num_classes=3)
        >>> loss(mica.ones(2, 4), mica.tensor([0, 2])).shape
        mica.Size([])
    """

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device: Any = None,
        dtype: Any = None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: Any = None,
    ) -> None:
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(f"Shape {tuple(weight.shape)} of `weight` is not ({num_classes},).")
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(f"label_smoothing ({label_smoothing}) is not between 0 and 1.")
        super().__init__(weight=weight, reduction=reduction)
        self.num_classes = num_classes
        self.out_features = out_features
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        rows = math.prod(out_features, start=num_classes)
        self.linear = Linear(in_features, rows, bias=bias, device=device, dtype=dtype)
        self.options = options

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        shape = (self.num_classes, *self.out_features)
        bias = self.linear.bias
        return F.linear_cross_entropy(
            input,
            self.linear.weight.reshape((*shape, self.linear.in_features)),
            target,
            linear_bias=None if bias is None else bias.reshape(shape),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self) -> str:
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, "
            f"out_features={self.out_features}, bias={self.linear.bias is not None}, reduction={self.reduction}, "
            f"ignore_index={self.ignore_index}, label_smoothing={self.label_smoothing}, options={self.options}"
        )


@dataclasses.dataclass(frozen=True)
class LinearCrossEntropyOptions:
    """How torch splits `linear_cross_entropy` into chunks of the batch, for programs that say so.

    As `torch.nn.LinearCrossEntropyOptions`, but the values are not checked. Mica computes the loss whole; if
    options are given, it computes half precision in float32.

    Args:
        allow_retain_graph (bool): Kept and not used. Default: False.
        batch_chunk_size (int, optional): Kept and not used. Default: None.
        chunking_method (str, optional): Kept and not used. Default: "auto".
        acc_policy (str): Kept and not used. Default: "auto".
        acc_dtype (dtype, optional): Kept and not used. Default: None.

    Example:
        >>> options = mica.nn.LinearCrossEntropyOptions(batch_chunk_size=256)
        >>> mica.nn.LinearCrossEntropyLoss(4, 3, options=options)(mica.ones(2, 4), mica.tensor([0, 2])).shape
        mica.Size([])
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    chunking_method: str | None = "auto"
    acc_policy: str = "auto"
    acc_dtype: Any = None
