"""mica.utils.tensorboard.summary: the protocol buffers of one report each, as torch names their makers.

For programs that hand summaries to a writer of their own; SummaryWriter's methods make and write them.
"""

from __future__ import annotations

from mica.utils.tensorboard._hparams import hparams as hparams
from mica.utils.tensorboard._summaries import (
    audio as audio,
    custom_scalars as custom_scalars,
    histogram as histogram,
    histogram_raw as histogram_raw,
    image as image,
    image_boxes as image_boxes,
    mesh as mesh,
    pr_curve as pr_curve,
    pr_curve_raw as pr_curve_raw,
    scalar as scalar,
    tensor_proto as tensor_proto,
    text as text,
    video as video,
)
