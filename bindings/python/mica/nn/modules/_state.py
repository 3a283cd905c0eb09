"""state_dict, load_state_dict and backward hooks of modules."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import mica
from mica._C import Tensor
from mica.nn.parameter import Parameter

if TYPE_CHECKING:
    from mica.nn.modules.module import Module

_EXTRA = "_extra_state"


def _has_extra(module: Module) -> bool:
    from mica.nn.modules.module import Module

    return type(module).get_extra_state is not Module.get_extra_state


def state_dict(module: Module, destination: Any, prefix: str, keep_vars: bool) -> dict[str, Any]:
    if destination is None:
        destination = OrderedDict()
        destination._metadata = OrderedDict()
    metadata = {"version": module._version}
    if hasattr(destination, "_metadata"):
        destination._metadata[prefix[:-1]] = metadata
    for name, parameter in module._parameters.items():
        if parameter is not None:
            destination[prefix + name] = parameter if keep_vars else parameter.detach()
    for name, buffer in module._buffers.items():
        if buffer is not None and name not in module._non_persistent_buffers_set:
            destination[prefix + name] = buffer if keep_vars else buffer.detach()
    if _has_extra(module):
        destination[prefix + _EXTRA] = module.get_extra_state()
    for name, child in module._modules.items():
        if child is not None:
            child.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
    for hook in module._state_dict_hooks.values():
        hook(module, destination, prefix, metadata)
    return destination  # type: ignore[no-any-return]


class _Loader:
    def __init__(self, state: dict[str, Any], strict: bool, assign: bool) -> None:
        self.state = state
        self.strict = strict
        self.assign = assign
        self.missing: list[str] = []
        self.unexpected: list[str] = []
        self.errors: list[str] = []

    def load(self, module: Module, prefix: str) -> None:
        for hook in module._load_state_dict_pre_hooks.values():
            hook(module, self.state, prefix, {}, self.strict, self.missing, self.unexpected, self.errors)
        for table in (module._parameters, module._buffers):
            for name, own in table.items():
                if own is None or name in module._non_persistent_buffers_set:
                    continue
                self.load_tensor(table, name, prefix + name, own)
        if _has_extra(module):
            if prefix + _EXTRA in self.state:
                module.set_extra_state(self.state[prefix + _EXTRA])
            else:
                self.missing.append(prefix + _EXTRA)
        for name, child in module._modules.items():
            if child is not None:
                self.load(child, f"{prefix}{name}.")

    def load_tensor(self, table: dict[str, Any], name: str, key: str, own: Tensor) -> None:
        if key not in self.state:
            self.missing.append(key)
            return
        given = self.state[key]
        if not isinstance(given, Tensor):
            self.errors.append(
                f"The value for ({key}) is of type ({type(given).__name__}); expected a Tensor."
            )
        elif given.shape != own.shape:
            self.errors.append(
                f"The shape of ({key}) is {tuple(given.shape)} in the state and {tuple(own.shape)} in the module."
            )
        elif self.assign:
            keep = isinstance(own, Parameter) and not isinstance(given, Parameter)
            table[name] = Parameter(given, own.requires_grad) if keep else given
        else:
            with mica.no_grad():
                own.copy_(given)


def load_state_dict(module: Module, state: Any, strict: bool, assign: bool) -> tuple[list[str], list[str]]:
    if not hasattr(state, "keys"):
        raise TypeError(f"A state_dict is a mapping; this value is of type ({type(state).__name__}).")
    loader = _Loader(OrderedDict(state), strict, assign)
    loader.load(module, "")
    own = set(module.state_dict(keep_vars=True))
    loader.unexpected += [key for key in loader.state if key not in own]
    errors = list(loader.errors)
    if strict and loader.unexpected:
        errors.insert(0, f"The state has keys that the module lacks: {', '.join(loader.unexpected)}.")
    if strict and loader.missing:
        errors.insert(0, f"The state lacks keys of the module: {', '.join(loader.missing)}.")
    if errors:
        raise RuntimeError(
            f"The state cannot be loaded into {type(module).__name__}.\n  " + "\n  ".join(errors)
        )
    return loader.missing, loader.unexpected


class BackwardHooks:
    """Watches a module's inputs and outputs and calls its full backward hooks."""

    def __init__(self, module: Module, hooks: list[Any]) -> None:
        self.module = module
        self.hooks = hooks
        self.grad_output: tuple[Any, ...] = ()

    def watch_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        places = [i for i, a in enumerate(args) if isinstance(a, Tensor) and a.requires_grad]
        if not places:
            self.has_inputs = False
            return args
        self.has_inputs = True
        watched = _Watch.apply(self._on_inputs, *(args[i] for i in places))
        watched = watched if isinstance(watched, tuple) else (watched,)
        new = list(args)
        for i, tensor in zip(places, watched):
            new[i] = tensor
        return tuple(new)

    def watch_outputs(self, result: Any) -> Any:
        outputs = result if isinstance(result, tuple) else (result,)
        if not all(isinstance(t, Tensor) for t in outputs) or not any(t.requires_grad for t in outputs):
            return result
        watched = _Watch.apply(self._on_outputs, *outputs)
        watched = watched if isinstance(watched, tuple) else (watched,)
        return watched if isinstance(result, tuple) else watched[0]

    def _on_outputs(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        self.grad_output = grads
        if not self.has_inputs:
            for hook in self.hooks:
                hook(self.module, (), grads)
        return grads

    def _on_inputs(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in self.hooks:
            changed = hook(self.module, grads, self.grad_output)
            if changed is not None:
                grads = changed if isinstance(changed, tuple) else (changed,)
        return grads


class _LazyWatch:
    """Makes the autograd Function on first use: mica.autograd loads lazily."""

    _function: Any = None

    def apply(self, callback: Any, *tensors: Tensor) -> Any:
        if self._function is None:
            self._function = _make_watch()
        return self._function.apply(callback, *tensors)


def _make_watch() -> Any:
    from mica.autograd import Function

    class Watch(Function):
        """The identity; calls back with its gradients."""

        @staticmethod
        def forward(ctx: Any, callback: Any, *tensors: Tensor) -> Any:
            ctx.callback = callback
            return tuple(t.view_as(t) for t in tensors)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return (None, *ctx.callback(grads))

    return Watch


_Watch = _LazyWatch()
