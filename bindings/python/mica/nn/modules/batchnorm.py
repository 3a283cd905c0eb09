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
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
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
    """Normalises (N, C) or (N, C, L) over all but C."""

    _dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Normalises (N, C, H, W) over all but C."""

    _dims = (4,)


class BatchNorm3d(_BatchNorm):
    """Normalises (N, C, D, H, W) over all but C."""

    _dims = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch norm over the batches of all processes of a group; with one process, plain batch norm."""

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
        """The module with a SyncBatchNorm of the same state in place of each batch norm."""
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
