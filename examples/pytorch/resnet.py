"""A small ResNet tells of which photograph, and of which quarter of it, a patch was cut."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from command import main
from sklearn.datasets import load_sample_images
from torch.utils.data import DataLoader, Dataset


def conv3x3(cin, cout, stride=1):
    return nn.Conv2d(cin, cout, kernel_size=3, stride=stride, padding=1, bias=False)


class BasicBlock(nn.Module):
    def __init__(self, cin, cout, stride=1):
        super().__init__()
        self.conv1, self.bn1 = conv3x3(cin, cout, stride), nn.BatchNorm2d(cout)
        self.conv2, self.bn2 = conv3x3(cout, cout), nn.BatchNorm2d(cout)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or cin != cout:
            self.downsample = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.stem = nn.Sequential(conv3x3(3, 16), nn.BatchNorm2d(16), nn.ReLU(inplace=True))
        self.layer1 = nn.Sequential(BasicBlock(16, 16), BasicBlock(16, 16))
        self.layer2 = nn.Sequential(BasicBlock(16, 32, 2), BasicBlock(32, 32))
        self.layer3 = nn.Sequential(BasicBlock(32, 64, 2), BasicBlock(64, 64))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(64, classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x):
        x = self.layer3(self.layer2(self.layer1(self.stem(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


class Patches(Dataset):
    """32 x 32 patches of the four quarters of two photographs, some of them mirrored: eight classes."""

    def __init__(self, count, generator):
        photographs = [
            torch.tensor(image).permute(2, 0, 1).float() / 255 for image in load_sample_images().images
        ]
        self.items = []
        for label in torch.randint(8, (count,), generator=generator).tolist():
            photograph = photographs[label // 4]
            height, width = photograph.shape[1] // 2, photograph.shape[2] // 2
            top = torch.randint(height - 32, (1,), generator=generator).item() + height * (label % 2)
            left = torch.randint(width - 32, (1,), generator=generator).item() + width * (label // 2 % 2)
            patch = photograph[:, top : top + 32, left : left + 32]
            if torch.rand(1, generator=generator).item() < 0.5:
                patch = patch.flip(-1)
            self.items.append(((patch - 0.45) / 0.25, label))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index]


def train(steps):
    generator = torch.Generator().manual_seed(1)
    train_set, test_set = Patches(2048, generator), Patches(256, generator)
    model = ResNet(classes=8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=5e-4, nesterov=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    criterion = nn.CrossEntropyLoss()
    losses: list[float] = []
    while len(losses) < steps:
        for images, labels in DataLoader(train_set, batch_size=32, shuffle=True):
            optimizer.zero_grad()
            loss = criterion(model(images), labels)
            loss.backward()
            optimizer.step()
            schedule.step()
            losses.append(loss.item())
            if len(losses) == steps:
                break
    model.eval()
    right = 0
    with torch.inference_mode():
        for images, labels in DataLoader(test_set, batch_size=64):
            probabilities = F.softmax(model(images), dim=1)
            right += probabilities.argmax(1).eq(labels).sum().item()
    return losses, {"test accuracy": right / len(test_set)}


if __name__ == "__main__":
    main(train, steps=320)
