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

__all__ = [
    "SAC_IGNORED_OPS",
    "CheckpointError",
    "CheckpointFunction",
    "CheckpointPolicy",
    "SelectiveCheckpointContext",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]

ContextPair = tuple[AbstractContextManager[Any], AbstractContextManager[Any]]


class _Defaults:
    """What the setters below say; None leaves it to the call."""

    early_stop: bool | None = None
    debug: bool | None = None


def noop_context_fn() -> ContextPair:
    """Returns two contexts that do nothing: the default of `checkpoint(context_fn=...)`.

    As `torch.utils.checkpoint.noop_context_fn`.

    Returns:
        tuple of 2 context managers: For the first and for the second run.

    Example:
        >>> first, second = mica.utils.checkpoint.noop_context_fn()
        >>> with first:
        ...     pass
    """
    return nullcontext(), nullcontext()


@contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Sets the argument `early_stop` of every `checkpoint` call inside a `with` block.

    As `torch.utils.checkpoint.set_checkpoint_early_stop`. Turn it off where the function has effects behind
    its last saved Tensor that each run has to have.

    Args:
        enable (bool): Whether the second run of the function, in backward, ends as soon as every Tensor that
            backward needs is computed, instead of at the function's end.

    Yields:
        None

    Example:
        >>> def f(x):
        ...     y = x.exp()
        ...     print("the end of f")
        ...     return y
        >>> with mica.utils.checkpoint.set_checkpoint_early_stop(False):
        ...     y = mica.utils.checkpoint.checkpoint(f, mica.ones(2, requires_grad=True), use_reentrant=False)
        the end of f
        >>> y.sum().backward()  # without the block, nothing is printed here
        the end of f
    """
    before, _Defaults.early_stop = _Defaults.early_stop, enable
    try:
        yield
    finally:
        _Defaults.early_stop = before


@contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Sets the argument `debug` of every `checkpoint` call inside a `with` block.

    As `torch.utils.checkpoint.set_checkpoint_debug_enabled`.

    Args:
        enabled (bool, optional): Whether errors say where each Tensor was saved; None leaves it to the
            calls.

    Yields:
        None

    Example:
        >>> x = mica.ones(2, requires_grad=True)
        >>> with mica.utils.checkpoint.set_checkpoint_debug_enabled(True):
        ...     y = mica.utils.checkpoint.checkpoint(mica.exp, x, use_reentrant=False)
    """
    before, _Defaults.debug = _Defaults.debug, enabled
    try:
        yield
    finally:
        _Defaults.debug = before


def get_device_states(*args: Any) -> tuple[list[int], list[Tensor]]:
    """Reads the random states of the accelerators on which the given Tensors lie.

    As `torch.utils.checkpoint.get_device_states`; the CPU's state is not among them.

    Args:
        *args: Tensors, containers of them, and anything else.

    Returns:
        tuple of 2 list: `(indices, states)` of the devices, for `set_device_states`.

    Example:
        >>> mica.utils.checkpoint.get_device_states(mica.ones(2))
        ([], [])
    """
    places = sorted({(t.device.type, t.device.index or 0) for t in tensors_of(args) if is_apart(t)})
    return [i for _, i in places], [_C._default_generator(f"{kind}:{i}").get_state() for kind, i in places]


def set_device_states(
    devices: Sequence[int], states: Sequence[Tensor], *, device_type: str | None = None
) -> None:
    """Sets the random states of accelerators to those that `get_device_states` read.

    As `torch.utils.checkpoint.set_device_states`.

    Args:
        devices (sequence of int): Indices of the devices.
        states (sequence of Tensor): A state for each.
        device_type (str, optional): Type of the devices. Default: "cuda".

    Example:
        >>> mica.utils.checkpoint.set_device_states(*mica.utils.checkpoint.get_device_states(mica.ones(2)))
    """
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
    """Calls a function whose intermediate values are not kept for backward, but computed again there.

    As `torch.utils.checkpoint.checkpoint(use_reentrant=False)`, whichever value `use_reentrant` has. It
    saves memory and costs a second forward pass. Checkpoints nest, and `autograd.grad` works.

    Args:
        function (callable): The part of the network; it must compute the same when it runs again.
        *args: Its positional arguments.
        use_reentrant (bool, optional): True refuses `context_fn`, `debug` and keyword arguments, as
            torch does; nothing else changes. None warns. Default: None.
        context_fn (callable): Returns a pair of context managers, for the first and for the second run.
            Default: `noop_context_fn`.
        determinism_check (str): "default" compares shapes, dtypes and devices of what both runs save,
            "none" their number only. Default: "default".
        debug (bool): Errors say where in the function each Tensor was saved. Default: False.
        early_stop (bool): The second run ends as soon as all that backward needs is there.
            Default: True.
        preserve_rng_state (bool): Both runs draw the same random numbers. Default: True.
        **kwargs: Keyword arguments of the function.

    Returns:
        What `function(*args, **kwargs)` returns.

    Raises:
        ValueError: `determinism_check` is unknown, or `use_reentrant=True` with options.
        CheckpointError: From backward: the second run saves something else than the first.

    Example:
        >>> x = mica.tensor([1.0, 2.0], requires_grad=True)
        >>> y = mica.utils.checkpoint.checkpoint(lambda t: (t**2).exp().log(), x, use_reentrant=False)
        >>> y.sum().backward()
        >>> x.grad
        tensor([2., 4.])
    """
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
    """Runs a sequence of modules in segments, all but the last of which are checkpointed.

    As `torch.utils.checkpoint.checkpoint_sequential`.

    Args:
        functions (Sequential or sequence of callable): The modules or functions, each called with what
            the one before returned.
        segments (int): Number of segments, from 1 to the number of functions.
        input (Tensor): Argument of the first.
        use_reentrant (bool, optional): As in `checkpoint`. Default: None, which warns.
        **options: Further options of `checkpoint`.

    Returns:
        What the last function returns.

    Raises:
        ValueError: There are fewer functions than segments, or `segments` is below 1.

    Example:
        >>> model = mica.nn.Sequential(mica.nn.ReLU(), mica.nn.Sigmoid(), mica.nn.Tanh())
        >>> x = mica.zeros(2, requires_grad=True)
        >>> mica.utils.checkpoint.checkpoint_sequential(model, 2, x, use_reentrant=False)
        tensor([0.4621, 0.4621], grad_fn=<TanhBackward0>)
    """
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
    """`checkpoint` under the name of torch's older way, for programs that call it by that.

    Example:
        >>> x = mica.ones(2, requires_grad=True)
        >>> mica.utils.checkpoint.CheckpointFunction.apply(mica.neg, True, x)
        tensor([-1., -1.], grad_fn=<NegBackward0>)
    """

    @staticmethod
    def apply(run_function: Callable[..., Any], preserve_rng_state: bool, *args: Any) -> Any:
        """Calls `checkpoint(run_function, *args)`.

        Args:
            run_function (callable): The part of the network.
            preserve_rng_state (bool): Both runs draw the same random numbers.
            *args: Arguments of the function.

        Returns:
            What `run_function(*args)` returns.
        """
        return checkpoint(run_function, *args, use_reentrant=True, preserve_rng_state=preserve_rng_state)


def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Returns the Tensors of a tuple without their history, requiring grad as before.

    As `torch.utils.checkpoint.detach_variable`.

    Args:
        inputs (tuple): Tensors, and other values, which stay as they are.

    Returns:
        tuple: The detached values.

    Raises:
        RuntimeError: `inputs` is no tuple.

    Example:
        >>> x = 2 * mica.ones(2, requires_grad=True)
        >>> mica.utils.checkpoint.detach_variable((x, 3))
        (tensor([2., 2.], requires_grad=True), 3)
    """
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"detach_variable takes a tuple of tensors, not a {type(inputs).__name__}.")
    return tuple(x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs)
