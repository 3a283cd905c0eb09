"""Attention and encoder layers in evaluation beside torch's: results, and that both take the fast path
for the same modules, masks and states.

Each case is a module of MODULES, first made in both libraries from one seed, called as one of CALLS
in one of STATES. In both, `m` is the module, `x` its input of [2, 4, 8].
"""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from typing import Any
from unittest import mock

import pytest
import torch
from shim import SHIM, agree, plain

from mica.nn.modules import _fast_path

LAYER = "L.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True"
MODULES = {
    "layer": f"{LAYER})",
    "layer, gelu, norm first": f"{LAYER}, activation='gelu', norm_first=True)",
    "layer, module of gelu": f"{LAYER}, activation=L.nn.GELU(), layer_norm_eps=1e-3)",
    "layer, tanh": f"{LAYER}, activation=L.tanh)",
    "layer, one head": "L.nn.TransformerEncoderLayer(8, 1, 16, batch_first=True)",
    "layer, no bias": f"{LAYER}, bias=False)",
    "layer, sequence first": "L.nn.TransformerEncoderLayer(8, 4, 16)",
    "encoder": f"L.nn.TransformerEncoder({LAYER}), 2)",
    "encoder, norm": f"L.nn.TransformerEncoder({LAYER}), 2, norm=L.nn.LayerNorm(8))",
    "encoder, not nested": f"L.nn.TransformerEncoder({LAYER}), 2, enable_nested_tensor=False)",
    "encoder, norm first": f"L.nn.TransformerEncoder({LAYER}, norm_first=True), 2)",
    "encoder, no check": f"L.nn.TransformerEncoder({LAYER}), 2, mask_check=False)",
}
ATTENTIONS = {
    "attention": "L.nn.MultiheadAttention(8, 2, batch_first=True)",
    "attention, three heads": "L.nn.MultiheadAttention(9, 3, batch_first=True)",
    "attention, no bias": "L.nn.MultiheadAttention(8, 2, bias=False, batch_first=True)",
    "attention, bias of keys": "L.nn.MultiheadAttention(8, 2, add_bias_kv=True, add_zero_attn=True, batch_first=True)",
    "attention, sequence first": "L.nn.MultiheadAttention(8, 2)",
}
MASK, ENDS, HOLES = "L.ones(4, 4).triu(1).bool()", "ends(L)", "ends(L).flip(1)"
CALLS = [
    "m(x)",
    "m(x[0])",
    f"m(x, {MASK})",
    f"m(x, {MASK}, is_causal=True)",
    "m(x, is_causal=True)",
    f"m(x, {MASK}.expand(4, 4, 4))",
    f"m(x, src_key_padding_mask={ENDS})",
    f"m(x, src_key_padding_mask={HOLES})",
    f"m(x, {MASK}, {ENDS})",
    f"m(x, {MASK}.expand(4, 4, 4), {ENDS})",
    f"m(x, src_key_padding_mask={ENDS} & False)",
    f"m(x, src_key_padding_mask={ENDS}[:1].expand(2, 4))",
    "m(x, L.ones(3, 4).bool())",
    "m(x, L.ones(4, 4).long())",
    "m(x, src_key_padding_mask=L.ones(2, 3).bool())",
    "m(x[:0])",
    "m(x.double())",
]
# Masks of numbers: torch's fast path takes them, Mica's layers go step by step and give the same.
NUMBERS = [
    "m(x, L.nn.Transformer.generate_square_subsequent_mask(4))",
    f"m(x, src_key_padding_mask=L.zeros(2, 4).masked_fill({ENDS}, -float('inf')))",
    f"m(x, L.nn.Transformer.generate_square_subsequent_mask(4), {ENDS})",
]
ATTENDS = [
    "m(x, x, x)",
    "m(x, x, x, need_weights=False)",
    "m(x, x, x, average_attn_weights=False)",
    f"m(x, x, x, {ENDS})",
    f"m(x, x, x, attn_mask={MASK}, average_attn_weights=False)",
    f"m(x, x, x, {ENDS}, attn_mask={MASK}, need_weights=False)",
    f"m(x, x, x, {ENDS}, attn_mask={MASK}.expand(4, 4, 4))",
    "m(x, x, x, attn_mask=x[0] @ x[0].T)",
    f"m(x, x, x, attn_mask={MASK}, is_causal=True, need_weights=False)",
    "m(x, x.clone(), x.clone())",
    "m(x[0], x[0], x[0])",
    "m(x.double(), x, x)",
]
STATES = {
    "gradients": "L.enable_grad()",
    "none wanted": "(m.requires_grad_(False), L.enable_grad())[1]",
    "input wants": "(m.requires_grad_(False), x.requires_grad_(), L.enable_grad())[-1]",
    "training": "m.train() and None",
    "off": "L.backends.mha.set_fastpath_enabled(False)",
    "hook": "m.register_forward_hook(lambda *a: None) and None",
    "inner hook": "list(m.modules())[-1].register_forward_pre_hook(lambda *a: None) and None",
    "inference": "L.inference_mode()",
    "double": "(m.double(), setattr(x, 'data', x.data.double()))[-1]",
    "other eps": "setattr(next((k for k in m.modules() if isinstance(k, L.nn.LayerNorm)), m), 'eps', 0.1)",
}


def ends(library: Any) -> Any:
    return library.tensor([[False, False, False, True], [False, False, True, True]])


class Taken:
    """Counts what went the fast way: layers, or attentions that are called alone."""

    def __init__(self, alone: bool) -> None:
        self.count = self.depth = 0
        self.alone = alone

    def of(self, home: Any) -> Any:
        def counting(function: Any) -> Any:
            def call(*args: Any) -> Any:
                self.count += self.depth == 0
                self.depth += 1
                try:
                    return function(*args)
                finally:
                    self.depth -= 1

            return call

        names = ["_native_multi_head_attention" if self.alone else "_transformer_encoder_layer_fwd"]
        if home is torch:
            return mock.patch.multiple(home, **{n: counting(getattr(home, n)) for n in names})
        if not self.alone:  # an encoder over padded rows calls what the layer's is made of
            names.append("_transformer_encoder_rows")
        found = home.internal
        return mock.patch.object(home, "internal", lambda n: counting(found(n)) if n in names else found(n))


def made(L: Any, text: str) -> Any:  # noqa: N803 - as rows name it
    """A module in evaluation whose dropouts leave all."""
    L.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = eval(text, {"L": L}).eval()
    for part in module.modules():
        if isinstance(part, L.nn.Dropout):
            part.p = 0.0
    return module


def outcome(L: Any, module: Any, call: str, state: str, alone: bool) -> tuple[Any, int]:  # noqa: N803
    """What the call gives, or the class of what it raises; and how often it went the fast way."""
    taken, width = Taken(alone), 9 if getattr(module, "embed_dim", 8) == 9 else 8
    x = L.sin(L.arange(8.0 * width)).reshape(2, 4, width)
    names = {"L": L, "ends": ends, "x": x, "m": module}
    with warnings.catch_warnings(), taken.of(torch if L is torch else _fast_path):
        warnings.simplefilter("ignore")
        try:
            with L.no_grad(), eval(state, names) or nullcontext():
                return plain(eval(call, names)), taken.count
        except (RuntimeError, AssertionError, ValueError) as error:
            return type(error).__name__, 0
        finally:
            L.backends.mha.set_fastpath_enabled(True)


def compare(module: str, calls: list[str], state: str = "None", paths: bool = True) -> None:
    alone = module in ATTENTIONS.values()
    both = [(L, made(L, module)) for L in (SHIM, torch)]
    for call in calls:
        (ours, mine), (theirs, yours) = (outcome(L, m, call, state, alone) for L, m in both)
        agree(ours, theirs, f"{module} {call} {state}", 1e-5)
        assert mine == yours or not paths, (
            f"{call}: Mica took the fast path {mine} times, torch {yours} times"
        )


@pytest.mark.parametrize("name", MODULES)
def test_layers(name: str) -> None:
    unchecked = name == "encoder, no check"  # torch then takes wrong places of HOLES; Mica looks
    compare(MODULES[name], [call for call in CALLS if not (unchecked and HOLES in call)])
    compare(MODULES[name], NUMBERS, paths=False)
    if name in (
        "encoder",
        "encoder, norm",
    ):  # nothing to see: torch's layers alone give NaN, Mica's go on without
        compare(
            MODULES[name],
            [f"m(x, src_key_padding_mask={ENDS} | {row})" for row in ("True", "ends(L)[:, 3:].flip(0)")],
        )


@pytest.mark.parametrize("name", ATTENTIONS)
def test_attention(name: str) -> None:
    compare(ATTENTIONS[name], ATTENDS)


@pytest.mark.parametrize("name", STATES)
def test_states(name: str) -> None:
    compare(MODULES["layer"], ["m(x)"], STATES[name])
    if name != "inner hook":  # torch's nested tensors have no slow path
        compare(MODULES["encoder"], [f"m(x, src_key_padding_mask={ENDS})"], STATES[name])
    compare(ATTENTIONS["attention"], [f"m(x, x, x, {ENDS})"], STATES[name])


def test_what_torch_would_get_wrong() -> None:
    """Masks of finite numbers, gelu by tanh and parts of their own count where torch's operator drops them."""
    F = SHIM.nn.functional  # noqa: N806 - its name everywhere
    x = SHIM.sin(SHIM.arange(64.0)).reshape(2, 4, 8)

    class Doubled(SHIM.nn.Linear):  # type: ignore[misc, name-defined]
        def forward(self, input: Any) -> Any:
            return super().forward(input) * 2

    def steps(layer: Any, mask: Any = None) -> Any:
        SHIM.backends.mha.set_fastpath_enabled(False)
        try:
            return plain(layer(x, mask))
        finally:
            SHIM.backends.mha.set_fastpath_enabled(True)

    with SHIM.no_grad():
        tanh = SHIM.nn.TransformerEncoderLayer(8, 2, 16, activation=SHIM.nn.GELU("tanh"), batch_first=True)
        own = SHIM.nn.TransformerEncoderLayer(8, 2, 16, activation=F.gelu, batch_first=True)
        own.linear1 = Doubled(8, 16)
        for layer, mask in ((own, None), (tanh, None), (tanh, x[0] @ x[0].T)):
            layer.eval()
            agree(plain(layer(x, mask)), steps(layer, mask), "fast beside slow", 0.0)
