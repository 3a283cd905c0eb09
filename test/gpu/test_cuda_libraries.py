"""The way of products and convolutions from an operator to NVIDIA's libraries, which are imitated in the host's memory
(test/unit/gpu/fake): values, and that nothing falls back. The imitated driver launches no kernel."""

import os
from pathlib import Path

import pytest
from process import printed

ROOT = Path(__file__).resolve().parents[2]
FAKES = Path(os.environ.get("MICA_BUILD_DIR", ROOT / "build" / "release")) / "test" / "fake_cuda"

PROGRAM = """
import mica
F = mica.nn.functional
mica.set_fallback("error")

def ints(*sizes):
    return mica.randint(-3, 4, sizes).float()

def same(f, *tensors):
    got = f(*[t.to("cuda") for t in tensors]).cpu()
    assert got.tolist() == f(*tensors).tolist(), [t.shape for t in tensors]

# Beyond the kit's kernel of small products in one size, 128, or in several.
for m, k, n in ((129, 64, 64), (64, 129, 64), (64, 64, 129), (1, 70, 129), (130, 70, 1), (129, 1, 1), (66, 131, 68)):
    x, w, b = ints(m, k), ints(n, k), ints(n)
    same(F.linear, x, w, b)
    same(F.linear, x, w)
    same(lambda x, w: x @ w, x, w.t().contiguous())
    same(lambda b, x, w: mica.addmm(b, x, w.t(), alpha=2), b, x, w)
    same(lambda w, x: x.t().t() @ w.t(), w, x)
    if m == 1:
        same(lambda c, x, w: c.addmm_(x, w.t()), ints(1, n), x, w)  # what is added lies where the result goes
same(lambda a, b: a @ b, ints(1025, 2, 3), ints(1025, 3, 2))
for groups in (1, 2):
    same(lambda x, w: F.conv2d(x, w, padding=1, stride=2, groups=groups), ints(2, 4, 5, 5), ints(2, 4 // groups, 3, 3))
print("right")
"""


@pytest.mark.skipif(
    not (FAKES / "libcudnn.so.9").exists(), reason="the imitations are unit_gpu's, not built here"
)
def test_products_and_convolutions_reach_the_libraries(tmp_path):
    said = printed(
        PROGRAM,
        LD_LIBRARY_PATH=str(FAKES),
        MICA_CUDA_LIBRARIES=str(FAKES),
        MICA_NVRTC="",
        XDG_CACHE_HOME=str(tmp_path),
    )
    assert said.split() == ["right"]
