"""Copies of a state dict that training does not change while they are written."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from mica._C import Tensor
from mica.distributed._checkpointable import _Checkpointable
from mica.distributed.checkpoint.metadata import STATE_DICT_TYPE

__all__ = ["AsyncStager", "BlockingAsyncStager", "DefaultStager", "StagingOptions"]


@runtime_checkable
class AsyncStager(Protocol):
    """Copies a state dict aside for `async_save`.

    As `torch.distributed.checkpoint.staging.AsyncStager`.

    Example:
        >>> from mica.distributed.checkpoint.staging import AsyncStager, DefaultStager
        >>> isinstance(DefaultStager(), AsyncStager)
        True
    """

    _synchronize_after_execute: bool = True

    @property
    def should_synchronize_after_execute(self) -> bool:
        """Whether `async_save` calls `synchronize_staging` before it returns."""
        return self._synchronize_after_execute

    def stage(self, state_dict: STATE_DICT_TYPE) -> Future[STATE_DICT_TYPE] | STATE_DICT_TYPE:
        """Copies a state dict.

        Args:
            state_dict (dict): What is saved.

        Returns:
            dict or Future: The copy, or a Future of it.
        """

    def synchronize_staging(self) -> None:
        """Waits for copies that are under way."""

    def close(self) -> None:
        """Gives up what the stager holds."""


@dataclass
class StagingOptions:
    """How a DefaultStager copies.

    As `torch.distributed.checkpoint.staging.StagingOptions`.

    Args:
        use_pinned_memory (bool): Taken and not used. Default: True.
        use_shared_memory (bool): Taken and not used. Default: True.
        use_async_staging (bool): Copies in a thread. Default: True.
        use_non_blocking_copy (bool): Taken and not used. Default: True.

    Example:
        >>> from mica.distributed.checkpoint.staging import StagingOptions
        >>> StagingOptions(use_async_staging=False).use_async_staging
        False
    """

    use_pinned_memory: bool = True
    use_shared_memory: bool = True
    use_async_staging: bool = True
    use_non_blocking_copy: bool = True


class DefaultStager(AsyncStager):
    """Copies tensors to the CPU.

    As `torch.distributed.checkpoint.staging.DefaultStager`.

    Args:
        config (StagingOptions): How. Default: in a thread.

    Example:
        >>> from mica.distributed.checkpoint.staging import DefaultStager
        >>> stager, x = DefaultStager(), mica.zeros(2)
        >>> staged = stager.stage({"x": x}).result()
        >>> x += 1  # training goes on
        >>> staged
        {'x': tensor([0., 0.])}
        >>> stager.close()
    """

    def __init__(self, config: StagingOptions = StagingOptions()) -> None:  # noqa: B008 - torch's signature
        self._config = config
        self._thread = ThreadPoolExecutor(1, "stager") if config.use_async_staging else None
        self._last: Future[STATE_DICT_TYPE] | None = None

    def stage(self, state_dict: STATE_DICT_TYPE) -> Future[STATE_DICT_TYPE] | STATE_DICT_TYPE:
        """Copies a state dict.

        Args:
            state_dict (dict): What is saved.

        Returns:
            dict or Future: The copy; a Future of it with `use_async_staging`.
        """
        if self._thread is None:
            return _copied_dict(state_dict)
        self._last = self._thread.submit(_copied_dict, state_dict)
        return self._last

    def synchronize_staging(self) -> None:
        """Waits for a copy that is under way."""
        if self._last is not None:
            self._last.result()

    def close(self) -> None:
        """Ends the thread, after the copies that were begun."""
        if self._thread is not None:
            self._thread.shutdown()


class BlockingAsyncStager(AsyncStager):
    """Copies tensors to the CPU before it returns.

    As `torch.distributed.checkpoint.staging.BlockingAsyncStager`.

    Args:
        cache_staged_state_dict (bool): Taken and not used. Default: False.
        type_check (bool): Taken and not used. Default: False.

    Example:
        >>> from mica.distributed.checkpoint.staging import BlockingAsyncStager
        >>> BlockingAsyncStager().stage({"x": mica.zeros(2)})
        {'x': tensor([0., 0.])}
    """

    _synchronize_after_execute = False

    def __init__(self, cache_staged_state_dict: bool = False, type_check: bool = False) -> None:
        self.cache_staged_state_dict, self.type_check = cache_staged_state_dict, type_check

    def stage(self, state_dict: STATE_DICT_TYPE) -> STATE_DICT_TYPE:
        """Copies a state dict.

        Args:
            state_dict (dict): What is saved.

        Returns:
            dict: The copy.
        """
        return _copied_dict(state_dict)

    def synchronize_staging(self) -> None:
        """Does nothing: nothing is under way."""

    def close(self) -> None:
        """Does nothing: nothing is held."""


def _copied_dict(state_dict: STATE_DICT_TYPE) -> STATE_DICT_TYPE:
    memo: dict[int, Any] = {}
    return {key: _copied(value, memo) for key, value in state_dict.items()}


def _copied(value: Any, memo: dict[int, Any]) -> Any:
    """A copy with tensors on the CPU, and with what is no tensor copied deeply."""
    if isinstance(value, Tensor) and not isinstance(value, _Checkpointable):
        if value.device.type == "meta":
            return value
        return value.detach().cpu().clone() if value.device.type == "cpu" else value.detach().cpu()
    if type(value) in (list, tuple):
        return type(value)(_copied(inner, memo) for inner in value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):  # a named one
        return type(value)(*(_copied(inner, memo) for inner in value))
    if isinstance(value, Mapping):
        return {key: _copied(inner, memo) for key, inner in value.items()}
    return copy.deepcopy(value, memo)
