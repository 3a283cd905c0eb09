"""Trains a convolutional network on handwritten digits: a PyTorch program with mica in torch's place."""

import argparse
import gzip
import pathlib
import sys
import time

import numpy as np
from matplotlib.figure import Figure

import mica
import mica.nn.functional as F
from mica import nn, optim

DATA = pathlib.Path(__file__).with_name("digits.csv.gz")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(),
            nn.Conv2d(32, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
        )  # fmt: skip
        self.classify = nn.Sequential(nn.Flatten(), nn.Dropout(0.3), nn.Linear(64 * 4 * 4, 10))

    def forward(self, x):
        return self.classify(self.features(x))


def load(device):
    table = np.loadtxt(gzip.open(DATA, "rt"), delimiter=",", dtype=np.float32)
    table = np.random.default_rng(0).permutation(table)
    images = mica.from_numpy(table[:, :64] / 16.0).reshape(-1, 1, 8, 8).to(device)
    labels = mica.from_numpy(table[:, 64].astype(np.int64)).to(device)
    return images[:-360], labels[:-360], images[-360:], labels[-360:]


def shifted(images):
    """The images moved by up to one pixel: a digit stays that digit."""
    dy, dx = mica.randint(0, 3, (2,)).tolist()
    return F.pad(images, (1, 1, 1, 1))[:, :, dy : dy + 8, dx : dx + 8]


def train(net, images, labels, epochs, batch=64):
    optimizer = optim.AdamW(net.parameters(), lr=3e-3)
    losses, steps = [], epochs * (len(images) // batch)
    schedule = optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    net.train()
    for _ in range(epochs):
        order = mica.randperm(len(images))
        for i in range(len(images) // batch):
            chosen = order[i * batch : (i + 1) * batch]
            loss = F.cross_entropy(net(shifted(images[chosen])), labels[chosen], label_smoothing=0.05)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
            show_progress(len(losses), steps, losses[-1])
    return losses


def show_progress(step, steps, loss):
    if sys.stdout.isatty() or step == steps:
        bar = "█" * (30 * step // steps)
        print(f"\rtraining {bar:30} {step}/{steps}  loss {loss:.3f}", end="\n" * (step == steps), flush=True)


def show_table(labels, guesses):
    print("digit   right   of")
    for digit in range(10):
        of = labels == digit
        print(f"{digit:>5} {int((guesses[of] == digit).sum()):>7} {int(of.sum()):>4}")


def draw(losses, images, labels, guesses, path):
    wrong = np.flatnonzero((guesses != labels).cpu().numpy())[:8]
    figure = Figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subfigures(1, 2)
    left.subplots().semilogy(losses, linewidth=0.8)
    left.supxlabel("step")
    left.suptitle("training loss")
    right.suptitle(f"{int((guesses != labels).sum())} mistakes in {len(labels)}")
    for cell, i in zip(right.subplots(2, 4).flat, [*wrong.tolist(), *[None] * 8]):
        cell.axis("off")
        if i is not None:
            cell.imshow(images[i, 0].cpu().numpy(), cmap="gray_r")
            cell.set_title(f"{int(labels[i])} read as {int(guesses[i])}", fontsize=8)
    figure.savefig(path, dpi=120)
    print(f"picture of the loss and the mistakes: {path}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("."))
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    mica.manual_seed(0)
    images, labels, test_images, test_labels = load(args.device)
    net = Net().to(args.device)
    start = time.perf_counter()
    losses = train(net, images, labels, args.epochs)
    print(f"trained for {time.perf_counter() - start:.1f} s")
    net.eval()
    with mica.no_grad():
        guesses = net(test_images).argmax(1)
    show_table(test_labels, guesses)
    draw(losses, test_images, test_labels, guesses, args.out / "digits.png")
    call = (test_images, *net.features[0].parameters(), [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
    print(mica.explain("convolution", *call))
    print(f"test accuracy {(guesses == test_labels).float().mean().item():.4f}")


if __name__ == "__main__":
    main()
