"""Plans of what each rank writes: nested state dicts, replicated tensors and pieces of global ones."""

from __future__ import annotations

import dataclasses
import io
import logging
from collections import ChainMap
from typing import Any

import mica
from mica._C import Tensor
from mica.distributed.checkpoint import _boxes
from mica.distributed.checkpoint._nested_dict import FLATTEN_MAPPING, flatten_state_dict
from mica.distributed.checkpoint._shares import shared_out
from mica.distributed.checkpoint.metadata import (
    STATE_DICT_TYPE,
    BytesStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorStorageMetadata,
)
from mica.distributed.checkpoint.planner import SavePlan, SavePlanner, WriteItem, WriteItemType
from mica.distributed.checkpoint.planner_helpers import _create_write_items, find_state_dict_object

logger = logging.getLogger(__name__)


class DefaultSavePlanner(SavePlanner):
    """Saves nested state dicts; what several ranks have is written by one of them, in equal shares.

    As `torch.distributed.checkpoint.DefaultSavePlanner`.

    Args:
        flatten_state_dict (bool): Dicts and lists within the state dict are keys of their own, joined by dots.
            Default: True.
        flatten_sharded_tensors (bool): Taken and not used. Default: True.
        dedup_replicated_tensors (bool, optional): Taken and not used. Default: None.
        dedup_save_to_lowest_rank (bool): The lowest of the ranks that have a value writes it. Default: False.
        enable_plan_caching (bool): Taken and not used: each save plans anew. Default: False.

    Example:
        >>> planner = mica.distributed.checkpoint.DefaultSavePlanner()
        >>> planner.set_up_planner({"model": {"weight": mica.ones(2)}})
        >>> [item.index.fqn for item in planner.create_local_plan().items]
        ['model.weight']
    """

    mappings: FLATTEN_MAPPING

    def __init__(
        self,
        flatten_state_dict: bool = True,
        flatten_sharded_tensors: bool = True,
        dedup_replicated_tensors: bool | None = None,
        dedup_save_to_lowest_rank: bool = False,
        enable_plan_caching: bool = False,
    ) -> None:
        self.flatten_state_dict, self.flatten_sharded_tensors = flatten_state_dict, flatten_sharded_tensors
        self.dedup_save_to_lowest_rank = dedup_save_to_lowest_rank
        self.mappings = {}
        if dedup_replicated_tensors is not None:
            logger.warning(
                "DefaultSavePlanner's argument `dedup_replicated_tensors` has no effect; leave it out."
            )

    def set_up_planner(
        self,
        state_dict: STATE_DICT_TYPE,
        storage_meta: StorageMeta | None = None,
        is_coordinator: bool = False,
    ) -> None:
        """Begins a save, on all ranks.

        Args:
            state_dict (dict): What is saved.
            storage_meta (StorageMeta, optional): Where. Default: None.
            is_coordinator (bool): Whether this rank plans for all. Default: False.
        """
        if self.flatten_state_dict:
            state_dict, self.mappings = flatten_state_dict(state_dict)
        self.state_dict, self.is_coordinator = state_dict, is_coordinator

    def create_local_plan(self) -> SavePlan:
        """Lists what this rank has, on all ranks.

        Returns:
            SavePlan: All of it.
        """
        plan = create_default_local_save_plan(self.state_dict, self.is_coordinator)
        if self.flatten_state_dict:
            plan = dataclasses.replace(plan, planner_data=self.mappings)
        self.plan = plan
        return plan

    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """Decides what each rank writes, on the coordinator.

        Args:
            all_plans (list of SavePlan): The ranks' own, in their order.

        Returns:
            tuple: The list of their plans, and the checkpoint's Metadata.

        Raises:
            ValueError: Chunks overlap or leave a hole, or ranks have something else under one key.
        """
        plans = shared_out(all_plans, self.dedup_save_to_lowest_rank)
        plans, metadata = create_default_global_save_plan(plans)
        if self.flatten_state_dict:
            paths = dict(ChainMap(*(plan.planner_data or {} for plan in all_plans)))
            metadata = dataclasses.replace(metadata, planner_data=paths)
        for key, kept in metadata.state_dict_metadata.items():
            if isinstance(kept, TensorStorageMetadata) and (fault := _boxes.fault(kept.size, kept.chunks)):
                raise ValueError(f"The tensor of the key ({key}) {fault}.")
        self.global_plan, self.metadata = plans, metadata
        return plans, metadata

    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """Takes the coordinator's plan, on all ranks.

        Args:
            new_plan (SavePlan): This rank's.

        Returns:
            SavePlan: What it writes.
        """
        self.plan = new_plan
        return new_plan

    def resolve_data(self, write_item: WriteItem) -> Tensor | io.BytesIO:
        """Gives what is written.

        Args:
            write_item (WriteItem): An item of the plan.

        Returns:
            Tensor or BytesIO: Its tensor, on any device and of any strides, or its bytes.

        Raises:
            TypeError: A value that is no tensor holds what `mica.load` would refuse.
        """
        found: Tensor | io.BytesIO = self.transform_object(write_item, self.lookup_object(write_item.index))
        return found

    def lookup_object(self, index: MetadataIndex) -> Any:
        """Finds a value; a class of one's own may override it.

        Args:
            index (MetadataIndex): Its name.

        Returns:
            Any: What the state dict has.
        """
        return find_state_dict_object(self.state_dict, index)

    def transform_object(self, write_item: WriteItem, object: Any) -> Any:
        """Turns a value into what is written; a class of one's own may override it.

        Args:
            write_item (WriteItem): An item of the plan.
            object (Any): What `lookup_object` found.

        Returns:
            Tensor or BytesIO: The tensor itself, or the bytes of `mica.save`.

        Raises:
            TypeError: A value that is no tensor holds what `mica.load` would refuse.
        """
        if write_item.type != WriteItemType.BYTE_IO:
            return object
        return _packed(write_item.index.fqn, object)


def _packed(key: str, value: Any) -> io.BytesIO:
    """A value as mica.save writes it, of which mica.load reads all."""
    packed = io.BytesIO()
    try:
        mica.save(value, packed)
    except Exception as error:  # what pickling raises is up to the value's class
        raise TypeError(
            f"The value of the key ({key}), of type ({type(value).__name__}), cannot be saved: {error}"
        ) from error
    packed.seek(0)
    refused = mica.serialization.get_unsafe_globals_in_checkpoint(packed)
    if refused:
        raise TypeError(
            f"The value of the key ({key}) needs ({', '.join(refused)}), which loading would refuse; save its state_dict() "
            "or plain values, or allow the class by mica.serialization.add_safe_globals() here and where it is loaded."
        )
    packed.seek(0)
    return packed


def create_default_local_save_plan(state_dict: dict[str, Any], is_coordinator: bool) -> SavePlan:
    """Lists what this rank has of a flat state dict.

    As `torch.distributed.checkpoint.default_planner.create_default_local_save_plan`. Empty pieces of tensors that are
    not empty are left out.

    Args:
        state_dict (dict): Tensors, pieces of them and other values.
        is_coordinator (bool): Taken and not used.

    Returns:
        SavePlan: An item for each.

    Example:
        >>> from mica.distributed.checkpoint.default_planner import create_default_local_save_plan
        >>> [item.type.name for item in create_default_local_save_plan({"x": mica.ones(2), "epoch": 1}, True).items]
        ['TENSOR', 'BYTE_IO']
    """
    items = [item for key, value in state_dict.items() for item in _create_write_items(key, value)]
    return SavePlan(
        [i for i in items if i.tensor_data is None or i.tensor_storage_size() or 0 in i.tensor_data.size]
    )


def create_default_global_save_plan(
    all_plans: list[SavePlan], rewrite_index_hints: bool = True
) -> tuple[list[SavePlan], Metadata]:
    """Makes the checkpoint's Metadata of what all ranks write.

    As `torch.distributed.checkpoint.default_planner.create_default_global_save_plan`.

    Args:
        all_plans (list of SavePlan): What each writes.
        rewrite_index_hints (bool): Gives each chunk its place in the list of its tensor's. Default: True.

    Returns:
        tuple: The plans, and the Metadata.

    Raises:
        ValueError: Ranks have something else under one key.

    Example:
        >>> from mica.distributed.checkpoint import default_planner
        >>> plan = default_planner.create_default_local_save_plan({"x": mica.ones(2)}, True)
        >>> default_planner.create_default_global_save_plan([plan])[1].state_dict_metadata["x"].size
        mica.Size([2])
    """
    kept: dict[str, Any] = {}
    new_plans = []
    for rank, plan in enumerate(all_plans):
        items = []
        for item in plan.items:
            place = _add(kept, item, rank)
            if rewrite_index_hints and place is not None:
                item = dataclasses.replace(item, index=dataclasses.replace(item.index, index=place))
            items.append(item)
        new_plans.append(dataclasses.replace(plan, items=items))
    return new_plans, Metadata(kept)


def _add(kept: dict[str, Any], item: WriteItem, rank: int) -> int | None:
    """Adds an item to what the checkpoint holds: the place of its chunk, if it has one."""
    key, data = item.index.fqn, item.tensor_data
    if data is None:
        kind = item.type.name.lower()
        if item.type != WriteItemType.BYTE_IO or key in kept:
            raise ValueError(
                f"Rank ({rank}) has a value ({kind}) under the key ({key}), and another rank a tensor."
            )
        kept[key] = BytesStorageMetadata()
        return None
    found = kept.setdefault(key, TensorStorageMetadata(data.properties, data.size, []))
    if isinstance(found, BytesStorageMetadata):
        raise ValueError(
            f"Rank ({rank}) has a tensor under the key ({key}), and another rank a value that is none."
        )
    if (found.size, found.properties.dtype) != (data.size, data.properties.dtype):
        raise ValueError(
            f"Rank ({rank}) has a tensor of the global shape {list(data.size)} and ({data.properties.dtype}) under the "
            f"key ({key}), and another rank one of {list(found.size)} and ({found.properties.dtype})."
        )
    found.chunks.append(data.chunk)
    return len(found.chunks) - 1
