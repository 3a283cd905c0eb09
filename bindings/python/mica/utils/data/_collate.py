"""Samples to batches: default_collate(), default_convert(), and the registry that others extend.

In a worker process tensors are stacked straight into memory that the main process sees.
"""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import mica
from mica._C import Tensor
from mica.utils.data import _workers

np_str_obj_array_pattern = re.compile(r"[SaUO]")  # kinds of NumPy's dtypes that no tensor has


def _rebuilt(container: Any, items: list[Any]) -> Any:
    """A container like another with these items; a list where its type cannot be made of them."""
    try:
        if isinstance(container, MutableSequence):
            clone: Any = copy.copy(container)
            for i, item in enumerate(items):
                clone[i] = item
            return clone
        return type(container)(items)
    except TypeError:
        return items


def _remapped(container: Any, items: dict[Any, Any]) -> Any:
    try:
        if isinstance(container, MutableMapping):
            clone: Any = copy.copy(container)
            clone.update(items)
            return clone
        return type(container)(items)
    except TypeError:
        return items


def collate(batch: Any, *, collate_fn_map: dict[Any, Callable[..., Any]] | None = None) -> Any:
    """Joins a list of samples to a batch, by a function for each type that is in a map.

    As `torch.utils.data._utils.collate.collate`. Dicts, lists, tuples and named tuples are gone
    through element by element; a type outside the map that is no container is refused.

    Args:
        batch (sequence): The samples, at least one and all alike.
        collate_fn_map (dict, optional): From a type, or a tuple of types, to the function that joins
            samples of it; it is called as `function(batch, collate_fn_map=collate_fn_map)`. A type itself goes
            before the types that it is derived from. Default: None, no type.

    Returns:
        Any: The batch. A tuple's becomes a list, other containers keep their type.

    Raises:
        TypeError: The samples' type is neither in the map nor a container.
        RuntimeError: Samples have different numbers of parts.

    Example:
        >>> from mica.utils.data import default_collate_fn_map
        >>> def together(batch, *, collate_fn_map=None):
        ...     return mica.cat(batch)
        >>> samples = [mica.tensor([1, 2]), mica.tensor([3])]
        >>> mica.utils.data.collate(samples, collate_fn_map={**default_collate_fn_map, mica.Tensor: together})
        tensor([1, 2, 3])
    """
    first = batch[0]
    known = collate_fn_map or {}
    if type(first) in known:
        return known[type(first)](batch, collate_fn_map=collate_fn_map)
    for kind, function in known.items():
        if isinstance(first, kind):
            return function(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, Mapping):
        joined = {
            key: collate([sample[key] for sample in batch], collate_fn_map=collate_fn_map) for key in first
        }
        return _remapped(first, joined)
    if isinstance(first, Sequence):
        _check_lengths(batch)
        columns = [collate(column, collate_fn_map=collate_fn_map) for column in zip(*batch)]
        if isinstance(first, tuple):
            return type(first)(*columns) if hasattr(first, "_fields") else columns
        return _rebuilt(first, columns)
    raise TypeError(
        f"Samples of type ({type(first).__name__}) cannot be joined to a batch; expected tensors, NumPy arrays, "
        "numbers, strings, dicts, lists or tuples. Pass DataLoader a collate_fn that joins yours."
    )


def _check_lengths(batch: Any) -> None:
    odd = next((i for i, sample in enumerate(batch) if len(sample) != len(batch[0])), None)
    if odd is not None:
        raise RuntimeError(
            f"Sample ({odd}) of a batch has {len(batch[odd])} parts and sample (0) has {len(batch[0])}; in a batch each "
            "element should be of equal size. Give all samples the same parts, or pass DataLoader a collate_fn that "
            "joins yours."
        )


def collate_tensor_fn(batch: Any, *, collate_fn_map: Any = None) -> Tensor:
    """Tensors of one shape stacked."""
    first = batch[0]
    for i, sample in enumerate(batch):
        if isinstance(sample, Tensor) and sample.shape != first.shape:
            raise RuntimeError(
                f"Sample ({i}) of a batch has the shape {list(sample.shape)} and sample (0) has {list(first.shape)}; "
                "a batch stacks tensors of one shape (stack expects each tensor to be equal size). Pad or cut them in "
                "the dataset, or pass DataLoader a collate_fn that joins yours."
            )
    shareable = _workers.get_worker_info() is not None and first.device.type == "cpu"
    if not shareable or any(t.requires_grad or t.dtype != first.dtype for t in batch):
        return mica.stack(list(batch))
    from mica._memory import shared as _shared_memory

    out = _shared_memory.empty((len(batch), *first.shape), first.dtype)
    return mica.stack(list(batch), out=out)


def collate_numpy_array_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """NumPy arrays as tensors, stacked."""
    if np_str_obj_array_pattern.search(batch[0].dtype.str):
        raise TypeError(
            f"Arrays of dtype ({batch[0].dtype}) cannot be joined to a batch; expected numbers. Pass DataLoader a "
            "collate_fn that joins yours."
        )
    return collate([mica.as_tensor(sample) for sample in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: Any, *, collate_fn_map: Any = None) -> Tensor:
    """NumPy numbers as one tensor."""
    import numpy as np

    return mica.as_tensor(np.array(batch))


def collate_float_fn(batch: Any, *, collate_fn_map: Any = None) -> Tensor:
    """Floats as one tensor of doubles."""
    return mica.tensor(list(batch), dtype=mica.float64)


def collate_int_fn(batch: Any, *, collate_fn_map: Any = None) -> Tensor:
    """Integers as one tensor."""
    return mica.tensor(list(batch))


def collate_str_fn(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Texts as they are."""
    return batch


default_collate_fn_map: dict[Any, Callable[..., Any]] = {
    Tensor: collate_tensor_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def _add_numpy() -> None:
    """Adds NumPy's types to the map, before float: np.float64 is one."""
    import numpy as np

    added: dict[Any, Any] = {np.ndarray: collate_numpy_array_fn}
    added[(np.bool_, np.number)] = collate_numpy_scalar_fn
    rest = dict(default_collate_fn_map)
    default_collate_fn_map.clear()
    default_collate_fn_map.update(added | rest)


def default_collate(batch: Any) -> Any:
    """Joins a list of samples to a batch, as a `DataLoader` does without a `collate_fn`.

    As `torch.utils.data.default_collate`. Tensors and NumPy arrays of one shape are stacked along a new
    first dimension, ints become an int64 tensor, floats a float64 one. Texts stay a list. Dicts,
    lists and tuples are joined element by element.

    Args:
        batch (sequence): The samples, at least one and all alike.

    Returns:
        Any: The batch. A tuple's becomes a list, other containers keep their type.

    Raises:
        TypeError: The samples are of another type, None for instance.
        RuntimeError: Tensors of different shapes, or samples with different numbers of parts.

    Example:
        >>> mica.utils.data.default_collate([mica.tensor([1, 2]), mica.tensor([3, 4])])
        tensor([[1, 2],
                [3, 4]])
        >>> mica.utils.data.default_collate([{"size": 3, "name": "a"}, {"size": 4, "name": "b"}])
        {'size': tensor([3, 4]), 'name': ['a', 'b']}
    """
    if "numpy" in sys.modules and collate_numpy_array_fn not in default_collate_fn_map.values():
        _add_numpy()
    return collate(batch, collate_fn_map=default_collate_fn_map)


def default_convert(data: Any) -> Any:
    """Makes tensors of the NumPy arrays and numbers in one sample, as a `DataLoader` with `batch_size=None` does.

    As `torch.utils.data.default_convert`. Python's own numbers and texts stay as they are.

    Args:
        data (Any): The sample; dicts, lists and tuples are gone through.

    Returns:
        Any: The sample. A tuple's becomes a list, other containers keep their type.

    Example:
        >>> import numpy as np
        >>> mica.utils.data.default_convert({"x": np.ones(2), "name": "a"})
        {'x': tensor([1., 1.], dtype=mica.float64), 'name': 'a'}
    """
    if isinstance(data, Tensor):
        return data
    if type(data).__module__ == "numpy":
        kind = getattr(getattr(data, "dtype", None), "kind", "O")
        return data if kind in "SUO" else mica.as_tensor(data)
    if isinstance(data, Mapping):
        return _remapped(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple):
        items = [default_convert(item) for item in data]
        return type(data)(*items) if hasattr(data, "_fields") else items
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _rebuilt(data, [default_convert(item) for item in data])
    return data


def pin(batch: Any) -> Any:
    """The batch with its tensors in pinned memory, in dicts, lists and tuples too; an object with a
    method pin_memory decides for itself."""
    if hasattr(batch, "pin_memory"):
        return batch.pin_memory()
    if isinstance(batch, Mapping):
        return _remapped(batch, {key: pin(value) for key, value in batch.items()})
    if isinstance(batch, tuple):
        items = [pin(item) for item in batch]
        return type(batch)(*items) if hasattr(batch, "_fields") else type(batch)(items)
    if isinstance(batch, Sequence) and not isinstance(batch, (str, bytes)):
        return _rebuilt(batch, [pin(item) for item in batch])
    return batch
