"""mica.cuda: the devices of the backend "cuda". Programs ask before they use one."""

from __future__ import annotations

from mica import _C
from mica._devices import backend_module as _backend_functions

_backend_functions.install(globals(), "cuda")
OutOfMemoryError = _C.OutOfMemoryError
default_generators: tuple[object, ...] = ()
