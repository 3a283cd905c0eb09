"""Two networks as they are trained: ResNet-50 on images, and GPT-2 (its small form) on words.

Each is written once, for Mica and for torch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Step = Callable[[], Any]


def resnet50(lib: Any, device: str, scale: float, autocast: bool) -> Step:
    """A step of SGD with momentum over 64 images of 224 x 224; with `autocast` in bfloat16, channels last."""
    nn = lib.nn
    batch, side = (64, 224) if scale == 1 else (2, 64)

    class Bottleneck(nn.Module):
        def __init__(self, channels: int, width: int, stride: int) -> None:
            super().__init__()
            self.conv1 = nn.Conv2d(channels, width, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(width)
            self.conv2 = nn.Conv2d(width, width, 3, stride, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(width)
            self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
            self.bn3 = nn.BatchNorm2d(4 * width)
            self.relu = nn.ReLU(inplace=True)
            self.downsample = None
            if stride != 1 or channels != 4 * width:
                self.downsample = nn.Sequential(
                    nn.Conv2d(channels, 4 * width, 1, stride, bias=False), nn.BatchNorm2d(4 * width)
                )

        def forward(self, x: Any) -> Any:
            y = self.relu(self.bn1(self.conv1(x)))
            y = self.relu(self.bn2(self.conv2(y)))
            y = self.bn3(self.conv3(y))
            return self.relu(y + (x if self.downsample is None else self.downsample(x)))

    lib.manual_seed(0)
    parts = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True)]
    parts.append(nn.MaxPool2d(3, 2, 1))
    channels = 64
    for blocks, width, stride in ((3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2)):
        for i in range(blocks):
            parts.append(Bottleneck(channels, width, stride if i == 0 else 1))
            channels = 4 * width
    net = nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000)).to(device)
    images = lib.randn(batch, 3, side, side).to(device)
    labels = lib.arange(batch).to(device)
    if autocast:
        net, images = net.to(memory_format=lib.channels_last), images.to(memory_format=lib.channels_last)
    optimizer = lib.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)

    def step() -> Any:
        optimizer.zero_grad()
        with lib.autocast(lib.device(device).type, dtype=lib.bfloat16, enabled=autocast):
            loss = nn.functional.cross_entropy(net(images), labels)
        loss.backward()
        optimizer.step()
        return loss

    return step


def gpt2(lib: Any, device: str, scale: float, autocast: bool) -> Step:
    """A step of AdamW over 8 texts of 1,024 words, at 12 layers of 768 and 50,257 words."""
    nn = lib.nn
    width, heads, layers, words, batch, length = (
        (768, 12, 12, 50257, 8, 1024) if scale == 1 else (64, 2, 2, 512, 2, 32)
    )

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x: Any) -> Any:
            q, k, v = (
                part.view(batch, length, heads, width // heads).transpose(1, 2)
                for part in self.qkv(self.ln1(x)).split(width, 2)
            )
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
            return x + self.down(nn.functional.gelu(self.up(self.ln2(x)), approximate="tanh"))

    class GPT(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.word, self.place = nn.Embedding(words, width), nn.Embedding(length, width)
            self.blocks = nn.Sequential(*[Block() for _ in range(layers)])
            self.ln, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
            self.head.weight = self.word.weight

        def forward(self, text: Any) -> Any:
            places = lib.arange(length, device=text.device)
            return self.head(self.ln(self.blocks(self.word(text) + self.place(places))))

    lib.manual_seed(0)
    net = GPT()
    with lib.no_grad():
        for weight in net.parameters():
            if weight.dim() == 2:
                weight.normal_(0.0, 0.02)
    net = net.to(device)
    optimizer = lib.optim.AdamW(net.parameters(), lr=3e-4)
    text = (lib.arange(batch * length) * 7919 % words).reshape(batch, length).to(device)

    def step() -> Any:
        optimizer.zero_grad()
        with lib.autocast(lib.device(device).type, dtype=lib.bfloat16, enabled=autocast):
            scores = net(text)
            loss = nn.functional.cross_entropy(scores.view(-1, words), text.view(-1))
        loss.backward()
        optimizer.step()
        return loss

    return step
