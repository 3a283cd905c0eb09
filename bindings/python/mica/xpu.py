"""mica.xpu: the devices of the backend "xpu". Programs ask before they use one."""

from mica._devices import backend_module as _backend_functions

_backend_functions.install(globals(), "xpu")
