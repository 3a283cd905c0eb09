"""mica.utils.hooks: handles of hooks, and what marks those that no file should keep."""

from __future__ import annotations

import warnings
from typing import Any

from mica._tensor.removable_handle import RemovableHandle as RemovableHandle
from mica.nn.modules._backward_hooks import BackwardHooks

__all__ = ["BackwardHook", "RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]


class BackwardHook(BackwardHooks):
    """Calls a module's full backward hooks, for code that calls a module's parts by itself.

    As `torch.utils.hooks.BackwardHook`. Pass the inputs and the outputs through the two methods.

    Args:
        module (Module): The module that the hooks are told.
        user_hooks (list of callable): `hook(module, grad_input, grad_output)`, after the gradients are
            there.
        user_pre_hooks (list of callable): `hook(module, grad_output)`, before.

    Example:
        >>> layer = mica.nn.ReLU()
        >>> hook = mica.utils.hooks.BackwardHook(layer, [lambda m, grad_in, grad_out: print(grad_out)], [])
        >>> (x,) = hook.setup_input_hook((mica.ones(2, requires_grad=True),))
        >>> hook.setup_output_hook(layer(x)).sum().backward()
        (tensor([1., 1.]),)
    """

    def __init__(self, module: Any, user_hooks: list[Any], user_pre_hooks: list[Any]) -> None:
        super().__init__(module, user_hooks, user_pre_hooks)

    def setup_input_hook(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Puts the hooks behind the inputs.

        Args:
            args (tuple): Inputs of the module.

        Returns:
            tuple: The inputs to go on with.
        """
        return self.watch_inputs(args)

    def setup_output_hook(self, args: Any) -> Any:
        """Puts the hooks behind the outputs.

        Args:
            args (Tensor or tuple): Output of the module.

        Returns:
            Tensor or tuple: The output to go on with.
        """
        return self.watch_outputs(args)


def unserializable_hook(f: Any) -> Any:
    """Marks a hook so that saving its Tensor or module leaves it out without a warning.

    As `torch.utils.hooks.unserializable_hook`; a decorator.

    Args:
        f (callable): The hook.

    Returns:
        callable: The same hook.

    Example:
        >>> @mica.utils.hooks.unserializable_hook
        ... def double(grad):
        ...     return 2 * grad
        >>> double(3)
        6
    """
    f.__torch_unserializable__ = True
    return f


def warn_if_has_hooks(tensor: Any) -> None:
    """Warns of each hook of a Tensor that saving it leaves out, unless the hook is marked.

    As `torch.utils.hooks.warn_if_has_hooks`.

    Args:
        tensor (Tensor): The Tensor.

    Example:
        >>> mica.utils.hooks.warn_if_has_hooks(mica.ones(2))
    """
    for hook in (getattr(tensor, "_backward_hooks", None) or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"The hook ({hook!r}) of a tensor is not saved; mark it by unserializable_hook() if it need not be.",
                stacklevel=2,
            )
