"""mica.backends.cudnn.conv: `fp32_precision`, "tf32", "ieee" or "none", for mica.backends.cudnn.allow_tf32."""

from mica.backends import _settings

_settings.install(__name__, fp32_precision=_settings.Tf32("convolution_tf32", default=True))
