"""Ranks that compute together: groups and collectives, with torch.distributed's names.

Ranks are processes (the engine `gloo`) or threads of one process (`threads`); docs/concepts/distributed.md says what
runs.
"""

from mica.distributed._collectives import (
    all_gather,
    all_gather_into_tensor,
    all_reduce,
    all_to_all_single,
    barrier,
    broadcast,
    irecv,
    isend,
    recv,
    reduce_scatter_tensor,
    send,
)
from mica.distributed._errors import DistBackendError, DistError, DistNetworkError, DistStoreError
from mica.distributed._group import ProcessGroup, Work
from mica.distributed._init import (
    GroupMember,
    destroy_process_group,
    get_backend,
    get_rank,
    get_world_size,
    init_process_group,
    is_available,
    is_backend_available,
    is_gloo_available,
    is_initialized,
    new_group,
)
from mica.distributed._reduction import ReduceOp
from mica.distributed._rendezvous import rendezvous
from mica.distributed._store import HashStore, PrefixStore, Store
from mica.distributed._store_file import FileStore
from mica.distributed._store_tcp import TCPStore

__all__ = [
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "FileStore",
    "GroupMember",
    "HashStore",
    "PrefixStore",
    "ProcessGroup",
    "ReduceOp",
    "Store",
    "TCPStore",
    "Work",
    "all_gather",
    "all_gather_into_tensor",
    "all_reduce",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "destroy_process_group",
    "get_backend",
    "get_rank",
    "get_world_size",
    "init_process_group",
    "irecv",
    "is_available",
    "is_backend_available",
    "is_gloo_available",
    "is_initialized",
    "isend",
    "new_group",
    "recv",
    "reduce_scatter_tensor",
    "rendezvous",
    "send",
]
