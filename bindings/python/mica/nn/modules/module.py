"""Module: the base of all layers: parameters, buffers, submodules, hooks."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from mica import _C
from mica._C import Tensor
from mica._devices import methods
from mica.nn.modules import _conversion, _hooks, _state
from mica.nn.modules._hooks import (
    register_module_backward_hook as register_module_backward_hook,
    register_module_buffer_registration_hook as register_module_buffer_registration_hook,
    register_module_forward_hook as register_module_forward_hook,
    register_module_forward_pre_hook as register_module_forward_pre_hook,
    register_module_full_backward_hook as register_module_full_backward_hook,
    register_module_full_backward_pre_hook as register_module_full_backward_pre_hook,
    register_module_module_registration_hook as register_module_module_registration_hook,
    register_module_parameter_registration_hook as register_module_parameter_registration_hook,
)
from mica.nn.modules._state import _IncompatibleKeys
from mica.nn.parameter import Buffer, Parameter

T = TypeVar("T", bound="Module")
_FORWARD_PRE, _FORWARD = _hooks._everywhere["_forward_pre_hooks"], _hooks._everywhere["_forward_hooks"]
_BACKWARD, _BACKWARD_PRE = _hooks._everywhere["_backward_hooks"], _hooks._everywhere["_backward_pre_hooks"]
_EXTRA_STATE_KEY_SUFFIX = "_extra_state"
_global_backward_hooks, _global_backward_pre_hooks = _BACKWARD, _BACKWARD_PRE
_global_forward_hooks, _global_forward_pre_hooks = _FORWARD, _FORWARD_PRE
_global_forward_hooks_always_called = _hooks._everywhere["_forward_hooks_always_called"]
_global_forward_hooks_with_kwargs = _hooks._everywhere["_forward_hooks_with_kwargs"]


_warned: list[bool] = []  # that compile() does nothing


def _misfit(kind: str, name: str, expected: str, value: Any) -> TypeError:
    given = value.type() if isinstance(value, Tensor) else type(value).__name__
    return TypeError(f"cannot assign '{given}' as {kind} '{name}' ({expected} or None expected).")


def _addindent(s_: str, numSpaces: int) -> str:  # noqa: N803 - torch's name
    """The lines after the first, moved to the right."""
    return s_.replace("\n", "\n" + numSpaces * " ")


def _own_parameters(module: Module) -> Iterable[tuple[str, Any]]:
    return module.__dict__["_parameters"].items()  # type: ignore[no-any-return]


def _own_buffers(module: Module) -> Iterable[tuple[str, Any]]:
    return module.__dict__["_buffers"].items()  # type: ignore[no-any-return]


class Module(_hooks.Hooked, _conversion.Convertible):
    """A part of a network: parameters, buffers and other modules, and a forward() that computes with them.

    Subclasses call `super().__init__()` and define `forward`; users call the module, which runs forward()
    between the hooks. A Parameter, Buffer or Module that is assigned to an attribute registers itself: it
    counts in `parameters()`, moves with `to()` and is saved by `state_dict()`. As `torch.nn.Module`.

    Args:
        *args (Any): For the class after Module in the method resolution order, if the attribute
            `call_super_init` is True; else refused.
        **kwargs (Any): Likewise.

    Attributes:
        training (bool): Whether layers as dropout behave as in training; set by `train()` and `eval()`.
        call_super_init (bool): Whether `__init__` calls that of the next class with its arguments. Default:
            False.

    Raises:
        TypeError: There are arguments and `call_super_init` is False.
        AttributeError: A parameter, buffer or module is assigned before `super().__init__()`.
        NotImplementedError: The module is called and its class has no `forward`.

    Example:
        >>> class Net(mica.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.layer = mica.nn.Linear(2, 3)
        ...
        ...     def forward(self, x):
        ...         return self.layer(x).relu()
        >>> net = Net()
        >>> net(mica.ones(4, 2)).shape
        mica.Size([4, 3])
        >>> [name for name, _ in net.named_parameters()]
        ['layer.weight', 'layer.bias']
    """

    training: bool
    _version = 1
    dump_patches = False
    call_super_init = False
    T_destination = TypeVar("T_destination", bound=dict[str, Any])
    _compiled_call_impl = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init and (args or kwargs):
            what = f"argument {next(iter(kwargs))!r}" if kwargs else f"({len(args)}) positional arguments"
            raise TypeError(f"{type(self).__name__}.__init__() takes no {what}.")
        d = self.__dict__
        d["training"] = True
        d["_parameters"] = {}
        d["_buffers"] = {}
        d["_non_persistent_buffers_set"] = set()
        for table in _hooks.TABLES:
            d[table] = OrderedDict()
        d["_is_full_backward_hook"] = None
        d["_modules"] = {}
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for table in _hooks.TABLES:  # files of older versions lack some
            self.__dict__.setdefault(table, OrderedDict())
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.setdefault("_is_full_backward_hook", None)

    def forward(self, *input: Any) -> Any:
        """Computes the module's output from its inputs: `module(...)` calls it, and runs the hooks.

        Each class defines it with arguments of its own. Of Mica's layers, `Shape` in the class's docstring
        says what they are. Call the module itself, `y = layer(x)`, and not this method.

        Args:
            *input (Any): The inputs, Tensors mostly, in the order in which `Shape` of the class lists them.

        Returns:
            Any: The output, as `Shape` of the class says.

        Raises:
            NotImplementedError: The subclass has not defined it.
        """
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function.'
        )

    # What calls a module is the slot in module_slots.cc, as long as no class has another __call__.
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        own = self._forward_hooks or self._forward_pre_hooks or self._backward_hooks
        if own or self._backward_pre_hooks or _FORWARD or _FORWARD_PRE or _BACKWARD or _BACKWARD_PRE:
            return self._call_with_hooks(args, kwargs)
        try:
            return self.forward(*args, **kwargs)
        except Exception as error:
            self._forward_failed(error)
            raise

    _call_impl = _wrapped_call_impl = __call__

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _C._fast_module(cls)

    # -- attributes

    def __getattr__(self, name: str) -> Any:
        for kind in ("_parameters", "_buffers", "_modules"):
            table = self.__dict__.get(kind)
            if table is not None and name in table:
                return table[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'", name=name, obj=self)

    def __setattr__(self, name: str, value: Any) -> None:
        d = self.__dict__
        if isinstance(value, Parameter):
            if "_parameters" not in d:
                raise AttributeError("cannot assign parameters before Module.__init__() call.")
            self._forget(name, keep="_parameters")
            self.register_parameter(name, value)
        elif name in d.get("_parameters", ()):
            if value is not None:
                raise _misfit("parameter", name, "mica.nn.Parameter", value)
            self.register_parameter(name, None)
        elif isinstance(value, Module):
            if "_modules" not in d:
                raise AttributeError("cannot assign module before Module.__init__() call.")
            self._forget(name, keep="_modules")
            d["_modules"][name] = _hooks.registered("module", self, name, value)
        elif name in d.get("_modules", ()):
            if value is not None:
                raise _misfit("child module", name, "mica.nn.Module", value)
            d["_modules"][name] = _hooks.registered("module", self, name, None)
        elif isinstance(value, Buffer):
            if "_buffers" not in d:
                raise AttributeError("cannot assign buffer before Module.__init__() call.")
            self._forget(name, keep="_buffers")
            self.register_buffer(name, value, value.persistent)
        elif name in d.get("_buffers", ()):
            if value is not None and not isinstance(value, Tensor):
                raise _misfit("buffer", name, "mica.Tensor", value)
            d["_buffers"][name] = _hooks.registered("buffer", self, name, value)
        else:
            object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        if not self._forget(name):
            object.__delattr__(self, name)

    def _forget(self, name: str, keep: str = "") -> bool:
        """Takes `name` out of every dictionary but `keep`, where a new value takes the old one's place."""
        d = self.__dict__
        found = False
        for kind in ("_parameters", "_buffers", "_modules"):
            if kind != keep and name in d.get(kind, ()):
                del d[kind][name]
                found = True
        d.get("_non_persistent_buffers_set", set()).discard(name)
        if name in d:
            del d[name]
            found = True
        return found

    def __dir__(self) -> list[str]:
        names = {*object.__dir__(self), *self._parameters, *self._buffers, *self._modules}
        return sorted(name for name in names if not name[0].isdigit())

    # -- registration

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Adds a parameter, reachable as an attribute.

        Args:
            name (str): Name of the attribute.
            param (Parameter, optional): The parameter; None keeps the name for none, which no state has.

        Raises:
            TypeError: `param` is no Parameter, or `name` no string.
            KeyError: The name is empty, contains a ".", or is that of another attribute.
        """
        self._check_name("parameter", name, self._parameters)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"The value for parameter ({name}) is of type ({type(param).__name__}); expected Parameter or None."
            )
        if param is not None and param.grad_fn is not None:
            raise ValueError(f"The parameter ({name}) is no leaf: it was computed; pass one made from data.")
        if param is not None:
            param = _hooks.registered("parameter", self, name, param)
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Adds a tensor that is state and no parameter, as running statistics are; reachable as an attribute.

        Args:
            name (str): Name of the attribute.
            tensor (Tensor, optional): The buffer; None keeps the name for none, which no state has.
            persistent (bool): Whether `state_dict()` holds it. Default: True.

        Raises:
            TypeError: `tensor` is no Tensor, or `name` no string.
            KeyError: The name is empty, contains a ".", or is that of another attribute.
        """
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"The value for buffer ({name}) is of type ({type(tensor).__name__}); expected Tensor or None."
            )
        self._buffers[name] = _hooks.registered("buffer", self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Adds a submodule, reachable as an attribute; `register_module` is another name of it.

        Args:
            name (str): Name of the attribute.
            module (Module, optional): The submodule; None keeps the name for none.

        Raises:
            TypeError: `module` is no Module, or `name` no string.
            KeyError: The name is empty, contains a ".", or is that of another attribute.
        """
        if module is not None and not isinstance(module, Module):
            raise TypeError(
                f"The value for submodule ({name}): {type(module).__name__} is not a Module subclass, and not None."
            )
        self._check_name("module", name, self._modules)
        self._modules[name] = _hooks.registered("module", self, name, module)

    register_module = add_module

    def _check_name(self, kind: str, name: str, own: dict[str, Any]) -> None:
        if "_parameters" not in self.__dict__:
            raise AttributeError("Registration is possible only after Module.__init__() was called.")
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {type(name).__name__} ({name!r}).")
        if "." in name or name == "":
            fault = 'contain "."' if name else 'be empty string ""'
            raise KeyError(f"{kind} name can't {fault}, got: {name}.")
        if name not in own and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists.")

    # -- iteration

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """Goes over this module and all below it, each before those below it.

        Args:
            memo (set of Module, optional): Modules to leave out; those that come are added. Default: none.
            prefix (str): The name of this module, in front of the others'. Default: "".
            remove_duplicate (bool): Whether a module that is held twice comes once. Default: True.

        Yields:
            tuple of str and Module: Dotted name and module.
        """
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(
                    memo, f"{prefix}.{name}" if prefix else name, remove_duplicate
                )

    def modules(self, remove_duplicate: bool = True) -> Iterator[Module]:
        """Goes over this module and all below it, each before those below it.

        Args:
            remove_duplicate (bool): Whether a module that is held twice comes once. Default: True.

        Yields:
            Module: The modules.
        """
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """Goes over the names and modules that this module holds itself, each module once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """Goes over the modules that this module holds itself, each once."""
        for _, module in self.named_children():
            yield module

    def _named_members(
        self,
        get_members_fn: Callable[[Module], Iterable[tuple[str, Any]]],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        seen: set[Any] = set()
        modules = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else [(prefix, self)]
        )
        for module_prefix, module in modules:
            for name, value in get_members_fn(module):
                if value is None or value in seen:
                    continue
                if remove_duplicate:
                    seen.add(value)
                yield (f"{module_prefix}.{name}" if module_prefix else name), value

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Goes over the parameters of this module and of all below it.

        Args:
            prefix (str): In front of each name, with a dot between. Default: "".
            recurse (bool): Whether those of submodules come, too. Default: True.
            remove_duplicate (bool): Whether a parameter that is held twice comes once. Default: True.

        Yields:
            tuple of str and Parameter: Dotted name and parameter.
        """
        return self._named_members(_own_parameters, prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Goes over the parameters of this module and of all below it, each once; what an optimizer takes.

        Args:
            recurse (bool): Whether those of submodules come, too. Default: True.

        Yields:
            Parameter: The parameters.
        """
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Goes over the buffers of this module and of all below it.

        Args:
            prefix (str): In front of each name, with a dot between. Default: "".
            recurse (bool): Whether those of submodules come, too. Default: True.
            remove_duplicate (bool): Whether a buffer that is held twice comes once. Default: True.

        Yields:
            tuple of str and Tensor: Dotted name and buffer.
        """
        return self._named_members(_own_buffers, prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Goes over the buffers of this module and of all below it, each once.

        Args:
            recurse (bool): Whether those of submodules come, too. Default: True.

        Yields:
            Tensor: The buffers.
        """
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def get_submodule(self, target: str) -> Module:
        """Finds a module by its dotted name.

        Args:
            target (str): The name, as `named_modules()` gives it; "" for this module.

        Returns:
            Module: The module.

        Raises:
            AttributeError: There is no such module.
        """
        module: Module = self
        for name in target.split(".") if target else []:
            found = module._modules.get(name)
            if found is None:
                raise AttributeError(f"{type(module).__name__} has no attribute `{name}`.")
            module = found
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Puts a module at a dotted name, in place of the one there.

        Args:
            target (str): The name.
            module (Module): The new module.
            strict (bool): Whether there must be one to replace; else a new name is added. Default: False.

        Raises:
            ValueError: The name is empty, or `module` is no Module.
            AttributeError: There is no module to hold it, none to replace, or what is there is no module.
        """
        if not target:
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"set_submodule() takes a Module, not a ({type(module).__name__}).")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        there = getattr(parent, name, None)
        if (strict and there is None) or (there is not None and not isinstance(there, Module)):
            raise AttributeError(f"{type(parent).__name__} has no attribute `{name}`.")
        setattr(parent, name, module)

    def get_parameter(self, target: str) -> Parameter:
        """Finds a parameter by its dotted name.

        Args:
            target (str): The name, as `named_parameters()` gives it.

        Returns:
            Parameter: The parameter.

        Raises:
            AttributeError: There is no such parameter.
        """
        path, _, name = target.rpartition(".")
        parameter = self.get_submodule(path)._parameters.get(name)
        if parameter is None:
            raise AttributeError(f"There is no parameter ({target}).")
        return parameter

    def get_buffer(self, target: str) -> Tensor:
        """Finds a buffer by its dotted name.

        Args:
            target (str): The name, as `named_buffers()` gives it.

        Returns:
            Tensor: The buffer.

        Raises:
            AttributeError: There is no such buffer.
        """
        path, _, name = target.rpartition(".")
        buffer = self.get_submodule(path)._buffers.get(name)
        if buffer is None:
            raise AttributeError(f"There is no buffer ({target}).")
        return buffer

    # -- modes

    def apply(self: T, fn: Callable[[Module], None]) -> T:
        """Calls a function with every module below, then with this module; for initialisation, say.

        Args:
            fn (callable): Called with each module; what it returns is dropped.

        Returns:
            Module: This module.
        """
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _replicate_for_data_parallel(self: T) -> T:
        """A shallow copy without parameters, whose buffers and submodules can be replaced alone."""
        replica = self.__new__(type(self))
        replica.__dict__ = {**self.__dict__, "_parameters": {}, "_is_replica": True}
        replica.__dict__["_buffers"] = self._buffers.copy()
        replica.__dict__["_modules"] = self._modules.copy()
        return replica

    def train(self: T, mode: bool = True) -> T:
        """Sets training mode, or evaluation mode, here and in all modules below.

        Args:
            mode (bool): True for training mode. Default: True.

        Returns:
            Module: This module.

        Raises:
            ValueError: `mode` is no bool.
        """
        if not isinstance(mode, bool):
            raise ValueError(
                f"The training mode is True or False; this value is of type ({type(mode).__name__})."
            )
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self: T) -> T:
        """Sets evaluation mode here and below, as `train(False)` does; gradients are recorded still."""
        return self.train(False)

    def requires_grad_(self: T, requires_grad: bool = True) -> T:
        """Sets whether the parameters, here and below, require gradients; False freezes them.

        Args:
            requires_grad (bool): Whether they do. Default: True.

        Returns:
            Module: This module.
        """
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Takes the gradients of all parameters, here and below, away.

        Args:
            set_to_none (bool): Whether they become None; else zeros. Default: True.
        """
        for parameter in self.parameters():
            if parameter.grad is None:
                continue
            if set_to_none:
                parameter.grad = None
            else:
                parameter.grad = parameter.grad.detach()
                parameter.grad.zero_()

    # -- state

    def get_extra_state(self) -> Any:
        """What a subclass wants in the state_dict besides tensors; define it together with `set_extra_state`."""
        raise RuntimeError(
            "This module has no extra state; define get_extra_state() and set_extra_state() to have some."
        )

    def set_extra_state(self, state: Any) -> None:
        """Reads what `get_extra_state` returned when the state was saved; subclasses define it.

        Args:
            state (Any): The value from the state_dict.

        Raises:
            RuntimeError: The subclass has not defined it.
        """
        raise RuntimeError(
            "This module has no extra state; define get_extra_state() and set_extra_state() to have some."
        )

    def state_dict(
        self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False
    ) -> dict[str, Any]:
        """Collects the parameters and persistent buffers, here and below, in a dictionary to be saved.

        Args:
            *args (Any): `destination`, `prefix` and `keep_vars` by place, as older programs give them.
            destination (dict, optional): The dictionary to fill. Default: a new OrderedDict.
            prefix (str): In front of each name, with its dot. Default: "".
            keep_vars (bool): Whether the values are the parameters themselves; else they are detached tensors
                of the same memory. Default: False.

        Returns:
            dict: Tensors by dotted name.

        Example:
            >>> list(mica.nn.Linear(2, 3).state_dict())
            ['weight', 'bias']
        """
        given = (*args, *(destination, prefix, keep_vars)[len(args) :])
        return _state.state_dict(self, *given)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        _state.save_own(self, Module, destination, prefix, keep_vars)

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Reads this module's own state; those below read theirs. Subclasses override it."""
        lists = (missing_keys, unexpected_keys, error_msgs)
        _state.load_own(self, Module, state_dict, prefix, local_metadata, strict, *lists)

    def load_state_dict(
        self, state_dict: Any, strict: bool = True, assign: bool = False
    ) -> _IncompatibleKeys:
        """Copies the values of a state_dict into the parameters and buffers, here and below.

        Args:
            state_dict (mapping): Tensors by dotted name, as `state_dict()` gives them.
            strict (bool): Whether the names must be those of this module. Default: True.
            assign (bool): Whether the module takes the given tensors themselves, with their dtype and device,
                instead of copying. Default: False.

        Returns:
            named tuple: `missing_keys` and `unexpected_keys`, lists of str.

        Raises:
            TypeError: `state_dict` is no mapping.
            RuntimeError: A shape differs, or with `strict` a name is missing or unexpected.

        Example:
            >>> layer = mica.nn.Linear(2, 3)
            >>> layer.load_state_dict(mica.nn.Linear(2, 3).state_dict())
            <All keys matched successfully>
        """
        missing, unexpected = _state.load_state_dict(self, state_dict, strict, assign)
        return _IncompatibleKeys(missing, unexpected)

    def share_memory(self: T) -> T:
        """Moves parameters and buffers, here and below, to memory that other processes can map."""
        return self._apply(lambda t: t.share_memory_())

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Does nothing, and warns once: modules run as they stand. In torch it compiles the module.

        Args:
            *args (Any): Ignored.
            **kwargs (Any): Ignored.
        """
        if not _warned:
            _warned.append(True)
            warnings.warn("Module.compile() changes nothing: modules run as they stand.", stacklevel=2)

    # -- text

    def extra_repr(self) -> str:
        """What stands in the parentheses of this module's text; subclasses define it."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        lines = self.extra_repr().split("\n") if self.extra_repr() else []
        children = []
        for name, module in self._modules.items():
            children.append(f"({name}): " + _addindent(repr(module), 2))
        if lines and not children and len(lines) == 1:
            return f"{self._get_name()}({lines[0]})"
        if not lines and not children:
            return f"{self._get_name()}()"
        return f"{self._get_name()}(\n  " + "\n  ".join(lines + children) + "\n)"


_C._init_modules(Module.__call__, Module.__getattr__, _FORWARD, _FORWARD_PRE, _BACKWARD, _BACKWARD_PRE)
_C._fast_module(Module)


def exchange_call(call: Callable[..., Any]) -> Callable[..., Any]:
    """Makes a function the __call__ of all modules, and gives the one before.

    Assigning to Module.__call__ puts CPython's slots into every class of modules; with Module's own
    call they get those of module_slots.cc again.
    """
    before, Module.__call__ = Module.__call__, call  # type: ignore[method-assign]
    waiting: list[type] = [Module] if call is Module._call_impl else []
    while waiting:
        cls = waiting.pop()
        _C._fast_module(cls)
        waiting += cls.__subclasses__()
    return before


methods.follow(Module, methods.of_module)
