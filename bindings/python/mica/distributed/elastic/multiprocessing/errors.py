"""The error of a rank, written where its launcher looks for it.

@record
def main():
    ...
"""

from __future__ import annotations

import functools
import json
import os
import time
import traceback
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from mica.serialization._atomic_file import save_file

__all__ = ["record"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


def _write(error: BaseException) -> None:
    """Leaves the error, whole or not at all, in the file that TORCHELASTIC_ERROR_FILE names."""
    where = os.environ.get("TORCHELASTIC_ERROR_FILE")
    if not where:
        return
    more = {"py_callstack": traceback.format_exc(), "timestamp": str(int(time.time()))}
    text = json.dumps({"message": {"message": f"{type(error).__name__}: {error}", "extraInfo": more}})
    try:
        save_file(where, lambda file: file.write(text.encode()))
    except (OSError, RuntimeError) as failed:
        print(f"mica.distributed: the error of this rank could not be written to ({where}): {failed}")


def record(fn: Callable[_P, _R], error_handler: Any = None) -> Callable[_P, _R]:
    """Makes a function write the error that it raises where the launcher of its rank looks for it.

    As `torch.distributed.elastic.multiprocessing.errors.record`. Launchers name the file in TORCHELASTIC_ERROR_FILE;
    without it the error is raised alone.

    Args:
        fn (callable): The main function of a rank.
        error_handler (Any): Not there. Default: None.

    Returns:
        callable: `fn`, whose errors are raised as before.

    Raises:
        NotImplementedError: `error_handler` is given.

    Example:
        >>> import json, os
        >>> from mica.distributed.elastic.multiprocessing.errors import record
        >>> @record
        ... def main():
        ...     raise ValueError("no data")
        >>> os.environ["TORCHELASTIC_ERROR_FILE"] = "error.json"  # launchers do
        >>> main()
        Traceback (most recent call last):
            ...
        ValueError: no data
        >>> with open("error.json") as file:
        ...     json.load(file)["message"]["message"]
        'ValueError: no data'
        >>> del os.environ["TORCHELASTIC_ERROR_FILE"]
    """
    if error_handler is not None:
        raise NotImplementedError(
            "record(error_handler=...) is not there; catch the function's errors around it."
        )

    @functools.wraps(fn)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return fn(*args, **kwargs)
        except SystemExit as ended:
            if ended.code:
                _write(ended)
            raise
        except Exception as error:
            _write(error)
            raise

    return call
