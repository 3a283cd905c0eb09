"""Losses of scores whose classes are cut among ranks."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

__all__ = ["loss_parallel"]


@contextlib.contextmanager
def loss_parallel() -> Iterator[None]:
    """A block in which `cross_entropy` takes scores that are cut along the classes.

    As `torch.distributed.tensor.parallel.loss_parallel`. Mica takes them outside of the block too. Values are the
    same; the scores are brought together for the logarithm of the softmax, where torch exchanges its sums alone.

    Returns:
        context manager: Changes nothing.

    Example:
        >>> with mica.distributed.tensor.parallel.loss_parallel():
        ...     pass
    """
    yield
