"""AdaptiveLogSoftmaxWithLoss: a softmax over many classes in clusters by frequency (Grave et al., 2017)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from mica import cat
from mica._C import Tensor
from mica.nn import functional as F
from mica.nn.modules.container import ModuleList, Sequential
from mica.nn.modules.linear import Linear
from mica.nn.modules.module import Module


class _ASMoutput(NamedTuple):
    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """A softmax loss over many classes that spends less on rare ones (Grave et al., 2017).

    The classes, ordered from frequent to rare, fall into a shortlist and clusters. A small softmax picks a
    class of the shortlist or a cluster; within a cluster, a second softmax over fewer features picks the
    class. As `torch.nn.AdaptiveLogSoftmaxWithLoss`.

    Args:
        in_features (int): Features of a sample.
        n_classes (int): Number of classes; class 0 should be the most frequent.
        cutoffs (sequence of int): Where the shortlist and every cluster but the last end: increasing, from
            1 to `n_classes - 1`. `[10, 100]` makes a shortlist of classes 0 to 9 and clusters 10 to 99 and
            100 to `n_classes - 1`.
        div_value (float): Cluster `i`, from 0, works on `in_features // div_value ** (i + 1)` features;
            a late cluster may get 0 (warns) and then does not see the input. Default: 4.
        head_bias (bool): Whether the first softmax has a bias. Default: False.
        device (device, optional): Where the parameters live. Default: the default device.
        dtype (dtype, optional): Of the parameters. Default: the default dtype.

    Attributes:
        head (Linear): Scores of the shortlist's classes and of the clusters.
        tail (ModuleList): For each cluster, two `Linear` in a `Sequential`.

    Shape:
        - input: `(N, in_features)` or `(in_features,)`.
        - target: class indices, `(N,)` or `()`.
        - Output: a named tuple of `output`, the log probability of each target in the target's shape, and
          `loss`, the negated mean of `output`, a scalar.

    Raises:
        ValueError: `cutoffs` is empty, not increasing, or out of range.
        RuntimeError: Input and target do not belong together, or a target is no class.

    Example:
        >>> layer = mica.nn.AdaptiveLogSoftmaxWithLoss(16, 1000, cutoffs=[10, 100])
        >>> result = layer(mica.randn(3, 16), mica.tensor([0, 55, 999]))
        >>> result.output.shape, result.loss.shape
        (mica.Size([3]), mica.Size([]))
        >>> layer.predict(mica.randn(3, 16)).shape
        mica.Size([3])
    """

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        ends = list(cutoffs)
        if not ends:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        wrong = ends != sorted(set(ends)) or min(ends) <= 0 or max(ends) > n_classes - 1
        if wrong or any(int(c) != c for c in ends):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, "
                "where each value is between 1 and n_classes-1"
            )
        options = {"device": device, "dtype": dtype}
        self.in_features, self.n_classes, self.div_value = in_features, n_classes, div_value
        self.cutoffs = [*ends, n_classes]
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, **options)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            hidden = int(in_features // (div_value ** (i + 1)))
            size = self.cutoffs[i + 1] - self.cutoffs[i]
            first = Linear(in_features, hidden, bias=False, **options)
            self.tail.append(Sequential(first, Linear(hidden, size, bias=False, **options)))

    def reset_parameters(self) -> None:
        """Draws all weights anew."""
        self.head.reset_parameters()
        for project, classify in self.tail:
            project.reset_parameters()
            classify.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        if target_.dim() not in (0, 1) or input_.dim() != target_.dim() + 1:
            raise RuntimeError(
                f"The input has {input_.dim()} dimensions and the target {target_.dim()}; expected 2 and 1, or 1 and 0."
            )
        input, target = (input_, target_) if target_.dim() else (input_.unsqueeze(0), target_.unsqueeze(0))
        if input.size(0) != target.size(0):
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        if target.numel() and not (int(target.min()) >= 0 and int(target.max()) < self.n_classes):
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{int(target.min())}, {int(target.max())}] were found. "
            )
        head = F.log_softmax(self.head(input), dim=1)
        entry = target.clamp(max=self.shortlist_size - 1)  # the column of `head` for each sample
        tails = []  # (samples, log probability in the cluster); a cluster that no target is in takes no part
        for i in range(self.n_clusters):
            low, high = self.cutoffs[i], self.cutoffs[i + 1]
            rows = ((target >= low) & (target < high)).nonzero().squeeze(1)
            if rows.numel() == 0:
                continue
            entry = entry.index_fill(0, rows, self.shortlist_size + i)
            inside = F.log_softmax(self.tail[i](input.index_select(0, rows)), dim=1)
            places = (target.index_select(0, rows) - low).unsqueeze(1)
            tails.append((rows, inside.gather(1, places).squeeze(1)))
        output = head.gather(1, entry.unsqueeze(1)).squeeze(1)
        for rows, values in tails:
            output = output.index_add(0, rows, values)
        return _ASMoutput(output if target_.dim() else output.squeeze(0), (-output).mean())

    def _get_full_log_prob(self, input: Tensor, head_output: Tensor) -> Tensor:
        head = F.log_softmax(head_output, dim=1)
        parts = [head[:, : self.shortlist_size]]
        for i in range(self.n_clusters):
            cluster = F.log_softmax(self.tail[i](input), dim=1)
            parts.append(cluster + head[:, self.shortlist_size + i].unsqueeze(1))
        return cat(parts, 1)

    def log_prob(self, input: Tensor) -> Tensor:
        """Computes the log probabilities of all classes.

        Args:
            input (Tensor): `(N, in_features)`.

        Returns:
            Tensor: `(N, n_classes)`.
        """
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input: Tensor) -> Tensor:
        """Finds the likeliest class of each sample.

        Args:
            input (Tensor): `(N, in_features)`.

        Returns:
            Tensor: Class indices, `(N,)`.
        """
        return self.log_prob(input).argmax(dim=1)
