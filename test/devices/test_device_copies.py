"""Copies between devices: all pairs of the CPU, the null device (whose memory the host cannot
read, so that a missing copy crashes) and one in Python; into views, converting, and what
Python does over copies."""

import copy
import io
import pickle

import numpy as np
import pytest

import mica
from mica import nn

pytestmark = pytest.mark.usefixtures("null_device")

LAYOUTS = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.transpose(0, 2),
    "sliced": lambda x: x[:, ::2, 1:],
    "sparse": lambda x: x[::3, ::4, ::5],  # more gaps than elements
    "expanded": lambda x: x[:1].expand(4, -1, -1),
    "scalar": lambda x: x[1, 1, 1],
    "empty": lambda x: x[:0],
}
PAIRS = [
    ("cpu", "null"),
    ("null", "cpu"),
    ("null", "null"),
    ("null:0", "null:1"),
    ("py.test", "null"),
    ("null", "py.test:1"),
    ("py.test", "cpu"),
]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("source,target", PAIRS)
def test_copies_between_all_pairs(python_device, layout, source, target):
    want = LAYOUTS[layout](mica.arange(4 * 6 * 8, dtype=mica.float32).reshape(4, 6, 8))
    have = LAYOUTS[layout](mica.arange(4 * 6 * 8, dtype=mica.float32).reshape(4, 6, 8).to(source))
    there = have.to(target, copy=True)
    assert there.device == mica.empty(0, device=target).device
    assert there.tolist() == want.tolist()
    assert have.tolist() == want.tolist()


@pytest.mark.parametrize("layout", [k for k in LAYOUTS if k != "expanded"])
@pytest.mark.parametrize("source,target", PAIRS)
def test_copies_into_views_leave_the_rest(python_device, layout, source, target):
    base_want, base = mica.zeros(4, 6, 8), mica.zeros(4, 6, 8).to(target)
    view_want, view = LAYOUTS[layout](base_want), LAYOUTS[layout](base)
    values = mica.randn(view_want.shape)
    view_want.copy_(values)
    view.copy_(values.to(source))
    assert base.tolist() == base_want.tolist()


@pytest.mark.parametrize("source,target", PAIRS)
@pytest.mark.parametrize(
    "dtypes", [("float32", "int64"), ("int32", "float64"), ("float32", "bfloat16"), ("bool", "float32")]
)
def test_copies_convert(python_device, source, target, dtypes):
    x = mica.tensor([[0.0, 1.5, -2.5], [3.0, 4.75, 5.0]]).to(getattr(mica, dtypes[0]))
    want = x.t().to(getattr(mica, dtypes[1]))
    have = x.to(source).t().to(target, getattr(mica, dtypes[1]))
    assert have.dtype == want.dtype
    assert have.tolist() == want.tolist()


def test_copies_broadcast():
    x = mica.zeros(3, 4, device="null")
    x.copy_(mica.arange(4, dtype=mica.float32))
    assert x.tolist() == [[0, 1, 2, 3]] * 3
    with pytest.raises(RuntimeError, match="does not broadcast"):
        x.copy_(mica.zeros(5))


def test_a_copy_from_a_device_broadcasts_on_the_cpu():
    x = mica.zeros(2, 3)
    x.copy_(mica.tensor([1.0, 2.0, 3.0]).to("null"))
    assert x.tolist() == [[1, 2, 3]] * 2


def test_a_copy_between_overlapping_views_reads_first():
    x = mica.arange(6, dtype=mica.float32).to("null")
    x[1:].copy_(x[:-1])
    assert x.tolist() == [0, 0, 1, 2, 3, 4]


def test_copies_that_do_not_wait():
    x = mica.arange(1000, dtype=mica.float32)
    there = x.to("null", non_blocking=True)
    back = there.to("cpu", non_blocking=True)
    mica.synchronize("null")
    assert back.tolist() == x.tolist()


def test_values_come_out():
    x = mica.arange(6, dtype=mica.float32).reshape(2, 3).to("null")
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert x[1, 2].item() == 5
    assert float(x.sum()) == 15
    assert bool(x[0, 1])
    assert repr(x) == "tensor([[0., 1., 2.],\n        [3., 4., 5.]], device='null:0')"
    with pytest.raises(TypeError, match=r"x.cpu\(\)"):
        x.numpy()
    assert x.numpy(force=True).tolist() == x.tolist()


def test_pickle_save_and_deepcopy():
    x = mica.arange(6, dtype=mica.float32).reshape(2, 3).to("null:1")
    for y in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        assert y.device == x.device and y.tolist() == x.tolist()
    state = nn.Linear(2, 2).to("null").state_dict()
    file = io.BytesIO()
    pickle.dump(state, file)
    again = pickle.loads(file.getvalue())
    assert again["weight"].tolist() == state["weight"].tolist()


def test_from_numpy_goes_there():
    assert mica.from_numpy(np.arange(3.0)).to("null").tolist() == [0, 1, 2]
    assert mica.tensor([1.0, 2.0], device="null").tolist() == [1, 2]
    assert mica.as_tensor(np.ones(2), device="null:1").device.index == 1
