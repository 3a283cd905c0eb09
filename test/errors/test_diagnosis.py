"""What Mica says of a network: the module in an error's message, anomaly mode's, and summary()."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

import mica
from mica import nn


class Net(nn.Module):
    """An encoder whose fourth layer has the wrong width, a head, and a layer that is not registered."""

    def __init__(self, width: int = 5) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 4)
        self.encoder.layers[3].linear1 = nn.Linear(width, 16)
        self.head = nn.Linear(8, 2)
        self.hidden = [nn.Linear(3, 3)]

    def forward(self, x: Any, raises: Any = None) -> Any:
        if raises is not None:
            raise raises
        return self.head(self.encoder(x)) if x.ndim == 3 else self.hidden[0](x)


class Hooked(Net):
    def __init__(self) -> None:
        super().__init__()
        self.encoder.register_forward_hook(lambda module, args, output: None)


PATHS = [
    (Net, (2, 3, 8), "in module encoder.layers.3.linear1 (Linear) of Net"),
    (lambda: nn.Sequential(Net()), (2, 3, 8), "in module 0.encoder.layers.3.linear1 (Linear) of Sequential"),
    (lambda: nn.Sequential(Net(8)), (2, 3, 9), "in module 0.encoder.layers.0.self_attn"),
    (Hooked, (2, 3, 8), "in module encoder.layers.3.linear1 (Linear) of Hooked"),
    (Net, (4,), "in module <Linear> (Linear) of Net"),
    (lambda: nn.Sequential(nn.LSTM(3, 4)), (2, 2, 5), "in module 0 (LSTM) of Sequential"),
]


@pytest.mark.parametrize("make, shape, expected", PATHS)
def test_an_error_names_its_module(make: Any, shape: tuple[int, ...], expected: str) -> None:
    with pytest.raises((RuntimeError, AssertionError)) as caught:
        make()(mica.ones(shape))
    text = str(caught.value)
    assert expected in text
    assert text.count("in module") == 1
    assert "/mica/nn/" in str(caught.traceback[-1].path)  # the traceback still ends where it was raised


class Special(RuntimeError):
    pass


@pytest.mark.parametrize(
    "error", [RuntimeError("mine"), Special("mine"), KeyError("mine"), RuntimeError(1, 2)]
)
def test_a_programs_own_error_stays_as_it_is(error: Exception) -> None:
    args = error.args
    with pytest.raises(type(error)) as caught:
        nn.Sequential(nn.Sequential(Net()))[0][0](mica.ones(1), raises=error)
    assert caught.value is error and error.args == args


def test_the_path_keeps_no_network_alive() -> None:
    net: Any = nn.Sequential(nn.Linear(2, 2))
    kept = weakref.ref(net)
    try:
        net(mica.ones(3))
    except RuntimeError as error:
        text = str(error)
    assert "in module 0" in text
    del net
    gc.collect()
    assert kept() is None


def test_anomaly_mode_names_the_line_and_the_module() -> None:
    class Root(nn.Module):
        def forward(self, x: Any) -> Any:
            return x.sqrt()  # the gradient at 0 is infinite, times 0

    model = nn.Sequential(nn.Identity(), Root())
    with mica.autograd.detect_anomaly(), pytest.warns(UserWarning) as warned, pytest.raises(RuntimeError):
        x = mica.zeros(2, requires_grad=True)
        (model(x) * 0).sum().backward()
    text = str(warned[0].message)
    assert "return x.sqrt()" in text and "in module 1 (Root) of Sequential" in text


def test_summary() -> None:
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(4 * 30 * 30, 2))
    net.append(net[3].__class__(2, 2))
    net.unused = nn.Linear(1, 1)  # type: ignore[assignment]
    net.forward = lambda x: net[4](net[4](net[3](net[2](net[1](net[0](x))))))  # type: ignore[method-assign]
    state = mica.get_rng_state()
    before = {k: v.clone() for k, v in net.state_dict().items()}
    mica.reset_peak_memory_stats("cpu")
    start = mica.memory_allocated("cpu")
    found = mica.utils.summary(net, mica.ones(8, 3, 32, 32, device="meta"))
    assert mica.max_memory_allocated("cpu") - start < 100_000
    assert all(mica.equal(v, before[k]) for k, v in net.state_dict().items())
    assert mica.equal(state, mica.get_rng_state())
    rows = {layer.path: (layer.kind, layer.outputs, layer.parameters, layer.calls) for layer in found.layers}
    assert rows == {
        "": ("Sequential", [(8, 2)], 0, 1),
        "0": ("Conv2d", [(8, 4, 30, 30)], 4 * 27 + 4, 1),
        "1": ("BatchNorm2d", [(8, 4, 30, 30)], 8, 1),
        "2": ("Flatten", [(8, 3600)], 0, 1),
        "3": ("Linear", [(8, 2)], 7202, 1),
        "4": ("Linear", [(8, 2)], 6, 2),
        "unused": ("Linear", [], 2, 0),
    }
    assert found.total_parameters == sum(p.numel() for p in net.parameters())
    assert found.parameter_bytes == 4 * found.total_parameters
    assert "8x4x30x30" in str(found) and "8x2 x 2" in str(found) and "not called" in str(found)
    assert not any(m._forward_hooks for m in net.modules())


def test_summary_of_tied_weights_vmap_and_values() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)
            self.b.weight = self.a.weight

        def forward(self, x: Any, scale: float = 1.0) -> Any:
            return {"out": mica.func.vmap(lambda row: self.b(self.a(row)) * scale)(x), "n": 3}

    found = mica.utils.summary(Tied(), mica.ones(2, 3), scale=2.0)
    assert found.total_parameters == 15 and found.layers[0].outputs == [(2, 3)]
    assert len(mica.utils.summary(Tied(), mica.ones(2, 3), depth=0).layers) == 1

    class Reads(nn.Module):
        def forward(self, x: Any) -> Any:
            return x if x.sum() > 0 else -x

    with pytest.raises(NotImplementedError, match="device=None"):
        mica.utils.summary(Reads(), mica.ones(2))
    assert mica.utils.summary(Reads(), mica.ones(2), device=None).layers[0].outputs == [(2,)]
