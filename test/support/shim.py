"""Mica under torch's names beside torch: what either gives as numbers and words, and whether both agree."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from mica.torch import namespace

SHIM = namespace()


def plain(value: Any) -> Any:
    """A result of either library as numbers and words."""
    if hasattr(value, "detach") and hasattr(value, "tolist"):
        return (
            str(value.dtype).split(".")[-1],
            tuple(value.shape),
            np.asarray(value.detach().to(float_of(value)).tolist()),
        )
    if isinstance(value, dict):
        return [(k, plain(v)) for k, v in value.items()]
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, str):
        return value.replace("mica.", "torch.")
    if isinstance(value, (SHIM.dtype, torch.dtype, SHIM.device, torch.device)):
        return str(value).replace("mica.", "torch.")
    return value if isinstance(value, (int, float, bool, type(None))) else str(type(value).__name__)


def float_of(value: Any) -> Any:
    library = torch if isinstance(value, torch.Tensor) else SHIM
    return library.complex128 if value.dtype.is_complex else library.float64


def agree(a: Any, b: Any, what: str, tolerance: float = 2e-5) -> None:
    if isinstance(b, np.ndarray):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=what)
    elif isinstance(b, (list, tuple)):
        assert isinstance(a, (list, tuple)) and len(a) == len(b), what
        for x, y in zip(a, b):
            agree(x, y, what, tolerance)
    elif isinstance(b, float):
        assert a == pytest.approx(b, rel=tolerance, nan_ok=True), what
    else:
        assert a == b, what
