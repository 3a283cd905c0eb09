"""mica.cuda: the devices of the backend "cuda". Programs ask before they use one."""

from mica._devices import modules as _modules

_modules.fill(__name__, "cuda")
