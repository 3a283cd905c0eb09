"""What is written of an object, and what is read for one."""

from __future__ import annotations

import bisect
from collections.abc import Callable
from typing import Any

import mica
from mica._C import Tensor
from mica.distributed._checkpointable import _Checkpointable
from mica.distributed.checkpoint import _boxes
from mica.distributed.checkpoint.metadata import (
    STORAGE_TYPES,
    BytesStorageMetadata,
    ChunkStorageMetadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
)
from mica.distributed.checkpoint.planner import (
    LoadItemType,
    LoadPlanner,
    ReadItem,
    TensorWriteData,
    WriteItem,
    WriteItemType,
)

__all__ = ["create_read_items_for_chunk_list"]

_VALUE = mica.Size([0])  # the offsets and lengths of a value that is no tensor


def _whole(tensor: Tensor) -> ChunkStorageMetadata:
    return ChunkStorageMetadata(mica.Size([0] * tensor.dim()), mica.Size(tensor.shape))


def _create_write_items(fqn: str, object: Any) -> list[WriteItem]:
    """What this rank has of an object."""
    if isinstance(object, _Checkpointable):
        return object.__create_write_items__(fqn, object)
    if not isinstance(object, Tensor):
        return [WriteItem(MetadataIndex(fqn), WriteItemType.BYTE_IO)]
    if object.layout != mica.strided or object.device.type == "meta":
        raise ValueError(
            f"The tensor of the key ({fqn}) has the layout ({object.layout}) on the device ({object.device}); checkpoints "
            "hold strided tensors that have memory."
        )
    chunk = _whole(object)
    data = TensorWriteData(chunk, TensorProperties.create_from_tensor(object), chunk.sizes)
    return [WriteItem(MetadataIndex(fqn, chunk.offsets), WriteItemType.TENSOR, tensor_data=data)]


def _create_chunk_list(fqn: str, object: Any) -> list[ChunkStorageMetadata]:
    """The boxes that this rank wants of an object."""
    if isinstance(object, _Checkpointable):
        return object.__create_chunk_list__()
    if isinstance(object, Tensor):
        return [_whole(object)]
    raise ValueError(
        f"The checkpoint has a tensor for the key ({fqn}), and the state dict a value of type "
        f"({type(object).__name__}); give a tensor of its shape."
    )


def _create_read_items(fqn: str, md: STORAGE_TYPES, obj: Any) -> list[ReadItem]:
    """What is read for an object."""
    if isinstance(md, BytesStorageMetadata):
        index = MetadataIndex(fqn)
        return [ReadItem(LoadItemType.BYTE_IO, index, _VALUE, index, _VALUE, _VALUE)]
    return create_read_items_for_chunk_list(fqn, md, _create_chunk_list(fqn, obj))


def create_read_items_for_chunk_list(
    fqn: str, checkpoint_md: TensorStorageMetadata, local_chunks: list[ChunkStorageMetadata]
) -> list[ReadItem]:
    """Lists the boxes that fill some chunks of a tensor from those of the checkpoint.

    As `torch.distributed.checkpoint.planner_helpers.create_read_items_for_chunk_list`.

    Args:
        fqn (str): The key.
        checkpoint_md (TensorStorageMetadata): What the checkpoint has of it.
        local_chunks (list of ChunkStorageMetadata): What is wanted.

    Returns:
        list of ReadItem: One for each pair of chunks that overlap.

    Example:
        >>> from mica.distributed.checkpoint import ChunkStorageMetadata, TensorStorageMetadata
        >>> from mica.distributed.checkpoint.metadata import TensorProperties
        >>> from mica.distributed.checkpoint.planner_helpers import create_read_items_for_chunk_list
        >>> halves = [ChunkStorageMetadata(mica.Size([i]), mica.Size([3])) for i in (0, 3)]
        >>> saved = TensorStorageMetadata(TensorProperties(), mica.Size([6]), halves)
        >>> last = ChunkStorageMetadata(mica.Size([4]), mica.Size([2]))
        >>> [(i.storage_index.offset, i.storage_offsets) for i in create_read_items_for_chunk_list("x", saved, [last])]
        [(mica.Size([3]), mica.Size([1]))]
    """
    saved = checkpoint_md.chunks
    along = _boxes.most_cut(len(checkpoint_md.size), saved)
    order = (
        range(len(saved))
        if along is None
        else sorted(range(len(saved)), key=lambda i: saved[i].offsets[along])
    )
    begins = [0 if along is None else saved[i].offsets[along] for i in order]
    # Chunks that end before another one begins are few behind it: the longest says how far to look back.
    longest = 0 if along is None else max((c.sizes[along] for c in saved), default=0)
    items = []
    for place, local in enumerate(local_chunks):
        first, last = 0, len(begins)
        if along is not None:
            first = bisect.bisect_left(begins, local.offsets[along] - longest)
            last = bisect.bisect_left(begins, local.offsets[along] + local.sizes[along])
        for i in order[first:last]:
            shared = _boxes.overlap(local, saved[i])
            if shared is not None:
                items.append(_read_item(fqn, local, place, saved[i], i, shared))
    return items


def _read_item(
    fqn: str,
    local: ChunkStorageMetadata,
    local_place: int,
    saved: ChunkStorageMetadata,
    saved_place: int,
    shared: _boxes.Overlap,
) -> ReadItem:
    return ReadItem(
        LoadItemType.TENSOR,
        MetadataIndex(fqn, local.offsets, local_place),
        mica.Size(shared.in_one),
        MetadataIndex(fqn, saved.offsets, saved_place),
        mica.Size(shared.in_other),
        mica.Size(shared.lengths),
    )


def find_state_dict_object(state_dict: dict[str, Any], index: MetadataIndex) -> Any:
    """The value of a state dict that an index names; of a tensor in pieces the piece."""
    if index.fqn not in state_dict:
        raise ValueError(f"The state dict has no key ({index.fqn}).")
    found = state_dict[index.fqn]
    if isinstance(found, _Checkpointable):
        return found.__get_tensor_shard__(index)
    whole = isinstance(found, Tensor) and index.offset == mica.Size([0] * found.dim())
    if index.offset is not None and not whole:
        raise ValueError(
            f"The value of the key ({index.fqn}) is of type ({type(found).__name__}) and no piece of a tensor, which "
            f"would have an offset {list(index.offset)}."
        )
    return found


def target_of(planner: LoadPlanner, item: ReadItem) -> Tensor:
    """The tensor that a box is read into, which must have its shape."""
    target = planner.resolve_tensor(item).detach()
    if tuple(target.shape) != tuple(item.lengths):
        raise ValueError(
            f"The planner gives a tensor of the shape {list(target.shape)} for a box of {list(item.lengths)} of the key "
            f"({item.dest_index.fqn})."
        )
    return target


def _init_state_dict(value: Any) -> Any:
    """Gives tensors on `meta` memory on the CPU, in place within dicts."""
    return _mapped(value, lambda t: mica.empty_like(t, device="cpu") if t.device.type == "meta" else t)


def _mapped(value: Any, f: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(value, Tensor) and not isinstance(value, _Checkpointable):
        return f(value)
    if isinstance(value, dict):
        for key, inner in value.items():
            value[key] = _mapped(inner, f)
    elif type(value) in (list, tuple):
        return type(value)(_mapped(inner, f) for inner in value)
    return value
