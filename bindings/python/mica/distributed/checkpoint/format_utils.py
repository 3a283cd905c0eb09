"""From a checkpoint to one file of mica.save, and back."""

from __future__ import annotations

import os
from typing import Any

import mica
from mica.distributed.checkpoint._load_planner import _EmptyStateDictLoadPlanner
from mica.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from mica.distributed.checkpoint.state_dict_loader import _load_state_dict
from mica.distributed.checkpoint.state_dict_saver import save

__all__ = ["dcp_to_torch_save", "torch_save_to_dcp"]


def dcp_to_torch_save(
    dcp_checkpoint_dir: str | os.PathLike[str], torch_save_path: str | os.PathLike[str]
) -> None:
    """Writes a checkpoint of a folder into one file.

    As `torch.distributed.checkpoint.format_utils.dcp_to_torch_save`; all of it is in memory.

    Args:
        dcp_checkpoint_dir (str or path): The folder.
        torch_save_path (str or path): The file.

    Raises:
        CheckpointException: The folder has no checkpoint, or a damaged one.

    Example:
        >>> import os, tempfile
        >>> from mica.distributed.checkpoint.format_utils import dcp_to_torch_save
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     state = {"model": {"weight": mica.ones(2)}}
        ...     done = mica.distributed.checkpoint.save(state, checkpoint_id=folder, no_dist=True)
        ...     dcp_to_torch_save(folder, os.path.join(folder, "whole.pt"))
        ...     mica.load(os.path.join(folder, "whole.pt"))
        {'model': {'weight': tensor([1., 1.])}}
    """
    state: dict[str, Any] = {}
    _load_state_dict(
        state, FileSystemReader(dcp_checkpoint_dir), no_dist=True, planner=_EmptyStateDictLoadPlanner()
    )
    mica.save(state, torch_save_path)


def torch_save_to_dcp(
    torch_save_path: str | os.PathLike[str], dcp_checkpoint_dir: str | os.PathLike[str]
) -> None:
    """Writes a file of `mica.save` or `torch.save` as a checkpoint into a folder.

    As `torch.distributed.checkpoint.format_utils.torch_save_to_dcp`; all of it is in memory.

    Args:
        torch_save_path (str or path): The file.
        dcp_checkpoint_dir (str or path): The folder.

    Raises:
        pickle.UnpicklingError: The file refers to something that `mica.load` refuses.

    Example:
        >>> import os, tempfile
        >>> from mica.distributed.checkpoint.format_utils import torch_save_to_dcp
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     mica.save({"weight": mica.ones(2)}, os.path.join(folder, "whole.pt"))
        ...     torch_save_to_dcp(os.path.join(folder, "whole.pt"), folder)
        ...     list(mica.distributed.checkpoint.FileSystemReader(folder).read_metadata().state_dict_metadata)
        ['weight']
    """
    save(mica.load(torch_save_path), storage_writer=FileSystemWriter(dcp_checkpoint_dir), no_dist=True)
