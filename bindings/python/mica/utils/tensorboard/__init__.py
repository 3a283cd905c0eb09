"""mica.utils.tensorboard: SummaryWriter, through the writer and the protocol of the package tensorboard.

torch.utils.tensorboard's methods and tags, so that a run reads the same in TensorBoard. Without that
package its names raise ImportError. A model's graph is that of the operators which a call runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["FileWriter", "SummaryWriter"]

if TYPE_CHECKING:
    from mica.utils.tensorboard.writer import FileWriter as FileWriter, SummaryWriter as SummaryWriter
else:

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module 'mica.utils.tensorboard' has no attribute '{name}'")
        try:
            import tensorboard  # noqa: F401
        except ImportError as error:
            raise ImportError(
                "mica.utils.tensorboard writes through the package tensorboard, which is not installed: "
                "pip install tensorboard."
            ) from error
        from mica.utils.tensorboard import writer

        return getattr(writer, name)
