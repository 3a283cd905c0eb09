"""Activation checkpointing: a part of a network whose intermediate values are not kept
for backward but computed a second time there. Names and meanings are torch's.

Both values of `use_reentrant` take the way that torch recommends (False): it nests, works
with autograd.grad and with transforms, and gives closures their gradients."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import mica
from mica import _C
from mica._C import Tensor
from mica.utils._checkpoint_selective import (
    SAC_IGNORED_OPS as SAC_IGNORED_OPS,
    CheckpointPolicy as CheckpointPolicy,
    SelectiveCheckpointContext as SelectiveCheckpointContext,
    create_selective_checkpoint_contexts as create_selective_checkpoint_contexts,
)
from mica.utils._recompute import (
    Call,
    CheckpointError as CheckpointError,
    Surroundings,
    is_apart,
    tensors_of,
)

ContextPair = tuple[AbstractContextManager[Any], AbstractContextManager[Any]]


class _Defaults:
    """What the setters below say; None leaves it to the call."""

    early_stop: bool | None = None
    debug: bool | None = None


def noop_context_fn() -> ContextPair:
    """No context for either run."""
    return nullcontext(), nullcontext()


@contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Says, for every checkpoint() inside, whether a second run ends as soon as all that
    backward needs is there."""
    before, _Defaults.early_stop = _Defaults.early_stop, enable
    try:
        yield
    finally:
        _Defaults.early_stop = before


@contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Says `debug` for every checkpoint() inside."""
    before, _Defaults.debug = _Defaults.debug, enabled
    try:
        yield
    finally:
        _Defaults.debug = before


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """Indices, and states of the default generators, of the devices (not the CPU) on which
    tensors among the arguments, or in containers of theirs, lie."""
    places = sorted({(t.device.type, t.device.index or 0) for t in tensors_of(args) if is_apart(t)})
    return [i for _, i in places], [_C._default_generator(f"{kind}:{i}").get_state() for kind, i in places]


def set_device_states(
    devices: Sequence[int], states: Sequence[Tensor], *, device_type: str | None = None
) -> None:
    """Gives the devices of a kind (cuda) the random states that get_device_states() has read."""
    for index, state in zip(devices, states):
        _C._default_generator(f"{device_type or 'cuda'}:{index}").set_state(state)


def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], ContextPair] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    preserve_rng_state: bool = True,
    **kwargs: Any,
) -> Any:
    """function(*args, **kwargs), whose intermediate values backward computes again.

    context_fn: gives a context for each of the two runs. determinism_check: "default"
    compares shape, dtype and device of what the two runs save, "none" only their number.
    debug: errors say where in the function each tensor was saved. early_stop: the second run
    ends when all is there. preserve_rng_state: both runs draw the same random numbers."""
    if use_reentrant is None:
        _warn_of_default("checkpoint.checkpoint")
    if determinism_check not in ("default", "none"):
        raise ValueError(
            f"checkpoint: determinism_check ({determinism_check!r}) is unknown; expected 'default' or 'none'."
        )
    if use_reentrant:
        _refuse_options(kwargs, context_fn is not noop_context_fn or debug)
    if not mica.is_grad_enabled():
        return function(*args, **kwargs)
    first, second = context_fn()
    call = Call(
        function,
        args,
        kwargs,
        Surroundings(args, kwargs, second, preserve_rng_state),
        early_stop=early_stop if _Defaults.early_stop is None else _Defaults.early_stop,
        compare=determinism_check == "default",
        debug=debug if _Defaults.debug is None else _Defaults.debug,
    )
    with call.first_run(), first:
        return function(*args, **kwargs)


def _warn_of_default(name: str) -> None:
    warnings.warn(
        f"mica.utils.{name}: the use_reentrant parameter should be passed explicitly. use_reentrant=False is the way "
        "that is taken.",
        stacklevel=3,
    )


def _refuse_options(kwargs: dict[str, Any], options: bool) -> None:
    """What torch's reentrant way has no place for."""
    if kwargs:
        raise ValueError(
            f"checkpoint: Unexpected keyword arguments: {','.join(kwargs)}; the function gets them with use_reentrant=False."
        )
    if options:
        raise ValueError("checkpoint: `context_fn` and `debug` need use_reentrant=False.")


def checkpoint_sequential(
    functions: Any,
    segments: int,
    input: Any,
    use_reentrant: bool | None = None,
    **options: Any,
) -> Any:
    """A Sequential in `segments` checkpointed parts, the last of which keeps its values."""
    if use_reentrant is None:
        _warn_of_default("checkpoint.checkpoint_sequential")
        use_reentrant = False
    modules = list(functions.children()) if isinstance(functions, mica.nn.Module) else list(functions)
    if not 1 <= segments <= max(1, len(modules)):
        raise ValueError(
            f"checkpoint_sequential: {len(modules)} functions cannot be cut into ({segments}) segments."
        )
    size = len(modules) // segments

    def chain(part: Sequence[Any]) -> Callable[[Any], Any]:
        def run(x: Any) -> Any:
            for module in part:
                x = module(x)
            return x

        return run

    for i in range(segments - 1):
        part = chain(modules[i * size : (i + 1) * size])
        input = checkpoint(part, input, use_reentrant=use_reentrant, **options)
    return chain(modules[(segments - 1) * size :])(input)


class CheckpointFunction:
    """checkpoint() under the name of torch's re-entrant variant."""

    @staticmethod
    def apply(run_function: Callable[..., Any], preserve_rng_state: bool, *args: Any) -> Any:
        """checkpoint(run_function, *args)."""
        return checkpoint(run_function, *args, use_reentrant=True, preserve_rng_state=preserve_rng_state)


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """The tensors among `inputs` without history, requiring grad as before."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"detach_variable takes a tuple of tensors, not a {type(inputs).__name__}.")
    return tuple(x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs)
