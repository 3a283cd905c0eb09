"""Tiny configurations of transformers' architectures: one table for the programs and for the logits.

A row is the class of the configuration, the class of the model, and what differs from TINY. `kind`
says what a call takes: "causal" generates, "masked" does not, "pair" has an encoder beside.
"""

from __future__ import annotations

from typing import Any, NamedTuple

TINY = {
    "num_hidden_layers": 2,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_attention_heads": 4,
    "vocab_size": 99,
    "max_position_embeddings": 64,
}


class Architecture(NamedTuple):
    """One architecture."""

    name: str
    model: str
    kind: str
    options: dict[str, Any]

    def build(self) -> Any:
        """The model, its weights drawn from the current seed."""
        import transformers

        config = getattr(transformers, f"{self.name}Config")(**{**TINY, **self.options})
        return getattr(transformers, self.model)(config)


_GROUPED = {"num_key_value_heads": 2}
_PAIR = {"d_model": 32, "decoder_start_token_id": 0, "pad_token_id": 0}
_CAUSAL: dict[str, dict[str, Any]] = {
    "Llama": _GROUPED,
    "Mistral": _GROUPED,
    "Mixtral": {**_GROUPED, "num_local_experts": 4},
    "Qwen2": _GROUPED,
    "Qwen3": {**_GROUPED, "head_dim": 8},
    "Gemma": {**_GROUPED, "head_dim": 8},
    "Gemma2": {**_GROUPED, "head_dim": 8},
    "Olmo2": _GROUPED,
    "Phi": {},
    "Phi3": {**_GROUPED, "pad_token_id": 0},
    "GPTNeoX": {},
    "GPT2": {"n_layer": 2, "n_embd": 32, "n_head": 4},
    "OPT": {"ffn_dim": 48, "word_embed_proj_dim": 32},
    "Bloom": {"n_head": 4, "n_layer": 2},
    "Falcon": {},
    "StableLm": _GROUPED,
    "Mamba": {"state_size": 4},
}
_MASKED: dict[str, dict[str, Any]] = {
    "Bert": {},
    "Roberta": {},
    "Electra": {"embedding_size": 32},
    "DistilBert": {"dim": 32, "n_heads": 4, "n_layers": 2, "hidden_dim": 48},
    "Albert": {"embedding_size": 32},
    "DebertaV2": {},
}
_PAIRS: dict[str, dict[str, Any]] = {
    "T5": {**_PAIR, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4},
    "Bart": {
        **_PAIR,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 48,
        "decoder_ffn_dim": 48,
    },
}
ARCHITECTURES = [
    *[
        Architecture(n, "GPT2LMHeadModel" if n == "GPT2" else f"{n}ForCausalLM", "causal", o)
        for n, o in _CAUSAL.items()
    ],
    *[Architecture(n, f"{n}ForMaskedLM", "masked", o) for n, o in _MASKED.items()],
    *[Architecture(n, f"{n}ForConditionalGeneration", "pair", o) for n, o in _PAIRS.items()],
]
