"""Images of bytes, resized: torch's and Pillow's arithmetic in 16 bits, bit for bit, edges included."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import mica


@pytest.mark.parametrize("align", [False, True])
@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "bicubic antialias", "bilinear antialias"])
def test_bytes_are_torchs(mode: str, align: bool) -> None:
    name, antialias = mode.split()[0], mode.endswith("antialias")
    if antialias and align:
        pytest.skip("torch has no antialiasing with corners aligned")
    for seed in range(8):
        torch.manual_seed(seed)
        image = torch.randint(0, 256, (2, 3, 2 + seed % 5, 3 + seed % 4), dtype=torch.uint8)
        for size in ((2, 2), (5, 7), (8, 3), (1, 2)):
            options = {"size": size, "mode": name, "align_corners": align, "antialias": antialias}
            ours = mica.nn.functional.interpolate(mica.tensor(image.numpy()), **options)
            theirs = torch.nn.functional.interpolate(image, **options)
            np.testing.assert_array_equal(ours.numpy(), theirs.numpy(), err_msg=f"{seed} {size}")
