"""Plans of what each rank reads: the boxes that it wants, from whatever boxes a checkpoint has."""

from __future__ import annotations

import io
from typing import Any

import mica
from mica._C import Tensor
from mica.distributed.checkpoint import _boxes
from mica.distributed.checkpoint._nested_dict import FLATTEN_MAPPING, flatten_state_dict, set_element
from mica.distributed.checkpoint.metadata import (
    STATE_DICT_TYPE,
    Metadata,
    MetadataIndex,
    TensorStorageMetadata,
)
from mica.distributed.checkpoint.planner import LoadPlan, LoadPlanner, ReadItem
from mica.distributed.checkpoint.planner_helpers import (
    _create_read_items,
    _init_state_dict,
    find_state_dict_object,
)


class DefaultLoadPlanner(LoadPlanner):
    """Loads nested state dicts; each rank reads the boxes that it wants.

    As `torch.distributed.checkpoint.DefaultLoadPlanner`.

    Args:
        flatten_state_dict (bool): As it was for saving. Default: True.
        flatten_sharded_tensors (bool): Taken and not used. Default: True.
        allow_partial_load (bool): Keys that the checkpoint lacks stay as they are. Default: False.

    Example:
        >>> planner = mica.distributed.checkpoint.DefaultLoadPlanner(allow_partial_load=True)
        >>> planner.set_up_planner({"weight": mica.ones(2)}, mica.distributed.checkpoint.Metadata({}))
        >>> planner.create_local_plan().items
        []
    """

    original_state_dict: STATE_DICT_TYPE
    mappings: FLATTEN_MAPPING

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        allow_partial_load: bool = False,
    ) -> None:
        self.flatten_state_dict, self.flatten_sharded_tensors = flatten_state_dict, flatten_sharded_tensors
        self.allow_partial_load = allow_partial_load
        self.original_state_dict, self.mappings = {}, {}

    def set_up_planner(
        self, state_dict: STATE_DICT_TYPE, metadata: Metadata | None = None, is_coordinator: bool = False
    ) -> None:
        """Begins a load, on all ranks; tensors on `meta` get memory on the CPU.

        Args:
            state_dict (dict): What is read into.
            metadata (Metadata, optional): What the checkpoint holds. Default: None.
            is_coordinator (bool): Whether this rank plans for all. Default: False.
        """
        _init_state_dict(state_dict)
        self.original_state_dict = state_dict
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict, self.metadata, self.is_coordinator = state_dict, metadata, is_coordinator

    def create_local_plan(self) -> LoadPlan:
        """Lists what this rank reads, on all ranks.

        Returns:
            LoadPlan: All of it.

        Raises:
            RuntimeError: The checkpoint lacks a key.
            ValueError: A tensor has another shape there, or a dtype that this one does not hold: of another kind, or
                integers with more values.
        """
        assert self.metadata is not None, "set_up_planner was given no metadata"
        return create_default_local_load_plan(self.state_dict, self.metadata, not self.allow_partial_load)

    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """Leaves the ranks' plans as they are.

        Args:
            global_plan (list of LoadPlan): The ranks' own, in their order.

        Returns:
            list of LoadPlan: The same.
        """
        return create_default_global_load_plan(global_plan)

    def finish_plan(self, new_plan: LoadPlan) -> LoadPlan:
        """Takes the coordinator's plan, on all ranks.

        Args:
            new_plan (LoadPlan): This rank's.

        Returns:
            LoadPlan: What it reads.
        """
        return new_plan

    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Puts a value that is no tensor into the state dict.

        Args:
            read_item (ReadItem): An item of the plan.
            value (BytesIO): What `mica.save` wrote.
        """
        key = read_item.dest_index.fqn
        loaded = mica.load(value, weights_only=True)
        if self.flatten_state_dict:
            set_element(self.original_state_dict, self.mappings[key], loaded)
        else:
            self.state_dict[key] = loaded

    def resolve_tensor(self, read_item: ReadItem) -> Tensor:
        """Gives the tensor that a box is read into.

        Args:
            read_item (ReadItem): An item of the plan.

        Returns:
            Tensor: A view of the shape `read_item.lengths`.
        """
        return self.transform_tensor(read_item, self.lookup_tensor(read_item.dest_index))

    def commit_tensor(self, read_item: ReadItem, tensor: Tensor) -> None:
        """Does nothing: the box was read into the state dict's memory.

        Args:
            read_item (ReadItem): An item of the plan.
            tensor (Tensor): What `resolve_tensor` gave.
        """

    def lookup_tensor(self, index: MetadataIndex) -> Tensor:
        """Finds a tensor; a class of one's own may override it.

        Args:
            index (MetadataIndex): Its name.

        Returns:
            Tensor: What the state dict has, or the piece of it.
        """
        found: Tensor = find_state_dict_object(self.state_dict, index)
        return found

    def transform_tensor(self, read_item: ReadItem, tensor: Tensor) -> Tensor:
        """Narrows a tensor to the box; a class of one's own may override it.

        Args:
            read_item (ReadItem): An item of the plan.
            tensor (Tensor): What `lookup_tensor` found.

        Returns:
            Tensor: A view of it.
        """
        view = tensor.detach()
        for dim, (offset, length) in enumerate(zip(read_item.dest_offsets, read_item.lengths)):
            view = view.narrow(dim, offset, length)
        return view


class _EmptyStateDictLoadPlanner(DefaultLoadPlanner):
    """Loads into an empty dict all that a checkpoint has, or the keys that are named or begin with what is named."""

    def __init__(self, keys: Any = None, *args: Any, **kwargs: Any) -> None:
        self.keys = keys
        super().__init__(*args, **kwargs)

    def _wants(self, key: str, path: tuple[str | int, ...]) -> bool:
        above = (".".join(map(str, path[: i + 1])) for i in range(len(path)))
        return self.keys is None or key in self.keys or any(prefix in self.keys for prefix in above)

    def set_up_planner(
        self, state_dict: STATE_DICT_TYPE, metadata: Metadata | None = None, is_coordinator: bool = False
    ) -> None:
        if state_dict or metadata is None:
            raise ValueError(
                f"_EmptyStateDictLoadPlanner fills an empty dict from a checkpoint; this one has ({len(state_dict)}) keys."
            )
        self.original_state_dict, self.state_dict, self.mappings = state_dict, {}, {}
        self.metadata, self.is_coordinator = metadata, is_coordinator
        for key, kept in metadata.state_dict_metadata.items():
            path = (metadata.planner_data or {}).get(key, (key,))
            if self._wants(key, path):
                value = None
                if isinstance(kept, TensorStorageMetadata):
                    value = mica.empty(kept.size, dtype=kept.properties.dtype)
                set_element(state_dict, path, value)
                self.state_dict[key], self.mappings[key] = value, path


def create_default_local_load_plan(
    state_dict: dict[str, Any], metadata: Metadata, strict: bool = True
) -> LoadPlan:
    """Lists what this rank reads for a flat state dict.

    As `torch.distributed.checkpoint.default_planner.create_default_local_load_plan`.

    Args:
        state_dict (dict): Tensors, pieces of them and other values.
        metadata (Metadata): What the checkpoint holds.
        strict (bool): Refuses keys that it lacks. Default: True.

    Returns:
        LoadPlan: An item for each box.

    Raises:
        RuntimeError: The checkpoint lacks a key.
        ValueError: A tensor has another shape there, or a dtype that this one does not hold: of another kind, or
            integers with more values.

    Example:
        >>> from mica.distributed.checkpoint import Metadata, default_planner
        >>> default_planner.create_default_local_load_plan({"x": mica.ones(2)}, Metadata({}), strict=False).items
        []
    """
    items = []
    for key, value in state_dict.items():
        kept = metadata.state_dict_metadata.get(key)
        if kept is not None:
            if isinstance(kept, TensorStorageMetadata):
                _check_fit(key, value, kept, metadata)
            items += _create_read_items(key, kept, value)
        elif strict:
            there = sorted(metadata.state_dict_metadata)
            raise RuntimeError(
                f"Missing key in checkpoint state_dict: {key}. {_place(metadata)} has ({len(there)}) keys: "
                f"{', '.join(there[:5])}{', ...' * (len(there) > 5)}."
            )
    return LoadPlan(items)


def _place(metadata: Metadata) -> str:
    where = None if metadata.storage_meta is None else metadata.storage_meta.checkpoint_id
    return "The checkpoint" if where is None else f"The checkpoint ({where})"


def _check_fit(key: str, value: Any, kept: TensorStorageMetadata, metadata: Metadata) -> None:
    """Refuses a tensor of another shape, and a dtype that does not hold the checkpoint's."""
    size = value.size() if callable(getattr(value, "size", None)) else None
    if size is not None and tuple(size) != tuple(kept.size):
        raise ValueError(
            f"Size mismatch between saved {list(kept.size)} and current {list(size)} for the key ({key}). "
            f"{_place(metadata)} has the first."
        )
    dtype = getattr(value, "dtype", None)
    if dtype is not None and not _holds(dtype, kept.properties.dtype):
        raise ValueError(
            f"{_place(metadata)} has ({kept.properties.dtype}) for the key ({key}), and the state dict ({dtype}), which "
            f"cannot hold its values; load into ({kept.properties.dtype}) and convert."
        )
    if fault := _boxes.fault(kept.size, kept.chunks):
        raise ValueError(f"{_place(metadata)} is damaged: the tensor of the key ({key}) {fault}.")


def _holds(dtype: Any, saved: Any) -> bool:
    """Whether a dtype is of a kind that holds the values of another; of integers, whether it holds each of them."""
    if not mica.can_cast(saved, dtype):
        return False
    if saved == dtype or any(d == mica.bool or d.is_floating_point or d.is_complex for d in (saved, dtype)):
        return True
    into, out = mica.iinfo(dtype), mica.iinfo(saved)
    return bool(into.min <= out.min and out.max <= into.max)


def create_default_global_load_plan(all_plans: list[LoadPlan]) -> list[LoadPlan]:
    """Leaves the ranks' plans as they are.

    As `torch.distributed.checkpoint.default_planner.create_default_global_load_plan`.

    Args:
        all_plans (list of LoadPlan): The ranks' own.

    Returns:
        list of LoadPlan: The same.

    Example:
        >>> mica.distributed.checkpoint.default_planner.create_default_global_load_plan([])
        []
    """
    return all_plans
