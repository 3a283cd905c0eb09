"""A bidirectional LSTM says of each character of Python source what it belongs to."""

import argparse
import ast
import inspect
import io
import json.decoder
import keyword
import random
import textwrap
import tokenize

import torch
import torch.nn as nn
from command import main
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence
from torch.utils.data import DataLoader

SOURCES = [textwrap, argparse, ast, inspect, json.decoder, random, tokenize]
KINDS = ["space", "keyword", "name", "number", "string", "comment", "operator"]
PAD = -100


def kind_of(token):
    if token.type == tokenize.NAME:
        return KINDS.index("keyword" if keyword.iskeyword(token.string) else "name")
    names = {
        tokenize.NUMBER: "number",
        tokenize.STRING: "string",
        tokenize.COMMENT: "comment",
        tokenize.OP: "operator",
    }
    return KINDS.index(names.get(token.type, "space"))


def tagged_lines(source):
    """Pairs of a line's characters and their kinds; of strings over several lines nothing."""
    lines = source.splitlines(keepends=True)
    kinds = [[0] * len(line) for line in lines]
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        (row, start), (last, end) = token.start, token.end
        if row == last and row <= len(lines):
            kinds[row - 1][start:end] = [kind_of(token)] * (end - start)
    return [(line[:80], k[:80]) for line, k in zip(lines, kinds) if line.strip() and line.isascii()]


def collate(batch):
    batch = sorted(batch, key=lambda pair: -len(pair[0]))
    lengths = torch.tensor([len(chars) for chars, _ in batch])
    chars = pad_sequence([torch.tensor([ord(c) for c in chars]) for chars, _ in batch], batch_first=True)
    kinds = pad_sequence([torch.tensor(kinds) for _, kinds in batch], batch_first=True, padding_value=PAD)
    return chars, kinds, lengths


class Tagger(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.embedding = nn.Embedding(128, 32, padding_idx=0)
        self.lstm = nn.LSTM(32, hidden, num_layers=2, batch_first=True, bidirectional=True)
        self.norm = nn.LayerNorm(2 * hidden)
        self.out = nn.Linear(2 * hidden, len(KINDS))

    def forward(self, chars, lengths):
        packed = pack_padded_sequence(self.embedding(chars), lengths, batch_first=True)
        hidden, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        return self.out(self.norm(hidden))


def train(steps):
    pairs = [pair for module in SOURCES for pair in tagged_lines(inspect.getsource(module))]
    train_set, test_set = torch.utils.data.random_split(pairs, [len(pairs) - 512, 512])
    model = Tagger()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    criterion = nn.CrossEntropyLoss(ignore_index=PAD)
    losses: list[float] = []
    while len(losses) < steps:
        for chars, kinds, lengths in DataLoader(train_set, batch_size=32, shuffle=True, collate_fn=collate):
            model.zero_grad()
            scores = model(chars, lengths)
            loss = criterion(scores.reshape(-1, len(KINDS)), kinds.reshape(-1))
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), max_norm=5.0)
            optimizer.step()
            losses.append(loss.item())
            if len(losses) == steps:
                break
    model.eval()
    right = total = 0
    with torch.no_grad():
        for chars, kinds, lengths in DataLoader(test_set, batch_size=64, collate_fn=collate):
            counted = kinds != PAD
            right += ((model(chars, lengths).argmax(-1) == kinds) & counted).sum().item()
            total += counted.sum().item()
    return losses, {"test accuracy": right / total}


if __name__ == "__main__":
    main(train, steps=200)
