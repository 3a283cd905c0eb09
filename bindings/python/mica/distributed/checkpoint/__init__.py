"""Checkpoints that ranks save together and any other number of ranks loads, with torch.distributed.checkpoint's names.

docs/concepts/distributed.md says what is in the files and what happens when a rank is killed.
"""

from mica.distributed.checkpoint.api import CheckpointException
from mica.distributed.checkpoint.default_planner import DefaultLoadPlanner, DefaultSavePlanner
from mica.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from mica.distributed.checkpoint.hf_storage import HuggingFaceStorageReader
from mica.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    TensorStorageMetadata,
)
from mica.distributed.checkpoint.planner import (
    LoadPlan,
    LoadPlanner,
    ReadItem,
    SavePlan,
    SavePlanner,
    WriteItem,
)
from mica.distributed.checkpoint.state_dict_loader import load, load_state_dict
from mica.distributed.checkpoint.state_dict_saver import async_save, save, save_state_dict
from mica.distributed.checkpoint.storage import StorageReader, StorageWriter

__all__ = [
    "BytesStorageMetadata",
    "CheckpointException",
    "ChunkStorageMetadata",
    "DefaultLoadPlanner",
    "DefaultSavePlanner",
    "FileSystemReader",
    "FileSystemWriter",
    "HuggingFaceStorageReader",
    "LoadPlan",
    "LoadPlanner",
    "Metadata",
    "ReadItem",
    "SavePlan",
    "SavePlanner",
    "StorageReader",
    "StorageWriter",
    "TensorStorageMetadata",
    "WriteItem",
    "async_save",
    "load",
    "load_state_dict",
    "save",
    "save_state_dict",
]
