"""Batch normalisation."""

from __future__ import annotations

from typing import Any

import mica
from mica._C import Tensor
from mica.nn import functional as F
from mica.nn.modules.module import Module
from mica.nn.parameter import Parameter


class _NormBase(Module):
    """Scale, shift and running statistics of channels."""

    _version = 2

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        options = {"device": device, "dtype": dtype}
        if affine:
            self.weight = Parameter(mica.ones(num_features, **options))
        else:
            self.register_parameter("weight", None)
        if affine and bias:
            self.bias = Parameter(mica.zeros(num_features, **options))
        else:
            self.register_parameter("bias", None)
        tracked = track_running_stats
        self.register_buffer("running_mean", mica.zeros(num_features, **options) if tracked else None)
        self.register_buffer("running_var", mica.ones(num_features, **options) if tracked else None)
        self.register_buffer(
            "num_batches_tracked", mica.tensor(0, dtype=mica.int64, device=device) if tracked else None
        )

    def reset_running_stats(self) -> None:
        """Sets the running mean to 0, the running variance to 1 and the number of batches to 0."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Resets the running statistics, the weight to 1 and the bias to 0."""
        self.reset_running_stats()
        if self.affine:
            with mica.no_grad():
                self.weight.fill_(1)
                if self.bias is not None:
                    self.bias.zero_()

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any, *rest: Any) -> None:
        """Version 1 had no num_batches_tracked."""
        key = f"{prefix}num_batches_tracked"
        old = (local_metadata.get("version") or 1) < 2
        if old and self.track_running_stats and key not in state_dict:
            own = self.num_batches_tracked
            known = own is not None and own.device.type != "meta"
            state_dict[key] = own if known else mica.tensor(0, dtype=mica.int64)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_NormBase):
    _dims: tuple[int, ...]

    def _check_input_dim(self, input: Tensor) -> None:
        """Raises where the class does not take the dimensions; subclasses that take more replace it."""
        if input.ndim not in self._dims:
            raise ValueError(
                f"{type(self).__name__} expected {' or '.join(f'{n}D' for n in self._dims)} input (got {input.ndim}D input)."
            )

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        factor = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                factor = 1.0 / float(self.num_batches_tracked)
        use_batch = self.training or self.running_mean is None
        track = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if track else None,
            self.running_var if track else None,
            self.weight,
            self.bias,
            use_batch,
            factor,
            self.eps,
        )


class BatchNorm1d(_BatchNorm):
    """Normalises each channel to mean 0 and variance 1 over the batch: `(x - mean) / sqrt(var + eps) * weight + bias`.

    While training, `mean` and `var` (biased) are the batch's, and move the running statistics:
    `running = (1 - momentum) * running + momentum * batch`, with the unbiased variance. In evaluation mode
    they are the running statistics (Ioffe and Szegedy, 2015). As `torch.nn.BatchNorm1d`.

    Args:
        num_features (int): Number of channels, C.
        eps (float): Added to the variance. Default: 1e-5.
        momentum (float, optional): Share, in [0, 1], of a batch in the running statistics. None takes the
            mean over all batches so far. Default: 0.1.
        affine (bool): Whether there are a weight and a bias. Default: True.
        track_running_stats (bool): Whether running statistics are kept. Without them evaluation mode, too,
            takes the batch's. Default: True.
        device (device, optional): Where the parameters live. Default: the default device.
        dtype (dtype, optional): Of the parameters. Default: the default dtype.
        bias (bool): Whether there is a bias, if `affine`. Default: True.

    Attributes:
        weight (Parameter): Ones at first, `(C,)`; None unless `affine`.
        bias (Parameter): Zeros at first, `(C,)`, or None.
        running_mean (Tensor): Zeros at first, `(C,)`, or None.
        running_var (Tensor): Ones at first, `(C,)`, or None.
        num_batches_tracked (Tensor): Batches seen while training, `()`, or None.

    Shape:
        - Input and output: `(N, C)` or `(N, C, L)`, the same.

    Raises:
        ValueError: The input has other dimensions, or a channel has only one value, in training or without
            running statistics.
        RuntimeError: The input has not `num_features` channels.

    Example:
        >>> layer = mica.nn.BatchNorm1d(2)
        >>> layer(mica.tensor([[0.0, 10.0], [2.0, 30.0]])).detach()
        tensor([[-1.0000, -1.0000],
                [ 1.0000,  1.0000]])
        >>> layer.running_mean
        tensor([0.1000, 2.0000])
    """

    _dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """BatchNorm1d for images: each channel is normalised over the batch and all pixels.

    As `torch.nn.BatchNorm2d`. `BatchNorm1d` has the formula and the attributes.

    Args:
        num_features (int): Number of channels, C.
        eps (float): Added to the variance. Default: 1e-5.
        momentum (float, optional): Share, in [0, 1], of a batch in the running statistics. None takes the
            mean over all batches so far. Default: 0.1.
        affine (bool): Whether there are a weight and a bias. Default: True.
        track_running_stats (bool): Whether running statistics are kept. Without them evaluation mode, too,
            takes the batch's. Default: True.
        device (device, optional): Where the parameters live. Default: the default device.
        dtype (dtype, optional): Of the parameters. Default: the default dtype.
        bias (bool): Whether there is a bias, if `affine`. Default: True.

    Shape:
        - Input and output: `(N, C, H, W)`, the same.

    Raises:
        ValueError: The input has other dimensions, or a channel has only one value, in training or without
            running statistics.
        RuntimeError: The input has not `num_features` channels.

    Example:
        >>> layer = mica.nn.BatchNorm2d(3)
        >>> layer(mica.randn(4, 3, 8, 8)).shape
        mica.Size([4, 3, 8, 8])
    """

    _dims = (4,)


class BatchNorm3d(_BatchNorm):
    """BatchNorm1d for volumes: each channel is normalised over the batch and all voxels.

    As `torch.nn.BatchNorm3d`. `BatchNorm1d` has the formula and the attributes.

    Args:
        num_features (int): Number of channels, C.
        eps (float): Added to the variance. Default: 1e-5.
        momentum (float, optional): Share, in [0, 1], of a batch in the running statistics. None takes the
            mean over all batches so far. Default: 0.1.
        affine (bool): Whether there are a weight and a bias. Default: True.
        track_running_stats (bool): Whether running statistics are kept. Without them evaluation mode, too,
            takes the batch's. Default: True.
        device (device, optional): Where the parameters live. Default: the default device.
        dtype (dtype, optional): Of the parameters. Default: the default dtype.
        bias (bool): Whether there is a bias, if `affine`. Default: True.

    Shape:
        - Input and output: `(N, C, D, H, W)`, the same.

    Raises:
        ValueError: The input has other dimensions, or a channel has only one value, in training or without
            running statistics.
        RuntimeError: The input has not `num_features` channels.

    Example:
        >>> layer = mica.nn.BatchNorm3d(3)
        >>> layer(mica.randn(4, 3, 2, 8, 8)).shape
        mica.Size([4, 3, 2, 8, 8])
    """

    _dims = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch norm under the name that programs of several processes use; here the batch of this process counts.

    `torch.nn.SyncBatchNorm` takes its statistics over the processes of a group. Mica has no process groups,
    so this is what torch's is with one process: `BatchNorm1d`, whose docstring has the formula and the
    attributes, for inputs of 2 to 5 dimensions.

    Args:
        num_features (int): Number of channels, C.
        eps (float): Added to the variance. Default: 1e-5.
        momentum (float, optional): Share, in [0, 1], of a batch in the running statistics. None takes the
            mean over all batches so far. Default: 0.1.
        affine (bool): Whether there are a weight and a bias. Default: True.
        track_running_stats (bool): Whether running statistics are kept. Without them evaluation mode, too,
            takes the batch's. Default: True.
        process_group (object, optional): Kept as an attribute and not used. Default: None.
        device (device, optional): Where the parameters live. Default: the default device.
        dtype (dtype, optional): Of the parameters. Default: the default dtype.
        bias (bool): Whether there is a bias, if `affine`. Default: True.

    Shape:
        - Input and output: `(N, C)` and up to three more dimensions, the same.

    Raises:
        ValueError: The input has other dimensions, or a channel has only one value, in training or without
            running statistics.
        RuntimeError: The input has not `num_features` channels.

    Example:
        >>> layer = mica.nn.SyncBatchNorm(3)
        >>> layer(mica.randn(4, 3, 8)).shape
        mica.Size([4, 3, 8])
    """

    _dims = (2, 3, 4, 5)

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    @classmethod
    def convert_sync_batchnorm(cls, module: Any, process_group: Any = None) -> Any:
        """Replaces every batch norm in a module by a SyncBatchNorm of the same parameters and statistics.

        Args:
            module (Module): A batch norm, or a module that holds some; the latter is changed in place.
            process_group (object, optional): Of the new layers. Default: None.

        Returns:
            Module: The new layer if `module` is a batch norm, else `module`.

        Example:
            >>> model = mica.nn.Sequential(mica.nn.Linear(3, 4), mica.nn.BatchNorm1d(4))
            >>> type(mica.nn.SyncBatchNorm.convert_sync_batchnorm(model)[1]).__name__
            'SyncBatchNorm'
        """
        converted = module
        if isinstance(module, _BatchNorm):
            converted = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
            )
            for name in ("weight", "bias", "running_mean", "running_var", "num_batches_tracked"):
                setattr(converted, name, getattr(module, name))
            converted.training = module.training
        for name, child in module.named_children():
            converted.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return converted
