"""Module's attributes, names, conversions and containers beside torch's: see module_programs.py."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from typing import Any

import pytest
import torch
from module_programs import Case, check, kind, net, ones

CASES: dict[str, Case] = {}


def case(function: Case) -> Case:
    CASES[function.__name__] = function
    return function


# -- attributes and names


@case
def attribute_rules(L: Any) -> Any:
    m = L.nn.Module()
    m.p = L.nn.Parameter(ones(L, 1))
    m.m = L.nn.Identity()
    m.register_buffer("b", ones(L, 1))
    found = [
        kind(lambda: setattr(m, "p", ones(L, 1))),
        kind(lambda: setattr(m, "p", 3)),
        kind(lambda: setattr(m, "m", 3)),
        kind(lambda: setattr(m, "b", 3)),
        kind(lambda: setattr(m, "b", None)),
        kind(lambda: setattr(m, "p", None)),
        kind(lambda: setattr(m, "m", None)),
        m.p is None and m.m is None and m.b is None,
    ]
    m.x = 1
    m.x = L.nn.Parameter(ones(L, 1))
    m.y = ones(L, 1)
    m.y = L.nn.Parameter(ones(L, 2))
    m.z = L.nn.Identity()
    m.z = L.nn.Parameter(ones(L, 1))
    found += [kind(lambda: setattr(m, "p", L.nn.Identity())), kind(lambda: setattr(m, "b", L.nn.Identity()))]
    found += [list(m._parameters), list(m._modules), list(m._buffers), "x" in vars(m)]
    del m.x, m.b, m.z
    found += [kind(lambda: m.x), kind(lambda: delattr(m, "nothing")), kind(lambda: m.nothing)]
    return [*found, list(m._parameters), list(m._modules), list(m._buffers)]


@case
def before_init(L: Any) -> Any:
    class Early(L.nn.Module):
        def __init__(self, value: Any) -> None:
            self.value = value
            super().__init__()

    return [
        kind(lambda: Early(L.nn.Parameter(ones(L, 1)))),
        kind(lambda: Early(L.nn.Identity())),
        kind(lambda: Early(L.nn.Buffer(ones(L, 1)))),
        kind(lambda: Early(3).value),
        kind(lambda: list(Early(ones(L, 1)).state_dict())),
        kind(lambda: L.nn.Module.__new__(L.nn.Linear).register_buffer("a", None)),
    ]


@case
def registration_errors(L: Any) -> Any:
    m = L.nn.Module()
    m.there = 1
    p, leaf = L.nn.Parameter, ones(L, 1).requires_grad_()
    calls = [
        lambda: m.register_parameter("a.b", None),
        lambda: m.register_parameter("", None),
        lambda: m.register_parameter(3, None),
        lambda: m.register_parameter("there", None),
        lambda: m.register_parameter("w", ones(L, 1)),
        lambda: m.register_parameter("w", 3),
        lambda: m.register_parameter("w", p(ones(L, 1)).clone()),
        lambda: m.register_buffer("a.b", None),
        lambda: m.register_buffer("", None),
        lambda: m.register_buffer(3, None),
        lambda: m.register_buffer("there", None),
        lambda: m.register_buffer("b", 3),
        lambda: m.register_buffer("b", leaf),
        lambda: m.add_module("a.b", None),
        lambda: m.add_module("", None),
        lambda: m.add_module(3, None),
        lambda: m.add_module("there", None),
        lambda: m.add_module("m", 3),
        lambda: m.register_module("m", None),
        lambda: m.m,
        lambda: m.add_module("m", L.nn.Identity()),
        lambda: m.register_parameter("m", None),
    ]
    return [kind(lambda f=f: None if f() is not None else "ok") for f in calls]


@case
def names_with_duplicates(L: Any) -> Any:
    shared = L.nn.Linear(2, 2)
    m = L.nn.ModuleList([shared, L.nn.Sequential(shared, L.nn.BatchNorm1d(2)), L.nn.Linear(2, 2)])
    m[2].weight = shared.weight
    m.register_buffer("r", m[1][1].running_mean)
    m.add_module("empty", None)
    rows = []
    for unique in (True, False):
        rows += [
            [n for n, _ in m.named_modules(remove_duplicate=unique)],
            [n for n, _ in m.named_parameters(remove_duplicate=unique)],
            [n for n, _ in m.named_buffers(remove_duplicate=unique)],
        ]
    return [
        *rows,
        [n for n, _ in m.named_modules(prefix="x")],
        [n for n, _ in m.named_parameters("x", recurse=False)],
        [n for n, _ in m.named_buffers("x", False)],
        [n for n, _ in m.named_children()],
        len(list(m.children())),
        len(list(m.modules())),
        len(list(m.parameters())),
        len(list(m.parameters(recurse=False))),
        list(m.state_dict()),
        [n for n, _ in m.named_modules(memo=set(), prefix="p", remove_duplicate=True)],
    ]


@case
def getting_and_setting_by_name(L: Any) -> Any:
    m = net(L)
    m[0].plain = 3
    calls = [
        lambda: type(m.get_submodule("2.1")).__name__,
        lambda: m.get_submodule("") is m,
        lambda: m.get_submodule("2.7"),
        lambda: m.get_submodule("0.weight"),
        lambda: m.get_parameter("0.weight") is m[0].weight,
        lambda: m.get_parameter("0.plain"),
        lambda: m.get_parameter("0.nothing"),
        lambda: m.get_parameter("1.running_mean"),
        lambda: m.get_buffer("1.running_mean") is m[1].running_mean,
        lambda: m.get_buffer("0.weight"),
        lambda: m.get_buffer("1.nothing"),
        lambda: m.set_submodule("2.0", L.nn.Tanh()),
        lambda: m.set_submodule("2.new", L.nn.Tanh()),
        lambda: m.set_submodule("2.newer", L.nn.Tanh(), strict=True),
        lambda: m.set_submodule("", L.nn.Tanh()),
        lambda: m.set_submodule("7.x", L.nn.Tanh()),
        lambda: m.set_submodule("0.weight", L.nn.Tanh()),
        lambda: m.set_submodule("2.0", 3),
        lambda: m.set_submodule("0", L.nn.Identity(), strict=True),
    ]
    return [[kind(f) for f in calls], repr(m)]


@case
def directory(L: Any) -> Any:
    m = L.nn.Module()
    m.w, m.plain, m.child = L.nn.Parameter(ones(L, 1)), 3, L.nn.Identity()
    m.register_buffer("buf", None)
    setattr(m, "0", L.nn.Identity())
    names = dir(m)
    return [
        [n in names for n in ("w", "plain", "child", "buf", "0", "forward")],
        "0" in dir(L.nn.ModuleList([m])),
    ]


# -- conversion


@case
def conversions(L: Any) -> Any:
    def kinds(m: Any) -> Any:
        return [str(v.dtype).split(".")[-1] for v in m.state_dict().values()]

    calls = [
        lambda m: m.half(),
        lambda m: m.bfloat16(),
        lambda m: m.double().float(),
        lambda m: m.to(L.float64),
        lambda m: m.to(dtype=L.float16, non_blocking=True),
        lambda m: m.to("cpu", L.float64),
        lambda m: m.to(L.device("meta")),
        lambda m: m.to(ones(L, 1).double()),
        lambda m: m.type(L.float64),
        lambda m: m.type("torch.DoubleTensor"),
        lambda m: m.to(L.complex64),
        lambda m: m.to(L.int32),
        lambda m: m.to(),
        lambda m: m.to_empty(device="meta"),
        lambda m: m.cpu(),
        lambda m: m.to(memory_format=L.channels_last),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [
            kind(lambda f=f: kinds(f(L.nn.Sequential(L.nn.Conv2d(2, 2, 2), L.nn.BatchNorm2d(2)))))
            for f in calls
        ]


@case
def conversion_keeps_parameters(L: Any) -> Any:
    m = L.nn.Linear(2, 2)
    weight, bias = m.weight, m.bias
    m(ones(L, 1, 2)).sum().backward()
    m.bias.requires_grad_(False)
    m.double()
    tied = L.nn.Sequential(L.nn.Linear(2, 2), L.nn.Linear(2, 2))
    tied[1].weight = tied[0].weight
    tied.double()
    conv = L.nn.Conv2d(2, 2, 2).to(memory_format=L.channels_last)
    return [
        m.weight is weight,
        m.bias is bias,
        str(m.weight.grad.dtype).split(".")[-1],
        m.bias.requires_grad,
        tied[1].weight is tied[0].weight,
        conv.weight.is_contiguous(memory_format=L.channels_last),
        m.share_memory() is m,
        m.requires_grad_(False) is m,
        [p.requires_grad for p in m.parameters()],
        kind(lambda: L.nn.Linear(2, 2, device="meta").to("cpu")),
        tuple(L.nn.Linear(2, 2, device="meta").to_empty(device="cpu").weight.shape),
        L.nn.Linear(2, 2).to("meta").weight.device.type,
    ]


@case
def modes_and_gradients(L: Any) -> Any:
    m = net(L)
    m(ones(L, 2, 3)).sum().backward()
    m.eval()
    first = [x.training for x in m.modules()]
    m[2].train()
    second = [x.training for x in m.modules()]
    m.zero_grad(set_to_none=False)
    zeros = [p.grad is not None and bool((p.grad == 0).all()) for p in m.parameters()]
    m.zero_grad()
    order: list[str] = []
    m.apply(lambda x: order.append(type(x).__name__))
    return [
        first,
        second,
        zeros,
        [p.grad is None for p in m.parameters()],
        order,
        kind(lambda: m.train(3)),
        kind(lambda: m.train("x")),
    ]


@case
def text(L: Any) -> Any:
    class Odd(L.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a = L.nn.ModuleList([L.nn.Linear(1, 1), L.nn.Linear(1, 1), L.nn.ReLU()])
            self.b = L.nn.ModuleDict({"x": net(L), "none": L.nn.Identity()})
            self.c = None
            self.add_module("d", None)
            self.e = L.nn.ParameterList([L.nn.Parameter(ones(L, 2))])

        def extra_repr(self) -> str:
            return "one\ntwo"

        def _get_name(self) -> str:
            return "Named"

    class Short(L.nn.Module):
        def extra_repr(self) -> str:
            return "a=1"

    return [
        repr(Odd()).replace("mica.", "torch."),
        repr(Short()),
        repr(L.nn.Module()),
        str(L.nn.Sequential()),
    ]


@case
def compiling_changes_nothing(L: Any) -> Any:
    if L is torch:
        return None
    m = net(L).eval()
    before = m(ones(L, 2, 3))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        result = m.compile(mode="default")
    return None if result is None and bool((m(ones(L, 2, 3)) == before).all()) and len(seen) <= 1 else seen


@case
def calls_and_super(L: Any) -> Any:
    class Base:
        def __init__(self, extra: int = 0) -> None:
            self.extra = extra

    class Both(L.nn.Module, Base):
        call_super_init = True

        def __init__(self) -> None:
            super().__init__(extra=7)

    class Plain(L.nn.Module):
        pass

    class Call(L.nn.Module):
        def __call__(self, x: Any) -> Any:
            return super().__call__(x) + 1

        def forward(self, x: Any) -> Any:
            return x * 2

    m = L.nn.Identity()
    m.forward = lambda x: x + 10
    return [
        Both().extra,
        kind(lambda: Plain()(1)),
        kind(lambda: Plain(3)),
        Call()(ones(L, 1)),
        m(ones(L, 1)),
        kind(lambda: L.nn.Linear(1, 1)()),
        L.nn.Module() == L.nn.Module(),
        len({L.nn.Module(), L.nn.Module()}),
    ]


# -- containers


@case
def sequences(L: Any) -> Any:
    a, b, c = L.nn.ReLU(), L.nn.Tanh(), L.nn.GELU()
    s = L.nn.Sequential(a, b)
    s.insert(1, c)
    s.append(L.nn.Identity())
    found = [repr(s), s[1] is c, s[-1] is s[3], repr(s[1:3]), len(s), s.pop(0) is a, repr(s)]
    s.extend([a])
    s += L.nn.Sequential(b)
    s[0] = b
    del s[1]
    found += [repr(s), repr(s + L.nn.Sequential(a)), repr(s * 2), repr(2 * L.nn.Sequential(a))]
    s *= 2
    calls = [
        lambda: s[10],
        lambda: s.insert(100, a),
        lambda: s.insert(0, 3),
        lambda: s.append(3),
        lambda: s + 3,
        lambda: s * 0,
        lambda: s * 1.5,
        lambda: s.__delitem__(99),
        lambda: s.extend([3]),
        lambda: len(s[5:]),
        lambda: s.__setitem__(0, 3),
        lambda: list(L.nn.Sequential(OrderedDict(x=a, y=b)).named_children())[1][0],
        lambda: L.nn.Sequential(OrderedDict(x=a)).x is a,
        lambda: s["0"],
        lambda: L.nn.Sequential()(3),
    ]
    return [*found, len(s), [kind(lambda f=f: str(f())) for f in calls]]


@case
def module_lists(L: Any) -> Any:
    a, b = L.nn.ReLU(), L.nn.Tanh()
    m = L.nn.ModuleList([a, b])
    m.insert(0, b)
    m.append(a).extend([b])
    m += [a]
    found = [repr(m), m[-1] is a, len(m[1:3]), m.pop(1) is a, m.pop(-1) is a, repr(m + [b]), a in m]
    del m[0]
    del m[0:1]
    calls = [
        lambda: m[7],
        lambda: m["0"],
        lambda: m[0.5],
        lambda: m.append(3),
        lambda: m.extend(3),
        lambda: m(1),
        lambda: m.pop(9),
        lambda: repr(m[::-1]),
        lambda: m.__setitem__(0, b),
        lambda: m.__setitem__(-1, b),
        lambda: m.__setitem__(5, b),
    ]
    return [*found, [kind(lambda f=f: str(f())) for f in calls], repr(m), [n for n, _ in m.named_modules()]]


@case
def module_dicts(L: Any) -> Any:
    a, b = L.nn.ReLU(), L.nn.Tanh()
    m = L.nn.ModuleDict({"b": b, "a": a})
    m["c"] = L.nn.Identity()
    m.update(OrderedDict(z=a, y=b))
    m.update([["q", a]])
    m.update(L.nn.ModuleDict({"k": b}))
    found = [
        list(m),
        list(m.keys()),
        "a" in m,
        len(m),
        m["a"] is a,
        [n for n, _ in m.items()],
        len(list(m.values())),
    ]
    del m["a"]
    found += [m.pop("b") is b, repr(m)]
    calls = [
        lambda: m["a"],
        lambda: m.pop("a"),
        lambda: m.update(3),
        lambda: m.update([3]),
        lambda: m.update([["x"]]),
        lambda: m.__setitem__("a.b", a),
        lambda: m.__setitem__(3, a),
        lambda: m.__setitem__("d", 3),
        lambda: m.__setitem__("keys", a),
        lambda: m(1),
        lambda: m.clear(),
        lambda: len(m),
    ]
    return [*found, [kind(lambda f=f: str(f())) for f in calls]]


@case
def parameter_lists_and_dicts(L: Any) -> Any:
    p = L.nn.Parameter(ones(L, 2))
    x = L.nn.ParameterList([p, ones(L, 1), 3])
    x.append(p).extend([ones(L, 3)])
    x += [4]
    x[0] = ones(L, 5)
    d = L.nn.ParameterDict({"b": p, "a": ones(L, 1), "n": 3})
    d["c"] = p
    d.update({"z": p, "y": p})
    e = d.copy()
    found = [
        [type(v).__name__ for v in x],
        len(x),
        [n for n, _ in x.named_parameters()],
        len(x[1:3]),
        kind(lambda: x[20]),
        kind(lambda: x(1)),
        kind(lambda: x.extend(3)),
        repr(x).replace("mica.", "torch."),
        list(d),
        [type(v).__name__ for v in d.values()],
        d.get("nope", 7),
        type(d.setdefault("s", ones(L, 1))).__name__,
        kind(lambda: d["nope"]),
        kind(lambda: d.pop("nope")),
        type(d.pop("a")).__name__,
        d.popitem()[0],
        list(reversed(d)),
        list(e | L.nn.ParameterDict({"q": p})),
        list(d.fromkeys(["u", "v"], 1).items()),
        kind(lambda: d.update(3)),
        kind(lambda: d.update([3])),
        kind(lambda: d.update([(1, 2, 3)])),
        kind(lambda: d(1)),
        "b" in d,
        [n for n, _ in d.named_parameters()],
    ]
    d.clear()
    return [*found, len(d)]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_protocol(name: str) -> None:
    check(CASES[name], name)
