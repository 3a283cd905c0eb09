"""Programs that train on the simulated GPU lose what they lose on the CPU, from the same weights."""

import numpy as np
import pytest

import mica
from mica import nn

pytestmark = pytest.mark.usefixtures("simt")
F = nn.functional

STEPS = 20
TOLERANCE = 1e-4
FALL_BACK = {"mica::avg_pool2d_backward"}  # the kit has no kernel of these yet
RANDOM = np.random.default_rng(1)
WORDS, LENGTH = 17, 8


class CNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(4, 8, 3, stride=2), nn.GELU(), nn.AvgPool2d(2, padding=1),
        )  # fmt: skip
        self.head = nn.Linear(8 * 2 * 2, 10)

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


class LSTM(nn.Module):
    def __init__(self):
        super().__init__()
        self.word, self.head = nn.Embedding(WORDS, 6), nn.Linear(10, WORDS)
        self.lstm = nn.LSTM(6, 10, batch_first=True)

    def forward(self, words):
        return self.head(self.lstm(self.word(words))[0])


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        split = self.qkv(self.norm(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = split.permute(2, 0, 3, 1, 4)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(batch, length, width))
        return x + self.feed(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.word, self.place = nn.Embedding(WORDS, width), nn.Embedding(LENGTH, width)
        self.block, self.norm = Block(width, 2), nn.LayerNorm(width)
        self.head = nn.Linear(width, WORDS, bias=False)

    def forward(self, words):
        x = self.word(words) + self.place(mica.arange(words.shape[1], device=words.device))
        return self.head(self.norm(self.block(x)))


def mlp():
    x = RANDOM.standard_normal((16, 8)).astype("float32")
    y = np.sin(x).sum(-1, keepdims=True)
    net = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 1))
    return net, [x, y], F.mse_loss


def cnn():
    x = RANDOM.standard_normal((8, 1, 12, 12)).astype("float32")
    return CNN(), [x, RANDOM.integers(0, 10, 8)], F.cross_entropy


def words():
    text = (RANDOM.integers(0, WORDS, (4, 1)) + 3 * np.arange(LENGTH + 1)) % WORDS
    return [text[:, :-1].copy(), text[:, 1:].reshape(-1)]


def of_words(scores, following):
    return F.cross_entropy(scores.reshape(-1, WORDS), following)


PROGRAMS = {
    "mlp": mlp,
    "cnn": cnn,
    "lstm": lambda: (LSTM(), words(), of_words),
    "gpt": lambda: (GPT(), words(), of_words),
}


def train(net, weights, data, loss_of, device):
    net.load_state_dict(weights)
    net.to(device)
    optimizer = mica.optim.Adam(net.parameters(), lr=3e-3)
    losses = []
    for _ in range(STEPS):
        x, y = (mica.from_numpy(part).to(device) for part in data)
        optimizer.zero_grad()
        loss = loss_of(net(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    net.to("cpu")
    return np.array(losses)


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_trains_as_on_the_cpu(name):
    mica.manual_seed(0)
    net, data, loss_of = PROGRAMS[name]()
    weights = {key: value.clone() for key, value in net.state_dict().items()}
    want = train(net, weights, data, loss_of, "cpu")
    assert want[-1] < want[0]
    for device in ("simt:0", "simt:1"):
        mica.fallback_counts(reset=True)
        losses = train(net, weights, data, loss_of, device)
        assert np.abs(losses - want).max() <= TOLERANCE, (device, losses, want)
        assert set(mica.fallback_counts().get("simt", {})) <= FALL_BACK
