"""Which of the ranks that have the same thing writes it."""

from __future__ import annotations

import dataclasses
from typing import Any

from mica.distributed.checkpoint import _boxes
from mica.distributed.checkpoint.metadata import MetadataIndex
from mica.distributed.checkpoint.planner import SavePlan, WriteItem


def shared_out(all_plans: list[SavePlan], to_lowest_rank: bool) -> list[SavePlan]:
    """Leaves what several ranks have to one of them: the one that has least to write, the largest items first."""
    holders: dict[MetadataIndex, list[int]] = {}
    items: dict[MetadataIndex, WriteItem] = {}
    for rank, plan in enumerate(all_plans):
        for item in plan.items:
            first = items.setdefault(item.index, item)
            if first != item:
                _refuse_two(first, holders[item.index][0], item, rank)
            holders.setdefault(item.index, []).append(rank)
    load = [0] * len(all_plans)
    writer: dict[MetadataIndex, int] = {}
    # What one rank alone has comes first: it has no choice.
    by_size = sorted(items, key=lambda i: (len(holders[i]) > 1, -(items[i].tensor_storage_size() or 1)))
    for index in by_size:
        ranks = holders[index]
        writer[index] = min(ranks) if to_lowest_rank else min(ranks, key=lambda rank: load[rank])
        load[writer[index]] += items[index].tensor_storage_size() or 1
    return [
        dataclasses.replace(plan, items=[i for i in plan.items if writer[i.index] == rank])
        for rank, plan in enumerate(all_plans)
    ]


def _refuse_two(first: WriteItem, first_rank: int, item: WriteItem, rank: int) -> None:
    """Refuses two ranks' items of one name that are not the same; what they require grad does not count."""
    told = []
    for one in (first, item):
        data = one.tensor_data
        told.append("a value that is no tensor" if data is None else _told(data))
    if told[0] != told[1]:
        raise ValueError(
            f"Ranks ({first_rank}) and ({rank}) have different things under the key ({item.index.fqn}): {told[0]} and "
            f"{told[1]}."
        )


def _told(data: Any) -> str:
    return (
        f"{_boxes.said(data.chunk)} of a tensor of the shape {list(data.size)} and ({data.properties.dtype})"
    )
