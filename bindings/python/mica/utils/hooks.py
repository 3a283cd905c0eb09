"""mica.utils.hooks: handles of hooks, and what marks those that no file should keep."""

from __future__ import annotations

import warnings
from typing import Any

from mica._tensor.removable_handle import RemovableHandle as RemovableHandle
from mica.nn.modules._backward_hooks import BackwardHooks


class BackwardHook(BackwardHooks):
    """Calls a module's full backward hooks: give its inputs and its outputs through the two methods."""

    def __init__(self, module: Any, user_hooks: list[Any], user_pre_hooks: list[Any]) -> None:
        super().__init__(module, user_hooks, user_pre_hooks)

    def setup_input_hook(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The inputs, with the hooks behind them."""
        return self.watch_inputs(args)

    def setup_output_hook(self, args: Any) -> Any:
        """The outputs, with the hooks behind them."""
        return self.watch_outputs(args)


def unserializable_hook(f: Any) -> Any:
    """Marks a hook that is left out, with a warning, where a tensor or module is saved."""
    f.__torch_unserializable__ = True
    return f


def warn_if_has_hooks(tensor: Any) -> None:
    """Warns of hooks that saving the tensor leaves out."""
    for hook in (getattr(tensor, "_backward_hooks", None) or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"The hook ({hook!r}) of a tensor is not saved; mark it by unserializable_hook() if it need not be.",
                stacklevel=2,
            )
