"""mica.backends.cuda.matmul: what products of matrices may round.

- `allow_tf32` (False at first): float32 to TF32, ten bits of mantissa, before it is multiplied; the same as
  `mica.set_float32_matmul_precision("high")`.
- `allow_fp16_reduced_precision_reduction`, `allow_bf16_reduced_precision_reduction` (True): partial sums of half
  types to their own type, where a library adds up in parts.
- `fp32_precision`: "tf32", "ieee" or "none", for `allow_tf32`.
"""

from mica.backends import _settings

_settings.install(
    __name__,
    allow_tf32=_settings.Setting("float32_matmul_precision"),
    allow_fp16_reduced_precision_reduction=_settings.Setting("matmul_reduced_precision_float16"),
    allow_bf16_reduced_precision_reduction=_settings.Setting("matmul_reduced_precision_bfloat16"),
    fp32_precision=_settings.Tf32("float32_matmul_precision", default=False),
)
