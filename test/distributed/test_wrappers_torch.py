"""Activation checkpoints of modules and recorded errors, with Mica and with torch."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest
import torch

import mica

WRAPPER = "distributed.algorithms._checkpoint.checkpoint_wrapper"


def both(name: str) -> list[tuple[Any, Any]]:
    return [(m, importlib.import_module(f"{m.__name__}.{name}")) for m in (mica, torch)]


def of_wrapped(m: Any, w: Any, how: str) -> dict[str, Any]:
    """What a program sees of a model whose blocks are wrapped."""
    calls = []

    class Block(m.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.scale = m.nn.Linear(4, 4), 3

        def forward(self, x: Any, bias: Any = 0) -> Any:
            calls.append(tuple(x.shape))
            return m.tanh(self.linear(x)) * self.scale + bias

    def own(f: Any, *args: Any, **kwargs: Any) -> Any:
        return f(*args, **kwargs)

    wrap = {
        "plain": w.checkpoint_wrapper,
        "reentrant": lambda block: w.checkpoint_wrapper(block, w.CheckpointImpl.REENTRANT),
        "offload": w.offload_wrapper,
        "own": lambda block: w.checkpoint_wrapper(block, checkpoint_fn=own),
    }[how]
    model = m.nn.Sequential(Block(), m.nn.Sequential(Block(), m.nn.ReLU()))
    with m.no_grad():
        for i, p in enumerate(model.parameters()):
            p.copy_(m.arange(p.numel(), dtype=m.float32).reshape(p.shape) / (10 + i) - 0.3)
    state = {name: t.clone() for name, t in model.state_dict().items()}
    w.apply_activation_checkpointing(model, wrap, lambda block: isinstance(block, Block))
    assert [type(block).__name__ for block in model[1]][1] == "ReLU" and model[0].scale == 3
    x = (m.ones(2, 4) / 4).requires_grad_()
    out = model[1][0](model[0](x, bias=0.5)).sum()
    out.backward()
    model.load_state_dict(state)
    return {
        "names": [name for name, _ in model.named_parameters()],
        "names within": [name for name, _ in model[0].named_parameters()],
        "states": sorted(model.state_dict()) == sorted(state),
        "forwards": len(calls),
        "values": [round(v, 4) for v in (out.item(), *x.grad.flatten().tolist())],
    }


@pytest.mark.parametrize(("how", "forwards"), [("plain", 4), ("reentrant", 4), ("offload", 2), ("own", 2)])
def test_wrapped_modules_are_the_same_to_programs(how: str, forwards: int) -> None:
    ours, theirs = (of_wrapped(m, w, how) for m, w in both(WRAPPER))
    assert ours == theirs and ours["forwards"] == forwards


@pytest.mark.parametrize("library", [mica, torch])
def test_errors_are_written_where_the_launcher_looks(
    library: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = importlib.import_module(f"{library.__name__}.distributed.elastic.multiprocessing.errors").record
    path = tmp_path / "error.json"
    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(path))

    @record
    def main(x: int) -> int:
        """Divides."""
        return 1 // x

    assert main(1) == 1 and not path.exists() and main.__doc__ == "Divides."
    with pytest.raises(ZeroDivisionError):
        main(0)
    told = json.loads(path.read_text())["message"]
    assert told["message"] == "ZeroDivisionError: integer division or modulo by zero"
    assert (
        sorted(told["extraInfo"]) == ["py_callstack", "timestamp"]
        and told["extraInfo"]["timestamp"].isdigit()
    )
    assert "1 // x" in told["extraInfo"]["py_callstack"]


def test_an_error_that_cannot_be_written_is_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from mica.distributed.elastic.multiprocessing.errors import record

    monkeypatch.setenv("TORCHELASTIC_ERROR_FILE", str(tmp_path / "missing" / "file"))
    with pytest.raises(ZeroDivisionError):
        record(lambda: 1 // 0)()
