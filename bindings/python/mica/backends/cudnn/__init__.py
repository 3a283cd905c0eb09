"""mica.backends.cudnn: how convolutions are computed.

- `enabled` (True at first): whether a vendor's library may.
- `allow_tf32` (True): whether it may round float32 to TF32, ten bits of mantissa, before it multiplies.
- `benchmark` (False): whether it tries its algorithms for each new shape and keeps the fastest; `benchmark_limit`
  (10; 0: all): how many.
- `deterministic` (False): whether only algorithms serve that give the same bits in every run.
"""

from mica.backends import _settings
from mica.backends.cudnn import conv as conv

_settings.install(
    __name__,
    enabled=_settings.Setting("convolution_library"),
    allow_tf32=_settings.Setting("convolution_tf32"),
    benchmark=_settings.Setting("convolution_benchmark"),
    benchmark_limit=_settings.Setting("convolution_benchmark_limit", int),
    deterministic=_settings.Setting("convolution_deterministic"),
)
