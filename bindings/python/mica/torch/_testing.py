"""torch.testing: its older comparison, and the TestCase of _internal.common_utils, by which packages' own tests
compare tensors."""

from __future__ import annotations

import unittest
from collections.abc import Mapping, Sequence
from typing import Any

import mica
from mica import testing
from mica._C import Tensor


class TestCase(unittest.TestCase):
    """A unittest.TestCase whose assertEqual compares tensors and numbers by closeness, in containers too."""

    def assertEqual(self, first: Any, second: Any, msg: Any = None, **tolerances: Any) -> None:
        """Raises AssertionError where the two differ; atol=, rtol=, equal_nan= as in assert_close."""
        if isinstance(first, Mapping) and isinstance(second, Mapping):
            super().assertEqual(set(first), set(second), msg)
            for key, value in first.items():
                self.assertEqual(value, second[key], msg, **tolerances)
        elif all(isinstance(v, Sequence) and not isinstance(v, str) for v in (first, second)):
            super().assertEqual(len(first), len(second), msg)
            for a, b in zip(first, second):
                self.assertEqual(a, b, msg, **tolerances)
        elif isinstance(first, (Tensor, int, float)) and isinstance(second, (Tensor, int, float)):
            known = {k: v for k, v in tolerances.items() if k in ("atol", "rtol")}
            options = {"equal_nan": True, "check_dtype": tolerances.get("exact_dtype", True), **known}
            testing.assert_close(first, second, **options)
        else:
            super().assertEqual(first, second, msg)


def assert_allclose(
    actual: Any, expected: Any, rtol: Any = None, atol: Any = None, equal_nan: bool = True, msg: str = ""
) -> None:
    """torch.testing's older comparison: it does not ask for equal dtypes, and a nan equals a nan."""
    mica.testing.assert_close(
        mica.as_tensor(actual),
        mica.as_tensor(expected),
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_dtype=False,
        msg=msg or None,
    )
