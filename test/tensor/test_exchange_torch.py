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
    with pytest.raises(BufferError, match="detach"):
        mica.ones(2, requires_grad=True).__dlpack__()


def test_random_state_moves_from_torch() -> None:
    torch.manual_seed(3)
    torch.randn(7)
    mica.set_rng_state(mica.from_numpy(torch.get_rng_state().numpy().copy()))
    assert mica.rand(5).tolist() == torch.rand(5).tolist()


@pytest.mark.parametrize("name", ["float32", "int32", "bool", "bfloat16", "complex64"])
def test_jax_reads_and_gives_tensors(name: str) -> None:
    """JAX asks for a version, a copy or none, and a device, and gives arrays that nobody may write."""
    jnp = pytest.importorskip("jax.numpy")
    ours = mica.arange(6).reshape(2, 3).to(getattr(mica, name))
    theirs = jnp.from_dlpack(ours)
    assert theirs.dtype.name == name and theirs.shape == (2, 3)
    back = mica.from_dlpack(theirs)
    assert back.dtype == ours.dtype and mica.equal(back, ours)
    assert mica.equal(mica.asarray(theirs), ours)
    assert jnp.asarray(ours.tolist()).shape == (2, 3)


class Consumer:
    """Takes a tensor as CuPy does: asks for its device, then for a capsule with the stream's number."""

    def __init__(self, x: object) -> None:
        self.device = x.__dlpack_device__()  # type: ignore[attr-defined]
        try:
            self.capsule = x.__dlpack__(stream=-1, max_version=(1, 1), dl_device=self.device, copy=False)  # type: ignore[attr-defined]
        except TypeError:
            self.capsule = x.__dlpack__(stream=-1)  # type: ignore[attr-defined]

    def __dlpack_device__(self) -> object:
        return self.device

    def __dlpack__(self, **_: object) -> object:
        return self.capsule


@pytest.mark.parametrize("library", [mica, torch])
def test_consumers_that_name_a_stream_and_a_version(library: object) -> None:
    x = library.arange(4.0)  # type: ignore[attr-defined]
    for reader in (mica, torch):
        y = reader.from_dlpack(Consumer(x))
        assert y.data_ptr() == x.data_ptr() and y.tolist() == [0, 1, 2, 3]
