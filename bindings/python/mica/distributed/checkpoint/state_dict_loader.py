"""Loading a checkpoint by all ranks together, whatever ranks have saved it."""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Callable
from typing import Any

from mica.distributed._group import ProcessGroup
from mica.distributed.checkpoint._load_planner import DefaultLoadPlanner, _EmptyStateDictLoadPlanner
from mica.distributed.checkpoint._ranks import Ranks
from mica.distributed.checkpoint._storage_choice import storage_of
from mica.distributed.checkpoint.metadata import StorageMeta
from mica.distributed.checkpoint.planner import LoadPlan, LoadPlanner
from mica.distributed.checkpoint.state_dict_saver import warn_alone
from mica.distributed.checkpoint.stateful import Stateful
from mica.distributed.checkpoint.storage import StorageReader

__all__ = ["load", "load_state_dict"]


def load_state_dict(
    state_dict: dict[str, Any],
    storage_reader: StorageReader,
    process_group: ProcessGroup | None = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: LoadPlanner | None = None,
) -> None:
    """Loads a checkpoint; use `load`, which knows objects with a state.

    As `torch.distributed.checkpoint.load_state_dict`.

    Args:
        state_dict (dict): Tensors, pieces of them and other values, which are replaced in place.
        storage_reader (StorageReader): From where.
        process_group (ProcessGroup, optional): Its ranks load together. Default: None, the default group.
        coordinator_rank (int): The rank that plans. Default: 0.
        no_dist (bool): Loads into this process alone. Default: False.
        planner (LoadPlanner, optional): Default: None, a DefaultLoadPlanner.

    Raises:
        CheckpointException: A rank failed; see `load`.

    Example:
        >>> import tempfile
        >>> checkpoint, state = mica.distributed.checkpoint, {"x": mica.zeros(2)}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     done = checkpoint.save({"x": mica.ones(2)}, checkpoint_id=folder, no_dist=True)
        ...     checkpoint.load_state_dict(state, checkpoint.FileSystemReader(folder), no_dist=True)
        >>> state
        {'x': tensor([1., 1.])}
    """
    warnings.warn("`load_state_dict` is deprecated; use `load`.", FutureWarning, stacklevel=2)

    def begun() -> tuple[StorageReader, dict[str, Any]]:
        storage_reader.reset()
        return storage_reader, state_dict

    _load(begun, Ranks(process_group, no_dist, coordinator_rank), planner)


def load(
    state_dict: dict[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_reader: StorageReader | None = None,
    planner: LoadPlanner | None = None,
    process_group: ProcessGroup | None = None,
    no_dist: bool = False,
) -> None:
    """Loads a checkpoint into a state dict; all ranks of the group call it, with the same keys.

    As `torch.distributed.checkpoint.load`. Each rank reads the boxes that it wants, whatever ranks have saved them.
    Tensors are read into, by floating dtypes with fewer bits as `to()` converts; other values are replaced; an object
    with a state gets its by `load_state_dict()`.

    Args:
        state_dict (dict): As `save` takes, with tensors of the checkpoint's global shapes.
        checkpoint_id (str or path, optional): The folder. Default: None, that of `storage_reader`.
        storage_reader (StorageReader, optional): Default: None, a FileSystemReader.
        planner (LoadPlanner, optional): Default: None, a DefaultLoadPlanner.
        process_group (ProcessGroup, optional): Its ranks load together. Default: None, the default group.
        no_dist (bool): Loads into this process alone. Default: False.

    Raises:
        CheckpointException: A rank failed. It is raised on all ranks, names the rank, and is of the kind of its error
            too: RuntimeError for a key that the checkpoint lacks, for ranks that find different checkpoints, and if
            neither a folder nor a reader is given; ValueError for another shape, a dtype that does not hold the
            checkpoint's (of another kind, or integers with fewer values) and damaged files; FileNotFoundError for
            missing ones.

    Example:
        >>> import tempfile
        >>> checkpoint, folder = mica.distributed.checkpoint, tempfile.TemporaryDirectory()
        >>> saved, other = mica.nn.Linear(2, 2), mica.nn.Linear(2, 2)
        >>> done = checkpoint.save({"model": saved, "epoch": 3}, checkpoint_id=folder.name, no_dist=True)
        >>> state = {"model": other, "epoch": 0}
        >>> checkpoint.load(state, checkpoint_id=folder.name, no_dist=True)
        >>> state["epoch"], mica.equal(saved.weight, other.weight)
        (3, True)
        >>> folder.cleanup()
    """
    warn_alone(no_dist, process_group, "load")
    objects = dict(sorted(state_dict.items(), key=lambda item: str(item[0])))
    states: dict[str, Any] = {}

    def begun() -> tuple[StorageReader, dict[str, Any]]:
        states.update(
            (key, one.state_dict() if isinstance(one, Stateful) else one) for key, one in objects.items()
        )
        return storage_of(storage_reader, checkpoint_id, reader=True), states

    _load(begun, Ranks(process_group, no_dist), planner)
    for key, one in objects.items():
        if isinstance(one, Stateful):
            one.load_state_dict(states[key])
        else:
            state_dict[key] = states[key]


def _load(
    begun: Callable[[], tuple[StorageReader, dict[str, Any]]], ranks: Ranks, planner: LoadPlanner | None
) -> None:
    """Loads from where `begun()` says into what it gives."""
    plans = DefaultLoadPlanner() if planner is None else planner
    reader: StorageReader

    def local_plan() -> tuple[LoadPlan, StorageMeta | None]:
        nonlocal reader
        reader, state_dict = begun()
        metadata = reader.read_metadata()
        plans.set_up_planner(state_dict, metadata, ranks.is_coordinator)
        told = {"rank": ranks.rank, "use_collectives": True}
        takes_all = "kwargs" in inspect.signature(reader.set_up_storage_reader).parameters
        reader.set_up_storage_reader(metadata, ranks.is_coordinator, **(told if takes_all else {}))
        return reader.prepare_local_plan(plans.create_local_plan()), metadata.storage_meta

    def global_plan(found: list[tuple[LoadPlan, StorageMeta | None]]) -> list[LoadPlan]:
        _check_one([storage_meta for _, storage_meta in found])
        return reader.prepare_global_plan(plans.create_global_plan([plan for plan, _ in found]))

    plan = ranks.reduce_scatter("plan", local_plan, global_plan)
    ranks.all_done("read", lambda: reader.read_data(plans.finish_plan(plan), plans).wait())


def _check_one(found: list[StorageMeta | None]) -> None:
    """Refuses to load where ranks have read the metadata of different saves."""
    saves = [None if meta is None else meta.save_id for meta in found]
    other = next((rank for rank, save in enumerate(saves) if save != saves[0]), None)
    if other is not None:
        places = [None if meta is None else meta.checkpoint_id for meta in found]
        raise RuntimeError(
            f"The ranks find different checkpoints: rank (0) finds the save ({saves[0]}) in ({places[0]}), and rank "
            f"({other}) the save ({saves[other]}) in ({places[other]}). Load again if another program saved meanwhile; for "
            "a checkpoint of each rank's own use no_dist=True."
        )


def _load_state_dict(
    state_dict: dict[str, Any],
    storage_reader: StorageReader,
    process_group: ProcessGroup | None = None,
    coordinator_rank: int = 0,
    no_dist: bool = False,
    planner: LoadPlanner | None = None,
) -> None:
    """What load_state_dict does, under the name by which programs call it without a warning."""
    _load(lambda: (storage_reader, state_dict), Ranks(process_group, no_dist, coordinator_rank), planner)


def _load_state_dict_from_keys(
    keys: set[str] | str | None = None,
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_reader: StorageReader | None = None,
    process_group: ProcessGroup | None = None,
) -> dict[str, Any]:
    """A new state dict of what a checkpoint has, or of some of its keys; each rank gets all of it."""
    found: dict[str, Any] = {}
    planner = _EmptyStateDictLoadPlanner(keys={keys} if isinstance(keys, str) else keys)

    def begun() -> tuple[StorageReader, dict[str, Any]]:
        return storage_of(storage_reader, checkpoint_id, reader=True), found

    _load(begun, Ranks(process_group, no_dist=False), planner)
    return found
