"""torch.ops and torch.classes: opening libraries of operators."""

from __future__ import annotations

import os
from typing import Any

import mica
from mica.torch import _library


def load_library(path: Any) -> None:
    """Opens a plugin of Mica; a library that is built against torch raises OSError, as one that is missing.

    The library of a package whose operators a plugin provides (torchvision) is not opened: the plugin
    stands in for it.
    """
    if _library.stands_in(os.path.basename(os.path.dirname(str(path)))):
        return
    try:
        mica.ops.load_library(str(path))
    except RuntimeError as error:
        raise OSError(str(error)) from error
