"""mica.nn.Module: registration, state, hooks, conversion, containers; data loading."""

from __future__ import annotations

import sys
from collections import OrderedDict
from typing import Any

import pytest

import mica
from mica import nn
from mica._devices import methods
from mica.nn import parallel
from mica.utils.data import DataLoader, TensorDataset, random_split
from mica.utils.module_tracker import ModuleTracker


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.second = nn.Sequential(nn.ReLU(), nn.Linear(4, 2, bias=False))
        self.scale = nn.Parameter(mica.ones(1))
        self.register_buffer("steps", mica.zeros(1))
        self.register_buffer("cache", mica.zeros(1), persistent=False)

    def forward(self, x: Any) -> Any:
        return self.second(self.first(x)) * self.scale


def test_names() -> None:
    net = Net()
    assert [n for n, _ in net.named_parameters()] == [
        "scale",
        "first.weight",
        "first.bias",
        "second.1.weight",
    ]
    assert [n for n, _ in net.named_buffers()] == ["steps", "cache"]
    assert [n for n, _ in net.named_modules()] == ["", "first", "second", "second.0", "second.1"]
    assert list(net.state_dict()) == ["scale", "steps", "first.weight", "first.bias", "second.1.weight"]


def test_state_dict_round_trip_and_errors() -> None:
    a, b = Net(), Net()
    assert str(b.load_state_dict(a.state_dict())) == "<All keys matched successfully>"
    assert b.first.weight.tolist() == a.first.weight.tolist()
    state = a.state_dict()
    state["extra"] = state.pop("scale")
    with pytest.raises(RuntimeError, match="(?s)Missing key.*scale.*Unexpected key.*extra"):
        b.load_state_dict(state)
    assert b.load_state_dict(state, strict=False).missing_keys == ["scale"]
    with pytest.raises(RuntimeError, match="shape"):
        b.load_state_dict({**a.state_dict(), "scale": mica.ones(2)})


def test_hooks_in_order() -> None:
    net, calls = nn.Linear(2, 2), []
    handles = [
        net.register_forward_pre_hook(lambda m, args: calls.append("pre")),
        net.register_forward_hook(lambda m, args, out: calls.append("post") or out * 0),
        net.register_full_backward_hook(lambda m, gi, go: calls.append("backward")),
    ]
    x = mica.ones(1, 2, requires_grad=True)
    out = net(x)
    assert out.tolist() == [[0, 0]]
    out.sum().backward()
    assert calls == ["pre", "post", "backward"]
    for handle in handles:
        handle.remove()
    net(x)
    assert calls == ["pre", "post", "backward"]


@pytest.mark.parametrize("kind", ["register_full_backward_hook", "register_full_backward_pre_hook"])
def test_what_backward_hooks_return(kind: str) -> None:
    x = mica.ones(1, 1, requires_grad=True)

    def gradient(returned: Any) -> float:
        x.grad, layer = None, nn.Identity()
        getattr(layer, kind)(lambda module, *grads: returned)
        layer(x).sum().backward()
        return x.grad.item()  # type: ignore[union-attr]

    two = mica.full((1, 1), 2.0)
    assert [gradient(value) for value in (None, two, (two,), [two])] == [1.0, 2.0, 2.0, 2.0]
    for wrong in (3, (3,)):
        with pytest.raises(TypeError, match=r"backward hook of Identity.*\(int\)"):
            gradient(wrong)
    with pytest.raises(RuntimeError, match=r"\(2\) gradients.*expected \(1\)"):
        gradient((two, two))


def test_modes_and_conversion() -> None:
    net = Net().eval()
    assert not net.second.training and net.train().second.training
    weight = net.first.weight
    net.double()
    assert net.first.weight is weight and weight.dtype == mica.float64
    net.to(mica.float32)
    assert net(mica.ones(1, 3)).dtype == mica.float32
    net.requires_grad_(False)
    assert not any(p.requires_grad for p in net.parameters())


@pytest.mark.parametrize("kind", [nn.Parameter, nn.Buffer])
def test_parameters_and_buffers_are_made_of_tensors(kind: Any) -> None:
    with pytest.raises(TypeError, match=r"is made of a Tensor; this value is of type \(int\)"):
        kind(3)


def test_assignment_rules() -> None:
    net = Net()
    with pytest.raises(TypeError):
        net.scale = mica.ones(1)
    with pytest.raises(KeyError):
        net.register_buffer("a.b", mica.ones(1))
    with pytest.raises(AttributeError):
        getattr(net, "nothing")  # noqa: B009
    del net.scale
    assert "scale" not in dict(net.named_parameters())


def test_containers() -> None:
    seq = nn.Sequential(OrderedDict(a=nn.ReLU(), b=nn.Tanh()))
    assert isinstance(seq.a, nn.ReLU) and len(seq[:1]) == 1
    items = nn.ModuleList([nn.ReLU()])
    items.append(nn.Tanh()).insert(0, nn.Sigmoid())
    assert [type(m).__name__ for m in items] == ["Sigmoid", "ReLU", "Tanh"]
    del items[0]
    assert len(items) == 2 and isinstance(items[-1], nn.Tanh)
    table = nn.ModuleDict({"x": nn.ReLU()})
    assert "x" in table and list(table.keys()) == ["x"]
    parameters = nn.ParameterList([mica.ones(1), mica.ones(2)])
    assert len(list(parameters.parameters())) == 2


def test_names_are_strings_and_entries_are_pairs() -> None:
    with pytest.raises(TypeError, match=r"module name should be a string. Got int \(3\)"):
        nn.Module().add_module(3, nn.ReLU())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="buffer name should be a string"):
        nn.Module().register_buffer(3, None)  # type: ignore[arg-type]
    for kind, value in ((nn.ModuleDict, nn.ReLU()), (nn.ParameterDict, mica.ones(1))):
        with pytest.raises(TypeError, match=r"a mapping or pairs, not \(int\)"):
            kind(3)
        with pytest.raises(ValueError, match=r"Entry \(1\) has \(1\) elements"):
            kind([("a", value), ("b",)])
        assert list(kind([("b", value), ("a", value)])) == ["b", "a"]
        assert list(kind(kind({"b": value}))) == ["b"]
    assert list(nn.ModuleDict({"b": nn.ReLU(), "a": nn.ReLU()})) == ["b", "a"]
    assert list(nn.ParameterDict({"b": mica.ones(1), "a": mica.ones(1)})) == ["a", "b"]  # as in torch
    assert list(nn.ParameterDict(OrderedDict(b=mica.ones(1), a=mica.ones(1)))) == ["b", "a"]


def test_dropout_scales() -> None:
    mica.manual_seed(0)
    x = mica.ones(10000)
    y = nn.Dropout(0.25)(x)
    assert set(y.unique().tolist()) == {0.0, x.item() if x.numel() == 1 else mica.tensor(1 / 0.75).item()}
    assert abs(y.mean().item() - 1) < 0.05
    assert nn.Dropout(0.25).eval()(x) is x or bool((nn.Dropout(0.25).eval()(x) == x).all())


@pytest.mark.parametrize("p", [-0.5, 1.5])
@pytest.mark.parametrize("need_weights", [True, False])
def test_attention_refuses_what_is_no_probability(p: float, need_weights: bool) -> None:
    x = mica.ones(3, 2, 4)
    with pytest.raises(ValueError, match="between 0 and 1"):
        nn.MultiheadAttention(4, 2, dropout=p)(x, x, x, need_weights=need_weights)


def test_batch_norm_tracks() -> None:
    norm = nn.BatchNorm1d(2)
    x = mica.tensor([[1.0, 2.0], [3.0, 6.0]])
    norm(x)
    assert norm.num_batches_tracked.item() == 1
    mica.testing.assert_close(norm.running_mean, mica.tensor([0.2, 0.4]))
    with pytest.raises(ValueError):
        norm(mica.ones(1, 2))


def test_instance_norm_warns_of_channels_that_it_was_not_made_for() -> None:
    x = mica.arange(12.0).reshape(2, 3, 2)
    with pytest.warns(UserWarning, match=r"channels \(3\).*num_features \(5\)"):
        y = nn.InstanceNorm1d(5)(x)
    assert bool((y == nn.InstanceNorm1d(3)(x)).all())
    with pytest.raises(ValueError, match=r"channels \(3\).*num_features \(5\)"):
        nn.InstanceNorm1d(5, affine=True)(x)


def test_clip_grad_norm() -> None:
    p = nn.Parameter(mica.zeros(2))
    p.grad = mica.tensor([3.0, 4.0])
    assert abs(nn.utils.clip_grad_norm_([p], 1.0).item() - 5) < 1e-5
    assert abs(p.grad.norm().item() - 1) < 1e-4


def test_optimizer_state_round_trip() -> None:
    model = nn.Linear(2, 2)
    optimiser = mica.optim.Adam(model.parameters(), lr=0.1)
    model(mica.ones(1, 2)).sum().backward()
    optimiser.step()
    other = mica.optim.Adam(model.parameters())
    other.load_state_dict(optimiser.state_dict())
    assert other.param_groups[0]["lr"] == 0.1
    assert other.state[model.weight]["exp_avg"].tolist() == optimiser.state[model.weight]["exp_avg"].tolist()


def test_data_loader() -> None:
    data = TensorDataset(mica.arange(10), mica.arange(10) * 2)
    mica.manual_seed(0)
    seen = []
    for a, b in DataLoader(data, batch_size=4, shuffle=True):
        assert (b == a * 2).all()
        seen += a.tolist()
    assert sorted(seen) == list(range(10)) and seen != list(range(10))
    assert len(DataLoader(data, batch_size=4, drop_last=True)) == 2
    assert [len(p) for p in random_split(data, [0.7, 0.3])] == [7, 3]


def _doubled(self: Any, x: Any) -> Any:
    return x * 2


class _Doubled(nn.Module):
    forward = _doubled


class _OwnGetattr(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(mica.ones(2))

    def __getattr__(self, name: str) -> Any:
        return "own" if name == "own" else super().__getattr__(name)


def _patched(owner: Any, name: str, value: Any, run: Any) -> Any:
    """What run() gives while an attribute is another, and after it is back."""
    before = owner.__dict__.get(name)
    setattr(owner, name, value)
    try:
        changed = run()
    finally:
        delattr(owner, name) if before is None else setattr(owner, name, before)
    return changed, run()


def _on_instance(m: nn.Module) -> Any:
    return _patched(m, "forward", lambda x: x * 3, lambda: float(m(mica.ones(()))))


def _on_class(m: nn.Module) -> Any:
    return _patched(_Doubled, "forward", lambda self, x: x * 4, lambda: float(m(mica.ones(()))))


def _call_of_class(m: nn.Module) -> Any:
    return _patched(_Doubled, "__call__", lambda self, x: x * 5, lambda: float(m(mica.ones(()))))


def _call_of_module(m: nn.Module) -> Any:
    original = nn.Module.__call__
    return _patched(nn.Module, "__call__", lambda s, x: original(s, x) * 3, lambda: float(m(mica.ones(()))))


def _getattr_of_class(m: nn.Module) -> Any:
    return _patched(_Doubled, "__getattr__", lambda self, name: name, lambda: getattr(m, "absent", None))


def _property_first(m: nn.Module) -> Any:
    m.register_buffer("shown", mica.ones(()))
    return _patched(
        _Doubled,
        "shown",
        property(lambda self: "property"),
        lambda: float(m.shown) if not isinstance(m.shown, str) else m.shown,
    )


def _hooks_on_all(m: nn.Module) -> Any:
    handle = nn.modules.module.register_module_forward_hook(lambda module, args, out: out + 1)
    changed = float(m(mica.ones(())))
    handle.remove()
    return changed, float(m(mica.ones(())))


def _hook_on_one(m: nn.Module) -> Any:
    handle = m.register_forward_pre_hook(lambda module, args: (args[0] * 10,))
    changed = float(m(mica.ones(())))
    handle.remove()
    return changed, float(m(mica.ones(())))


_PROTOCOL = {
    _on_instance: (3.0, 2.0),
    _on_class: (4.0, 2.0),
    _call_of_class: (5.0, 2.0),
    _call_of_module: (6.0, 2.0),
    _getattr_of_class: ("absent", None),
    _property_first: ("property", 1.0),
    _hooks_on_all: (3.0, 2.0),
    _hook_on_one: (20.0, 2.0),
}


@pytest.mark.parametrize("change", _PROTOCOL, ids=lambda f: f.__name__.strip("_"))
def test_what_a_call_or_an_attribute_finds_follows_every_change(change: Any) -> None:
    assert change(_Doubled()) == _PROTOCOL[change]


def test_a_class_keeps_its_own_getattr_and_may_change_its_class() -> None:
    m = _OwnGetattr()
    assert m.own == "own" and m.weight.shape == (2,)
    with pytest.raises(AttributeError, match="absent"):
        m.absent  # noqa: B018

    class Mixed(dict, _Doubled):  # type: ignore[type-arg, misc]
        pass

    class Same(_Doubled):
        pass

    other = Same()
    other.__class__ = _Doubled
    assert float(other(mica.ones(()))) == 2.0 and float(Mixed(x=1) and _Doubled()(x=mica.ones(()))) == 2.0
    with pytest.raises(TypeError, match="positional"):
        other(1, 2)


def test_modules_pickled_without_the_kind_of_their_backward_hooks() -> None:
    module = mica.nn.Linear(2, 2)
    del module.__dict__["_is_full_backward_hook"]
    seen = []
    module.register_forward_hook(lambda *args: seen.append(len(args)))
    module(mica.ones(1, 2)).sum().backward()
    module.register_full_backward_hook(lambda *args: seen.append(len(args)))
    module(mica.ones(1, 2)).sum().backward()
    assert seen == [3, 3, 3]


def test_what_records_calls_leaves_them_to_the_slot() -> None:
    """Python's own slot would put the frame of Module.__call__ between a caller and forward()."""

    class Caller(nn.Module):
        def forward(self, x: Any) -> str:
            return sys._getframe(1).f_code.co_name

    here = sys._getframe().f_code.co_name
    assert Caller()(1) == here
    mica.fx.symbolic_trace(nn.Sequential(nn.Linear(1, 1), nn.ReLU()))
    assert Caller()(1) == here
    with ModuleTracker():
        assert Caller()(1) != here
    assert Caller()(1) == here


def test_parts_of_a_batch_on_several_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut, replicas, results put together: values and gradients are those of the whole batch."""
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4).eval(), nn.Linear(4, 2))
    x, two = mica.arange(15.0).reshape(5, 3), ["cpu", "cpu"]
    args, kwargs = parallel.scatter_kwargs(({"a": [x, 7]}, x), {"b": (x[:4],)}, two)
    assert [(a[0]["a"][0].shape[0], a[0]["a"][1], len(a)) for a in args] == [(3, 7, 2), (2, 7, 2)]
    assert [k["b"][0].shape[0] for k in kwargs] == [2, 2]
    whole = net(x)
    whole.square().sum().backward()
    expected = [p.grad.clone() for p in net.parameters()]
    net.zero_grad()
    found = parallel.data_parallel(net, x, two)
    found.square().sum().backward()
    assert mica.allclose(found, whole)
    assert all(mica.allclose(p.grad, g) for p, g in zip(net.parameters(), expected))
    assert not any(
        p.requires_grad
        for p in vars(parallel.replicate(net, two, detach=True)[1][0]).values()
        if isinstance(p, mica.Tensor)
    )
    gathered = parallel.gather([(x, {"k": None}), (x, {"k": None})], "cpu", 1)
    assert gathered[0].shape == (5, 6) and gathered[1] == {"k": None}
    monkeypatch.setattr(
        mica.accelerator, "current_accelerator", lambda **_: None
    )  # whatever other tests loaded
    with pytest.raises(RuntimeError, match="no accelerator"):
        parallel.scatter(x, [0])


def test_a_submodule_of_a_backends_name_is_the_submodule() -> None:
    class Named(mica.nn.Module):
        """As Module is once a plugin provides acme.unit."""

    for name, value in methods.of_module("acme.unit").items():
        setattr(Named, name, value)
    module = Named()
    assert Named.acme_unit.__name__ == module.acme_unit.__name__ == "acme_unit"
    module.acme_unit = mica.nn.Linear(2, 2)
    assert isinstance(module.acme_unit, mica.nn.Linear)
