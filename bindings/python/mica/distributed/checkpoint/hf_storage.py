"""Models in the layout of Hugging Face: a folder of files in the format safetensors, each with whole tensors."""

from __future__ import annotations

import os
from typing import Any

import mica
from mica.distributed.checkpoint import _safetensors
from mica.distributed.checkpoint._filesystem_reader import FileSystemReader
from mica.distributed.checkpoint._metadata_file import Stored
from mica.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)

__all__ = ["HuggingFaceStorageReader"]


class HuggingFaceStorageReader(FileSystemReader):
    """Reads models in the layout of Hugging Face; ranks read the boxes that they want.

    As `torch.distributed.checkpoint.HuggingFaceStorageReader`, of files with whole tensors. The package safetensors is
    not needed.

    Args:
        path (str): The folder.
        thread_count (int): Taken and not used. Default: 1.

    Example:
        >>> import tempfile
        >>> checkpoint, state = mica.distributed.checkpoint, {"weight": mica.zeros(2)}
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     done = checkpoint.save({"weight": mica.ones(2)}, checkpoint_id=folder, no_dist=True)
        ...     reader = checkpoint.HuggingFaceStorageReader(folder)  # the files are safetensors all the same
        ...     checkpoint.load(state, storage_reader=reader, no_dist=True)
        >>> state
        {'weight': tensor([1., 1.])}
    """

    def __init__(self, path: str, thread_count: int = 1) -> None:
        super().__init__(path)
        self.thread_count = thread_count

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """Reads the headers of the files.

        Args:
            *args (Any): None so far.
            **kwargs (Any): None so far.

        Returns:
            Metadata: The tensors of all files.

        Raises:
            FileNotFoundError: The folder has no file in the format.
            ValueError: A file is damaged, a tensor is there twice, has a dtype that Mica lacks, or is in pieces.
        """
        names = sorted(name for name in os.listdir(self.path) if name.endswith(".safetensors"))
        if not names:
            raise FileNotFoundError(2, "The folder has no file of the ending .safetensors", self.path)
        kept: dict[str, Any] = {}
        places: dict[MetadataIndex, Stored] = {}
        for name in names:
            with _safetensors.File(os.path.join(self.path, name)) as file:
                if "DCP_SHARDING_INFO" in file.extra:
                    raise ValueError(
                        f"The file ({file.path}) has pieces of tensors, as torch writes them with save_distributed=True; "
                        "consolidate them by torch first."
                    )
                for key, dtype, shape in file.tensors():
                    if key in kept:
                        raise ValueError(
                            f"The file ({file.path}) has the tensor ({key:.80}), which another file has, too."
                        )
                    size, offsets = mica.Size(shape), mica.Size([0] * len(shape))
                    chunk = ChunkStorageMetadata(offsets, size)
                    kept[key] = TensorStorageMetadata(TensorProperties(dtype), size, [chunk])
                    places[MetadataIndex(key, offsets)] = Stored(
                        name, key, int(size.numel() * dtype.itemsize), None, tuple(shape)
                    )
        return Metadata(kept, None, places, StorageMeta(self.path, load_id=self.load_id), "safetensors")
