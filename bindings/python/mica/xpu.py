"""mica.xpu: the devices of the backend "xpu". Programs ask before they use one."""

from mica import _backend_functions

_backend_functions.install(globals(), "xpu")
