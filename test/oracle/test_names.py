"""The public names, one by one: an expression of names.txt gives the same in torch and under the shim.
Modules are compared in test_modules.py, with the configurations of modules.txt.

docs/reference/torch_coverage.md counts a name as tested when it stands here, in a program of another
oracle test, or in the conformance page.
"""

from __future__ import annotations

import os
import tempfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.hub
import torch.nn.utils.stateless
import torch.utils.data.distributed
import torch.utils.dlpack

from mica.torch import namespace

HERE = Path(__file__).resolve().parent
LINES = dict(
    line.split("\t", 1)
    for line in (HERE / "names.txt").read_text().splitlines()
    if line and not line.startswith("#")
)
SHIM = namespace()
# Constructor and shapes of its inputs; "i" before a shape: integers under 3.
MODULES: dict[str, Any] = {
    line.split(" | ")[0].strip(): line.split(" | ")[1].strip()
    for line in (HERE / "modules.txt").read_text().splitlines()
    if line and not line.startswith("#")
}
SCHEDULES = {
    "LambdaLR": "lambda e: 0.9**e",
    "MultiplicativeLR": "lambda e: 0.9",
    "StepLR": "2, 0.5",
    "MultiStepLR": "[1, 3], 0.5",
    "ExponentialLR": "0.8",
    "ConstantLR": "0.5, 2",
    "LinearLR": "0.3, 1.0, 3",
    "PolynomialLR": "4, 2.0",
    "CosineAnnealingLR": "4, 0.01",
    "CosineAnnealingWarmRestarts": "2, 2",
    "OneCycleLR": "0.5, total_steps=8",
    "CyclicLR": "0.01, 0.1, 2",
}
OPTIMISERS = {
    "SGD": "lr=0.1, momentum=0.9",
    "Adam": "lr=0.1",
    "AdamW": "lr=0.1",
    "RMSprop": "lr=0.01",
    "Adagrad": "lr=0.1",
    "Adadelta": "lr=1.0",
    "Adamax": "lr=0.1",
    "NAdam": "lr=0.1",
    "RAdam": "lr=0.1",
    "ASGD": "lr=0.1",
    "Rprop": "lr=0.1",
}


def plain(value: Any) -> Any:
    """A result of either library as numbers and words."""
    if hasattr(value, "detach") and hasattr(value, "tolist"):
        return (
            str(value.dtype).split(".")[-1],
            tuple(value.shape),
            np.asarray(value.detach().to(float_of(value)).tolist()),
        )
    if isinstance(value, dict):
        return [(k, plain(v)) for k, v in value.items()]
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, str):
        return value.replace("mica.", "torch.")
    return value if isinstance(value, (int, float, str, bool, type(None))) else str(type(value).__name__)


def float_of(value: Any) -> Any:
    library = torch if isinstance(value, torch.Tensor) else SHIM
    return library.complex128 if value.dtype.is_complex else library.float64


def agree(a: Any, b: Any, what: str, tolerance: float = 2e-5) -> None:
    if isinstance(b, np.ndarray):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance, err_msg=what)
    elif isinstance(b, (list, tuple)):
        assert len(a) == len(b), what
        for x, y in zip(a, b):
            agree(x, y, what, tolerance)
    elif isinstance(b, float):
        assert a == pytest.approx(b, rel=tolerance, nan_ok=True), what
    else:
        assert a == b, what


def raises(f: Any) -> str:
    try:
        f()
    except Exception as error:
        return next(c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins")
    return "nothing"


def with_(block: Any, f: Any) -> Any:
    with block:
        return f()


def gradient(L: Any, run: Any, block: Any = None) -> Any:
    v = L.tensor([1.0, 2.0], requires_grad=True)
    if block is None:
        run((v * v).sum())
    else:
        with block:
            y = (v * v).sum()
        run(y)
    return v.grad


def grad_with_hook(L: Any) -> Any:
    seen = []
    v = L.tensor([1.0, 2.0], requires_grad=True)
    v.register_hook(lambda g: g * 2)
    v.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.tolist()))
    (v * v).sum().backward()
    return [v.grad, seen]


def custom_function(L: Any, mark: Any = lambda f: f) -> Any:
    class Cube(L.autograd.Function):
        @staticmethod
        def forward(ctx: Any, v: Any) -> Any:
            ctx.save_for_backward(v)
            return v**3

        @staticmethod
        @mark
        def backward(ctx: Any, g: Any) -> Any:
            (v,) = ctx.saved_tensors
            return g * 3 * v**2

    v = L.tensor([2.0], requires_grad=True)
    Cube.apply(v).backward()
    return v.grad


def clipped(L: Any, clip: Any) -> Any:
    p = L.nn.Parameter(L.ones(2))
    (p * L.tensor([3.0, -4.0])).sum().backward()
    clip([p])
    return p.grad


def foreach(L: Any, name: str, *args: Any) -> Any:
    values = [L.tensor([1.0, -2.0]), L.tensor([[3.0]])]
    found = getattr(L, name)(values, *args)
    return values if name.endswith("_") else list(found)


def scheduled(L: Any) -> Any:
    return L.optim.SGD([L.nn.Parameter(L.ones(1))], lr=0.1)


def plateau(L: Any) -> Any:
    optim = scheduled(L)
    schedule = L.optim.lr_scheduler.ReduceLROnPlateau(optim, patience=1, factor=0.5, cooldown=1)
    rates = []
    for loss in (1.0, 0.9, 0.95, 0.95, 0.96, 0.97, 0.98, 0.5):
        optim.step()
        schedule.step(loss)
        rates.append(optim.param_groups[0]["lr"])
    return rates


def sequential(L: Any) -> Any:
    optim, S = scheduled(L), L.optim.lr_scheduler
    parts = [S.ConstantLR(optim, 0.1, 2), S.ExponentialLR(optim, 0.9)]
    schedule = S.SequentialLR(optim, parts, [3])
    rates = []
    for _ in range(6):
        optim.step()
        schedule.step()
        rates.append(optim.param_groups[0]["lr"])
    return rates


def handle(L: Any) -> Any:
    hooks: Any = OrderedDict()
    h = L.utils.hooks.RemovableHandle(hooks)
    hooks[h.id] = 1
    h.remove()
    return hooks


def hub_file(L: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "w-abc.pt")
        L.save({"w": L.ones(2)}, source)
        L.hub.download_url_to_file(f"file://{source}", os.path.join(folder, "copy.pt"), progress=False)
        return L.hub.load_state_dict_from_url(f"file://{folder}/copy.pt", model_dir=folder, progress=False)


def hub_folder(L: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "hubconf.py").write_text(
            "dependencies = []\ndef seven(n=1):\n    'Seven.'\n    return 7 * n\n"
        )
        return L.hub.load(folder, "seven", n=2, source="local")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", LINES)
def test_name(name: str) -> None:
    found = []
    for L in (SHIM, torch):
        scope = dict(globals())
        scope.update(
            L=L,
            t=lambda v, L=L: L.tensor(v, dtype=L.float32),
            i=lambda v, L=L: L.tensor(v, dtype=L.int64),
            x=L.tensor([[-1.5, 0.25, 2.0], [0.5, -0.75, 1.0]]),
        )
        found.append(plain(eval(LINES[name], scope)))
    agree(*found, name)


def inputs(L: Any, text: str) -> list[Any]:
    made = []
    for n, part in enumerate(text.split(";")):
        whole = part.strip().startswith("i")
        shape = tuple(int(v) for v in part.strip().lstrip("ip").split())
        count = int(np.prod(shape)) if shape else 1
        if whole:
            made.append(L.arange(count).remainder(3).reshape(shape))
        elif part.strip().startswith("p"):
            made.append(L.arange(float(count)).reshape(shape) / count + 0.1)
        else:
            made.append(L.sin(L.arange(float(count)) * (1.3 + n)).reshape(shape))
    return made


def stepped(L: Any, name: str, arguments: str) -> Any:
    L.manual_seed(5)
    m = L.nn.Linear(3, 2)
    optim = eval(f"L.optim.{name}(m.parameters(), {arguments})", {"L": L, "m": m})
    for i in range(5):
        optim.zero_grad()
        m(L.arange(6.0).reshape(2, 3) * (0.1 * i + 0.1)).square().mean().backward()
        optim.step()
    return [plain(m.state_dict()), sorted(optim.state_dict()), repr(optim).splitlines()[0]]


@pytest.mark.parametrize("name", OPTIMISERS)
def test_optimiser(name: str) -> None:
    agree(*(stepped(L, name, OPTIMISERS[name]) for L in (SHIM, torch)), name)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SCHEDULES)
def test_schedule(name: str) -> None:
    found = []
    for L in (SHIM, torch):
        optim = L.optim.SGD([L.nn.Parameter(L.ones(1))], lr=0.1, momentum=0.5)
        schedule = eval(f"L.optim.lr_scheduler.{name}(o, {SCHEDULES[name]})", {"L": L, "o": optim})
        rates = []
        for _ in range(7):
            optim.step()
            schedule.step()
            rates.append(float(optim.param_groups[0]["lr"]))
        found.append([rates, schedule.last_epoch, [float(v) for v in schedule.get_last_lr()]])
    agree(*found, name)
