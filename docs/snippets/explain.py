"""What the README shows of `mica.explain`, with the plugins' file names in place of their paths."""

import contextlib
import io
import os
import re

import mica

printed = io.StringIO()
with contextlib.redirect_stdout(printed):
    # snippet: call
    x = mica.ones(3, requires_grad=True)
    print(mica.explain("add.Tensor", x, mica.ones(3)))
    # end snippet
text = printed.getvalue()
assert "Autograd" in text
print(re.sub(r"\((/[^)]*)\)", lambda path: f"({os.path.basename(path[1])})", text).rstrip())
