"""Hooks on what the nodes of the graph save for backward: packing it into something else,
keeping it elsewhere, allowing writes to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mica import _C
from mica._C import Node, Tensor


class saved_tensors_hooks:
    """Calls `pack` when a tensor is saved for backward and keeps what it returns; `unpack`
    gives a tensor of that when backward uses it.

    pack runs under no_grad and must not write the tensor. Of nested blocks the innermost
    acts. Hooks are those of the thread."""

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self._hooks = (pack_hook, unpack_hook)

    def __enter__(self) -> None:
        _C._push_saved_tensor_hooks(*self._hooks)

    def __exit__(self, *exc: object) -> None:
        _C._pop_saved_tensor_hooks()


def _to_cpu(tensor: Tensor, pin_memory: bool) -> tuple[Any, Tensor]:
    if not pin_memory:
        return tensor.device, tensor.cpu()
    kept = tensor.new_empty(tensor.shape, device="cpu").pin_memory()
    return tensor.device, kept.copy_(tensor)


class save_on_cpu(saved_tensors_hooks):
    """Keeps what is saved in the CPU's memory, page-locked if `pin_memory`."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(
            lambda tensor: _to_cpu(tensor, pin_memory),
            lambda packed: packed[1].to(packed[0], non_blocking=pin_memory),
        )


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Inside, hooks on saved tensors raise RuntimeError(error_message)."""
    before = _C._forbid_saved_tensor_hooks(error_message)
    try:
        yield
    finally:
        _C._forbid_saved_tensor_hooks(before)


class _MutationContext:
    """What allow_mutation_on_saved_tensors keeps, for debugging, under torch's names."""

    def __init__(self, saved: Callable[[bool], Any]) -> None:
        self._saved = saved

    @property
    def cloned(self) -> dict[int, Tensor]:
        """The copies that were made before writes and are still needed."""
        return dict(enumerate(self._saved(True)))

    @property
    def tid_to_weakhandle(self) -> dict[int, Tensor]:
        """All that is saved and still needed."""
        return dict(enumerate(self._saved(False)))


@contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[_MutationContext]:
    """Inside, a tensor that was saved for backward may be written in place: just before the
    write, what backward needs is copied. Only what is written costs memory. Backward may
    run inside or after."""
    context = _MutationContext(_C._push_copy_on_write())
    try:
        yield context
    finally:
        _C._pop_copy_on_write()


class SavedTensor:
    """The place in a node that keeps a tensor: grad_fn._raw_saved_<name>."""

    def __init__(self, node: Node | None = None, name: str = "", index: int = 0) -> None:
        if node is None:
            raise RuntimeError(
                "Trying to create a SavedTensor object from Python is forbidden; read grad_fn._raw_saved_<name>."
            )
        self._place = (node, name, index)

    def register_hooks(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        """Packs this tensor now; once."""
        node, name, index = self._place
        node._hook_saved(name, index, pack_hook, unpack_hook)


def _raw_saved(node: Node, name: str) -> Any:
    value = getattr(node, f"_saved_{name}")
    if isinstance(value, (tuple, list)) and any(isinstance(v, Tensor) for v in value):
        return tuple(None if v is None else SavedTensor(node, name, i) for i, v in enumerate(value))
    if value is not None and not isinstance(value, Tensor):
        raise AttributeError(f"{node.name()} saves ({name}) as a plain value; read _saved_{name}.")
    return SavedTensor(node, name)
