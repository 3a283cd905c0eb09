"""Containers of modules and parameters."""

from __future__ import annotations

import operator
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from mica._C import Tensor
from mica.nn.modules.module import Module
from mica.nn.parameter import Parameter


def _place(index: int, size: int) -> int:
    index = operator.index(index)
    if not -size <= index < size:
        raise IndexError(f"Index ({index}) is out of range for a container of {size}.")
    return index % size


def _pairs(given: Any) -> list[tuple[Any, ...]]:
    """The keys and values of a mapping, or of an iterable of pairs."""
    if isinstance(given, (Mapping, ModuleDict, ParameterDict)):
        return list(given.items())
    if not isinstance(given, Iterable):
        raise TypeError(f"update() takes a mapping or pairs, not ({type(given).__name__}).")
    pairs = [tuple(pair) for pair in given]
    for place, pair in enumerate(pairs):
        if len(pair) != 2:
            raise ValueError(f"Entry ({place}) has ({len(pair)}) elements; expected a key and a value.")
    return pairs


class Container(Module):
    """Holds modules given by keyword; deprecated, since every `Module` holds modules.

    As `torch.nn.Container`. Making one gives a FutureWarning.

    Args:
        **kwargs (Module): The modules by name.

    Example:
        >>> mica.nn.Container(act=mica.nn.ReLU())
        Container(
          (act): ReLU()
        )
    """

    def __init__(self, **kwargs: Any) -> None:
        text = "`nn.Container` is deprecated. All of its functionality is now implemented in `nn.Module`. Subclass that instead."
        warnings.warn(text, FutureWarning, stacklevel=2)
        super().__init__()
        for name, module in kwargs.items():
            self.add_module(name, module)


class _Indexed(Module):
    """Modules under the names "0", "1", ..."""

    _bounded = False  # insert() beyond the ends raises, where a list takes the end

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._modules.values())

    def _get_abs_string_index(self, index: int) -> str:
        return list(self._modules)[_place(index, len(self))]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._get_abs_string_index(index), module)

    def __delitem__(self, index: Any) -> None:
        keys = list(self._modules)
        for key in keys[index] if isinstance(index, slice) else [self._get_abs_string_index(index)]:
            delattr(self, key)
        modules = list(self._modules.values())
        self._modules.clear()
        self._modules.update({str(i): m for i, m in enumerate(modules)})

    def append(self, module: Module) -> Any:
        """Adds a module at the end.

        Args:
            module (Module): The module to add.

        Returns:
            Module: This container.

        Raises:
            TypeError: `module` is no Module.
        """
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key: int | slice) -> Any:
        """Takes a module out and returns it.

        Args:
            key (int or slice): Its index; a slice takes several out.

        Returns:
            Module: The module, or for a slice a container of several.

        Raises:
            IndexError: There is no such index.
        """
        module = self[key]
        del self[key]
        return module

    def extend(self, modules: Iterable[Module]) -> Any:
        """Adds modules at the end, in order.

        Args:
            modules (iterable of Module): The modules to add.

        Returns:
            Module: This container.

        Raises:
            TypeError: `modules` is no iterable of Modules.
        """
        if not isinstance(modules, Iterable):
            raise TypeError(f"extend() takes an iterable, not a ({type(modules).__name__}).")
        for module in list(modules):
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Any:
        """Puts a module in front of the one at an index.

        Args:
            index (int): Where the module will be. Beyond the ends a `ModuleList` takes the end, as a list
                does.
            module (Module): The module to add.

        Returns:
            Module: This container.

        Raises:
            AssertionError: `module` is no Module.
            IndexError: The index is out of the range of a `Sequential`.
        """
        if not isinstance(module, Module):
            raise AssertionError(f"insert() takes a Module, not a ({type(module).__name__}).")
        modules = list(self._modules.values())
        if self._bounded and not -len(modules) <= index <= len(modules):
            raise IndexError(f"Index ({index}) is out of range for a container of {len(modules)}.")
        modules.insert(index, module)
        self._modules.clear()
        self._modules.update({str(i): m for i, m in enumerate(modules)})
        return self


def _check_count(count: int) -> None:
    if not isinstance(count, int):
        raise TypeError(f"A Sequential is multiplied by an integer, not by a ({type(count).__name__}).")
    if count <= 0:
        raise ValueError(f"A Sequential is multiplied by a positive number, not by ({count}).")


class Sequential(_Indexed):
    """Calls modules one after the other, each with what the one before returned.

    As `torch.nn.Sequential`. An integer index gives a module, a slice a Sequential; `+` joins two, and
    `* n` repeats the modules, the same objects each time. Without modules it returns its input.

    Args:
        *args (Module or OrderedDict): The modules, which get the names "0", "1", ...; or a single
            OrderedDict of modules by name.

    Shape:
        - Input: what the first module takes, one argument.
        - Output: what the last module returns.

    Raises:
        TypeError: An argument is no Module.

    Example:
        >>> model = mica.nn.Sequential(mica.nn.Linear(4, 8), mica.nn.ReLU(), mica.nn.Linear(8, 2))
        >>> model(mica.ones(3, 4)).shape
        mica.Size([3, 2])
        >>> model[1]
        ReLU()
    """

    _bounded = True

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for i, module in enumerate(args):
                self.add_module(str(i), module)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return self._modules[self._get_abs_string_index(index)]

    def __add__(self, other: Iterable[Module]) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(f"A Sequential is added to a Sequential, not to a ({type(other).__name__}).")
        return Sequential(*self, *other)

    def __iadd__(self, other: Iterable[Module]) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(f"A Sequential is added to a Sequential, not to a ({type(other).__name__}).")
        return self.extend(other)  # type: ignore[no-any-return]

    def __mul__(self, count: int) -> Sequential:
        """The modules `count` times, the same objects each time."""
        _check_count(count)
        return Sequential(*(module for _ in range(count) for module in self))

    __rmul__ = __mul__

    def __imul__(self, count: int) -> Sequential:
        _check_count(count)
        own = list(self)
        for _ in range(count - 1):
            self.extend(own)
        return self

    def forward(self, input: Any) -> Any:
        for module in self:
            input = module(input)
        return input

    def extend(self, sequential: Iterable[Module]) -> Any:
        """Adds modules at the end, in order.

        Args:
            sequential (iterable of Module): The modules to add.

        Returns:
            Sequential: This container.

        Raises:
            TypeError: `sequential` is no iterable of Modules.
        """
        return super().extend(sequential)


class ModuleList(_Indexed):
    """A list of modules whose parameters belong to the module that holds it.

    As `torch.nn.ModuleList`. A plain list would hide its modules from `parameters()`, `to()` and
    `state_dict()`. It is indexed, sliced, looped over, extended and shortened as a list, and cannot be
    called.

    Args:
        modules (iterable of Module, optional): The first entries. Default: none.

    Raises:
        TypeError: `modules` is no iterable of Modules.

    Example:
        >>> layers = mica.nn.ModuleList(mica.nn.Linear(4, 4) for _ in range(3))
        >>> layers
        ModuleList(
          (0-2): 3 x Linear(in_features=4, out_features=4, bias=True)
        )
        >>> len(list(layers.parameters()))
        6
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)(list(self._modules.values())[index])
        return self._modules[self._get_abs_string_index(index)]

    def __iadd__(self, modules: Iterable[Module]) -> ModuleList:
        return self.extend(modules)  # type: ignore[no-any-return]

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def __repr__(self) -> str:
        texts = [repr(m) for m in self]
        if not texts:
            return f"{self._get_name()}()"
        # Equal neighbours are written once: (0-2): 3 x Linear(...)
        groups: list[tuple[int, int, str]] = []
        for i, text in enumerate(texts):
            if groups and groups[-1][2] == text:
                groups[-1] = (groups[-1][0], i, text)
            else:
                groups.append((i, i, text))
        lines = []
        for first, last, text in groups:
            label = (
                f"({first}): {text}" if first == last else f"({first}-{last}): {last - first + 1} x {text}"
            )
            lines.append(label.replace("\n", "\n  "))
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"


class ModuleDict(Module):
    """A dictionary of modules whose parameters belong to the module that holds it.

    As `torch.nn.ModuleDict`. It keeps the order of insertion and cannot be called.

    Args:
        modules (mapping or iterable of pairs, optional): The first entries: modules by name. Default: none.

    Raises:
        TypeError: `modules` is neither, a key is no string, or a value no Module.
        KeyError: A key is empty, contains a ".", or is an attribute's name, as "keys" is.

    Example:
        >>> heads = mica.nn.ModuleDict({"age": mica.nn.Linear(4, 1), "act": mica.nn.ReLU()})
        >>> heads["age"](mica.ones(2, 4)).shape
        mica.Size([2, 1])
        >>> list(heads)
        ['age', 'act']
    """

    def __init__(self, modules: Any = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def keys(self) -> Iterable[str]:
        """The names, in order."""
        return self._modules.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """The pairs of name and module, in order."""
        return self._modules.items()

    def values(self) -> Iterable[Any]:
        """The modules, in order."""
        return self._modules.values()

    def clear(self) -> None:
        """Takes all modules out."""
        self._modules.clear()

    def pop(self, key: str) -> Any:
        """Takes a module out and returns it.

        Args:
            key (str): Name of the entry.

        Returns:
            Module: The module.

        Raises:
            KeyError: There is no such name.
        """
        return self._modules.pop(key)

    def update(self, modules: Any) -> None:
        """Adds modules, or replaces those of the same names.

        Args:
            modules (mapping or iterable of pairs): Modules by name, in the order in which they are added.

        Raises:
            TypeError: `modules` is neither, or a value is no Module.
            ValueError: An entry is no pair.
        """
        for key, module in _pairs(modules):
            self[key] = module


def _described(entries: Iterable[tuple[Any, Any]], kind_of: Callable[[Tensor], str]) -> str:
    """The lines of a list's or dictionary's repr."""
    lines = []
    for name, value in entries:
        if isinstance(value, Tensor):
            kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
            size = "x".join(map(str, value.shape))
            place = "" if value.device.type == "cpu" else f" ({value.device})"
            lines.append(f"  ({name}): {kind} containing: [{kind_of(value)} of size {size}{place}]")
        else:
            lines.append(f"  ({name}): Object of type: {type(value).__name__}")
    return "\n".join(lines)


class ParameterList(Module):
    """A list of parameters that belong to the module that holds it.

    As `torch.nn.ParameterList`. Tensors become parameters; other values are kept as they are, and are no
    state. It is indexed, sliced and extended as a list; entries cannot be taken out.

    Args:
        values (iterable, optional): The first entries. Default: none.

    Raises:
        TypeError: `values` is no iterable, or a Tensor.

    Example:
        >>> scales = mica.nn.ParameterList(mica.ones(n) for n in (2, 3))
        >>> scales
        ParameterList(
            (0): Parameter containing: [mica.float32 of size 2]
            (1): Parameter containing: [mica.float32 of size 3]
        )
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return type(self)([getattr(self, str(i)) for i in range(self._size)[index]])
        return getattr(self, str(_place(index, self._size)))

    def __setitem__(self, index: int, value: Any) -> None:
        name = str(_place(index, self._size))
        setattr(
            self,
            name,
            Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value,
        )

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(self._size)])

    def append(self, value: Any) -> ParameterList:
        """Adds a value at the end.

        Args:
            value (Any): The value; a Tensor becomes a Parameter.

        Returns:
            ParameterList: This list.
        """
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Adds values at the end, in order.

        Args:
            values (iterable): The values; Tensors become Parameters.

        Returns:
            ParameterList: This list.

        Raises:
            TypeError: `values` is no iterable, or a Tensor.
        """
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(f"extend() takes an iterable of parameters, not a ({type(values).__name__}).")
        for value in values:
            self.append(value)
        return self

    def __iadd__(self, values: Iterable[Any]) -> ParameterList:
        return self.extend(values)

    def extra_repr(self) -> str:
        return _described(enumerate(self), lambda p: str(p.dtype))


class ParameterDict(Module):
    """A dictionary of parameters that belong to the module that holds it.

    As `torch.nn.ParameterDict`. Tensors become parameters; other values are kept as they are, and are no
    state. It keeps the order of insertion, but sorts the keys of a plain mapping that it is made from or
    updated with.

    Args:
        parameters (mapping or iterable of pairs, optional): The first entries. Default: none.

    Raises:
        TypeError: `parameters` is neither, or a key is no string.
        KeyError: A tensor's key is empty, contains a ".", or is an attribute's name, as "keys" is.

    Example:
        >>> weights = mica.nn.ParameterDict({"left": mica.ones(2), "right": mica.zeros(3)})
        >>> weights["left"]
        Parameter containing:
        tensor([1., 1.], requires_grad=True)
        >>> weights
        ParameterDict(
            (left): Parameter containing: [mica.FloatTensor of size 2]
            (right): Parameter containing: [mica.FloatTensor of size 3]
        )
    """

    def __call__(self, *input: Any) -> Any:
        raise RuntimeError("ParameterDict should not be called.")

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, Any] = {}
        if parameters is not None:
            self.update(parameters)

    def _key_to_attr(self, key: Any) -> str:
        if not isinstance(key, str):
            raise TypeError(
                f"A key of a ParameterDict is a string, not ({key!r}) of type ({type(key).__name__})."
            )
        return key

    def __getitem__(self, key: str) -> Any:
        return getattr(self, self._key_to_attr(key))

    def __setitem__(self, key: str, value: Any) -> None:
        name = self._key_to_attr(key)
        self._keys[key] = None
        plain = isinstance(value, Tensor) and not isinstance(value, Parameter)
        setattr(self, name, Parameter(value) if plain else value)

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, self._key_to_attr(key))

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def keys(self) -> Iterable[str]:
        """The keys, in order."""
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """The pairs of key and value, in order."""
        return [(key, self[key]) for key in self._keys]

    def values(self) -> Iterable[Any]:
        """The values, in order."""
        return [self[key] for key in self._keys]

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key, or a default.

        Args:
            key (str): The key.
            default (Any): What to return where the key is missing. Default: None.

        Returns:
            Any: The value, or `default`.
        """
        return self[key] if key in self._keys else default

    def setdefault(self, key: str, default: Any = None) -> Any:
        """The value of a key, which is given a default first if it is missing.

        Args:
            key (str): The key.
            default (Any): The value that a missing key gets. Default: None.

        Returns:
            Any: The key's value.
        """
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: str) -> Any:
        """Takes a key out and returns its value.

        Args:
            key (str): The key.

        Returns:
            Any: Its value.

        Raises:
            AttributeError: There is no such key.
        """
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Takes the last key out and returns it with its value; KeyError if the dictionary is empty."""
        if not self._keys:
            raise KeyError("popitem(): this ParameterDict is empty.")
        key = next(reversed(list(self._keys)))
        return key, self.pop(key)

    def clear(self) -> None:
        """Takes all keys out."""
        for key in list(self._keys):
            del self[key]

    def copy(self) -> ParameterDict:
        """Another dictionary of the same values."""
        return ParameterDict(OrderedDict(self.items()))

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Makes another dictionary, in which every key has the same value.

        Args:
            keys (iterable of str): The keys.
            default (Any): The value that all of the keys get. Default: None.

        Returns:
            ParameterDict: The new dictionary.
        """
        return ParameterDict((key, default) for key in keys)

    def update(self, parameters: Any) -> None:
        """Sets the values of keys.

        Args:
            parameters (mapping or iterable of pairs): Values by key. Of a plain mapping the keys are sorted;
                OrderedDict, ParameterDict and pairs keep their order.

        Raises:
            TypeError: `parameters` is neither.
            ValueError: An entry is no pair.
        """
        pairs = _pairs(parameters)
        plain = isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict)
        for key, value in sorted(pairs) if plain else pairs:
            self[key] = value

    def extra_repr(self) -> str:
        return _described(self.items(), lambda p: str(p.type()))

    def __or__(self, other: ParameterDict) -> ParameterDict:
        found = self.copy()
        found.update(other)
        return found

    def __ror__(self, other: ParameterDict) -> ParameterDict:
        found = other.copy()
        found.update(self)
        return found

    def __ior__(self, other: ParameterDict) -> ParameterDict:
        self.update(other)
        return self
