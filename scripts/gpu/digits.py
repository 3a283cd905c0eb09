"""Section `digits`: programs train on the device and on the CPU from the same weights, and lose the same.

The first STEPS losses are compared. Operators that fell back to the CPU are named for each
program. The last row runs examples/digits/train.py as a user would.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from row import Options, Row, Skipped, expect, fallbacks

import mica
import mica.nn.functional as F
from mica import nn

STEPS = 20
TOLERANCE = 1e-4  # of a loss, relative
HERE = Path(__file__).resolve().parent
PLACES = (HERE.parent / "digits", HERE.parent.parent / "examples" / "digits")
# A program gives a network and the loss of one step's batch; both know no device.
Program = tuple[nn.Module, Callable[[nn.Module, int, str], Any]]


def example() -> Path:
    for folder in PLACES:
        if (folder / "train.py").exists():
            return folder / "train.py"
    raise Skipped("examples/digits is not there.")


def digits() -> Program:
    """The convolutional network of examples/digits, without dropout: each device draws its own."""
    spec = importlib.util.spec_from_file_location("digits_example", example())
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    images, labels, _, _ = module.load("cpu")
    net = module.Net()
    net.classify[1] = nn.Identity()

    def loss(net: nn.Module, step: int, device: str) -> Any:
        batch = slice(64 * step, 64 * step + 64)
        scores = net(images[batch].to(device))
        return F.cross_entropy(scores, labels[batch].to(device), label_smoothing=0.05)

    return net, loss


def mlp() -> Program:
    """Regression by three linear layers."""
    generator = np.random.default_rng(1)
    x = generator.standard_normal((STEPS, 128, 64)).astype("float32")
    y = np.sin(x).sum(-1, keepdims=True).astype("float32")
    net = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 1))

    def loss(net: nn.Module, step: int, device: str) -> Any:
        return F.mse_loss(net(mica.from_numpy(x[step]).to(device)), mica.from_numpy(y[step]).to(device))

    return net, loss


class Block(nn.Module):
    """One layer of a transformer, its norms first."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Any) -> Any:
        batch, length, width = x.shape
        split = self.qkv(self.norm(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = split.permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.feed(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, words: int = 65, length: int = 32, width: int = 64, layers: int = 2) -> None:
        super().__init__()
        self.word, self.place = nn.Embedding(words, width), nn.Embedding(length, width)
        self.blocks = nn.Sequential(*[Block(width, 4) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, words: Any) -> Any:
        x = self.word(words) + self.place(mica.arange(words.shape[1], device=words.device))
        return self.head(self.norm(self.blocks(x)))


def _sequences(words: int) -> np.ndarray:
    """Sequences that can be learnt: each word follows from the one before."""
    generator = np.random.default_rng(2)
    start = generator.integers(0, words, (STEPS, 16, 1))
    return (start + 3 * np.arange(33)) % words


def gpt() -> Program:
    text = _sequences(65)

    def loss(net: nn.Module, step: int, device: str) -> Any:
        words = mica.from_numpy(text[step]).to(device)
        return F.cross_entropy(net(words[:, :-1]).reshape(-1, 65), words[:, 1:].reshape(-1))

    return GPT(), loss


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.word, self.lstm, self.head = (
            nn.Embedding(65, 32),
            nn.LSTM(32, 64, batch_first=True),
            nn.Linear(64, 65),
        )

    def forward(self, words: Any) -> Any:
        return self.head(self.lstm(self.word(words))[0])


def lstm() -> Program:
    text = _sequences(65)

    def loss(net: nn.Module, step: int, device: str) -> Any:
        words = mica.from_numpy(text[step]).to(device)
        return F.cross_entropy(net(words[:, :-1]).reshape(-1, 65), words[:, 1:].reshape(-1))

    return Recurrent(), loss


def _train(program: Program, weights: dict[str, Any], device: str) -> tuple[list[float], float]:
    """The losses, and milliseconds of a step behind the first."""
    net, loss_of = program
    net.load_state_dict(weights)
    net = net.to(device)
    optimizer = mica.optim.Adam(net.parameters(), lr=1e-3)
    losses, times = [], []
    for step in range(STEPS):
        start = time.perf_counter()
        optimizer.zero_grad()
        loss = loss_of(net, step, device)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        times.append(time.perf_counter() - start)
    net.to("cpu")
    return losses, 1e3 * float(np.median(times[1:]))


def compared(make: Callable[[], Program], device: str) -> dict[str, Any]:
    mica.manual_seed(0)
    program = make()
    weights = {name: value.clone() for name, value in program[0].state_dict().items()}
    expected, cpu_ms = _train(program, weights, "cpu")
    fallbacks(device)
    given, ms = _train(program, weights, device)
    worst = max(abs(g - e) / abs(e) for g, e in zip(given, expected))
    found = {
        "largest relative difference": worst,
        "agrees": worst <= TOLERANCE,
        "first and last loss": [given[0], given[-1]],
        "CPU's": [expected[0], expected[-1]],
        "ms a step": round(ms, 3),
        "CPU's ms": round(cpu_ms, 3),
        "fell back": fallbacks(device),
    }
    expect(np.isfinite(given).all(), f"A loss is not finite: {found}")
    expect(worst <= 100 * TOLERANCE, f"The losses differ: {found}")
    return found


def program(device: str, epochs: int, out: str) -> dict[str, Any]:
    """examples/digits/train.py: its accuracy after some epochs."""
    command = [sys.executable, str(example()), "--device", device, "--epochs", str(epochs), "--out", out]
    start = time.perf_counter()
    result = subprocess.run(command, capture_output=True, text=True, timeout=150)
    text = result.stdout[-3000:]
    expect(result.returncode == 0, f"The program ended with ({result.returncode}): {result.stderr[-1500:]}")
    accuracy = float(re.findall(r"test accuracy ([\d.]+)", text)[-1])
    trained = float(re.findall(r"trained for ([\d.]+)", text)[-1])
    expect(accuracy >= 0.85, f"The accuracy is ({accuracy}).")
    took = round(time.perf_counter() - start, 1)
    return {"accuracy": accuracy, "epochs": epochs, "trained for": trained, "whole program": took, "stderr": result.stderr[-500:]}  # fmt: skip


def torch_program() -> dict[str, Any]:
    """torch_program.py, which asserts what it says."""
    command = [sys.executable, "-m", "mica.torch", str(Path(__file__).with_name("torch_program.py"))]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    expect(result.returncode == 0, f"The program ended with ({result.returncode}): {result.stderr[-1500:]}")
    return {"printed": result.stdout.splitlines()[:6]}


def rows(device: str, options: Options) -> Iterator[Row]:
    mica.backends.cudnn.allow_tf32 = False  # the CPU's losses are not of rounded numbers
    for make in (digits, mlp, gpt, lstm):
        yield Row(make.__name__, lambda make=make: compared(make, device), limit=100)
    yield Row("program", lambda: program(device, options.more.get("epochs", 5), options.out), limit=160)
    if mica.device(device).type == "cuda":
        yield Row("a program of torch.cuda", torch_program, limit=80)
