"""What saving and loading raise: one error on every rank, of the kind of the failing rank's own."""

from __future__ import annotations

import functools
import pickle
import traceback
from typing import Any

__all__ = ["CheckpointException"]

Failure = tuple[BaseException, traceback.StackSummary]
# The kinds that an error on all ranks has beside its own; a failure takes the first that fits.
_KINDS = (
    FileNotFoundError,
    FileExistsError,
    OSError,
    KeyError,
    TypeError,
    ValueError,
    NotImplementedError,
    MemoryError,
    pickle.UnpicklingError,
    RuntimeError,
)


class CheckpointException(BaseException):
    """A step of saving or loading failed on one rank or several.

    As `torch.distributed.checkpoint.CheckpointException`, and also of the kind of the first rank's error: an
    `except OSError` meets a full disk, on every rank.

    Args:
        msg (str): The step.
        failures (dict from int to tuple): For each rank that failed its error and where that was raised.

    Example:
        >>> try:
        ...     mica.distributed.checkpoint.load({"x": mica.ones(2)}, checkpoint_id="/no/such/folder", no_dist=True)
        ... except OSError as error:
        ...     isinstance(error, mica.distributed.checkpoint.CheckpointException), sorted(error.failures)
        (True, [0])
    """

    def __init__(self, msg: str, failures: dict[int, Failure]) -> None:
        super().__init__(msg, failures)
        self.step, self._failures = msg, failures

    @property
    def failures(self) -> dict[int, Failure]:
        """For each rank that failed its error and where that was raised."""
        return self._failures

    def __str__(self) -> str:
        told = [
            f"Rank ({rank}) fails in the step ({self.step}): {type(error).__name__}: {error}"
            for rank, (error, _) in sorted(self._failures.items())
        ]
        return "\n".join(told)

    def __reduce__(self) -> Any:
        return (failed, (self.step, self._failures))


@functools.cache
def _class_of(kind: type[BaseException]) -> type[CheckpointException]:
    return type("CheckpointException", (CheckpointException, kind), {"__module__": __name__})


def failed(step: str, failures: dict[int, Failure]) -> CheckpointException:
    """The exception of a step, of the kind of the first rank's error."""
    first = failures[min(failures)][0]
    kind = next((k for k in _KINDS if isinstance(first, k)), None)
    if kind is None:
        return CheckpointException(step, failures)
    made = _class_of(kind)(step, failures)
    if isinstance(made, OSError) and isinstance(first, OSError):
        made.errno, made.filename = first.errno, first.filename
    return made


def wrapped(error: BaseException) -> Failure:
    """The error as it can travel to other ranks, and where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)
    where = traceback.StackSummary.from_list([(f.filename, f.lineno or 0, f.name, f.line) for f in frames])
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # noqa: BLE001 - whatever an error's own pickling raises
        return RuntimeError(f"{type(error).__name__}: {error}"), where
    return error, where
