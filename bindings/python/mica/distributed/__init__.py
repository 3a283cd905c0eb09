"""Ranks that compute together: groups and collectives, with torch.distributed's names.

Ranks are processes (the engine `gloo`) or threads of one process (`threads`); docs/concepts/distributed.md says what
runs.
"""

from mica.distributed._collectives import (
    all_gather_into_tensor,
    all_reduce,
    all_to_all_single,
    barrier,
    broadcast,
    reduce_scatter_tensor,
)
from mica.distributed._errors import (
    DistBackendError,
    DistError,
    DistNetworkError,
    DistStoreError,
)
from mica.distributed._group import (
    ProcessGroup,
    Work,
)
from mica.distributed._init import (
    GroupMember,
    destroy_process_group,
    group,
    init_process_group,
    is_available,
    is_backend_available,
    is_gloo_available,
    is_initialized,
    new_group,
)
from mica.distributed._lists import (
    all_gather,
    all_to_all,
    gather,
    reduce,
    reduce_scatter,
    scatter,
)
from mica.distributed._messages import (
    P2POp,
    batch_isend_irecv,
    irecv,
    isend,
    recv,
    send,
)
from mica.distributed._monitor import (
    monitored_barrier,
)
from mica.distributed._objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from mica.distributed._places import (
    get_backend,
    get_default_backend_for_device,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    is_torchelastic_launched,
)
from mica.distributed._reduction import (
    ReduceOp,
)
from mica.distributed._rendezvous import (
    rendezvous,
)
from mica.distributed._store import (
    HashStore,
    PrefixStore,
    Store,
)
from mica.distributed._store_file import (
    FileStore,
)
from mica.distributed._store_tcp import (
    TCPStore,
)
from mica.distributed.device_mesh import DeviceMesh, init_device_mesh
from mica.nn._reducer import GradBucket

__all__ = [
    "DeviceMesh",
    "DistBackendError",
    "DistError",
    "DistNetworkError",
    "DistStoreError",
    "FileStore",
    "GradBucket",
    "GroupMember",
    "HashStore",
    "P2POp",
    "PrefixStore",
    "ProcessGroup",
    "ReduceOp",
    "Store",
    "TCPStore",
    "Work",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "destroy_process_group",
    "gather",
    "gather_object",
    "get_backend",
    "get_default_backend_for_device",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_device_mesh",
    "init_process_group",
    "irecv",
    "is_available",
    "is_backend_available",
    "is_gloo_available",
    "is_initialized",
    "is_torchelastic_launched",
    "isend",
    "monitored_barrier",
    "new_group",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "rendezvous",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
]
