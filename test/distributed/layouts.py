"""Tensors laid out on a mesh without communication, and every sample call of an operator on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from compare import unlike
from ranks import on_ranks

import mica
from mica.conformance.batches import Sample
from mica.conformance.operators import ENTRIES, attempt
from mica.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor, init_device_mesh

# By the result's precision; a sum of parts rounds otherwise than the sum of the whole.
TOLERANCE = {True: (1e-5, 1e-6), False: (1e-8, 1e-9)}


def laid(x: mica.Tensor, mesh: Any, placement: Any) -> DTensor:
    """The tensor that all ranks have, laid out; partial, of shares whose sum is exact."""
    if isinstance(placement, Partial):
        share = {0: 2.0, 1: -1.0}.get(mesh.get_local_rank(), 0.0)
        return DTensor.from_local(x.detach() * share, mesh, [placement])
    return distribute_tensor(x.detach(), mesh, [placement], src_data_rank=None)


def results(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (tuple, list)) else [value]


def whole(value: Any) -> list[Any]:
    return [x.full_tensor() if isinstance(x, DTensor) else x for x in results(value)]


def layouts(tensors: list[mica.Tensor]) -> Iterator[dict[int, Any]]:
    """Each tensor cut along each dimension, or partial, with the others replicated; and all cut alike."""
    for i, x in enumerate(tensors):
        for d in range(x.ndim):
            yield {i: Shard(d)}
        if x.is_floating_point():
            yield {i: Partial()}
    for d in range(max(x.ndim for x in tensors) if len(tensors) > 1 else 0):
        yield {i: Shard(d) for i, x in enumerate(tensors) if x.ndim > d}


def difference(got: Any, wanted: Any) -> str:
    for k, (g, w) in enumerate(zip(whole(got), results(wanted))):
        if not isinstance(w, mica.Tensor):
            continue
        wrong = unlike(g, w, *TOLERANCE[w.dtype in (mica.float32, mica.complex64)])
        if wrong:
            return f"result {k}: {wrong}"
    return ""


def gradients(sample: Sample, wanted: list[int]) -> Callable[..., Any]:
    """Of a number that depends on all results, by these tensors."""

    def f(*tensors: mica.Tensor) -> list[Any]:
        leaves = [x.detach().requires_grad_(i in wanted) for i, x in enumerate(tensors)]
        made = [x for x in results(sample(*leaves)) if isinstance(x, mica.Tensor) and x.requires_grad]
        real = [x for x in made if x.is_floating_point()]
        if not real:
            return []
        total = sum((x * x.detach().cos()).sum() for x in real)
        return list(mica.autograd.grad(total, [leaves[i] for i in wanted], allow_unused=True))

    return f


def swept(
    name: str, ranks: int, dtype: str, inplace: bool = False, grad: bool = False
) -> tuple[Counter[str], list[str]]:
    """How often the operator's calls were right ("right") and refused, and what was wrong, on any rank."""
    counts: Counter[str] = Counter()
    wrong: list[str] = []

    def one(mesh: Any, f: Any, tensors: list[Any], layout: dict[int, Any], base: Any) -> tuple[str, str]:
        given = [laid(x, mesh, layout.get(i, Replicate())) for i, x in enumerate(tensors)]
        try:
            found = difference(f(*given), base)
        except NotImplementedError:
            return "refused", ""
        except Exception as error:  # noqa: BLE001 - it is what is wrong
            return "wrong", f"{type(error).__name__}: {str(error).splitlines()[0]:.200}"
        return ("wrong", found) if found else ("right", "")

    def rank(r: int) -> None:
        mesh = init_device_mesh("cpu", (ranks,))
        for number, call in enumerate(ENTRIES[name].calls()):
            sample = Sample(ENTRIES[name], call, dtype, inplace=inplace, finish=True)
            floating = [i for i, x in enumerate(sample.tensors) if x.is_floating_point()]
            if not sample.tensors or (grad and not floating):
                continue
            f = gradients(sample, floating) if grad else sample
            base, error = attempt(f, *sample.tensors)
            if error is not None:
                continue
            for layout in layouts(sample.tensors):
                verdict, found = one(mesh, f, sample.tensors, layout, base)
                counts[verdict] += r == 0
                if found:
                    wrong.append(f"{dtype} call {number}, {layout}, rank {r} of {ranks}: {found}")
                    return  # the ranks may have parted

    for error in on_ranks(ranks, rank, timeout=5):
        if isinstance(error, BaseException):
            wrong.append(f"{type(error).__name__}: {error}")
    return counts, wrong
