"""The C device as its vendor tests it (MICA_PLUGINS names the plugin), and what a first
`add` costs him: at most 15 functions of the device and 250 lines in all."""

import re
from pathlib import Path

import mica

SOURCE = Path(__file__).with_name("null.c").read_text()


def test_two_kernels_and_a_fallback():
    x = mica.tensor([1.0, -2.0], device="null.c")
    mica.fallback_counts(reset=True)
    assert (x + x).tolist() == [2, -4]
    assert mica.relu(x).tolist() == [1, 0]
    assert mica.fallback_counts() == {}
    assert (x * x).tolist() == [1, 4]
    assert mica.fallback_counts() == {"null.c": {"mica::mul.Tensor": 1}}
    assert (x.to("null.c", mica.int64) + 1).tolist() == [2, -1]


def test_gradients():
    x = mica.tensor([1.0, -2.0], device="null.c", requires_grad=True)
    mica.relu(x + x).sum().backward()
    assert x.grad.tolist() == [2, 0] and x.grad.device.type == "null.c"


def test_what_the_first_add_costs():
    device = SOURCE[SOURCE.index("the device") : SOURCE.index("the kernels")]
    functions = re.findall(r"^static MicaStatus (\w+)\(", device, re.MULTILINE)
    assert 0 < len(functions) <= 15, functions
    assert len(SOURCE.splitlines()) <= 250
