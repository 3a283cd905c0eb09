"""An optimizer whose state is cut among the ranks: each steps its own parameters and tells the others their values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import mica
from mica._C import Tensor
from mica.distributed._collectives import broadcast
from mica.distributed._init import group_of
from mica.distributed._objects import gather_object
from mica.optim import Optimizer

__all__ = ["ZeroRedundancyOptimizer"]


def _pass_options(source: list[dict[str, Any]], target: list[dict[str, Any]]) -> None:
    """Gives the options of groups, such as the learning rate, to the same groups of another optimizer."""
    for from_group, to_group in zip(source, target):
        to_group.update({k: v for k, v in from_group.items() if k not in ("params", "param_names")})


class ZeroRedundancyOptimizer(Optimizer):
    """Cuts the state of an optimizer among the ranks, so that each holds a part of about the same size.

    As `torch.distributed.optim.ZeroRedundancyOptimizer` (stage 1 of ZeRO, Rajbhandari et al. 2019). All ranks have the
    same parameters and gradients, as DistributedDataParallel gives them; every rank calls `step`.

    Args:
        params (iterable of Tensor or dict): As an optimizer's, in the same order on all ranks.
        optimizer_class (type): The optimizer of a rank's own parameters.
        process_group (ProcessGroup, optional): Default: None, the default group.
        parameters_as_bucket_view (bool): Taken and not used: parameters keep memory of their own. Default: False.
        overlap_with_ddp (bool): Not there. Default: False.
        defaults (Any): Options of `optimizer_class`.

    Raises:
        NotImplementedError: `overlap_with_ddp` is True.
        TypeError: `optimizer_class` is an optimizer that was made already.
        ValueError: There is no default group, this rank is not in the group, or there are no parameters.

    Example:
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> w = mica.ones(2, requires_grad=True)
        >>> optimizer = mica.distributed.optim.ZeroRedundancyOptimizer([w], mica.optim.SGD, lr=0.5)
        >>> w.sum().backward()
        >>> optimizer.step()
        >>> w
        tensor([0.5000, 0.5000], requires_grad=True)
        >>> mica.distributed.destroy_process_group()
    """

    def __init__(
        self,
        params: Any,
        optimizer_class: type[Optimizer],
        process_group: Any = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        if overlap_with_ddp:
            raise NotImplementedError(
                "ZeroRedundancyOptimizer(overlap_with_ddp=True) is not there; leave it False, and call `step` after backward."
            )
        if not callable(optimizer_class):
            raise TypeError(
                f"The optimizer_class of ZeroRedundancyOptimizer is an object of {type(optimizer_class).__name__}; give "
                f"the class, and its options by name: ZeroRedundancyOptimizer(params, {type(optimizer_class).__name__}, "
                "lr=...)."
            )
        self.process_group = group_of(process_group)
        self.world_size, self.rank = self.process_group.size(), self.process_group.rank()
        self._owner: dict[int, int] = {}  # the rank that steps a parameter, by its id
        self._sizes = [0] * self.world_size  # elements of each rank's parameters
        self._merged: dict[int, Any] | None = None  # the state of all ranks, where it was brought together
        self.optim: Optimizer | None = None
        super().__init__(params, defaults)
        self.optim = optimizer_class([self._own_part(group) for group in self.param_groups], **defaults)
        _pass_options(self.optim.param_groups, self.param_groups)

    def _own_part(self, group: dict[str, Any]) -> dict[str, Any]:
        """The group with this rank's parameters alone; each goes to the rank that has the fewest elements so far."""
        for p in sorted(group["params"], key=lambda p: -p.numel()):
            rank = self._sizes.index(min(self._sizes))
            self._owner[id(p)] = rank
            self._sizes[rank] += p.numel()
        mine = [self._owner[id(p)] == self.rank for p in group["params"]]
        part = dict(group)
        for key in {"params", "param_names"} & group.keys():
            part[key] = [one for one, own in zip(group[key], mine) if own]
        return part

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds parameters with options of their own; every rank calls it.

        Args:
            param_group (dict): The Tensors under "params", and options that are other than the defaults.
        """
        super().add_param_group(param_group)
        if self.optim is not None:
            self.optim.add_param_group(self._own_part(param_group))
            _pass_options(self.optim.param_groups, self.param_groups)

    def _all_params(self) -> Iterator[Tensor]:
        for group in self.param_groups:
            yield from group["params"]

    def step(self, closure: Callable[[], Any] | None = None, **kwargs: Any) -> Any:
        """Steps this rank's parameters, and brings those of the others here; every rank calls it.

        Args:
            closure (callable, optional): Computes the loss and its gradients anew. Default: None.
            kwargs (Any): Further arguments of the optimizer's `step`.

        Returns:
            object: What the closure gives, else None.
        """
        assert self.optim is not None
        _pass_options(self.param_groups, self.optim.param_groups)
        loss = self.optim.step(closure, **kwargs) if closure is not None else self.optim.step(**kwargs)
        self._spread()
        _pass_options(self.optim.param_groups, self.param_groups)
        return loss

    def _spread(self) -> None:
        """Brings each parameter from the rank that has stepped it, those of one rank and dtype together."""
        together: dict[tuple[int, Any], list[Tensor]] = {}
        for p in self._all_params():
            together.setdefault((self._owner[id(p)], p.dtype), []).append(p.detach())
        sent = []
        for (rank, _), params in together.items():
            flat = mica.cat([p.reshape(-1) for p in params])
            work = broadcast(flat, group_src=rank, group=self.process_group, async_op=True)
            sent.append((rank, flat, params, work))
        for rank, flat, params, work in sent:
            work.wait()
            if rank != self.rank:
                for p, part in zip(params, flat.split([p.numel() for p in params])):
                    p.copy_(part.view(p.shape))

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Brings the state of all ranks to one, whose `state_dict` has it then; every rank calls it.

        Args:
            to (int): The rank, numbered in the group. Default: 0.
        """
        assert self.optim is not None
        own = {i: self.optim.state[p] for i, p in enumerate(self._all_params()) if p in self.optim.state}
        every: list[Any] | None = [None] * self.world_size if self.rank == to else None
        gather_object(own, every, group=self.process_group, group_dst=to)
        self._merged = None if every is None else {i: state for part in every for i, state in part.items()}

    def state_dict(self) -> dict[str, Any]:
        """What a file must hold, as `consolidate_state_dict` last brought it together on this rank.

        Returns:
            dict: As the optimizer's own of all parameters.

        Raises:
            RuntimeError: It was not brought together on this rank.
        """
        if self._merged is None:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. "
                f"Please call `consolidate_state_dict(to={self.rank})` on all ranks beforehand if you meant to save "
                "the global state."
            )
        found = super().state_dict()
        found["state"] = dict(sorted(self._merged.items()))
        return found

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes over what `state_dict()` gave, on a rank its own part; every rank calls it.

        Args:
            state_dict (dict): Result of `state_dict()`, or of the plain optimizer's.

        Raises:
            ValueError: The groups differ in number, or in their numbers of parameters.
            KeyError: "state" or "param_groups" is missing.
        """
        assert self.optim is not None
        super().load_state_dict({**state_dict, "state": {}} if "state" in state_dict else state_dict)
        number = {id(p): i for i, p in enumerate(self._all_params())}
        own = [number[id(p)] for group in self.optim.param_groups for p in group["params"]]
        part = self.optim.state_dict()
        part["state"] = {i: state_dict["state"][n] for i, n in enumerate(own) if n in state_dict["state"]}
        self.optim.load_state_dict(part)
        _pass_options(self.param_groups, self.optim.param_groups)
