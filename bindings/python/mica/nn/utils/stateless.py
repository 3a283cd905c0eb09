"""Modules called with other parameters than their own."""

from __future__ import annotations

from typing import Any

from mica.func import functional_call as _functional_call
from mica.func._modules import _replaced


def functional_call(
    module: Any,
    parameters_and_buffers: Any,
    args: Any = None,
    kwargs: Any = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """The module's result with these tensors in place of its own."""
    options = {"tie_weights": tie_weights, "strict": strict}
    return _functional_call(module, parameters_and_buffers, () if args is None else args, kwargs, **options)


def _reparametrize_module(
    module: Any, parameters_and_buffers: Any, *, tie_weights: bool = False, strict: bool = False, **_: Any
) -> Any:
    """A block in which the module has these tensors in place of its own."""
    return _replaced(module, parameters_and_buffers, tie_weights, strict)
