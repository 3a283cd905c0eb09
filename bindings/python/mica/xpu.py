"""mica.xpu: the devices of the backend "xpu". Programs ask before they use one."""

from mica._devices import modules as _modules

_modules.fill(__name__, "xpu")
