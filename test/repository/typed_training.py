"""A training program with annotations, which mypy --strict accepts (test_stubs.py)."""

from __future__ import annotations

import mica
import mica.nn.functional as F
from mica import Tensor, linalg, nn, optim, special
from mica.optim import lr_scheduler
from mica.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU())
        self.head = nn.Linear(width * 64, 10)

    def forward(self, x: Tensor) -> Tensor:
        hidden: Tensor = self.features(x).flatten(1)
        return F.gelu(F.linear(hidden, self.head.weight, self.head.bias))


def train(net: Net, loader: DataLoader, epochs: int) -> list[float]:
    optimizer = optim.AdamW(net.parameters(), lr=3e-3)
    schedule = lr_scheduler.OneCycleLR(optimizer, 3e-3, epochs=epochs, steps_per_epoch=len(loader))
    losses: list[float] = []
    net.train()
    for _ in range(epochs):
        for images, labels in loader:
            loss = F.cross_entropy(net(F.pad(images, (1, 1, 1, 1))[:, :, 1:9, 1:9]), labels)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
    return losses


def main() -> None:
    mica.manual_seed(0)
    images, labels = mica.rand(64, 1, 8, 8), mica.randint(0, 10, (64,))
    net = Net(4)
    train(net, DataLoader(TensorDataset(images, labels), batch_size=16, shuffle=True), 2)
    with mica.no_grad():
        guesses = net(images).argmax(1)
    accuracy: float = (guesses == labels).float().mean().item()
    print(accuracy, mica.explain("add.Tensor", images, images), mica.plugins())
    print(linalg.inv(mica.eye(3)), special.expit(mica.zeros(2, 2, dtype=mica.float64)), mica.get_rng_state())
    mica.save(net.state_dict(), "net.pt")
    net.load_state_dict(mica.load("net.pt"))


class Square(mica.autograd.Function):
    @staticmethod
    def forward(ctx: mica.autograd.function.FunctionCtx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: mica.autograd.function.FunctionCtx, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        slope: Tensor = 2 * x * grad
        return slope


if __name__ == "__main__":
    main()
