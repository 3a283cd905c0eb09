"""The hooks of modules: their registration, on one module and on all, and the call through them.

A module keeps its hooks in dictionaries by number, named as torch names them, since programs
look into them. Hooks on all modules lie in `_everywhere`, by the same names.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from mica._tensor.removable_handle import RemovableHandle
from mica.nn.modules import _backward_hooks
from mica.nn.modules._error_location import add_path

# Every dictionary of hooks that a module has.
TABLES = (
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_backward_hooks",
    "_backward_pre_hooks",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)
_everywhere: dict[str, Any] = {name: OrderedDict() for name in TABLES}
_everywhere.update({f"{kind}_registration": OrderedDict() for kind in ("parameter", "buffer", "module")})
_everywhere["_is_full_backward_hook"] = None


def registered(kind: str, module: Any, name: str, value: Any) -> Any:
    """What the hooks on registrations make of a value that a module is given."""
    for hook in tuple(_everywhere[f"{kind}_registration"].values()):
        changed = hook(module, name, value)
        if changed is not None:
            value = changed
    return value


def _add(table: Any, hook: Any, prepend: bool = False, *flags: Any) -> RemovableHandle:
    handle = RemovableHandle(table, extra_dict=list(flags))
    table[handle.id] = hook
    for flag in flags:
        flag[handle.id] = True
    if prepend:
        table.move_to_end(handle.id, last=False)
    return handle


def _take_kind_of_backward_hooks(of: dict[str, Any], full: bool) -> None:
    if of.get("_is_full_backward_hook") not in (None, full):
        raise RuntimeError(
            "There are full backward hooks or those of register_backward_hook(), not both kinds."
        )
    of["_is_full_backward_hook"] = full


class _WithoutModule:
    """A hook that is not told the module. An object, so that a copy of the module has the hook of the copy."""

    def __init__(self, hook: Callable[..., Any]) -> None:
        self.hook = hook

    def __call__(self, module: Any, *args: Any) -> Any:
        return self.hook(*args)


class Hooked:
    """What Module inherits: the methods that add hooks, and the call of forward() between them."""

    _is_full_backward_hook = None  # of modules pickled before it was kept

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """hook(module, args) before forward; what it returns replaces the arguments."""
        flags = [self._forward_pre_hooks_with_kwargs] if with_kwargs else []  # type: ignore[attr-defined]
        return _add(self._forward_pre_hooks, hook, prepend, *flags)  # type: ignore[attr-defined]

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """hook(module, args, output) after forward; what it returns replaces the output."""
        flags = [self._forward_hooks_with_kwargs] if with_kwargs else []  # type: ignore[attr-defined]
        flags += [self._forward_hooks_always_called] if always_call else []  # type: ignore[attr-defined]
        return _add(self._forward_hooks, hook, prepend, *flags)  # type: ignore[attr-defined]

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """hook(module, grad_input, grad_output) when the gradients of the inputs are known."""
        _take_kind_of_backward_hooks(self.__dict__, full=True)
        return _add(self._backward_hooks, hook, prepend)  # type: ignore[attr-defined]

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """The older kind: hook(module, grad_input, grad_output) at the node that made the first output."""
        _take_kind_of_backward_hooks(self.__dict__, full=False)
        return _add(self._backward_hooks, hook)  # type: ignore[attr-defined]

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """hook(module, grad_output) before backward of the module; what it returns replaces them."""
        return _add(self._backward_pre_hooks, hook, prepend)  # type: ignore[attr-defined]

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """hook(module, prefix, keep_vars) before this module writes its state."""
        return _add(self._state_dict_pre_hooks, hook)  # type: ignore[attr-defined]

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """hook(module, state_dict, prefix, local_metadata) after this module wrote its state; it returns None."""
        hook._from_public_api = True  # type: ignore[attr-defined]
        return _add(self._state_dict_hooks, hook)  # type: ignore[attr-defined]

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """The older kind, which may return another dictionary."""
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError("This hook was made for register_state_dict_post_hook().")
        return _add(self._state_dict_hooks, hook)  # type: ignore[attr-defined]

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """hook(module, state_dict, prefix, ...) before this module reads its state."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        return _add(self._load_state_dict_pre_hooks, hook if with_module else _WithoutModule(hook))  # type: ignore[attr-defined]

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """hook(module, incompatible_keys) after this module and those below read their state."""
        return _add(self._load_state_dict_post_hooks, hook)  # type: ignore[attr-defined]

    def _call_with_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        called: set[int] = set()
        result = None
        try:
            args, kwargs = self._before(args, kwargs)
            watch, at_node = self._backward_watch()
            if watch is not None:
                args = watch.watch_inputs(args)
            result = self.forward(*args, **kwargs)  # type: ignore[attr-defined]
            result = self._after(args, kwargs, result, called)
            if watch is not None:
                result = watch.watch_outputs(result)
            if at_node:
                _backward_hooks.watch_node(self, args, result, at_node)  # type: ignore[arg-type]
            return result
        except Exception as error:
            self._forward_failed(error)
            self._call_always(args, kwargs, result, called)
            raise

    def _call_always(self, args: Any, kwargs: Any, result: Any, called: set[int]) -> None:
        """The hooks that are called also after an exception; one of their own becomes a warning."""
        for hooks, marks, takes in (
            (_everywhere["_forward_hooks"], _everywhere["_forward_hooks_always_called"], _everywhere),
            (self._forward_hooks, self._forward_hooks_always_called, self.__dict__),  # type: ignore[attr-defined]
        ):
            for number in tuple(marks):
                if number in called or number not in hooks:
                    continue
                with_kwargs = number in takes["_forward_hooks_with_kwargs"]
                try:
                    hooks[number](self, args, *([kwargs] if with_kwargs else []), result)
                except Exception as error:
                    warnings.warn(
                        f"A forward hook with always_call=True raised an exception, which is dropped as another is on "
                        f"its way: {error}",
                        stacklevel=3,
                    )

    def _forward_failed(self, error: BaseException) -> None:
        """Called with an exception that leaves forward()."""
        add_path(self, error)

    def _before(self, args: Any, kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        own = self._forward_pre_hooks.items()  # type: ignore[attr-defined]
        with_kwargs = self._forward_pre_hooks_with_kwargs  # type: ignore[attr-defined]
        for number, hook in (*_everywhere["_forward_pre_hooks"].items(), *own):
            changed = hook(self, args, kwargs) if number in with_kwargs else hook(self, args)
            if changed is None:
                continue
            if number not in with_kwargs:
                args = changed if isinstance(changed, tuple) else (changed,)
            elif isinstance(changed, tuple) and len(changed) == 2:
                args, kwargs = changed
            else:
                raise RuntimeError(
                    f"A forward pre-hook with kwargs returns None or (args, kwargs), not {type(changed).__name__}."
                )
        return args, kwargs

    def _after(self, args: Any, kwargs: dict[str, Any], result: Any, called: set[int]) -> Any:
        own = self._forward_hooks.items()  # type: ignore[attr-defined]
        for number, hook in (*_everywhere["_forward_hooks"].items(), *own):
            called.add(number)
            with_kwargs = (
                number in self._forward_hooks_with_kwargs  # type: ignore[attr-defined]
                or number in _everywhere["_forward_hooks_with_kwargs"]
            )
            changed = hook(self, args, kwargs, result) if with_kwargs else hook(self, args, result)
            if changed is not None:
                result = changed
        return result

    def _backward_watch(self) -> tuple[_backward_hooks.BackwardHooks | None, list[Any]]:
        """What calls the full backward hooks, if there are any, and the hooks of the older kind."""
        full: list[Any] = []
        at_node: list[Any] = []
        for tables in (_everywhere, self.__dict__):
            hooks = at_node if tables.get("_is_full_backward_hook") is False else full
            hooks.extend(tables["_backward_hooks"].values())
        before = [*_everywhere["_backward_pre_hooks"].values(), *self._backward_pre_hooks.values()]  # type: ignore[attr-defined]
        watch = _backward_hooks.BackwardHooks(self, full, before) if full or before else None  # type: ignore[arg-type]
        return watch, at_node


def _on_every_module(table: str) -> Callable[..., RemovableHandle]:
    def register(hook: Callable[..., Any]) -> RemovableHandle:
        """Adds a hook to every module."""
        return _add(_everywhere[table], hook)

    return register


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Adds a forward hook to every module."""
    flags = [_everywhere["_forward_hooks_with_kwargs"]] if with_kwargs else []
    flags += [_everywhere["_forward_hooks_always_called"]] if always_call else []
    return _add(_everywhere["_forward_hooks"], hook, False, *flags)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Adds a full backward hook to every module."""
    _take_kind_of_backward_hooks(_everywhere, full=True)
    return _add(_everywhere["_backward_hooks"], hook)


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Adds a backward hook of the older kind to every module."""
    _take_kind_of_backward_hooks(_everywhere, full=False)
    return _add(_everywhere["_backward_hooks"], hook)


register_module_forward_pre_hook = _on_every_module("_forward_pre_hooks")
register_module_full_backward_pre_hook = _on_every_module("_backward_pre_hooks")
register_module_parameter_registration_hook = _on_every_module("parameter_registration")
register_module_buffer_registration_hook = _on_every_module("buffer_registration")
register_module_module_registration_hook = _on_every_module("module_registration")
