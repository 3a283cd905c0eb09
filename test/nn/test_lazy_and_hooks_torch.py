"""Lazy modules, hooks of modules, loading of state and initialisations, beside torch's."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch

import mica

LAZY = {
    "LazyLinear(3)": (2, 5),
    "LazyConv1d(3, 2)": (2, 4, 5),
    "LazyConv2d(3, 2, padding=1)": (2, 4, 5, 5),
    "LazyConv3d(3, 2)": (1, 2, 3, 3, 3),
    "LazyConvTranspose1d(4, 2)": (2, 4, 5),
    "LazyConvTranspose2d(4, 2, groups=2)": (1, 4, 3, 3),
    "LazyConvTranspose3d(2, 2)": (1, 2, 3, 3, 3),
    "LazyBatchNorm1d()": (4, 5),
    "LazyBatchNorm2d(momentum=0.2)": (2, 3, 4, 4),
    "LazyBatchNorm3d()": (2, 3, 2, 2, 2),
    "LazyInstanceNorm1d()": (2, 3, 4),
    "LazyInstanceNorm2d()": (2, 3, 4, 4),
    "LazyInstanceNorm3d()": (2, 3, 2, 2, 2),
}


def made(L: Any, text: str, shape: tuple[int, ...]) -> list[Any]:
    L.manual_seed(0)
    module = eval(f"L.nn.{text}", {"L": L})
    # torch cannot copy a lazy buffer.
    twin = copy.deepcopy(module) if "Norm" not in text else eval(f"L.nn.{text}", {"L": L})
    count = 1
    for size in shape:
        count *= size
    x = L.arange(count, dtype=L.float32).reshape(shape) / count
    found = [module.has_uninitialized_params(), module(x).flatten().tolist()]
    state = module.state_dict()
    eager = eval(f"L.nn.{text}", {"L": L})
    eager.load_state_dict(state)
    found += [type(module).__name__, repr(module), {k: tuple(v.shape) for k, v in eager.state_dict().items()}]
    found += [twin.has_uninitialized_params(), type(twin).__name__, tuple(twin(x).shape), type(twin).__name__]
    return found


@pytest.mark.parametrize("text", LAZY)
def test_lazy_modules(text: str) -> None:
    ours, theirs = made(mica, text, LAZY[text]), made(torch, text, LAZY[text])
    assert ours.pop(1) == pytest.approx(theirs.pop(1), abs=2e-5)
    assert ours == theirs


def hooks(L: Any) -> list[Any]:
    seen: list[Any] = []

    def note(name: str, result: Any = None) -> Any:
        def hook(*args: Any, **kwargs: Any) -> Any:
            seen.append((name, len(args)))
            return result

        return hook

    m = L.nn.Sequential(L.nn.Linear(2, 2), L.nn.Tanh())
    handles = [
        m.register_forward_pre_hook(note("pre")),
        m.register_forward_pre_hook(note("pre kwargs"), with_kwargs=True, prepend=True),
        m.register_forward_hook(note("post")),
        m.register_forward_hook(note("post kwargs"), with_kwargs=True, always_call=True),
        m[0].register_full_backward_pre_hook(note("backward pre")),
        m[0].register_full_backward_hook(note("backward")),
        m.register_state_dict_pre_hook(note("state pre")),
        m._register_state_dict_hook(note("state")),
        m.register_load_state_dict_pre_hook(note("load pre")),
        m._register_load_state_dict_pre_hook(note("load pre bare")),
        m.register_load_state_dict_post_hook(note("load post")),
        L.nn.modules.module.register_module_forward_hook(note("everywhere")),
    ]
    m(L.ones(1, 2, requires_grad=True)).sum().backward()
    m.load_state_dict(m.state_dict())
    for handle in handles:
        handle.remove()
    before = len(seen)
    m(L.ones(1, 2))
    return [*seen, before == len(seen), sorted(k for k in m.__dict__ if k.endswith("forward_hooks"))]


def gradients(L: Any) -> list[Any]:
    seen: list[Any] = []

    class Two(L.nn.Module):  # type: ignore[misc,name-defined]
        def forward(self, x: Any, n: int, y: Any) -> Any:
            return x * n + y

    m = Two()
    m.register_full_backward_hook(lambda m, i, o: seen.append([None if t is None else t.tolist() for t in i]))
    m.register_full_backward_pre_hook(lambda m, o: (o[0] * 3,))
    x, y = L.ones(2, requires_grad=True), L.ones(2)
    m(x, 2, y).sum().backward()
    return [seen, x.grad.tolist()]


def loading(L: Any) -> list[Any]:
    class Old(L.nn.Module):  # type: ignore[misc,name-defined]
        _version = 3

        def __init__(self) -> None:
            super().__init__()
            self.w = L.nn.Parameter(L.zeros(2))
            self.register_buffer("b", L.zeros(1), persistent=False)

        def _load_from_state_dict(self, state: Any, prefix: str, metadata: Any, *rest: Any) -> None:
            found.append(metadata.get("version"))
            if prefix + "old" in state:
                state[prefix + "w"] = state.pop(prefix + "old")
            super()._load_from_state_dict(state, prefix, metadata, *rest)

    found: list[Any] = []
    m = L.nn.ModuleDict({"a": Old()})
    found.append(tuple(m.load_state_dict({"a.old": L.ones(2)}).missing_keys))
    found.append(m["a"].w.tolist())
    m.load_state_dict(m.state_dict())
    keys = m.load_state_dict({"a.w": L.ones(2), "a.x": L.ones(1), "c": L.ones(1)}, strict=False)
    found += [sorted(keys.unexpected_keys), keys.missing_keys]
    for wrong in ({"a.w": L.ones(3)}, {"a.z": L.ones(1)}):
        try:
            m.load_state_dict(wrong)
        except RuntimeError as error:
            found.append(("a.w" in str(error), "state_dict" in str(error)))
    m.set_submodule("a", L.nn.Identity())
    return [*found, type(m["a"]).__name__]


def initialised(L: Any) -> list[Any]:
    L.manual_seed(4)
    found = [
        L.nn.init.orthogonal_(L.empty(3, 5)),
        L.nn.init.orthogonal_(L.empty(5, 3), gain=2.0),
        L.nn.init.dirac_(L.empty(4, 2, 3), groups=2),
        L.nn.init.sparse_(L.empty(10, 4), 0.3),
        L.nn.init.eye(L.empty(3, 3)),
        L.nn.init.xavier_normal(L.empty(3, 3)),
    ]
    return [[round(v, 5) for v in t.flatten().tolist()] for t in found]


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("program", [hooks, gradients, loading, initialised])
def test_programs(program: Any) -> None:
    assert program(mica) == program(torch)
