"""What the tests of modes and subclasses run in both libraries: torch's own example
classes, written once over a library's names."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
import torch.overrides
import torch.utils._python_dispatch
import torch.utils._pytree
import torch.utils.flop_counter

import mica
import mica.overrides
import mica.utils._python_dispatch
import mica.utils._pytree
import mica.utils.flop_counter

LIBRARIES = {"torch": torch, "mica": mica}


def name_of(func: Any) -> str:
    """A function as both libraries name it: "add", "shape.__get__", "aten add"."""
    name = getattr(func, "__name__", str(func))
    if name in ("__get__", "__set__"):
        return f"{func.__self__.__name__}.{name}"
    return name


def operator_name(func: Any) -> str:
    """An operator without namespace and overload: Mica has Scalar overloads where torch wraps
    numbers, and some operators of one form with `_` in front."""
    return str(func).split(".")[1].lstrip("_")


def types_of(args: Any) -> tuple[str, ...]:
    return tuple(type(a).__name__ for a in args)


def classes(library: Any) -> Any:
    """FunctionLog, OperatorLog, LoggingTensor, TwoTensor and Unit over one library."""
    tree_map = library.utils._pytree.tree_map
    dispatch = library.utils._python_dispatch

    class FunctionLog(library.overrides.TorchFunctionMode):
        def __init__(self) -> None:
            super().__init__()
            self.calls: list[Any] = []

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.calls.append((name_of(func), types_of(args)))
            return func(*args, **(kwargs or {}))

    class OperatorLog(dispatch.TorchDispatchMode):
        def __init__(self) -> None:
            super().__init__()
            self.calls: list[Any] = []

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            self.calls.append((operator_name(func), types_of(args)))
            return func(*args, **(kwargs or {}))

    class LoggingTensor(library.Tensor):
        log: list[str] = []

        @staticmethod
        def __new__(cls: Any, elem: Any, *, requires_grad: bool = False) -> Any:
            self = library.Tensor._make_wrapper_subclass(
                cls,
                elem.size(),
                strides=elem.stride(),
                storage_offset=elem.storage_offset(),
                dtype=elem.dtype,
                layout=elem.layout,
                device=elem.device,
                requires_grad=requires_grad,
            )
            self.elem = elem
            return self

        def __repr__(self, *, tensor_contents: Any = None) -> str:
            return f"LoggingTensor({self.elem})"

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            def unwrap(x: Any) -> Any:
                return x.elem if isinstance(x, cls) else x

            def wrap(x: Any) -> Any:
                return cls(x) if isinstance(x, library.Tensor) else x

            cls.log.append(operator_name(func))
            out = func(*tree_map(unwrap, args), **tree_map(unwrap, kwargs or {}))
            return dispatch.return_and_correct_aliasing(func, args, kwargs or {}, tree_map(wrap, out))

    class TwoTensor(library.Tensor):
        @staticmethod
        def __new__(cls: Any, a: Any, b: Any) -> Any:
            self = library.Tensor._make_wrapper_subclass(
                cls,
                a.shape,
                strides=a.stride(),
                dtype=a.dtype,
                device=a.device,
                requires_grad=a.requires_grad,
            )
            self.a, self.b = a, b
            return self

        def __tensor_flatten__(self) -> Any:
            return ["a", "b"], None

        @staticmethod
        def __tensor_unflatten__(inner: Any, meta: Any, size: Any, stride: Any) -> Any:
            return TwoTensor(inner["a"], inner["b"])

        def __repr__(self, *, tensor_contents: Any = None) -> str:
            return f"TwoTensor({self.a}, {self.b})"

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            sides = []
            for name in ("a", "b"):

                def side(x: Any, name: str = name) -> Any:
                    return getattr(x, name) if isinstance(x, cls) else x

                sides.append(func(*tree_map(side, args), **tree_map(side, kwargs or {})))
            paired = isinstance(sides[0], library.Tensor)
            out = TwoTensor(*sides) if paired else sides[0]
            return dispatch.return_and_correct_aliasing(func, args, kwargs or {}, out)

    class Unit(library.Tensor):
        """Carries a unit through the functions: products join, sums must agree."""

        unit: str

        @classmethod
        def of(cls, data: Any, unit: str) -> Any:
            x = library.tensor(data).as_subclass(cls)
            x.unit = unit
            return x

        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            units = [a.unit for a in args if isinstance(a, cls) and hasattr(a, "unit")]
            if name_of(func) in ("add", "sub") and len(set(units)) > 1:
                raise ValueError(f"{units[0]} and {units[1]} do not add up.")
            result = super().__torch_function__(func, types, args, kwargs or {})
            if isinstance(result, cls) and name_of(func) in ("mul", "add", "sub", "sum"):
                result.unit = "*".join(units) if name_of(func) == "mul" else units[0]
            return result

    return SimpleNamespace(
        FunctionLog=FunctionLog,
        OperatorLog=OperatorLog,
        LoggingTensor=LoggingTensor,
        TwoTensor=TwoTensor,
        Unit=Unit,
        FlopCounter=library.utils.flop_counter.FlopCounterMode,
        FunctionMode=library.overrides.TorchFunctionMode,
        DispatchMode=dispatch.TorchDispatchMode,
    )


CLASSES = {name: classes(library) for name, library in LIBRARIES.items()}
