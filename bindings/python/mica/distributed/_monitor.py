"""A barrier that says which ranks did not come."""

from __future__ import annotations

import datetime
import time
from typing import Any

import mica
from mica.distributed._errors import DistBackendError
from mica.distributed._group import Work
from mica.distributed._init import group_of, on_members

__all__ = ["monitored_barrier"]

_TAG = -1  # of its messages, where programs have tags from 0


def _came(work: Work, deadline: float) -> bool:
    """Whether it ended until then; a rank whose connection broke did not."""
    try:
        return work.wait(datetime.timedelta(seconds=max(deadline - time.monotonic(), 0.001)))
    except RuntimeError:
        return False


@on_members
def monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    """Waits until all ranks have come here; the group's first rank says which did not.

    As `torch.distributed.monitored_barrier`. It costs two messages for each rank.

    Args:
        group (ProcessGroup, optional): Default: None, the default group.
        timeout (timedelta, optional): Default: None, the group's timeout.
        wait_all_ranks (bool): Names all ranks that did not come. Default: False, the first of them.

    Raises:
        DistBackendError: A rank did not come within the timeout. Leave the group after it.

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> from datetime import timedelta
        >>> def rank(r):
        ...     mica.distributed.init_process_group("threads", rank=r, world_size=2)
        ...     try:
        ...         if r == 0:  # the other rank does not come
        ...             mica.distributed.monitored_barrier(timeout=timedelta(seconds=0.1))
        ...     except mica.distributed.DistBackendError as error:
        ...         print(error)
        ...     mica.distributed.destroy_process_group()
        >>> with ThreadPoolExecutor(2) as pool:  # ranks that are threads
        ...     list(pool.map(rank, range(2)))
        Rank (1) failed to pass monitored_barrier within (0.1) s.
        [None, None]
    """
    ranks = group_of(group)
    seconds = ranks.timeout if timeout is None else timeout.total_seconds()
    deadline = time.monotonic() + seconds
    names, flag = ranks.ranks(), mica.zeros(1)
    if ranks.rank() != 0:
        ranks.start("send", flag, None, peer=0, tag=_TAG)
        if not _came(ranks.start("recv", None, flag, peer=0, tag=_TAG), deadline):
            raise DistBackendError(
                f"Rank ({names[ranks.rank()]}) got no answer from rank ({names[0]}) in monitored_barrier within "
                f"({seconds}) s: that rank, or one for which it waits, did not come."
            )
        return
    waiting = [ranks.start("recv", None, mica.zeros(1), peer=i, tag=_TAG) for i in range(1, len(names))]
    missing = []
    for i, work in enumerate(waiting, start=1):
        if not _came(work, deadline):
            missing.append(names[i])
            if not wait_all_ranks:
                break
    if missing:
        which = ", ".join(f"({rank})" for rank in missing)
        raise DistBackendError(
            f"Rank{'s' * (len(missing) > 1)} {which} failed to pass monitored_barrier within ({seconds}) s."
        )
    for work in [ranks.start("send", flag, None, peer=i, tag=_TAG) for i in range(1, len(names))]:
        work.wait()
