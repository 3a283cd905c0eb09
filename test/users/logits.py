"""The same weights in torch and in Mica: logits, greedy tokens and gradients of transformers' architectures.

`python logits.py save FOLDER` runs where torch is, and writes a checkpoint for each architecture with
weights, inputs and results; `python -m mica.torch logits.py check FOLDER` loads them into Mica and prints
"ok NAME" or "failed NAME: why", with the largest differences.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

if sys.argv[1:2] == ["save"]:
    sys.modules["torchvision"] = None  # type: ignore[assignment]  # its binary is for another torch

import torch
from architectures import ARCHITECTURES, Architecture

LOGITS, GRADIENTS = 1e-4, 1e-3  # absolute; relative to the gradient's largest element


def results(net: Any, kind: str, tokens: Any) -> dict[str, Any]:
    """Logits, the gradients of one backward, and the tokens that follow greedily."""
    net.eval()
    net.zero_grad()
    found = net(input_ids=tokens, labels=tokens)
    found.loss.backward()
    grads = {n: p.grad for n, p in net.named_parameters() if p.grad is not None}
    done = {"logits": found.logits.detach(), "loss": found.loss.detach(), "grads": grads}
    if kind != "masked":
        with torch.no_grad():
            done["tokens"] = net.generate(tokens, max_new_tokens=6, do_sample=False, pad_token_id=0)
    return done


def save(row: Architecture, folder: Path) -> None:
    """Writes what torch finds."""
    torch.manual_seed(0)
    net = row.build()
    tokens = torch.randint(3, 90, (2, 7))
    found = results(net, row.kind, tokens)
    torch.save({"weights": net.state_dict(), "input": tokens, **found}, folder / f"{row.name}.pt")


def check(row: Architecture, folder: Path) -> str:
    """What differs, or "" with the differences printed."""
    saved = torch.load(folder / f"{row.name}.pt")
    net = row.build()
    net.load_state_dict(saved["weights"])
    found = results(net, row.kind, saved["input"])
    apart = float((found["logits"] - saved["logits"]).abs().max())
    if not apart <= LOGITS:
        return f"logits are {apart:.2g} apart"
    if set(found["grads"]) != set(saved["grads"]):
        return f"other parameters have gradients: {set(found['grads']) ^ set(saved['grads'])}"
    worst = 0.0
    scale = max(float(g.abs().max()) for g in saved["grads"].values())
    for name, grad in saved["grads"].items():
        size = max(float(grad.abs().max()), 1e-3 * scale)
        worst = max(worst, float((found["grads"][name] - grad).abs().max()) / size)
    if not worst <= GRADIENTS:
        return f"gradients are {worst:.2g} apart, relative to their largest"
    if row.kind != "masked" and found["tokens"].tolist() != saved["tokens"].tolist():
        return "greedy tokens differ"
    print(f"ok {row.name} logits {apart:.1e} gradients {worst:.1e}", flush=True)
    return ""


def main(what: str, folder: Path) -> None:
    """Every architecture; one that raises is reported by check, whose file is not there."""
    for row in ARCHITECTURES:
        if what == "save":
            save(row, folder)
            continue
        try:
            why = check(row, folder)
        except Exception as error:
            why = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        if why:
            print(f"failed {row.name}: {why}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
