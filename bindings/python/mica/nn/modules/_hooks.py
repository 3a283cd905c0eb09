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
        """Adds a hook that is called before forward() and may replace its arguments.

        Args:
            hook (callable): `hook(module, args)`, or with `with_kwargs` `hook(module, args, kwargs)`. It
                returns None, or new arguments: a tuple or one value; with `with_kwargs` the pair of args and
                kwargs.
            prepend (bool): Whether it is called before the module's other ones. Default: False.
            with_kwargs (bool): Whether it gets the keyword arguments. Default: False.

        Returns:
            RemovableHandle: Its `remove()` takes the hook away.

        Example:
            >>> layer = mica.nn.Identity()
            >>> handle = layer.register_forward_pre_hook(lambda module, args: args[0] * 2)
            >>> layer(mica.ones(2))
            tensor([2., 2.])
            >>> handle.remove()
        """
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
        """Adds a hook that is called after forward() and may replace its result.

        Args:
            hook (callable): `hook(module, args, output)`, or with `with_kwargs`
                `hook(module, args, kwargs, output)`. It returns None, or the new result.
            prepend (bool): Whether it is called before the module's other ones. Default: False.
            with_kwargs (bool): Whether it gets the keyword arguments. Default: False.
            always_call (bool): Whether it is called after an exception, too, then with None for a result that
                is missing. Default: False.

        Returns:
            RemovableHandle: Its `remove()` takes the hook away.

        Example:
            >>> shapes = []
            >>> layer = mica.nn.Linear(2, 3)
            >>> handle = layer.register_forward_hook(lambda module, args, output: shapes.append(output.shape))
            >>> _ = layer(mica.ones(4, 2))
            >>> shapes
            [mica.Size([4, 3])]
        """
        flags = [self._forward_hooks_with_kwargs] if with_kwargs else []  # type: ignore[attr-defined]
        flags += [self._forward_hooks_always_called] if always_call else []  # type: ignore[attr-defined]
        return _add(self._forward_hooks, hook, prepend, *flags)  # type: ignore[attr-defined]

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Adds a hook that gets the gradients of the module's inputs and outputs and may replace the former.

        Args:
            hook (callable): `hook(module, grad_input, grad_output)`, with tuples of a gradient or None for
                each positional argument and each output. It returns None, or new gradients of the inputs.
            prepend (bool): Whether it is called before the module's other ones. Default: False.

        Returns:
            RemovableHandle: Its `remove()` takes the hook away.

        Raises:
            RuntimeError: The module has hooks of `register_backward_hook()`.

        Example:
            >>> layer = mica.nn.Identity()
            >>> handle = layer.register_full_backward_hook(lambda module, before, after: (before[0] * 2,))
            >>> x = mica.ones(2, requires_grad=True)
            >>> layer(x).sum().backward()
            >>> x.grad
            tensor([2., 2.])
        """
        _take_kind_of_backward_hooks(self.__dict__, full=True)
        return _add(self._backward_hooks, hook, prepend)  # type: ignore[attr-defined]

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Adds a hook of the older kind, at the node that made the first output; take full ones.

        The gradients are those of that node, and not those of the module where it computes in several steps.

        Args:
            hook (callable): `hook(module, grad_input, grad_output)`. It returns None, or new gradients.

        Returns:
            RemovableHandle: Its `remove()` takes the hook away.

        Raises:
            RuntimeError: The module has full backward hooks.
        """
        _take_kind_of_backward_hooks(self.__dict__, full=False)
        return _add(self._backward_hooks, hook)  # type: ignore[attr-defined]

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Adds a hook that gets the gradients of the module's outputs first and may replace them.

        Args:
            hook (callable): `hook(module, grad_output)`, with a tuple of a gradient or None for each output.
                It returns None, or new gradients.
            prepend (bool): Whether it is called before the module's other ones. Default: False.

        Returns:
            RemovableHandle: Its `remove()` takes the hook away.
        """
        return _add(self._backward_pre_hooks, hook, prepend)  # type: ignore[attr-defined]

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Adds a hook that is called before `state_dict()` collects this module's state.

        Args:
            hook (callable): `hook(module, prefix, keep_vars)`; what it returns is dropped.

        Returns:
            RemovableHandle: Its `remove()` takes the hook away.
        """
        return _add(self._state_dict_pre_hooks, hook)  # type: ignore[attr-defined]

    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Adds a hook that is called when `state_dict()` has collected the module's state and all below.

        Args:
            hook (callable): `hook(module, state_dict, prefix, local_metadata)`. It may change the dictionary,
                and returns None.

        Returns:
            RemovableHandle: Its `remove()` takes the hook away.
        """
        hook._from_public_api = True  # type: ignore[attr-defined]
        return _add(self._state_dict_hooks, hook)  # type: ignore[attr-defined]

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """The older kind, which may return another dictionary."""
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError("This hook was made for register_state_dict_post_hook().")
        return _add(self._state_dict_hooks, hook)  # type: ignore[attr-defined]

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Adds a hook that is called before `load_state_dict()` reads this module's state.

        Args:
            hook (callable): `hook(module, state_dict, prefix, local_metadata, strict, missing_keys,
                unexpected_keys, error_msgs)`. It may change the dictionary, to rename keys, say, and the
                lists.

        Returns:
            RemovableHandle: Its `remove()` takes the hook away.
        """
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(
        self, hook: Callable[..., Any], with_module: bool = False
    ) -> RemovableHandle:
        return _add(self._load_state_dict_pre_hooks, hook if with_module else _WithoutModule(hook))  # type: ignore[attr-defined]

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Adds a hook that is called when `load_state_dict()` has read this module and those below.

        Args:
            hook (callable): `hook(module, incompatible_keys)`, whose `missing_keys` and `unexpected_keys` it
                may change in place: what is gone is no error. It returns None.

        Returns:
            RemovableHandle: Its `remove()` takes the hook away.
        """
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


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Adds a forward hook to every module, called before the modules' own.

    Args:
        hook (callable): `hook(module, args, output)`, or with `with_kwargs`
            `hook(module, args, kwargs, output)`. It returns None, or the new result.
        with_kwargs (bool): Whether it gets the keyword arguments. Default: False.
        always_call (bool): Whether it is called after an exception, too. Default: False.

    Returns:
        RemovableHandle: Its `remove()` takes the hook away.

    Example:
        >>> from mica.nn.modules.module import register_module_forward_hook
        >>> names = []
        >>> handle = register_module_forward_hook(lambda module, args, output: names.append(type(module).__name__))
        >>> _ = mica.nn.Sequential(mica.nn.ReLU())(mica.ones(1))
        >>> handle.remove()
        >>> names
        ['ReLU', 'Sequential']
    """
    flags = [_everywhere["_forward_hooks_with_kwargs"]] if with_kwargs else []
    flags += [_everywhere["_forward_hooks_always_called"]] if always_call else []
    return _add(_everywhere["_forward_hooks"], hook, False, *flags)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Adds a full backward hook to every module, called before the modules' own.

    Args:
        hook (callable): `hook(module, grad_input, grad_output)`. It returns None, or new gradients of the
            inputs.

    Returns:
        RemovableHandle: Its `remove()` takes the hook away.

    Raises:
        RuntimeError: There are hooks of `register_module_backward_hook()`.

    Example:
        >>> from mica.nn.modules.module import register_module_full_backward_hook
        >>> handle = register_module_full_backward_hook(lambda module, before, after: print(after))
        >>> mica.nn.Identity()(mica.ones(1, requires_grad=True)).sum().backward()
        (tensor([1.]),)
        >>> handle.remove()
    """
    _take_kind_of_backward_hooks(_everywhere, full=True)
    return _add(_everywhere["_backward_hooks"], hook)


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Adds a backward hook of the older kind to every module; take full ones.

    Args:
        hook (callable): `hook(module, grad_input, grad_output)`. It returns None, or new gradients.

    Returns:
        RemovableHandle: Its `remove()` takes the hook away.

    Raises:
        RuntimeError: There are hooks of `register_module_full_backward_hook()`.
    """
    _take_kind_of_backward_hooks(_everywhere, full=False)
    return _add(_everywhere["_backward_hooks"], hook)


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Adds a hook before forward() to every module, called before the modules' own.

    Args:
        hook (callable): `hook(module, args)`. It returns None, or new arguments.

    Returns:
        RemovableHandle: Its `remove()` takes the hook away.

    Example:
        >>> from mica.nn.modules.module import register_module_forward_pre_hook
        >>> handle = register_module_forward_pre_hook(lambda module, args: print(module, args))
        >>> _ = mica.nn.ReLU()(mica.ones(1))
        ReLU() (tensor([1.]),)
        >>> handle.remove()
    """
    return _add(_everywhere["_forward_pre_hooks"], hook)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Adds a hook before backward to every module, called before the modules' own.

    Args:
        hook (callable): `hook(module, grad_output)`. It returns None, or new gradients of the outputs.

    Returns:
        RemovableHandle: Its `remove()` takes the hook away.

    Example:
        >>> from mica.nn.modules.module import register_module_full_backward_pre_hook
        >>> handle = register_module_full_backward_pre_hook(lambda module, after: print(after))
        >>> mica.nn.ReLU()(mica.ones(1, requires_grad=True)).sum().backward()
        (tensor([1.]),)
        >>> handle.remove()
    """
    return _add(_everywhere["_backward_pre_hooks"], hook)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Adds a hook that every module calls when a parameter is registered.

    Args:
        hook (callable): `hook(module, name, parameter)`. It returns None, or the parameter to take instead.

    Returns:
        RemovableHandle: Its `remove()` takes the hook away.

    Example:
        >>> from mica.nn.modules.module import register_module_parameter_registration_hook
        >>> names = []
        >>> handle = register_module_parameter_registration_hook(lambda module, name, value: names.append(name))
        >>> _ = mica.nn.Linear(2, 3)
        >>> handle.remove()
        >>> names
        ['weight', 'bias']
    """
    return _add(_everywhere["parameter_registration"], hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Adds a hook that every module calls when a buffer is registered.

    Args:
        hook (callable): `hook(module, name, buffer)`. It returns None, or the buffer to take instead.

    Returns:
        RemovableHandle: Its `remove()` takes the hook away.

    Example:
        >>> from mica.nn.modules.module import register_module_buffer_registration_hook
        >>> names = []
        >>> handle = register_module_buffer_registration_hook(lambda module, name, value: names.append(name))
        >>> _ = mica.nn.BatchNorm1d(3)
        >>> handle.remove()
        >>> names
        ['running_mean', 'running_var', 'num_batches_tracked']
    """
    return _add(_everywhere["buffer_registration"], hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Adds a hook that every module calls when a submodule is registered.

    Args:
        hook (callable): `hook(module, name, submodule)`. It returns None, or the module to take instead.

    Returns:
        RemovableHandle: Its `remove()` takes the hook away.

    Example:
        >>> from mica.nn.modules.module import register_module_module_registration_hook
        >>> names = []
        >>> handle = register_module_module_registration_hook(lambda module, name, value: names.append(name))
        >>> _ = mica.nn.Sequential(mica.nn.ReLU(), mica.nn.Tanh())
        >>> handle.remove()
        >>> names
        ['0', '1']
    """
    return _add(_everywhere["module_registration"], hook)
