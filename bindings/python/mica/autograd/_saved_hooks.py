"""Hooks on what the nodes of the graph save for backward: packing it into something else,
keeping it elsewhere, allowing writes to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mica import _C
from mica._C import Node, Tensor


class saved_tensors_hooks:
    """Packs Tensors that are saved for backward inside a `with` block, to compress or to move them.

    As `torch.autograd.graph.saved_tensors_hooks`. Of nested blocks the innermost acts; other threads
    are not affected.

    Args:
        pack_hook (callable): `pack_hook(tensor)` returns any object, which is kept instead. It runs
            under `no_grad` and must not write the Tensor.
        unpack_hook (callable): `unpack_hook(packed)` returns the Tensor, when backward needs it.

    Example:
        >>> x = mica.tensor([1.0, 2.0], requires_grad=True)
        >>> with mica.autograd.graph.saved_tensors_hooks(lambda t: t.bfloat16(), lambda p: p.float()):
        ...     y = (x**2).sum()
        >>> y.backward()
        >>> x.grad
        tensor([2., 4.])
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self._hooks = (pack_hook, unpack_hook)

    def __enter__(self) -> None:
        _C._push_saved_tensor_hooks(*self._hooks)

    def __exit__(self, *exc: object) -> None:
        _C._pop_saved_tensor_hooks()


def _to_cpu(tensor: Tensor, pin_memory: bool) -> tuple[Any, Tensor]:
    if not pin_memory or tensor.device.type == "cpu":  # where it stays
        return tensor.device, tensor.cpu()
    kept = tensor.new_empty(tensor.shape, device="cpu").pin_memory()
    return tensor.device, kept.copy_(tensor)


class save_on_cpu(saved_tensors_hooks):
    """Keeps Tensors that are saved for backward in the CPU's memory, inside a `with` block.

    As `torch.autograd.graph.save_on_cpu`. It saves memory of the accelerator and costs copies.

    Args:
        pin_memory (bool): Keep them in page-locked memory, which is faster to copy. Default: False.
        device_type (str): Type of the accelerator; no effect. Default: "cuda".

    Example:
        >>> x = mica.tensor([1.0, 2.0], requires_grad=True)
        >>> with mica.autograd.graph.save_on_cpu():
        ...     y = (x**2).sum()
        >>> y.backward()
        >>> x.grad
        tensor([2., 4.])
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(
            lambda tensor: _to_cpu(tensor, pin_memory),
            lambda packed: packed[1].to(packed[0], non_blocking=pin_memory),
        )


@contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Forbids hooks on saved Tensors inside a `with` block.

    As `torch.autograd.graph.disable_saved_tensors_hooks`.

    Args:
        error_message (str): What the RuntimeError says that such a hook raises.

    Yields:
        None

    Example:
        >>> with mica.autograd.graph.disable_saved_tensors_hooks("no hooks here"):
        ...     with mica.autograd.graph.save_on_cpu():
        ...         pass
        Traceback (most recent call last):
            ...
        RuntimeError: no hooks here
    """
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
    """Lets Tensors be written in place though backward needs them, inside a `with` block.

    As `torch.autograd.graph.allow_mutation_on_saved_tensors`. Just before a write, what backward needs of the
    Tensor is copied, so only Tensors that are written cost memory. Backward may run inside or afterwards.

    Yields:
        object: Shows what is saved and what was copied, for debugging.

    Example:
        >>> x = mica.tensor([1.0, 2.0], requires_grad=True)
        >>> with mica.autograd.graph.allow_mutation_on_saved_tensors():
        ...     a = x * 1
        ...     y = (a**2).sum()
        ...     _ = a.zero_()
        ...     y.backward()
        >>> x.grad
        tensor([2., 4.])
    """
    context = _MutationContext(_C._push_copy_on_write())
    try:
        yield context
    finally:
        _C._pop_copy_on_write()


class SavedTensor:
    """The place in a node of the graph that keeps a Tensor for backward: `grad_fn._raw_saved_<name>`.

    As `torch.autograd.SavedTensor`. Reading that attribute makes it; a program cannot.

    Args:
        node (Node, optional): The node.
        name (str): Name of what the node saves. Default: "".
        index (int): Place within a list of that name. Default: 0.

    Raises:
        RuntimeError: It is made by a program.

    Example:
        >>> x = mica.tensor([1.0, 2.0], requires_grad=True)
        >>> y = x**2
        >>> y.grad_fn._raw_saved_self.register_hooks(lambda t: t.bfloat16(), lambda packed: packed.float())
        >>> y.sum().backward()
        >>> x.grad
        tensor([2., 4.])
    """

    def __init__(self, node: Node | None = None, name: str = "", index: int = 0) -> None:
        if node is None:
            raise RuntimeError(
                "Trying to create a SavedTensor object from Python is forbidden; read grad_fn._raw_saved_<name>."
            )
        self._place = (node, name, index)

    def register_hooks(
        self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]
    ) -> None:
        """Packs this Tensor now, and unpacks it when backward needs it; once for each place.

        Args:
            pack_hook (callable): `pack_hook(tensor)` returns any object, which is kept instead.
            unpack_hook (callable): `unpack_hook(packed)` returns the Tensor.

        Raises:
            RuntimeError: The place has hooks already.
        """
        node, name, index = self._place
        node._hook_saved(name, index, pack_hook, unpack_hook)


def _raw_saved(node: Node, name: str) -> Any:
    value = getattr(node, f"_saved_{name}")
    if isinstance(value, (tuple, list)) and any(isinstance(v, Tensor) for v in value):
        return tuple(None if v is None else SavedTensor(node, name, i) for i, v in enumerate(value))
    if value is not None and not isinstance(value, Tensor):
        raise AttributeError(f"{node.name()} saves ({name}) as a plain value; read _saved_{name}.")
    return SavedTensor(node, name)
