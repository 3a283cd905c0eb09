"""DataParallel over the devices of one process. With none or one, as on a CPU, it calls its module."""

from __future__ import annotations

from typing import Any

import mica
from mica.nn.modules.module import Module


class DataParallel(Module):
    """A module as `.module`, called as it is; several devices raise NotImplementedError."""

    def __init__(
        self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0
    ) -> None:
        super().__init__()
        accelerator = mica.accelerator.current_accelerator(check_available=True)
        count = mica.accelerator.device_count()
        ids = list(range(count)) if device_ids is None else list(device_ids)
        if len(ids) > 1:
            raise NotImplementedError(
                f"DataParallel over {len(ids)} devices of {accelerator} is not there yet; "
                "pass device_ids=[0], or use one process a device."
            )
        self.module, self.device_ids = module, ids if accelerator is not None else []
        if accelerator is not None:
            self.dim, self.output_device = dim, output_device

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        return self.module(*inputs, **kwargs)
