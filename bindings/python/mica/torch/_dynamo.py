"""torch._dynamo.testing and torch._dynamo.utils: helpers of programs' own tests."""

from __future__ import annotations

import collections
from typing import Any

import mica
from mica._C import Tensor

counters: dict[str, Any] = collections.defaultdict(collections.Counter)


def clone_inputs(example_inputs: Any) -> Any:
    """Copies of the tensors among a list's items or a dict's values, with their strides and requires_grad."""
    if isinstance(example_inputs, dict):
        return {k: clone_inputs(v) if isinstance(v, tuple) else _copied(v) for k, v in example_inputs.items()}
    return [_copied(v) if isinstance(v, Tensor) else v for v in example_inputs]


def _copied(tensor: Tensor) -> Tensor:
    return tensor.detach().clone().requires_grad_(tensor.requires_grad)


def reset_rng_state(use_xla: bool = False) -> None:
    """Seeds the generators of mica, random and NumPy, all by 1337."""
    import random

    import numpy as np

    mica.manual_seed(1337)
    random.seed(1337)
    np.random.seed(1337)


def reduce_to_scalar_loss(out: Any) -> Any:
    """The mean of all elements; of a list, tuple or dict the mean of its items' means."""
    if isinstance(out, Tensor):
        return out.sum() / out.numel()
    items = list(out.values()) if isinstance(out, dict) else out
    if not isinstance(items, (list, tuple)):
        raise NotImplementedError(f"An output of type ({type(out).__name__}) cannot be reduced to a loss.")
    return sum(reduce_to_scalar_loss(item) for item in items) / len(items)
