"""mica.version: what this build is, under torch's names.

Attributes:
    __version__ (str): Mica's version, "0.1.0".
    cuda, hip, xpu (str or None): None: kernels of devices come with plugins, which mica.plugins() lists.
    debug (bool): False.
"""

__version__ = "0.1.0"
cuda: str | None = None
hip: str | None = None
xpu: str | None = None
debug = False
