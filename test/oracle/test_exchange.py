"""DLPack and random state between torch and Mica."""

from __future__ import annotations

import pytest
import torch

import mica

NAMES = [
    "bool",
    "uint8",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
]


@pytest.mark.parametrize("name", NAMES)
def test_dlpack_shares_memory_both_ways(name: str) -> None:
    theirs = torch.arange(6).reshape(2, 3).to(getattr(torch, name)).t()
    ours = mica.from_dlpack(theirs)
    assert ours.dtype == getattr(mica, name) and ours.stride() == theirs.stride()
    assert ours.data_ptr() == theirs.data_ptr()
    assert (
        ours.to(mica.float32).tolist() == theirs.to(torch.float32).tolist() if name != "complex64" else True
    )
    back = torch.from_dlpack(ours)
    assert back.data_ptr() == theirs.data_ptr() and torch.equal(back, theirs)


def test_dlpack_keeps_the_memory_alive() -> None:
    ours = mica.from_dlpack(torch.arange(1000.0))
    theirs = torch.from_dlpack(mica.arange(1000.0))
    assert ours.sum().item() == theirs.sum().item() == 499500


def test_dlpack_refuses_tensors_with_history() -> None:
    with pytest.raises(RuntimeError, match="detach"):
        mica.ones(2, requires_grad=True).__dlpack__()


def test_random_state_moves_from_torch() -> None:
    torch.manual_seed(3)
    torch.randn(7)
    mica.set_rng_state(mica.from_numpy(torch.get_rng_state().numpy().copy()))
    assert mica.rand(5).tolist() == torch.rand(5).tolist()
