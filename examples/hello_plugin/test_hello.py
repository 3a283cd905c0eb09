"""Loads the plugin that the command line names and calls its operator."""

import os
import sys

os.environ["MICA_PLUGINS"] = sys.argv[1]

import mica  # noqa: E402  (after the variable that it reads)

y = mica.ops.hello.scale(mica.tensor([1.0, 2.0, 3.0]), 2.0)
assert y.tolist() == [2.0, 4.0, 6.0], y
try:
    mica.ops.hello.scale(mica.tensor([1, 2]), 2.0)
except TypeError as error:
    assert "needs contiguous float32" in str(error), error
else:
    raise AssertionError("an int64 tensor was taken")
print("1 passed, 0 failed")
