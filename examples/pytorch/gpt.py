"""A character-level GPT learns the texts of Python's own help pages."""

import math
from pydoc_data.topics import topics

import torch
import torch.nn as nn
from command import main
from torch.nn import functional as F

BLOCK, BATCH, LAYERS, HEADS, WIDTH = 64, 16, 4, 4, 128


class CausalSelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_attn = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.c_proj = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(WIDTH, dim=2)
        q, k, v = (t.view(B, T, HEADS, C // HEADS).transpose(1, 2) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1 = nn.LayerNorm(WIDTH)
        self.attn = CausalSelfAttention()
        self.ln_2 = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class GPT(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.transformer = nn.ModuleDict(
            {
                "wte": nn.Embedding(vocabulary, WIDTH),
                "wpe": nn.Embedding(BLOCK, WIDTH),
                "h": nn.ModuleList([Block() for _ in range(LAYERS)]),
                "ln_f": nn.LayerNorm(WIDTH),
            }
        )
        self.lm_head = nn.Linear(WIDTH, vocabulary, bias=False)
        self.transformer.wte.weight = self.lm_head.weight
        self.apply(self._init_weights)
        for name, p in self.named_parameters():
            if name.endswith("c_proj.weight"):
                nn.init.normal_(p, mean=0.0, std=0.02 / math.sqrt(2 * LAYERS))

    def _init_weights(self, module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, mean=0.0, std=0.02)
            if getattr(module, "bias", None) is not None:
                nn.init.zeros_(module.bias)

    def forward(self, idx, targets=None):
        pos = torch.arange(idx.size(1), dtype=torch.long, device=idx.device)
        x = self.transformer.wte(idx) + self.transformer.wpe(pos)
        for block in self.transformer.h:
            x = block(x)
        logits = self.lm_head(self.transformer.ln_f(x))
        if targets is None:
            return logits[:, [-1], :], None
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))

    @torch.no_grad()
    def generate(self, idx, new_tokens, top_k=8):
        for _ in range(new_tokens):
            logits, _ = self(idx[:, -BLOCK:])
            logits = logits[:, -1, :]
            kept, _ = torch.topk(logits, top_k)
            logits[logits < kept[:, [-1]]] = -float("inf")
            idx = torch.cat((idx, torch.multinomial(F.softmax(logits, dim=-1), num_samples=1)), dim=1)
        return idx


def optimizer_of(model):
    decay = [p for p in model.parameters() if p.dim() >= 2]
    rest = [p for p in model.parameters() if p.dim() < 2]
    groups = [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95))


def train(steps):
    text = "\n".join(topics[name] for name in sorted(topics))[:300_000]
    chars = sorted(set(text))
    encode = {c: i for i, c in enumerate(chars)}
    tokens = torch.tensor([encode[c] for c in text], dtype=torch.long)
    model = GPT(len(chars))
    optimizer = optimizer_of(model)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda it: min(1.0, (it + 1) / 20))
    losses = []
    for _ in range(steps):
        ix = torch.randint(len(tokens) - BLOCK, (BATCH,))
        x = torch.stack([tokens[i : i + BLOCK] for i in ix])
        y = torch.stack([tokens[i + 1 : i + 1 + BLOCK] for i in ix])
        _, loss = model(x, y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    model.eval()
    sample = model.generate(torch.zeros((1, 1), dtype=torch.long), 80)[0].tolist()
    print("".join(chars[i] for i in sample))
    return losses, {"loss of the last tenth": sum(losses[-(steps // 10 or 1) :]) / (steps // 10 or 1)}


if __name__ == "__main__":
    main(train, steps=300)
