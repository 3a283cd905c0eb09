"""The mistakes that users of PyTorch make, and what they read: a sentence that names the
argument, both values and the way out. A row is a program, its exception and words of it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mica
from mica import nn, optim
from mica.nn import functional as F
from mica.utils.data import DataLoader


def loaded(change: Callable[[dict[str, Any]], None]) -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    state = model.state_dict()
    change(state)
    model.load_state_dict(state)


def twice() -> None:
    x = mica.ones(3, requires_grad=True)
    y = (x * x).sum()
    y.backward()
    y.backward()


def written_leaf() -> None:
    x = mica.ones(3, requires_grad=True)
    x += 1


def written_saved() -> None:
    y = mica.ones(3, requires_grad=True).exp()
    y += 1
    y.sum().backward()


def batches(*samples: Any) -> list[Any]:
    return list(DataLoader(list(samples), batch_size=2))


def leaf() -> Any:
    return mica.ones(2, requires_grad=True)


ones, tensor = mica.ones, mica.tensor
Row = tuple[Callable[[], Any], type[BaseException], list[str]]
ROWS: list[Row] = [
    # --- products
    (lambda: ones(2, 3) @ ones(2, 3), RuntimeError, ["(3)", "(2)", "`mat2`", "[2, 3]"]),
    (lambda: ones(2, 3) @ ones(3, 2).double(), RuntimeError, ["float32", "float64", "to have the same dtype"]),
    (lambda: ones(2, 3, 4).bmm(ones(3, 4, 5)), RuntimeError, ["[2, 4] but got: [3, 4]", "`self`"]),
    (lambda: nn.Linear(3, 2)(ones(4, 5)), RuntimeError, ["[4, 5]", "`input`", "(4x5 and 3x2)", "[2, 3]"]),
    (lambda: nn.Linear(3, 2)(np.ones((4, 3))), TypeError, ["numpy.ndarray", "mica.from_numpy"]),
    (
        lambda: mica.einsum("ij,jk->ik", ones(2, 3), ones(2, 3)),
        RuntimeError,
        ["Label (j)", "(2)", "(3)", "operand (1)", "[2, 3]"],
    ),
    # --- losses
    (lambda: F.cross_entropy(ones(2, 3), tensor([0, 3])), IndexError, ["Target 3", "element (1)", "`target`", "(3)"]),
    (lambda: F.cross_entropy(ones(2, 3), tensor([0.0, 1])), RuntimeError, ["float32", "`target`", "int64"]),
    (lambda: F.cross_entropy(ones(2, 3), tensor([0, 1, 2])), ValueError, ["(2)", "(3)", "target batch_size"]),
    (lambda: nn.MSELoss()(ones(2, 3), ones(2, 4)), RuntimeError, ["(4)", "(3)"]),
    # --- joining and shapes
    (lambda: mica.cat([ones(2, 3), ones(2, 4)]), RuntimeError, ["Expected size 3 but got size 4 for tensor number 1 in the list", "except in dimension 0"]),
    (lambda: mica.cat([ones(2), 3]), TypeError, ["argument 'tensors' (position 1) must be tuple of Tensors, not list of (Tensor, int)"]),
    (lambda: mica.stack([ones(2), ones(3)]), RuntimeError, ["expects each tensor to be equal size, but got [2] at entry 0 and [3] at entry 1"]),
    (lambda: ones(2, 3).t().view(6), RuntimeError, ["[3, 2]", "[1, 3]", "reshape"]),
    (lambda: ones(2, 3).reshape(7), RuntimeError, ["'[7]' is invalid for input of size 6"]),
    (lambda: ones(2, 3).expand(3, 3), RuntimeError, ["(3)", "(2)", "[2, 3]"]),
    (lambda: ones(2, 3) + ones(2, 4), RuntimeError, ["(4)", "`other`", "(3)", "`self`", "[2, 4]", "[2, 3]", "non-singleton dimension 1"]),
    (lambda: ones(2).sum(3), IndexError, ["(3)", "Dimension out of range (expected to be in range of [-1, 0], but got 3)"]),
    # --- convolution and norms
    (lambda: nn.Conv2d(3, 4, 3)(ones(1, 1, 8, 8)), RuntimeError, ["got 1 channels", "[4, 3, 3, 3]", "3 channels"]),
    (lambda: nn.Conv2d(1, 4, 3)(ones(1, 1, 2, 2)), RuntimeError, ["(2 x 2)", "(3 x 3)", "Kernel"]),
    (
        lambda: nn.BatchNorm2d(3)(ones(1, 4, 2, 2)),
        RuntimeError,
        ["running_mean", "not 3", "contain 4", "[1, 4, 2, 2]"],
    ),
    (lambda: nn.LayerNorm(3)(ones(2, 4)), RuntimeError, ["[2, 4]", "[3]"]),
    # --- state
    (lambda: loaded(lambda d: d.pop("0.weight")), RuntimeError, ["Missing key(s)", '"0.weight"']),
    (lambda: loaded(lambda d: d.update(new=ones(1))), RuntimeError, ["Unexpected key(s)", '"new"']),
    (
        lambda: loaded(lambda d: d.update({"0.weight": ones(4, 4)})),
        RuntimeError,
        ["0.weight", "[4, 4]", "[3, 2]"],
    ),
    (lambda: nn.Linear(2, 2).load_state_dict(ones(2)), TypeError, ["mapping", "Tensor"]),
    (lambda: nn.Linear(1, 1).to(mica.int64), TypeError, ["floating or complex", "int64"]),
    (lambda: nn.Linear(1, 1).register_buffer("weight", None), KeyError, ["weight", "already exists"]),
    # --- gradients
    (twice, RuntimeError, ["freed", "retain_graph=True"]),
    (lambda: leaf().backward(), RuntimeError, ["[2]", "reduce it"]),
    (lambda: ones(2).sum().backward(), RuntimeError, ["does not require grad"]),
    (lambda: leaf().numpy(), RuntimeError, ["requires grad", "detach()"]),
    (written_leaf, RuntimeError, ["leaf", "no_grad", "clone"]),
    (written_saved, RuntimeError, ["ExpBackward0", "add_", "clone"]),
    (lambda: leaf().t_(), RuntimeError, ["t_", "leaf", "no_grad"]),
    (lambda: tensor([1]).requires_grad_(), RuntimeError, ["int64", "floating"]),
    # --- one number
    (lambda: ones(2, 3).item(), RuntimeError, ["[2, 3]", "a Tensor with 6 elements cannot be converted to Scalar", "tolist()"]),
    (lambda: float(ones(2)), ValueError, ["[2]", "only one element tensors can be converted to Python scalars"]),
    (lambda: bool(ones(2)), RuntimeError, ["2 elements", "any() or all()"]),
    # --- data
    (lambda: batches(ones(2), ones(3)), RuntimeError, ["Sample (1)", "[3]", "[2]", "collate_fn"]),
    (lambda: batches([1, 2], [1]), RuntimeError, ["Sample (1)", "1 parts", "2", "collate_fn"]),
    (lambda: batches(None, None), TypeError, ["NoneType", "collate_fn"]),
    (lambda: DataLoader([1], batch_size=2.5), ValueError, ["2.5", "positive integer"]),
    (lambda: nn.Embedding(3, 2)(tensor([3])), IndexError, ["index 3 is out of bounds for dimension 0 with size 3"]),
    (lambda: mica.from_numpy(np.arange(3)[::-1]), ValueError, ["-8 bytes", "copy()"]),
    # --- arguments
    (lambda: mica.zeros(2, dtype="float32"), TypeError, ["argument 'dtype' must be dtype, not str"]),
    (lambda: mica.zeros(2.5), TypeError, ["argument 'size' (position 1) must be tuple of ints, not float"]),
    (lambda: mica.add(ones(2)), TypeError, ['missing 1 required positional arguments: "other"']),
    (lambda: mica.sum(ones(2), foo=3), TypeError, ["got an unexpected keyword argument 'foo'"]),
    (lambda: ones(2).softmax(), TypeError, ['missing 1 required positional arguments: "dim"']),
    (lambda: ones(2).view(2, 3.0), TypeError, ["argument 'size'", "must be tuple of ints, not float"]),
    (lambda: mica.arange(3).mean(), NotImplementedError, ["int64", "x.to(mica.float32)", "float64"]),
    (lambda: tensor([4]).sqrt_(), RuntimeError, ["float32", "int64", "not in-place"]),
    (lambda: ones(2).to("xpu"), RuntimeError, ["(xpu)", "cpu, meta", "mica doctor"]),
    (lambda: ones(2**40), mica.OutOfMemoryError, ["4398046511104 bytes", "limit"]),
    (lambda: ones(2, device="meta").tolist(), NotImplementedError, ["meta", "no values"]),
    # --- optimisers
    (lambda: optim.Adam([leaf()], lr="a"), TypeError, ["lr", "number", "str"]),
    (lambda: optim.Adam([leaf()], fused=True, foreach=True), RuntimeError, ["`fused`", "`foreach`"]),
    (lambda: optim.SGD([{"lr": 1}]), KeyError, ["'params'", "['lr']"]),
    (lambda: optim.SGD([leaf()]).load_state_dict({}), KeyError, ["'param_groups'"]),
    (lambda: optim.lr_scheduler.StepLR(3, 1), TypeError, ["Optimizer", "int"]),
]  # fmt: skip


@pytest.mark.parametrize("row", range(len(ROWS)))
def test_message(row: int) -> None:
    call, kind, words = ROWS[row]
    with pytest.raises(kind) as caught:
        call()
    text = str(caught.value)
    assert [word for word in words if word not in text] == [], text
    assert text.rstrip("'\"").splitlines()[0].rstrip().endswith((".", ":")), text


def test_a_file_that_is_none_of_ours(tmp_path: Any) -> None:
    import pickle

    for name, content in (("text.pt", b"hello"), ("empty.pt", b""), ("cut.pt", None)):
        path = tmp_path / name
        if content is None:
            mica.save({"w": ones(100)}, path)
            content = path.read_bytes()[:60]
        path.write_bytes(content)
        with pytest.raises(pickle.UnpicklingError, match=f"{name}.*mica.save"):
            mica.load(path)


def test_a_product_of_vectors_warns_of_no_grid() -> None:
    """Its callers could mend nothing. The warning comes once a process, hence one of its own."""
    program = "import mica; print(mica.cartesian_prod(mica.arange(2), mica.arange(2)).shape)"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (result.stdout.strip(), result.stderr) == ("mica.Size([4, 2])", "")
