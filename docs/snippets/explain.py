"""What the README shows of `mica.explain`: the layers of a call, without the place of the entry and the plugins' folder."""

import os
import re

import mica


def show(text: str) -> None:
    text = re.sub(r"\n  described in .*", "", text)
    print(re.sub(r"\((/[^)]*)\)", lambda path: f"({os.path.basename(path[1])})", text).rstrip())


x = mica.ones(3, requires_grad=True)
text = mica.explain("add.Tensor", x, mica.ones(3))
assert "Autograd" in text
show(text)
