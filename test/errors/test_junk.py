"""No argument ends the process: whatever is called with things that make no sense raises, or takes them."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import Any

import pytest
from process import printed

import mica

RUN = """
import os, runpy, sys
path, folder = sys.argv[1:]
os.chdir(folder)
sys.argv[1:] = []
runpy.run_path(path, run_name="__main__")
"""


@pytest.mark.slow
def test_no_junk_ends_the_process(tmp_path: Path) -> None:
    program = Path(__file__).parent / "junk.py"
    lines = printed(RUN, str(program), str(tmp_path), timeout=600).splitlines()
    assert lines[:-1] == []
    assert int(lines[-1].split()[0]) > 2500


def test_saved_for_backward_is_a_tensor() -> None:
    class Doubles(mica.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.save_for_backward(factor)
            return x * factor

        @staticmethod
        def backward(ctx, grad):
            return grad, None

    x = mica.ones(2, requires_grad=True)
    with pytest.raises(
        TypeError, match="save_for_backward can only save variables, but argument 0 is of type float"
    ):
        Doubles.apply(x, 2.0)
    assert Doubles.apply(x.detach(), 2.0).tolist() == [2, 2]  # nothing is recorded, nothing saved


def test_refused_save_leaves_no_history_behind() -> None:
    class Write(mica.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: mica.Tensor, y: mica.Tensor) -> mica.Tensor:
            ctx.save_for_backward(y)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx: Any, grad: mica.Tensor) -> tuple[mica.Tensor, None]:
            return grad * 100, None

    leaf = mica.ones(2, requires_grad=True)
    x = leaf * 2
    with mica.inference_mode():
        y = x + 1
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward, and argument 0"):
        Write.apply(x, y)
    x.sum().backward()
    assert leaf.grad is not None and leaf.grad.tolist() == [2, 2]


def test_nodes_outlive_a_disabled_autograd() -> None:
    node = (mica.ones(1, requires_grad=True) * 2).grad_fn
    mica.disable_plugin("autograd")
    try:
        gc.collect()
        with pytest.raises(RuntimeError, match="need the autograd plugin"):
            _ = node.no_such_thing
    finally:
        mica.enable_plugin("autograd")
    assert node.name() == "MulBackward0"
