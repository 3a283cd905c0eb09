"""make_graphed_callables for any backend: functions that replay recorded graphs, forward and backward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mica
from mica.utils import _pytree as pytree


class _Recorded:
    """One callable, recorded: its graphs, and the tensors that they read and write."""

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.function = function
        self.arguments = arguments
        self.parameters = tuple(function.parameters()) if isinstance(function, mica.nn.Module) else ()
        flat, self.form = pytree.tree_flatten(arguments)
        self.inputs = tuple(flat) + self.parameters
        self.argument_count = len(flat)
        self.training = isinstance(function, mica.nn.Module) and function.training
        self.outputs: tuple[Any, ...] = ()
        self.output_form: Any = None
        self.grad_outputs: tuple[Any, ...] = ()
        self.grad_inputs: tuple[Any, ...] = ()
        self.forward_graph: Any = None
        self.backward_graph: Any = None

    def check(self) -> None:
        if isinstance(self.function, mica.nn.Module):
            module = self.function
            if module._backward_hooks or module._forward_hooks or module._forward_pre_hooks:
                raise RuntimeError(
                    "make_graphed_callables: a module must have no hooks when it is recorded; register them after."
                )
            if any(buffer.requires_grad for buffer in module.buffers()):
                raise RuntimeError(
                    "make_graphed_callables: a buffer of a module requires grad; only parameters may."
                )
        for argument in self.inputs[: self.argument_count]:
            if not isinstance(argument, mica.Tensor):
                raise RuntimeError(
                    f"make_graphed_callables: sample_args has a value of type ({type(argument).__name__}); "
                    "the arguments of a graph are tensors."
                )

    def wanted(self) -> list[Any]:
        return [x for x in self.inputs if x.requires_grad]

    def differentiate(self, allow_unused: bool) -> tuple[Any, ...]:
        """The gradients of the inputs that require one, for `grad_outputs`."""
        outputs = [o for o in self.outputs if o.requires_grad]
        if not outputs or not self.wanted():
            return ()
        return mica.autograd.grad(
            outputs,
            self.wanted(),
            grad_outputs=[g for g in self.grad_outputs if g is not None],
            only_inputs=True,
            allow_unused=allow_unused,
        )

    def warm_up(self, allow_unused: bool) -> None:
        self.run()
        self.grad_outputs = tuple(mica.empty_like(o) if o.requires_grad else None for o in self.outputs)
        self.differentiate(allow_unused)
        self.outputs = self.grad_outputs = ()

    def run(self) -> None:
        outputs, self.output_form = pytree.tree_flatten(self.function(*self.arguments))
        self.outputs = tuple(outputs)

    def record_forward(self, calls: Any, pool: Any) -> None:
        self.forward_graph = calls.Graph()
        with calls.graph(self.forward_graph, pool=pool):
            self.run()

    def record_backward(self, calls: Any, pool: Any, allow_unused: bool) -> None:
        self.grad_outputs = tuple(mica.empty_like(o) if o.requires_grad else None for o in self.outputs)
        # Gradients of parameters stay beyond the next call, whose work may use any memory of the pool.
        kept = [mica.empty_like(p) if p.requires_grad else None for p in self.parameters]
        if any(g is not None for g in self.grad_outputs) and self.wanted():
            self.backward_graph = calls.Graph()
            with calls.graph(self.backward_graph, pool=pool):
                made = iter(self.differentiate(allow_unused))
                grads = [next(made, None) if x.requires_grad else None for x in self.inputs]
                for i, place in enumerate(kept, self.argument_count):
                    if place is not None and grads[i] is not None:
                        grads[i] = place.copy_(grads[i])
            self.grad_inputs = tuple(grads)
        else:
            self.grad_inputs = (None,) * len(self.inputs)
        self.outputs = tuple(o.detach() for o in self.outputs)  # their history was recorded, and ends

    def keep_sums(self) -> None:
        """Parameters whose gradient is what the last replay wrote, and will be added to, get a copy of it."""
        written_to = self.grad_inputs[self.argument_count :]
        for parameter, written in zip(self.parameters, written_to, strict=True):
            held = parameter.grad
            if held is not None and written is not None and held.data_ptr() == written.data_ptr():
                parameter.grad = held.clone()

    def replays(self) -> Callable[..., Any]:
        """The function that replays."""
        recorded = self

        class Graphed(mica.autograd.Function):
            @staticmethod
            def forward(ctx: Any, *inputs: Any) -> Any:
                for place, value in zip(recorded.inputs[: recorded.argument_count], inputs, strict=False):
                    if place.data_ptr() != value.data_ptr():
                        place.copy_(value)
                recorded.forward_graph.replay()
                outputs = tuple(o.detach() for o in recorded.outputs)
                ctx.mark_non_differentiable(
                    *(o for o, g in zip(outputs, recorded.grad_outputs, strict=True) if g is None)
                )
                return outputs

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> Any:
                for place, value in zip(recorded.grad_outputs, grads, strict=True):
                    if place is None:
                        continue
                    if value is None:
                        place.zero_()
                    elif place.data_ptr() != value.data_ptr():
                        place.copy_(value)
                if recorded.backward_graph is not None:
                    recorded.keep_sums()
                    recorded.backward_graph.replay()
                return tuple(None if g is None else g.detach() for g in recorded.grad_inputs)

        def call(*arguments: Any) -> Any:
            flat, form = pytree.tree_flatten(arguments)
            self.check_arguments(flat, form)
            outputs = Graphed.apply(*flat, *self.parameters)
            return pytree.tree_unflatten(outputs, self.output_form)

        return call

    def check_arguments(self, flat: list[Any], form: Any) -> None:
        samples = self.inputs[: self.argument_count]
        if form != self.form:
            raise RuntimeError(
                f"A graphed callable was recorded with the arguments {self.form} and is called with {form}."
            )
        for number, (value, sample) in enumerate(zip(flat, samples, strict=True)):
            same = isinstance(value, mica.Tensor) and (value.shape, value.dtype, value.device) == (
                sample.shape,
                sample.dtype,
                sample.device,
            )
            if not same:
                given = (
                    f"{value.dtype}{list(value.shape)} on {value.device}"
                    if isinstance(value, mica.Tensor)
                    else f"a value of type ({type(value).__name__})"
                )
                raise RuntimeError(
                    f"Argument {number} of a graphed callable is {given}; it was recorded with "
                    f"{sample.dtype}{list(sample.shape)} on {sample.device}."
                )


def _apart(sample_args: Any) -> list[tuple[Any, ...]]:
    """The samples, those whose memory an earlier one has as copies: each callable's inputs are written alone."""
    seen: set[int] = set()

    def own(sample: Any) -> Any:
        if not isinstance(sample, mica.Tensor):
            return sample
        storage = sample.untyped_storage().data_ptr()
        if storage in seen:
            return sample.detach().clone().requires_grad_(sample.requires_grad)
        seen.add(storage)
        return sample

    for arguments in sample_args:
        if isinstance(arguments, mica.Tensor):
            raise TypeError(
                "make_graphed_callables: the sample_args of a callable are a tuple of its arguments, not a Tensor; "
                "write (x,) for one."
            )
    return [tuple(pytree.tree_map(own, tuple(arguments))) for arguments in sample_args]


def graphed(
    calls: Any, callables: Any, sample_args: Any, warm_ups: int, allow_unused: bool, pool: tuple[int, int]
) -> Any:
    """What `make_graphed_callables` returns. `calls` has the backend's Graph, graph, Stream and stream functions."""
    if mica.is_autocast_enabled() and mica.is_autocast_cache_enabled():
        raise RuntimeError("make_graphed_callables: autocast must not keep casts; set `cache_enabled=False`.")
    single = not isinstance(callables, tuple)
    if single:
        callables, sample_args = (callables,), (sample_args,)
    if len(callables) != len(sample_args):
        raise RuntimeError(
            f"make_graphed_callables: there are {len(callables)} callables and sample_args for {len(sample_args)}."
        )
    records = [_Recorded(c, a) for c, a in zip(callables, _apart(sample_args), strict=True)]
    for record in records:
        record.check()
    calls.synchronize()
    with calls.stream(calls.Stream()):
        for record in records:
            for _ in range(warm_ups):
                record.warm_up(allow_unused)
    calls.synchronize()
    for record in records:
        record.record_forward(calls, pool)
    for record in reversed(records):
        record.record_backward(calls, pool, allow_unused)
    results = tuple(_face(record) for record in records)
    return results[0] if single else results


def _face(record: _Recorded) -> Any:
    replay = record.replays()
    if not isinstance(record.function, mica.nn.Module):
        return replay
    module, forward = record.function, record.function.forward

    def graphed_forward(*arguments: Any, **named: Any) -> Any:
        if module.training != record.training:
            return forward(*arguments, **named)
        if named:
            raise TypeError(
                f"A graphed callable was called with arguments by name ({', '.join(named)}); give them by position, "
                "as it was recorded."
            )
        return replay(*arguments)

    module.forward = graphed_forward
    return module
