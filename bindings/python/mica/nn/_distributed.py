"""DistributedDataParallel: a module whose gradients are averaged over the ranks of a group."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import mica
from mica._C import Tensor
from mica.nn._reducer import Reducer
from mica.nn.modules.module import Module

if TYPE_CHECKING:
    from mica.distributed import ProcessGroup

_BUCKET_MB = 25.0


def _tensors(value: Any) -> Iterator[Tensor]:
    """The tensors in what a forward gives that backward can begin at."""
    if isinstance(value, Tensor):
        if value.requires_grad:
            yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _tensors(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _tensors(one)
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            yield from _tensors(getattr(value, name))


def broadcast_all(tensors: Sequence[Tensor], group: ProcessGroup) -> None:
    """Fills tensors with those of the group's first rank; those of one dtype travel together."""
    kinds: dict[Any, list[Tensor]] = {}
    for tensor in tensors:
        kinds.setdefault(tensor.dtype, []).append(tensor)
    with mica.no_grad():
        for same in kinds.values():
            joined = mica.cat([t.detach().reshape(-1) for t in same])
            group.start("broadcast", None, joined, peer=0).wait()
            for tensor, part in zip(same, joined.split([t.numel() for t in same])):
                tensor.detach().copy_(part.reshape(tensor.shape))


class DistributedDataParallel(Module):
    """A module of which each rank computes with its own part of a batch, with the same parameters on all.

    As `torch.nn.parallel.DistributedDataParallel`, for modules on the CPU. Each rank makes it of the same module; the
    first rank's parameters and buffers are copied to all. Gradients are averaged while backward still runs, so that
    equal optimizers keep the parameters equal. The average is that of the whole batch where the ranks' losses are
    means over parts of one size.

    Args:
        module (Module): Computes; it is `.module`.
        device_ids (sequence, optional): None, as modules are on the CPU so far. Default: None.
        output_device (device, optional): None, likewise. Default: None.
        dim (int): Taken and not used. Default: 0.
        broadcast_buffers (bool, optional): Copies the first rank's buffers to all before each forward that follows
            an averaged backward. Default: None, True.
        init_sync (bool): Compares and copies the parameters. Default: True.
        process_group (ProcessGroup, optional): Default: None, the default group.
        bucket_cap_mb (float, optional): MiB of gradients that travel together. Default: None, 25.
        find_unused_parameters (bool): A forward may leave out parameters: those that its outputs' graph does not reach
            take part with what `.grad` holds, zeros for None. Default: False.
        check_reduction (bool): Taken and not used. Default: False.
        gradient_as_bucket_view (bool): Taken and not used: gradients have memory of their own. Default: False.
        static_graph (bool): All steps use the same parameters, as often. Default: False.

    Raises:
        RuntimeError: No parameter needs a gradient; or the ranks' parameters differ. In forward: parameters got no
            gradient in the backward before, though it was expected of them.
        ValueError: A device is given, or there is no group.
        NotImplementedError: A parameter is not on the CPU.

    Example:
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> model = mica.nn.parallel.DistributedDataParallel(mica.nn.Linear(2, 1))
        >>> model(mica.ones(3, 2)).sum().backward()
        >>> model.module.weight.grad
        tensor([[3., 3.]])
        >>> mica.distributed.destroy_process_group()
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
    ) -> None:
        from mica.distributed._init import group_of

        super().__init__()
        if device_ids or output_device is not None:
            raise ValueError(
                f"DistributedDataParallel gets device_ids ({device_ids}) and output_device ({output_device}); expected "
                "None, as its module is on the CPU."
            )
        self.module = module
        self.process_group = group_of(process_group)
        ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        named = {name: p for name, p in module.named_parameters() if name not in ignored}
        trained = {name: p for name, p in named.items() if p.requires_grad}
        self._check(trained)
        self.broadcast_buffers = broadcast_buffers is None or broadcast_buffers
        self.find_unused_parameters, self.static_graph = find_unused_parameters, static_graph
        self.require_backward_grad_sync = True
        self._buffers_differ = True  # from those of the first rank, as far as is known
        self._ignored = ignored
        if init_sync:
            self._compare(named)
            broadcast_all([*named.values(), *self._shared_buffers()], self.process_group)
        size = _BUCKET_MB if bucket_cap_mb is None else bucket_cap_mb
        # Not a module's attribute: it is no part of the state.
        self.reducer = Reducer(
            list(trained),
            list(trained.values()),
            self.process_group,
            int(size * (1 << 20)),
            find_unused_parameters and not static_graph,
            static_graph,
        )

    def _shared_buffers(self) -> list[Tensor]:
        """The buffers as they are now: a forward may have assigned new ones."""
        return [b for name, b in self.module.named_buffers() if name not in self._ignored]

    @staticmethod
    def _check(trained: dict[str, Any]) -> None:
        if not trained:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameters that require a "
                "gradient; call the module itself."
            )
        for name, p in trained.items():
            if p.device.type != "cpu":
                raise NotImplementedError(
                    f"The parameter ({name}) of DistributedDataParallel is on ({p.device}); the engines of collectives "
                    "take tensors on the CPU so far: move the module there."
                )

    def _compare(self, named: dict[str, Any]) -> None:
        """Refuses ranks whose parameters are not the same ones."""
        from mica.distributed._objects import all_gather_object

        mine = [(name, tuple(p.shape), str(p.dtype), p.requires_grad) for name, p in named.items()]
        every: list[Any] = [None] * self.process_group.size()
        all_gather_object(every, mine, self.process_group)
        for rank, theirs in enumerate(every):
            if theirs == mine:
                continue
            here, there = next((a, b) for a, b in zip([*mine, None], [*theirs, None]) if a != b)
            ranks = self.process_group.ranks()
            raise RuntimeError(
                f"DistributedDataParallel expects same model across all ranks; rank ({ranks[self.process_group.rank()]}) "
                f"has ({len(mine)}) parameters, rank ({ranks[rank]}) has ({len(theirs)}), and they first differ at "
                f"{here} and {there}."
            )

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Calls the module, and gets ready to average the gradients of what it gives.

        Args:
            inputs (Any): The module's.
            kwargs (Any): The module's.

        Returns:
            Any: What the module gives.
        """
        if self._buffers_differ and self.broadcast_buffers:
            broadcast_all(self._shared_buffers(), self.process_group)
        result = self.module(*inputs, **kwargs)
        self._buffers_differ = mica.is_grad_enabled() and self.require_backward_grad_sync
        if self._buffers_differ:
            self.reducer.begin(list(_tensors(result)))
        elif mica.is_grad_enabled():
            self.reducer.pause()
        return result

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Leaves out the average within it: gradients add up on each rank until the next step outside.

        Forward is called within it as well.

        Returns:
            context manager: Gives nothing.
        """
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def register_comm_hook(self, state: Any, hook: Callable[[Any, Any], Any]) -> None:
        """Lets a function average the gradients.

        As `torch.nn.parallel.DistributedDataParallel.register_comm_hook`.

        Args:
            state (Any): Given to `hook`.
            hook (callable): `hook(state, bucket)` starts the reduction of a GradBucket and gives a Future of the
                averaged gradients; all ranks call it in the same order.

        Raises:
            TypeError: `hook` cannot be called.
            RuntimeError: There is a hook already.
        """
        if not callable(hook):
            raise TypeError(f"The communication hook ({hook!r}) must be callable.")
        if self.reducer.hook is not None:
            raise RuntimeError("register_comm_hook can only be called once.")
        self.reducer.hook = lambda bucket: hook(state, bucket)
