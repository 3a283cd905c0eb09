"""How ranks in several processes find each other's store: env://, tcp:// and file://."""

from __future__ import annotations

import datetime
import os
import urllib.parse
from collections.abc import Mapping

from mica.distributed._store import Store
from mica.distributed._store_file import FileStore
from mica.distributed._store_tcp import TCPStore

__all__ = ["rendezvous"]

# What launchers call a rank and the number of ranks: torchrun's protocol, Slurm, Open MPI.
_VARIABLES = {
    "rank": ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"),
    "world_size": ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE"),
}
AGENT = "TORCHELASTIC_USE_AGENT_STORE"  # "True" where the launcher serves the store


def _whole(text: str, what: str, url: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"The {what} ({text!r}) of the rendezvous ({url}) is no whole number.") from None


def _from_environment(names: tuple[str, ...], url: str) -> str:
    for name in names:
        if name in os.environ:
            return os.environ[name]
    raise ValueError(
        f"Error initializing mica.distributed using {url} rendezvous: environment variable {names[0]} expected, but "
        "not set; start the ranks with python -m mica.distributed.run, or set it."
    )


def _place(given: int, what: str, query: Mapping[str, str], url: str) -> int:
    """Rank or number of ranks: the argument's, the query's, or for env:// the environment's."""
    if given != -1:
        return given
    if what in query:
        return _whole(query[what], what, url)
    if url.startswith("env://"):
        return _whole(_from_environment(_VARIABLES[what], url), what, url)
    raise ValueError(f"The rendezvous ({url}) gets no `{what}`; give init_process_group(..., {what}=...).")


def rendezvous(
    url: str,
    rank: int = -1,
    world_size: int = -1,
    timeout: datetime.timedelta = datetime.timedelta(minutes=30),
) -> tuple[Store, int, int]:
    """Finds the store of the ranks that belong together.

    Args:
        url (str): "env://", "tcp://host:port" or "file:///path"; `?rank=..&world_size=..` may follow.
        rank (int): This rank. Default: -1, from the address or the environment.
        world_size (int): The number of ranks. Default: -1, likewise.
        timeout (timedelta): For connecting to the store and for its keys. Default: 30 minutes.

    Returns:
        tuple: The store, the rank and the number of ranks.

    Raises:
        RuntimeError: The address is none of those.
        ValueError: Something is missing.
        DistNetworkError: The store was not reached in time, or its port is in use.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store, rank, world_size = mica.distributed.rendezvous(f"file://{folder}/ranks?rank=0&world_size=1")
        ...     store.add("come", 1), rank, world_size
        (1, 0, 1)
    """
    parts = urllib.parse.urlsplit(url)
    query = dict(urllib.parse.parse_qsl(parts.query))
    if parts.scheme not in ("env", "tcp", "file"):
        raise RuntimeError(
            f"There is no rendezvous ({url}); expected env://, tcp://host:port or file:///path."
        )
    rank = _place(rank, "rank", query, url)
    world_size = _place(world_size, "world_size", query, url)
    if world_size < 1 or not 0 <= rank < world_size:
        raise ValueError(f"Rank ({rank}) is none of ({world_size}) ranks; give `rank` and `world_size`.")
    if parts.scheme == "file":
        if not parts.path or parts.netloc:
            raise ValueError(f"The rendezvous ({url}) names no file; expected file:///path.")
        store: Store = FileStore(parts.path, world_size)
        store.set_timeout(timeout)
        return store, rank, world_size
    if parts.scheme == "tcp":
        host, port = parts.hostname, parts.port
        if not host or port is None:
            raise ValueError(f"The rendezvous ({url}) names no port; expected tcp://host:port.")
    else:
        host = _from_environment(("MASTER_ADDR",), url)
        port = _whole(_from_environment(("MASTER_PORT",), url), "MASTER_PORT", url)
    serves = rank == 0 and not (parts.scheme == "env" and os.environ.get(AGENT) == "True")
    # A program may leave its group and make another one at the same address, where other ranks may come before
    # this one has left.
    served = TCPStore(host, port, world_size, serves, timeout, False, multi_tenant=True)
    served._keep_serving()
    return served, rank, world_size
