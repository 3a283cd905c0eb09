"""The gradients of a DistributedDataParallel: averaged over the ranks in buckets, while backward still runs.

A bucket is one piece of memory for the gradients of some parameters. When the last of them has come, and all
buckets before it are on their way, its all_reduce starts; at the end of backward all are waited for. So every rank
starts the same collectives in the same order, whatever the order of its gradients. Parameters stand in the buckets
in reverse order; after the first backward in the order in which the gradients of rank 0 came.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import mica
from mica._C import Tensor

if TYPE_CHECKING:
    from mica.distributed import ProcessGroup

FIRST_BUCKET = 1 << 20  # bytes; small, so that the first all_reduce starts early


class GradBucket:
    """What a communication hook gets: the gradients of some parameters in one piece of memory.

    As `torch.distributed.GradBucket`.

    Args:
        index (int): Its place among the others, from 0, the one that is reduced first.
        parameters (sequence of Tensor): The parameters, in the order of the memory.
        is_last (bool): Whether no other bucket comes after it.

    Example:
        >>> mica.distributed.init_process_group("threads", rank=0, world_size=1)
        >>> model = mica.nn.parallel.DistributedDataParallel(mica.nn.Linear(2, 1))
        >>> def hook(state, bucket):
        ...     print(bucket.index(), bucket.is_last(), bucket.buffer())
        ...     done = mica.futures.Future()
        ...     done.set_result(bucket.buffer())
        ...     return done
        >>> model.register_comm_hook(None, hook)
        >>> model(mica.ones(1, 2)).sum().backward()
        0 True tensor([1., 1., 1.])
        >>> mica.distributed.destroy_process_group()
    """

    def __init__(self, index: int, parameters: Sequence[Tensor], is_last: bool) -> None:
        self._index, self._parameters, self._is_last = index, list(parameters), is_last
        first = self._parameters[0]
        self.sizes = [p.numel() for p in self._parameters]
        self._memory = mica.zeros(sum(self.sizes), dtype=first.dtype, device=first.device)
        self.reset()

    def reset(self) -> None:
        """Gets ready for the next backward."""
        self.set_buffer(self._memory)
        self.missing = len(self.sizes)  # gradients that did not come yet in this backward
        self.sum: Any = None  # a Work or a Future, once it is on its way

    def index(self) -> int:
        """Gives the place of the bucket among the others.

        Returns:
            int: From 0, the one that is reduced first.
        """
        return self._index

    def buffer(self) -> Tensor:
        """Gives the memory of the gradients.

        Returns:
            Tensor: Of one dimension.
        """
        return self._buffer

    def set_buffer(self, buffer: Tensor) -> None:
        """Gives the bucket other memory, for this backward.

        Args:
            buffer (Tensor): Of as many elements.
        """
        self._buffer = buffer
        self._views = [part.view(p.shape) for part, p in zip(buffer.split(self.sizes), self._parameters)]

    def parameters(self) -> list[Tensor]:
        """Gives the parameters.

        Returns:
            list of Tensor: In the order of the memory.
        """
        return list(self._parameters)

    def gradients(self) -> list[Tensor]:
        """Gives the gradients.

        Returns:
            list of Tensor: Views of the memory, of the parameters' shapes.
        """
        return self._views

    def is_last(self) -> bool:
        """Says whether it is the last one.

        Returns:
            bool: True where no other bucket follows.
        """
        return self._is_last


def assigned(parameters: Sequence[Tensor], order: Sequence[int], bytes_of_bucket: int) -> list[list[int]]:
    """The parameters of each bucket, in this order: of one dtype, and at most so many bytes or one parameter."""
    buckets: list[list[int]] = []
    open_: dict[Any, list[int]] = {}
    filled: dict[Any, int] = {}
    for i in order:
        kind = (parameters[i].dtype, parameters[i].device)
        size = parameters[i].numel() * parameters[i].element_size()
        first = kind in open_ and open_[kind] is buckets[0]
        limit = min(FIRST_BUCKET, bytes_of_bucket) if first else bytes_of_bucket
        if kind not in open_ or filled[kind] + size > limit:
            open_[kind], filled[kind] = [], 0
            buckets.append(open_[kind])
        open_[kind].append(i)
        filled[kind] += size
    return buckets


def reached(outputs: Sequence[Tensor]) -> set[int]:
    """The ids of the leaves that a backward from these outputs can bring gradients to."""
    leaves = {id(output) for output in outputs if output.grad_fn is None}
    nodes = [output.grad_fn for output in outputs if output.grad_fn is not None]
    seen = set(nodes)
    while nodes:
        node = nodes.pop()
        leaf = getattr(node, "variable", None)
        if leaf is not None:
            leaves.add(id(leaf))
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                nodes.append(following)
    return leaves


class Reducer:
    """Averages the gradients of parameters over the ranks of a group during backward."""

    def __init__(
        self,
        names: Sequence[str],
        parameters: Sequence[Tensor],
        group: ProcessGroup,
        bytes_of_bucket: int,
        find_unused: bool,
        static: bool,
    ) -> None:
        self._names, self._parameters, self._group = list(names), list(parameters), group
        self._bytes, self._find_unused, self._static = bytes_of_bucket, find_unused, static
        self.hook: Callable[[GradBucket], Any] | None = None
        self._expected = [1] * len(parameters)  # gradients of each parameter in a backward
        self._rebuilt = False
        self._steps = 0
        self._active = False
        self._finished = False  # the last step's gradients are averaged
        self._late: set[int] = set()  # parameters in static graphs that the first backward left out
        self._used: set[int] | None = None  # what some rank has a gradient of, where that is known
        self._build(range(len(parameters) - 1, -1, -1))
        self._reset()
        me = weakref.ref(self)  # parameters must not keep the reducer alive
        for i, parameter in enumerate(parameters):

            def come(_: Tensor, i: int = i) -> None:
                reducer = me()
                if reducer is None:
                    return
                if reducer._active:
                    reducer._arrive(i)
                elif reducer._finished and i in reducer._late:
                    raise reducer._too_late(i)

            parameter.register_post_accumulate_grad_hook(come)

    def _build(self, order: Sequence[int]) -> None:
        assignment = assigned(self._parameters, order, self._bytes)
        self._assignment = assignment
        last = len(assignment) - 1
        self._buckets = [
            GradBucket(k, [self._parameters[i] for i in indices], k == last)
            for k, indices in enumerate(assignment)
        ]
        self._place = {i: (k, j) for k, indices in enumerate(assignment) for j, i in enumerate(indices)}

    def _reset(self) -> None:
        for bucket in self._buckets:
            bucket.reset()
        self._left = list(self._expected)
        self._arrived: list[int] = []
        self._came: set[int] = set()
        self._next, self._queued = 0, False

    def begin(self, outputs: Sequence[Tensor]) -> None:
        """Gets ready for the backward of a forward's outputs.

        Raises:
            RuntimeError: In the backward before, parameters got no gradient.
        """
        if self._arrived:
            missing = [name for name, left in zip(self._names, self._left) if left]
            raise RuntimeError(
                "Expected to have finished reduction in the prior iteration before starting a new one: of rank "
                f"({self._group.rank()}) the parameters {missing[:8]}{' and more' * (len(missing) > 8)} got no gradient, "
                "so that their buckets were not averaged. Use all outputs of forward in the loss"
                + (
                    "."
                    if self._find_unused
                    else ", or give DistributedDataParallel find_unused_parameters=True."
                )
            )
        if self._steps and not self._rebuilt and (self._static or not self._find_unused):
            self._rebuild()
        self._expect(outputs)
        self._reset()
        self._active, self._finished = True, False

    def _expect(self, outputs: Sequence[Tensor]) -> None:
        """Notes which parameters a backward from these outputs brings gradients to, as far as that may vary."""
        everything = set(range(len(self._parameters)))
        counted = self._static and self._steps > 0
        used = {i for i in everything if self._expected[i]} if counted else everything
        if outputs and (self._find_unused or (self._static and not counted)):
            leaves = reached(outputs)
            used = {i for i in everything if id(self._parameters[i]) in leaves}
        if self._find_unused:
            self._expected = [int(i in used) for i in everything]
        elif self._static and not counted:
            self._late = used
        if not used:  # no parameter's gradient says that a backward runs
            for output in outputs:
                output.register_hook(lambda _: self._note_backward())

    def pause(self) -> None:
        """Leaves gradients as they are from now on, until the next `begin`."""
        self._active = self._finished = False

    def _too_late(self, i: int) -> RuntimeError:
        return RuntimeError(
            f"Expected to mark a variable ready only once: the parameter ({self._names[i]}) got a gradient in a backward "
            "after the one whose gradients were averaged. With static_graph=True a step has one backward: add the "
            "losses up, or give DistributedDataParallel find_unused_parameters=True in its place."
        )

    def _rebuild(self) -> None:
        """Puts parameters in the order in which the gradients of rank 0 came."""
        order = mica.tensor(self._order, dtype=mica.int64)
        self._group.start("broadcast", None, order, peer=0).wait()
        self._rebuilt = True
        self._build(order.tolist())

    def _note_backward(self) -> None:
        """Sees to it that `_end` is called when this backward ends."""
        if not self._active or self._queued:
            return
        self._queued = True
        mica._C._queue_callback(self._end)
        for i, expected in enumerate(self._expected):
            if not expected and not self._came:
                self._fill(i)

    def _arrive(self, i: int) -> None:
        """The gradient of a parameter is there."""
        self._note_backward()
        self._arrived.append(i)
        self._came.add(i)
        if self._static and not self._steps:  # how often each comes is counted first
            return
        if not self._left[i]:
            raise RuntimeError(
                f"Expected to mark a variable ready only once: the parameter ({self._names[i]}) got a gradient again "
                "in the same backward, after it was averaged. If the graph is the same in every step, give "
                "DistributedDataParallel static_graph=True; else use a parameter in one backward alone."
            )
        self._left[i] -= 1
        if not self._left[i]:
            self._fill(i)

    def _fill(self, i: int) -> None:
        """Copies a gradient into its bucket, zeros where there is none, and starts what is complete.

        A parameter that got none in this backward brings what earlier ones, under no_sync, left in `.grad`.
        """
        k, j = self._place[i]
        bucket, grad = self._buckets[k], self._parameters[i].grad
        with mica.no_grad():
            view = bucket.gradients()[j]
            if grad is None:
                view.zero_()
            elif self.hook is not None:
                view.copy_(grad)
            else:  # before the sum, so that it does not overflow
                mica.mul(grad, 1.0 / self._group.size(), out=view)
        bucket.missing -= 1
        while self._next < len(self._buckets) and not self._buckets[self._next].missing:
            self._start(self._buckets[self._next])
            self._next += 1

    def _start(self, bucket: GradBucket) -> None:
        if self.hook is None:
            bucket.sum = self._group.start("all_reduce", bucket.buffer(), bucket.buffer())
        else:
            bucket.sum = self.hook(bucket)

    def _end(self) -> None:
        """The end of a backward: writes the averages back, unless parameters wait for another backward."""
        if self._static and not self._steps:  # what did not come now does not come in any step
            self._expected = [self._arrived.count(i) for i in range(len(self._parameters))]
            self._late -= self._came
            for i, left in enumerate(self._left):
                if left:
                    self._left[i] = 0
                    self._fill(i)
        self._queued = False
        if not any(self._left):  # else `begin` says so, where nothing more comes
            self._finish(self._all_used())

    def _all_used(self) -> set[int]:
        """The parameters that some rank has a gradient of."""
        everything = range(len(self._parameters))
        if self._static and self._used is not None:
            return self._used
        if not self._static and not self._find_unused:
            return set(everything)
        used = mica.tensor([int(i in self._came) for i in everything], dtype=mica.int32)
        self._group.start("all_reduce", used, used, reduction="max").wait()
        self._used = {i for i, some in enumerate(used.tolist()) if some}
        return self._used

    def _finish(self, used: set[int]) -> None:
        with mica.no_grad():
            for bucket, indices in zip(self._buckets, self._assignment):
                found = bucket.sum.wait()
                if self.hook is not None:
                    bucket.set_buffer((found[0] if isinstance(found, list | tuple) else found).reshape(-1))
                for i, average in zip(indices, bucket.gradients()):
                    if i not in used:
                        continue
                    grad = self._parameters[i].grad
                    if grad is None:
                        self._parameters[i].grad = average.to(self._parameters[i].dtype, copy=True)
                    else:
                        grad.copy_(average)
        self._order = list(dict.fromkeys([*self._arrived, *range(len(self._parameters))]))
        self._steps += 1
        self._active, self._finished = False, True
        self._arrived = []
