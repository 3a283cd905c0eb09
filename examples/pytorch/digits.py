"""A convolutional network reads handwritten digits (scikit-learn ships them)."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from command import main
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(32)
        self.conv2 = nn.Conv2d(32, 64, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(64)
        self.dropout = nn.Dropout(0.25)
        self.fc1 = nn.Linear(64 * 4 * 4, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.max_pool2d(F.relu(self.bn2(self.conv2(x))), 2)
        x = self.dropout(torch.flatten(x, 1))
        return F.log_softmax(self.fc2(F.relu(self.fc1(x))), dim=1)


def data():
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.target))
    images = torch.from_numpy(digits.images[order].astype(np.float32) / 16).unsqueeze(1)
    labels = torch.from_numpy(digits.target[order].astype(np.int64))
    return TensorDataset(images[:1437], labels[:1437]), TensorDataset(images[1437:], labels[1437:])


def train(steps):
    train_set, test_set = data()
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    loader = DataLoader(train_set, batch_size=64, shuffle=True, drop_last=True)
    losses: list[float] = []
    while len(losses) < steps:
        model.train()
        for images, labels in loader:
            optimizer.zero_grad()
            loss = F.nll_loss(model(images), labels)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            if len(losses) == steps:
                break
    model.eval()
    with torch.no_grad():
        correct = sum(
            (model(images).argmax(dim=1) == labels).sum().item()
            for images, labels in DataLoader(test_set, batch_size=120)
        )
    return losses, {"test accuracy": correct / len(test_set)}


if __name__ == "__main__":
    main(train, steps=220)
