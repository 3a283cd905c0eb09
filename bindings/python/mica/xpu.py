"""mica.xpu: the devices of the backend "xpu". Programs ask before they use one."""

from mica import _backend_functions
from mica._devices import Event as Event, Stream as Stream, current_stream as current_stream, stream as stream

_backend_functions.install(globals(), "xpu")
