"""Modules called with other parameters than their own."""

from __future__ import annotations

from typing import Any


def functional_call(
    module: Any,
    parameters_and_buffers: Any,
    args: Any = None,
    kwargs: Any = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """The result of a module with other tensors in the place of its parameters and buffers for this call.

    As `torch.nn.utils.stateless.functional_call`, without its warning; `mica.func.functional_call` is the
    newer name.

    Args:
        module (Module): The module that is called.
        parameters_and_buffers (dict of str to Tensor): By the names of `named_parameters` and
            `named_buffers`. Those that are not named stay.
        args (tuple or any, optional): The module's arguments; what is no tuple is the only one.
        kwargs (dict, optional): The module's arguments by name.
        tie_weights (bool): A tensor that the module holds at several places is replaced at all of them.
            Default: True.
        strict (bool): Refuse names that the module has not, and missing ones. Default: False.

    Returns:
        Any: What the module gives. Gradients reach the tensors that were given.

    Raises:
        RuntimeError: `strict` is True, and the names are not those of the module.
        TypeError: A value is neither a Tensor nor None.
        ValueError: Two names of one tensor are given different values.

    Example:
        >>> from mica.nn.utils.stateless import functional_call
        >>> layer = mica.nn.Linear(2, 1, bias=False)
        >>> functional_call(layer, {"weight": mica.ones(1, 2)}, mica.tensor([3.0, 4.0]))
        tensor([7.])
    """
    from mica.func import functional_call as call

    options = {"tie_weights": tie_weights, "strict": strict}
    return call(module, parameters_and_buffers, () if args is None else args, kwargs, **options)


def _reparametrize_module(
    module: Any, parameters_and_buffers: Any, *, tie_weights: bool = False, strict: bool = False, **_: Any
) -> Any:
    """A block in which the module has these tensors in place of its own."""
    from mica.func._modules import _replaced

    return _replaced(module, parameters_and_buffers, tie_weights, strict)
