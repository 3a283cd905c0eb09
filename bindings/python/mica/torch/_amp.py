"""torch.cuda.amp and torch.cpu.amp, and the autocast functions of torch's main namespace."""

from __future__ import annotations

import warnings
from typing import Any

import mica


class cuda_autocast(mica.amp.autocast):
    """torch.cuda.amp.autocast: mica.amp.autocast("cuda")."""

    def __init__(self, enabled: bool = True, dtype: Any = mica.float16, cache_enabled: bool = True) -> None:
        super().__init__("cuda", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class cpu_autocast(mica.amp.autocast):
    """torch.cpu.amp.autocast: mica.amp.autocast("cpu")."""

    def __init__(self, enabled: bool = True, dtype: Any = mica.bfloat16, cache_enabled: bool = True) -> None:
        super().__init__("cpu", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


def _scaler_of(device: str) -> Any:
    class GradScaler(mica.amp.GradScaler):
        """The old spelling of mica.amp.GradScaler(device)."""

        def __init__(
            self,
            init_scale: float = 2.0**16,
            growth_factor: float = 2.0,
            backoff_factor: float = 0.5,
            growth_interval: int = 2000,
            enabled: bool = True,
        ) -> None:
            warnings.warn(
                f"`torch.{device}.amp.GradScaler(args...)` is deprecated. Please use "
                f"`torch.amp.GradScaler('{device}', args...)` instead.",
                FutureWarning,
                stacklevel=2,
            )
            super().__init__(device, init_scale, growth_factor, backoff_factor, growth_interval, enabled)

    return GradScaler


cpu_grad_scaler, cuda_grad_scaler = _scaler_of("cpu"), _scaler_of("cuda")


def get_autocast_gpu_dtype() -> Any:
    """The dtype that autocast takes on "cuda"."""
    return mica.get_autocast_dtype("cuda")


def get_autocast_cpu_dtype() -> Any:
    """The dtype that autocast takes on the CPU."""
    return mica.get_autocast_dtype("cpu")


def is_autocast_cpu_enabled() -> bool:
    """Whether autocast is on for the CPU."""
    return mica.is_autocast_enabled("cpu")


def set_autocast_gpu_dtype(dtype: Any) -> None:
    """Sets the dtype that autocast takes on "cuda"."""
    mica.set_autocast_dtype("cuda", dtype)


def set_autocast_cpu_dtype(dtype: Any) -> None:
    """Sets the dtype that autocast takes on the CPU."""
    mica.set_autocast_dtype("cpu", dtype)


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """Switches autocast on the CPU on or off."""
    mica.set_autocast_enabled("cpu", enabled)
