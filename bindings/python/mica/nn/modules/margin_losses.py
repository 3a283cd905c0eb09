"""Losses of distributions, margins and sequences: modules around the functional forms."""

from __future__ import annotations

from collections.abc import Callable

from mica._C import Tensor
from mica.nn import functional as F
from mica.nn.modules.loss import _Loss, _WeightedLoss
from mica.nn.modules.module import Module


class PoissonNLLLoss(_Loss):
    """Negative log likelihood of counts under Poisson distributions: `exp(input) - target * input`.

    The input holds the logarithms of the rates, or with `log_input=False` the rates: then it is
    `input - target * log(input + eps)`. As `torch.nn.PoissonNLLLoss`.

    Args:
        log_input (bool): Whether the input holds logarithms of rates. Default: True.
        full (bool): Whether Stirling's approximation of `log(target!)` is added where the target is above
            1. Default: False.
        size_average (bool, optional): Deprecated; False asks for "sum", True for "mean". Default: None.
        eps (float): Keeps the logarithm of a rate finite. Default: 1e-8.
        reduce (bool, optional): Deprecated; False asks for "none". Default: None.
        reduction (str): "mean" of all elements, "sum", or "none" to leave a loss for each. Default: "mean".

    Shape:
        - log_input: any shape.
        - target: the same, or one that broadcasts with it.
        - Output: a scalar; with reduction "none" the shape of both.

    Raises:
        ValueError: The module is called and `reduction` is unknown.
        RuntimeError: The shapes cannot be broadcast.

    Example:
        >>> mica.nn.PoissonNLLLoss()(mica.tensor([0.0, 1.0, 2.0]), mica.tensor([1.0, 2.0, 3.0]))
        tensor(1.0358)
    """

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: bool | None = None,
        eps: float = 1e-8,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input, self.full, self.eps = log_input, full, eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(
            log_input,
            target,
            log_input=self.log_input,
            full=self.full,
            eps=self.eps,
            reduction=self.reduction,
        )


class GaussianNLLLoss(_Loss):
    """Negative log likelihood under normal distributions: `0.5 * (log(var) + (input - target) ** 2 / var)`.

    The input is the mean. As `torch.nn.GaussianNLLLoss`.

    Args:
        full (bool): Whether the constant `0.5 * log(2 * pi)` is added. Default: False.
        eps (float): Smallest variance; lesser ones count as this. Default: 1e-6.
        reduction (str): "mean" of all elements, "sum", or "none" to leave a loss for each. Default: "mean".

    Shape:
        - input: `(*)`, any shape.
        - target: the same, or one that broadcasts with it.
        - var: the variances, in the input's shape, that with one size 1, or that without the last dimension;
          or a number.
        - Output: a scalar; with reduction "none" the input's shape.

    Raises:
        ValueError: A variance is negative, its shape does not fit, or `reduction` is unknown.

    Example:
        >>> mean, target = mica.tensor([0.0, 1.0]), mica.tensor([1.0, 1.0])
        >>> mica.nn.GaussianNLLLoss()(mean, target, mica.tensor([1.0, 4.0]))
        tensor(0.5966)
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.full, self.eps = full, eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


class SoftMarginLoss(_Loss):
    """Logistic loss of a score against a class of two: `log(1 + exp(-target * input))`.

    As `torch.nn.SoftMarginLoss`.

    Args:
        size_average (bool, optional): Deprecated; False asks for "sum", True for "mean". Default: None.
        reduce (bool, optional): Deprecated; False asks for "none". Default: None.
        reduction (str): "mean" of all elements, "sum", or "none" to leave a loss for each. Default: "mean".

    Shape:
        - input: any shape.
        - target: 1 or -1, in the same shape.
        - Output: a scalar; with reduction "none" the input's shape.

    Raises:
        ValueError: The module is called and `reduction` is unknown.
        RuntimeError: The shapes cannot be broadcast.

    Example:
        >>> mica.nn.SoftMarginLoss()(mica.tensor([2.0, -1.0, 0.5]), mica.tensor([1.0, -1.0, -1.0]))
        tensor(0.4714)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class MultiLabelMarginLoss(_Loss):
    """Hinge loss of samples that have several classes: true ones should score 1 higher than the others.

    For each sample the sum over true classes `t` and other classes `c` of `max(0, 1 - input[t] + input[c])`,
    divided by the number of classes. As `torch.nn.MultiLabelMarginLoss`.

    Args:
        size_average (bool, optional): Deprecated; False asks for "sum", True for "mean". Default: None.
        reduce (bool, optional): Deprecated; False asks for "none". Default: None.
        reduction (str): "mean" of all samples, "sum", or "none" to leave a loss for each. Default: "mean".

    Shape:
        - input: scores, `(N, C)` or `(C,)`.
        - target: the true classes first, then -1 and anything, int64, in the input's shape.
        - Output: a scalar; with reduction "none" `(N,)` or `()`.

    Raises:
        ValueError: The module is called and `reduction` is unknown.
        RuntimeError: The shapes differ, or the target is not integral or no class.

    Example:
        >>> scores = mica.tensor([[0.1, 0.2, 0.4, 0.8]])
        >>> mica.nn.MultiLabelMarginLoss()(scores, mica.tensor([[3, 0, -1, 1]]))  # classes 3 and 0
        tensor(0.8500)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """Binary cross entropy of logits, averaged over the classes of each sample.

    `-mean(target * log(sigmoid(input)) + (1 - target) * log(1 - sigmoid(input)))`. As
    `torch.nn.MultiLabelSoftMarginLoss`.

    Args:
        weight (Tensor, optional): A factor for each class, `(C,)`. Default: ones.
        size_average (bool, optional): Deprecated; False asks for "sum", True for "mean". Default: None.
        reduce (bool, optional): Deprecated; False asks for "none". Default: None.
        reduction (str): "mean" of all samples, "sum", or "none" to leave a loss for each. Default: "mean".

    Shape:
        - input: logits, `(N, C)`.
        - target: 1 for the classes that a sample has, 0 for others, in the input's shape.
        - Output: a scalar; with reduction "none" `(N,)`.

    Raises:
        ValueError: The module is called and `reduction` is unknown.
        RuntimeError: The shapes cannot be broadcast.

    Example:
        >>> scores = mica.tensor([[0.1, 0.2, 0.4, 0.8]])
        >>> mica.nn.MultiLabelSoftMarginLoss()(scores, mica.tensor([[0.0, 1.0, 0.0, 1.0]]))
        tensor(0.6567)
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_soft_margin_loss(input, target, self.weight, reduction=self.reduction)


class MultiMarginLoss(_WeightedLoss):
    """Hinge loss of samples that have one class: it should score a margin higher than the others.

    For each sample the sum over the other classes `c` of
    `weight[target] * max(0, margin - input[target] + input[c]) ** p`, divided by the number of classes. As
    `torch.nn.MultiMarginLoss`.

    Args:
        p (int): The power, 1 or 2. Default: 1.
        margin (float): How much higher. Default: 1.
        weight (Tensor, optional): A factor for each class, `(C,)`. Default: ones.
        size_average (bool, optional): Deprecated; False asks for "sum", True for "mean". Default: None.
        reduce (bool, optional): Deprecated; False asks for "none". Default: None.
        reduction (str): "mean" of all samples, "sum", or "none" to leave a loss for each. Default: "mean".

    Shape:
        - input: scores, `(N, C)` or `(C,)`.
        - target: class indices, `(N,)` or `()`.
        - Output: a scalar; with reduction "none" the target's shape.

    Raises:
        ValueError: `p` is neither 1 nor 2, `weight` no vector, or `reduction` is unknown.
        RuntimeError: The target is not integral or no class, or a shape does not fit.

    Example:
        >>> mica.nn.MultiMarginLoss()(mica.tensor([[0.1, 0.2, 0.4, 0.8]]), mica.tensor([3]))
        tensor(0.3250)
    """

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise ValueError(f"The power ({p}) must be 1 or 2.")
        if weight is not None and weight.dim() != 1:
            raise ValueError(f"Number of dimensions ({weight.dim()}) of `weight` is not 1.")
        self.p, self.margin = p, margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.multi_margin_loss(
            input, target, p=self.p, margin=self.margin, weight=self.weight, reduction=self.reduction
        )


class _MarginLoss(_Loss):
    def __init__(
        self,
        margin: float = 0.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin


class HingeEmbeddingLoss(_MarginLoss):
    """Loss of distances: `input` where the target is 1, `max(0, margin - input)` where it is -1.

    As `torch.nn.HingeEmbeddingLoss`.

    Args:
        margin (float): The distance that pairs of target -1 should have. Default: 1.
        size_average (bool, optional): Deprecated; False asks for "sum", True for "mean". Default: None.
        reduce (bool, optional): Deprecated; False asks for "none". Default: None.
        reduction (str): "mean" of all elements, "sum", or "none" to leave a loss for each. Default: "mean".

    Shape:
        - input: distances, any shape.
        - target: 1 or -1, in the same shape.
        - Output: a scalar; with reduction "none" the input's shape.

    Raises:
        ValueError: The module is called and `reduction` is unknown.
        RuntimeError: The shapes cannot be broadcast.

    Example:
        >>> loss = mica.nn.HingeEmbeddingLoss(reduction="none")
        >>> loss(mica.tensor([0.5, 0.25, 2.0]), mica.tensor([1.0, -1.0, -1.0]))
        tensor([0.5000, 0.7500, 0.0000])
    """

    def __init__(
        self,
        margin: float = 1.0,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(margin, size_average, reduce, reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


class MarginRankingLoss(_MarginLoss):
    """Loss of pairs in the wrong order: `max(0, -target * (input1 - input2) + margin)`.

    As `torch.nn.MarginRankingLoss`.

    Args:
        margin (float): How far apart they should be. Default: 0.
        size_average (bool, optional): Deprecated; False asks for "sum", True for "mean". Default: None.
        reduce (bool, optional): Deprecated; False asks for "none". Default: None.
        reduction (str): "mean" of all pairs, "sum", or "none" to leave a loss for each. Default: "mean".

    Shape:
        - input1, input2: scores, any shape, the same.
        - target: 1 where `input1` should be the larger, -1 where `input2` should, in the same shape.
        - Output: a scalar; with reduction "none" the same shape.

    Raises:
        ValueError: The module is called and `reduction` is unknown.
        RuntimeError: The numbers of dimensions differ, or the shapes cannot be broadcast.

    Example:
        >>> loss = mica.nn.MarginRankingLoss(reduction="none")
        >>> loss(mica.tensor([0.0, 1.0]), mica.tensor([1.0, 3.0]), mica.tensor([1.0, -1.0]))
        tensor([1., 0.])
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


class CosineEmbeddingLoss(_MarginLoss):
    """Loss of angles: `1 - cos` where the target is 1, `max(0, cos - margin)` where it is -1.

    `cos` is the cosine of the angle between the two vectors. As `torch.nn.CosineEmbeddingLoss`.

    Args:
        margin (float): The largest cosine, in [-1, 1], that costs nothing for target -1. Default: 0.
        size_average (bool, optional): Deprecated; False asks for "sum", True for "mean". Default: None.
        reduce (bool, optional): Deprecated; False asks for "none". Default: None.
        reduction (str): "mean" of all pairs, "sum", or "none" to leave a loss for each. Default: "mean".

    Shape:
        - input1, input2: vectors, `(N, D)` or `(D,)`, the same.
        - target: 1 or -1, `(N,)` or `()`.
        - Output: a scalar; with reduction "none" the target's shape.

    Raises:
        ValueError: The module is called and `reduction` is unknown.
        RuntimeError: The target has more than one dimension, or the shapes do not fit.

    Example:
        >>> left, right = mica.tensor([[1.0, 0.0], [0.0, 1.0]]), mica.tensor([[1.0, 0.0], [1.0, 1.0]])
        >>> loss = mica.nn.CosineEmbeddingLoss(reduction="none")
        >>> loss(left, right, mica.tensor([1, -1]))
        tensor([0.0000, 0.7071])
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


def _check_margin(margin: float) -> None:
    if margin <= 0:
        raise ValueError(f"The margin ({margin}) of a triplet loss must be greater than 0.")


class TripletMarginLoss(_Loss):
    """Loss of an anchor nearer to a negative than to a positive: `max(0, d(a, p) - d(a, n) + margin)`.

    `d` is the p-norm of the difference, as `PairwiseDistance` computes it. As `torch.nn.TripletMarginLoss`.

    Args:
        margin (float): How much farther the negative should be; positive. Default: 1.
        p (float): Exponent of the norm that measures distances. Default: 2.
        eps (float): Added to each difference. Default: 1e-6.
        swap (bool): Whether the distance from positive to negative counts where it is less than that from
            the anchor. Default: False.
        size_average (bool, optional): Deprecated; False asks for "sum", True for "mean". Default: None.
        reduce (bool, optional): Deprecated; False asks for "none". Default: None.
        reduction (str): "mean" of all triples, "sum", or "none" to leave a loss for each. Default: "mean".

    Shape:
        - anchor, positive, negative: vectors, `(N, D)` or `(D,)`, the same.
        - Output: a scalar; with reduction "none" `(N,)` or `()`.

    Raises:
        ValueError: `margin` is not positive, or `reduction` is unknown.
        RuntimeError: The numbers of dimensions differ, or the shapes cannot be broadcast.

    Example:
        >>> anchor, positive, negative = mica.tensor([[[0.0, 0.0]], [[0.0, 1.0]], [[3.0, 4.0]]])
        >>> mica.nn.TripletMarginLoss(margin=5.0)(anchor, positive, negative)
        tensor(1.0000)
    """

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: bool | None = None,
        reduce: bool | None = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        _check_margin(margin)
        self.margin, self.p, self.eps, self.swap = margin, p, eps, swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_loss(
            anchor,
            positive,
            negative,
            margin=self.margin,
            p=self.p,
            eps=self.eps,
            swap=self.swap,
            reduction=self.reduction,
        )


class TripletMarginWithDistanceLoss(_Loss):
    """`TripletMarginLoss` with a distance of your own: `max(0, d(a, p) - d(a, n) + margin)`.

    As `torch.nn.TripletMarginWithDistanceLoss`.

    Args:
        distance_function (callable, optional): Called with two tensors, returns their distances. Default:
            `PairwiseDistance()`.
        margin (float): How much farther the negative should be; positive. Default: 1.
        swap (bool): Whether the distance from positive to negative counts where it is less than that from
            the anchor. Default: False.
        reduction (str): "mean" of all triples, "sum", or "none" to leave a loss for each. Default: "mean".

    Shape:
        - anchor, positive, negative: what the distance takes, of as many dimensions each.
        - Output: a scalar; with reduction "none" the shape of the distances.

    Raises:
        ValueError: `margin` is not positive, or `reduction` is unknown.
        RuntimeError: The numbers of dimensions differ.

    Example:
        >>> anchor, positive, negative = mica.tensor([[[0.0, 0.0]], [[0.0, 1.0]], [[3.0, 4.0]]])
        >>> city = lambda x, y: (x - y).abs().sum(-1)
        >>> mica.nn.TripletMarginWithDistanceLoss(distance_function=city, margin=7.0)(anchor, positive, negative)
        tensor(1.)
    """

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        _check_margin(margin)
        self.distance_function = PairwiseDistance() if distance_function is None else distance_function
        self.margin, self.swap = margin, swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


class CTCLoss(_Loss):
    """Connectionist temporal classification: loss of a label sequence that is not aligned with its input.

    The negated logarithm of the sum, over all ways to spread the labels over the steps with blanks between,
    of their probability (Graves et al., 2006). As `torch.nn.CTCLoss`, and targets out of range are refused.

    Args:
        blank (int): The class that stands for no label. Default: 0.
        reduction (str): "mean", each loss divided by its number of labels (at least 1), then averaged over
            the batch; "sum"; or "none" to leave a loss for each sample. Default: "mean".
        zero_infinity (bool): Whether infinite losses, of targets longer than their inputs allow, become 0,
            as do their gradients. Default: False.

    Shape:
        - log_probs: log probabilities of the classes at each of T steps, `(T, N, C)` or `(T, C)`.
        - targets: classes other than `blank`, int64 or int32: `(N, S)`, or all of the batch one after the other,
          `(sum of target_lengths,)`; without a batch `(S,)`.
        - input_lengths, target_lengths: steps and labels of each sample, `(N,)` or a tuple; without a batch
          `()`.
        - Output: a scalar; with reduction "none" `(N,)` or `()`.

    Raises:
        ValueError: The module is called and `reduction` is unknown.
        RuntimeError: A length, a target or `blank` is out of range.

    Example:
        >>> log_probs = mica.zeros(5, 2, 3).log_softmax(2)
        >>> targets, lengths = mica.tensor([[1, 2], [2, 2]]), mica.tensor([2, 2])
        >>> mica.nn.CTCLoss()(log_probs, targets, mica.tensor([5, 5]), lengths)
        tensor(1.1807)
    """

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction=reduction)
        self.blank, self.zero_infinity = blank, zero_infinity

    def forward(
        self, log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor
    ) -> Tensor:
        return F.ctc_loss(
            log_probs,
            targets,
            input_lengths,
            target_lengths,
            self.blank,
            self.reduction,
            self.zero_infinity,
        )


class CosineSimilarity(Module):
    """Cosine of the angle between vectors along a dimension: `x1 @ x2 / (|x1| * |x2|)`.

    As `torch.nn.CosineSimilarity`.

    Args:
        dim (int): The dimension along which the vectors lie. Default: 1.
        eps (float): Smallest norm; a lesser one counts as this. Default: 1e-8.

    Shape:
        - x1, x2: shapes that broadcast with each other.
        - Output: the shape of both without dimension `dim`.

    Raises:
        IndexError: There is no dimension `dim`.
        RuntimeError: The shapes cannot be broadcast.

    Example:
        >>> mica.nn.CosineSimilarity()(mica.tensor([[1.0, 0.0], [0.0, 1.0]]), mica.tensor([[1.0, 1.0]]))
        tensor([0.7071, 0.7071])
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """Distance between vectors along the last dimension: the p-norm of `x1 - x2 + eps`.

    As `torch.nn.PairwiseDistance`.

    Args:
        p (float): The norm: 2 for Euclidean distance, 1 for the sum and inf for the maximum of absolute
            differences. Default: 2.
        eps (float): Added to each difference, so that the gradient at distance 0 is finite. Default: 1e-6.
        keepdim (bool): Whether the last dimension stays, with size 1. Default: False.

    Shape:
        - x1, x2: `(N, D)` or `(D,)`, or shapes that broadcast with each other.
        - Output: the shape of both without the last dimension.

    Raises:
        RuntimeError: The shapes cannot be broadcast.

    Example:
        >>> mica.nn.PairwiseDistance()(mica.tensor([[0.0, 0.0]]), mica.tensor([[3.0, 4.0]]))
        tensor([5.0000])
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
