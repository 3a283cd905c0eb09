"""LBFGS, Adafactor, averaged models, pruning, spectral norm, fusion and samplers, beside torch's."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.utils.prune

import mica


def flat(value: Any) -> Any:
    """Nested results as numbers and words that compare within a tolerance."""
    if hasattr(value, "detach"):
        return flat(value.detach().tolist())
    if isinstance(value, dict):
        return [(k, flat(v)) for k, v in sorted(value.items())]
    if isinstance(value, (list, tuple)):
        return [flat(v) for v in value]
    return value


def agree(a: Any, b: Any, tolerance: float = 2e-5) -> None:
    if isinstance(b, list):
        assert len(a) == len(b)
        for x, y in zip(a, b):
            agree(x, y, tolerance)
    elif isinstance(b, tuple):
        agree(list(a), list(b), tolerance)
    elif isinstance(b, float):
        assert np.isclose(a, b, rtol=tolerance, atol=tolerance), (a, b)
    else:
        assert a == b


def rosenbrock(L: Any, **options: Any) -> Any:
    x = L.tensor([-1.2, 1.0], dtype=L.float64, requires_grad=True)
    optim = L.optim.LBFGS([x], **options)
    losses = []

    def closure() -> Any:
        optim.zero_grad()
        loss = 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2
        loss.backward()
        losses.append(loss.item())
        return loss

    for _ in range(4):
        optim.step(closure)
    return [losses, x, optim.state[x]["func_evals"], optim.state[x]["n_iter"]]


def lbfgs(L: Any) -> Any:
    return rosenbrock(L, lr=0.002, max_iter=7)


def lbfgs_wolfe(L: Any) -> Any:
    return rosenbrock(L, max_iter=6, history_size=3, line_search_fn="strong_wolfe")


def lbfgs_without_gradient(L: Any) -> Any:
    """The first step of a gradient of zeros has length lr."""
    x = L.ones(2, requires_grad=True)
    optim = L.optim.LBFGS([x], lr=0.5, max_iter=2, tolerance_grad=-1.0)
    return [optim.step(lambda: x.detach().sum()), x, optim.state[x]["t"]]


def adafactor(L: Any) -> Any:
    L.manual_seed(0)
    m = L.nn.Linear(3, 2)
    optim = L.optim.Adafactor(m.parameters(), lr=0.1, weight_decay=0.01)
    found = []
    for i in range(5):
        optim.zero_grad()
        loss = m(L.ones(1, 3) * (i + 1)).square().sum()
        loss.backward()
        optim.step()
        found.append(loss)
    return [found, m.state_dict(), repr(optim).splitlines()[0]]


def averaged(L: Any) -> Any:
    L.manual_seed(0)
    m = L.nn.Sequential(L.nn.Linear(2, 2), L.nn.BatchNorm1d(2))
    found: list[Any] = []
    S = L.optim.swa_utils
    for options in (
        {},
        {"avg_fn": S.get_ema_avg_fn(0.9)},
        {"multi_avg_fn": S.get_ema_multi_avg_fn(0.9), "use_buffers": True},
        {"multi_avg_fn": S.get_swa_multi_avg_fn()},
    ):
        work = copy.deepcopy(m)
        average = S.AveragedModel(work, **options)
        optim = L.optim.SGD(work.parameters(), lr=0.1)
        schedule = S.SWALR(optim, swa_lr=0.5, anneal_epochs=3)
        for i in range(4):
            x = L.arange(6.0).reshape(3, 2) * (i + 1)
            optim.zero_grad()
            work(x).square().sum().backward()
            optim.step()
            average.update_parameters(work)
            schedule.step()
            found.append(optim.param_groups[0]["lr"])
        S.update_bn([L.arange(8.0).reshape(4, 2)], average)
        found += [average.state_dict(), average.eval()(L.ones(1, 2))]
    return found


def pruned(L: Any) -> Any:
    P = L.nn.utils.prune
    L.manual_seed(1)
    m = L.nn.Sequential(L.nn.Conv2d(2, 4, 3), L.nn.Linear(4, 3))
    found: list[Any] = []
    P.l1_unstructured(m[0], "weight", amount=0.3)
    P.ln_structured(m[0], "weight", amount=1, n=2, dim=0)
    P.l1_unstructured(m[1], "weight", 4)
    found += [m.state_dict(), P.is_pruned(m), sorted(n for n, _ in m.named_parameters())]
    P.remove(m[0], "weight")
    found += [sorted(m.state_dict()), m[0](L.ones(1, 2, 3, 3)).flatten()]
    P.identity(m[0], "bias")
    P.custom_from_mask(m[0], "weight", L.ones_like(m[0].weight))
    P.random_structured(m[0], "weight", 1, 0)
    P.random_unstructured(m[1], "bias", 1)
    found.append([int((t == 0).sum()) for n, t in sorted(m.state_dict().items()) if n.endswith("mask")])
    n = L.nn.Sequential(L.nn.Linear(3, 3), L.nn.Linear(3, 2))
    P.global_unstructured([(n[0], "weight"), (n[1], "weight")], P.L1Unstructured, amount=0.4)
    found += [n.state_dict(), n(L.ones(1, 3)), type(P.L1Unstructured(2)).__name__]
    found += [
        P.RandomUnstructured(3).prune(L.ones(5)).sum(),
        P.LnStructured(1, 2, 0).prune(L.arange(4.0).reshape(2, 2)),
    ]
    found.append(isinstance(P.RandomStructured(1, 0), P.BasePruningMethod))
    for wrong in (-1, 1.5, 99):
        with pytest.raises(ValueError, match="amount"):
            P.l1_unstructured(L.nn.Linear(2, 2), "weight", wrong)
    return found


def spectral(L: Any) -> Any:
    L.manual_seed(2)
    found: list[Any] = []
    for make in (L.nn.utils.spectral_norm, L.nn.utils.parametrizations.spectral_norm):
        for layer in (L.nn.Linear(3, 2), L.nn.ConvTranspose2d(2, 3, 2)):
            m = make(layer, n_power_iterations=2)
            x = L.ones(1, 3) if isinstance(layer, L.nn.Linear) else L.ones(1, 2, 2, 2)
            y = m(x)
            y.sum().backward()
            found += [m.state_dict(), y.flatten(), m.eval()(x).flatten()]
        if make is L.nn.utils.spectral_norm:
            found.append(sorted(L.nn.utils.remove_spectral_norm(m).state_dict()))
    return found


def fused(L: Any) -> Any:
    L.manual_seed(3)
    U = L.nn.utils
    conv, bn = L.nn.Conv2d(2, 3, 2), L.nn.BatchNorm2d(3)
    linear, norm = L.nn.Linear(2, 3), L.nn.BatchNorm1d(3)
    bn(conv(L.arange(18.0).reshape(1, 2, 3, 3)))
    norm(linear(L.arange(8.0).reshape(4, 2)))
    for m in (conv, bn, linear, norm):
        m.eval()
    x = L.ones(1, 2, 2, 2)
    both = U.fusion.fuse_conv_bn_eval(conv, bn)
    return [both(x).flatten(), bn(conv(x)).flatten(), U.fuse_linear_bn_eval(linear, norm)(L.ones(1, 2))]


def samplers(L: Any) -> Any:
    D = L.utils.data
    L.manual_seed(5)
    found: list[Any] = [
        list(D.WeightedRandomSampler([1.0, 2.0, 3.0], 6)),
        [list(D.DistributedSampler(range(7), 3, r)) for r in range(3)],
        [len(D.DistributedSampler(range(7), 3, r, shuffle=False, drop_last=True)) for r in range(3)],
    ]
    sampler = D.DistributedSampler(range(7), 2, 0, seed=3)
    sampler.set_epoch(2)
    found.append(list(sampler))
    stack = D.StackDataset(a=D.TensorDataset(L.arange(3)), b=D.TensorDataset(L.ones(3)))
    found += [len(stack), [flat(v) for v in stack[1].values()]]

    class Counted(D.IterableDataset):  # type: ignore[misc,name-defined]
        def __iter__(self) -> Any:
            return iter(range(2))

    found += [list(D.ChainDataset([Counted(), Counted()])), issubclass(D.IterableDataset, D.Dataset)]
    return [*found, D.Dataset[int] is not None, D.Sampler[int] is not None]


def stateless(L: Any) -> Any:
    import importlib

    S = importlib.import_module(f"{L.__name__}.nn.utils.stateless")
    m = L.nn.Linear(2, 1)
    with S._reparametrize_module(m, {"weight": L.ones(1, 2), "bias": L.zeros(1)}):
        inside = m(L.ones(1, 2))
    empty = L.nn.utils.skip_init(L.nn.Linear, 2, 3)
    return [inside, tuple(empty.weight.shape), str(empty.weight.device)]


PROGRAMS = [
    lbfgs,
    lbfgs_wolfe,
    lbfgs_without_gradient,
    adafactor,
    averaged,
    pruned,
    spectral,
    fused,
    samplers,
    stateless,
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program: Any) -> None:
    agree(flat(program(mica)), flat(program(torch)))
