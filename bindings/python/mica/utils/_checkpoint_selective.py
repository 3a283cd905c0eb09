"""Selective checkpointing: a policy says, operator by operator, whether a checkpointed part
keeps the result for backward or computes it again.

Two dispatch modes, below Autograd: that of the first run keeps results, that of the second
gives them back, call by call, in the place of what the operator would compute."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from mica._C import Tensor
from mica.utils._pytree import tree_map
from mica.utils.python_dispatch import DispatchMode

# Operators that are never kept: they share memory with their argument and cost nothing.
SAC_IGNORED_OPS: set[str] = {"mica::detach", "mica::alias"}


class CheckpointPolicy(enum.Enum):
    """What a selective checkpoint does with an operator's result: save, compute again, or save on the CPU.

    As `torch.utils.checkpoint.CheckpointPolicy`. `MUST_` and `PREFER_` mean the same, since nothing
    compiles.

    Example:
        >>> mica.utils.checkpoint.CheckpointPolicy.MUST_SAVE
        <CheckpointPolicy.MUST_SAVE: 0>
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


_SAVED = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)
_OFFLOADED = (CheckpointPolicy.MUST_CPU_OFFLOAD, CheckpointPolicy.PREFER_CPU_OFFLOAD)


class SelectiveCheckpointContext:
    """First argument of a policy of a selective checkpoint: what is known of the operator's call.

    As `torch.utils.checkpoint.SelectiveCheckpointContext`.

    Args:
        is_recompute (bool): Whether it is the second run; policies are asked in the first only.
        op_output (object, optional): What the operator returned. Default: None.

    Example:
        >>> context = mica.utils.checkpoint.SelectiveCheckpointContext(is_recompute=False, op_output=3)
        >>> context.is_recompute, context.op_output
        (False, 3)
    """

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


Policy = Callable[..., CheckpointPolicy | bool]


class _Kept:
    """A result that was kept, its tensors with the version that they had."""

    def __init__(self, output: Any, offload: bool) -> None:
        def keep(x: Any) -> Any:
            if not isinstance(x, Tensor):
                return x
            return _KeptTensor(x.detach().cpu() if offload else x.detach(), x.device)

        self._output = tree_map(keep, output)

    def give(self, allow_mutation: bool) -> Any:
        return tree_map(lambda x: x.give(allow_mutation) if isinstance(x, _KeptTensor) else x, self._output)


class _KeptTensor:
    def __init__(self, tensor: Tensor, device: Any) -> None:
        self._tensor, self._device, self._version = tensor, device, tensor._version

    def give(self, allow_mutation: bool) -> Tensor:
        if self._tensor._version != self._version and not allow_mutation:
            raise RuntimeError(
                "A tensor that a selective checkpoint kept was written in place since. Let the policy compute "
                "it again, write to a clone, or pass allow_cache_entry_mutation=True."
            )
        return self._tensor.detach().to(self._device)


class _Record:
    """What one checkpoint kept: by operator, in the order of its calls; None is computed again."""

    def __init__(self) -> None:
        self.entries: dict[str, list[_Kept | None]] = defaultdict(list)


class _First(DispatchMode):
    def __init__(self, policy: Policy, record: _Record) -> None:
        self._policy, self._record = policy, record

    def __mica_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        output = func(*args, **kwargs)
        if func.name() in SAC_IGNORED_OPS:
            return output
        context = SelectiveCheckpointContext(is_recompute=False, op_output=output)
        said = self._policy(context, func, *args, **kwargs)
        if isinstance(said, bool):
            said = CheckpointPolicy.MUST_SAVE if said else CheckpointPolicy.PREFER_RECOMPUTE
        kept = _Kept(output, said in _OFFLOADED) if said in _SAVED + _OFFLOADED else None
        self._record.entries[func.name()].append(kept)
        return output


class _Second(DispatchMode):
    def __init__(self, record: _Record, allow_mutation: bool) -> None:
        self._record, self._allow_mutation = record, allow_mutation

    def __enter__(self) -> Any:
        self._counts: dict[str, int] = defaultdict(int)
        return super().__enter__()

    def __mica_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func.name()
        if name in SAC_IGNORED_OPS:
            return func(*args, **kwargs)
        number = self._counts[name]
        self._counts[name] += 1
        entries = self._record.entries.get(name, [])
        if number >= len(entries):
            raise RuntimeError(
                f"Operator {name} is called ({number + 1}) times when a selective checkpoint runs again for "
                f"backward, and was called ({len(entries)}) times in the first run; the function must do the "
                "same both times."
            )
        kept = entries[number]
        return func(*args, **kwargs) if kept is None else kept.give(self._allow_mutation)


def _policy_of(policy_fn_or_list: Policy | Sequence[Any]) -> Policy:
    if callable(policy_fn_or_list):
        return policy_fn_or_list
    names: set[str] = set()
    for op in policy_fn_or_list:
        if not callable(getattr(op, "name", None)):
            raise ValueError(
                f"create_selective_checkpoint_contexts: the list holds {op!r}; expected overloads of operators, as "
                "mica.ops.mica.mm.default."
            )
        names.add(op.name())
    return lambda context, func, *args, **kwargs: func.name() in names


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Policy | Sequence[Any], allow_cache_entry_mutation: bool = False
) -> tuple[DispatchMode, DispatchMode]:
    """Makes the contexts of a checkpoint that keeps the results of some operators, the costly ones say.

    As `torch.utils.checkpoint.create_selective_checkpoint_contexts`; for `checkpoint(context_fn=...)`.

    Args:
        policy_fn_or_list (callable or sequence of operators):
            `policy(context, operator, *args, **kwargs)` returns a CheckpointPolicy, or whether to save;
            a list names the operators (overloads) whose results are saved.
        allow_cache_entry_mutation (bool): Do not raise where a saved result was written in place.
            Default: False.

    Returns:
        tuple of 2 context managers: For the first and for the second run.

    Raises:
        ValueError: The list holds other things than overloads of operators.

    Example:
        >>> from functools import partial
        >>> from mica.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
        >>> save_products = partial(create_selective_checkpoint_contexts, [mica.ops.mica.mm.default])
        >>> x = mica.eye(2, requires_grad=True)
        >>> y = checkpoint(lambda x: (x @ x).exp(), x, use_reentrant=False, context_fn=save_products)
        >>> y.sum().backward()
    """
    record = _Record()
    return _First(_policy_of(policy_fn_or_list), record), _Second(record, allow_cache_entry_mutation)
