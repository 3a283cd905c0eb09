"""Checks of copies: every dtype and layout, both directions, between devices, not blocking."""

from __future__ import annotations

import copy
import pickle

import numpy as np

import mica
from mica.conformance.backlog import backlogs
from mica.conformance.runtime import NotApplicable, check, equal, expect, refused

_CONVERTED = [
    "bool",
    "uint8",
    "int8",
    "int32",
    "int64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
]


def _numbers(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(count).astype("float32")


@check("copies")
def every_dtype_there_and_back(device: str) -> None:
    """The bits of each dtype survive a copy to the device and back."""
    for dtype in sorted({x for x in vars(mica).values() if isinstance(x, mica.dtype)}, key=repr):
        high = 2 if dtype == mica.bool else 256
        bits = np.random.default_rng(1).integers(0, high, 37 * dtype.itemsize).astype("uint8")
        x = mica.from_numpy(bits.copy()).view(dtype)
        back = x.to(device).to("cpu")
        expect(back.dtype == dtype, f"The dtype ({dtype}) came back as ({back.dtype}).")
        equal(back.view(mica.uint8), bits, f"The bits of dtype ({dtype}) changed.")


@check("copies")
def empty_and_single_elements(device: str) -> None:
    """Tensors of zero elements and of zero dimensions keep shape and value."""
    for shape in [(0,), (3, 0, 2), ()]:
        x = mica.full(list(shape), 2.5)
        y = x.to(device)
        expect(tuple(y.shape) == shape, f"The shape {shape} became {tuple(y.shape)}.")
        equal(y, x.numpy(), f"The values of a tensor of shape {shape} changed.")
    expect(mica.full([], 2.5).to(device).item() == 2.5, "item() of a 0-d tensor is another value.")


@check("copies")
def strided_sources(device: str) -> None:
    """Transposed, stepped, expanded and offset tensors of either side are copied by value."""
    a = _numbers(60).reshape(5, 12)
    host = mica.from_numpy(a)
    there = host.to(device)
    views = {
        "transposed": (lambda t: t.transpose(0, 1), a.T),
        "stepped": (lambda t: t[1:, ::3], a[1:, ::3]),
        "expanded": (lambda t: t[:1].expand([4, 12]), np.broadcast_to(a[:1], (4, 12))),
        "offset": (lambda t: t[2, 3:], a[2, 3:]),
    }
    for name, (view, expected) in views.items():
        equal(view(there), expected, f"A {name} tensor of the device came to the CPU with other values.")
        equal(view(host).to(device), expected, f"A {name} CPU tensor came to the device with other values.")
        equal(view(there).clone(), expected, f"The clone of a {name} tensor has other values.")


@check("copies")
def strided_destinations(device: str) -> None:
    """copy_ into a view writes its elements and no others."""
    a = _numbers(12).reshape(3, 4)
    for side in ("cpu", device):
        base = mica.zeros([4, 6]).to(device)
        base.transpose(0, 1)[1:5, :3].copy_(mica.from_numpy(a.T.copy()).to(side))
        expected = np.zeros((4, 6), "float32")
        expected.T[1:5, :3] = a.T
        equal(base, expected, f"copy_ from ({side}) into a strided view of the device wrote other elements.")
    base = mica.zeros([4, 6])
    base[:3, 1:5].copy_(mica.from_numpy(a).to(device))
    expected = np.zeros((4, 6), "float32")
    expected[:3, 1:5] = a
    equal(base, expected, "copy_ from the device into a strided CPU tensor wrote other elements.")


@check("copies")
def converting(device: str) -> None:
    """copy_ between dtypes gives what the CPU gives, whichever side converts."""
    for source in _CONVERTED:
        x = mica.from_numpy(np.arange(0, 24, dtype="int64")).to(getattr(mica, source))
        for target in _CONVERTED:
            expected = mica.zeros([24], dtype=getattr(mica, target)).copy_(x).to(mica.complex64).numpy()
            for left, right in ((device, "cpu"), ("cpu", device), (device, device)):
                y = mica.zeros([24], dtype=getattr(mica, target)).to(left).copy_(x.to(right))
                how = f"({source}) on ({right}) to ({target}) on ({left})"
                equal(y.to("cpu").to(mica.complex64), expected, f"Other values come of {how}.")


@check("copies")
def large_there_and_back(device: str) -> None:
    """32 MiB and a few odd bytes survive the way to the device and back."""
    a = np.random.default_rng(2).integers(0, 256, (32 << 20) + 13).astype("uint8")
    equal(mica.from_numpy(a).to(device), a, "A large tensor changed on its way.")


@check("copies")
def not_blocking(device: str) -> None:
    """Copies with non_blocking=True hold after synchronize, when the source is dropped meanwhile too."""
    if mica.device(device).type == "cpu":
        raise NotApplicable
    y = mica.empty([1 << 16], device=device)
    for seed, backlog in enumerate(backlogs(mica.current_stream(device))):
        a = _numbers(1 << 16, seed)
        y.copy_(mica.from_numpy(a.copy()), non_blocking=True)
        back = y.to("cpu", non_blocking=True)
        backlog.wait(lambda: mica.synchronize(device))
        equal(y, a, "A copy to the device that did not block gave other values.")
        equal(back, a, "A copy from the device that did not block gave other values.")


@check("copies")
def between_devices(device: str) -> None:
    """Every other device of this process gives and takes tensors."""
    a = _numbers(1000)
    here = mica.device(device)
    names = [n for n in mica._C._backend_names() if n not in ("cpu", "meta")]
    others = [
        f"{n}:{k}" for n in names for k in range(mica.device_count(n)) if mica.device(f"{n}:{k}") != here
    ]
    if not others:
        raise NotApplicable
    for other in others:
        x, y = mica.from_numpy(a).to(other), mica.full([1000], -1.0).to(device)
        y.copy_(x)
        equal(y, a, f"A tensor from ({other}) came with other values.")
        equal(mica.from_numpy(a).to(device).to(other), a, f"A tensor came to ({other}) with other values.")
        equal(
            x.reshape(10, 100).t().to(device),
            a.reshape(10, 100).T,
            f"A transposed tensor of ({other}) changed.",
        )


@check("copies")
def pickle_and_deepcopy(device: str) -> None:
    """A tensor that was pickled or copied deeply is on the same device with the same values."""
    x = mica.from_numpy(_numbers(12).reshape(3, 4)).to(device)
    for name, y in (("pickle", pickle.loads(pickle.dumps(x))), ("deepcopy", copy.deepcopy(x))):
        expect(y.device == x.device, f"After {name} the tensor is on ({y.device}).")
        equal(y, x.to("cpu").numpy(), f"After {name} the values differ.")


@check("device")
def numbers_out_of_range(device: str) -> None:
    """An index behind the last device is refused, and the message says how many there are."""
    backend = mica.device(device).type
    if backend == "cpu":
        raise NotApplicable
    count = mica.device_count(backend)
    expect(count > 0, f"The backend ({backend}) has no device.")
    refused(RuntimeError, lambda: mica.empty([2], device=f"{backend}:{count}"), str(count), backend)


@check("device")
def mixed_devices(device: str) -> None:
    """An operator over tensors of two devices is refused; the sentence names both and the fix."""
    if mica.device(device).type == "cpu":
        raise NotApplicable
    x, y = mica.ones([3]).to(device), mica.ones([3])
    refused(RuntimeError, lambda: mica.add(x, y), mica.device(device).type, "cpu", ".to(")


@check("device")
def properties(device: str) -> None:
    """The device says its name."""
    if mica.device(device).type == "cpu":
        raise NotApplicable
    expect(mica.device_properties(device)["name"], "The name is empty.")
