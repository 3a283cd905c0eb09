"""A variational autoencoder of handwritten digits."""

import torch
from command import main
from sklearn.datasets import load_digits
from torch import nn, optim
from torch.distributions import Normal, kl_divergence
from torch.nn import functional as F
from torch.utils.data import DataLoader


class VAE(nn.Module):
    def __init__(self, latent=8):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 256), nn.SiLU(), nn.Linear(256, 256), nn.SiLU())
        self.mu, self.logvar = nn.Linear(256, latent), nn.Linear(256, latent)
        self.decoder = nn.Sequential(
            nn.Linear(latent, 256), nn.SiLU(), nn.Unflatten(1, (16, 4, 4)),
            nn.ConvTranspose2d(16, 16, 4, stride=2, padding=1), nn.SiLU(), nn.Conv2d(16, 1, 3, padding=1), nn.Flatten(),
        )  # fmt: skip

    def forward(self, x):
        h = self.encoder(x)
        posterior = Normal(self.mu(h), torch.exp(0.5 * self.logvar(h)))
        return self.decoder(posterior.rsample()), posterior


def loss_function(logits, x, posterior):
    reconstruction = F.binary_cross_entropy_with_logits(logits, x, reduction="sum")
    prior = Normal(torch.zeros_like(posterior.loc), torch.ones_like(posterior.scale))
    return (reconstruction + kl_divergence(posterior, prior).sum()) / len(x)


def train(steps):
    images = torch.as_tensor(load_digits().data / 16, dtype=torch.float32)
    model = VAE()
    optimizer = optim.AdamW(model.parameters(), lr=2e-3)
    scheduler = optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=5)
    losses: list[float] = []
    while len(losses) < steps:
        epoch = []
        for x in DataLoader(images, batch_size=128, shuffle=True, drop_last=True):
            logits, posterior = model(x)
            loss = loss_function(logits, x, posterior)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            epoch.append(loss.item())
        scheduler.step(sum(epoch) / len(epoch))
        losses += epoch
    model.eval()
    with torch.no_grad():
        logits, posterior = model(images)
        error = F.mse_loss(logits.sigmoid(), images)
    return losses[:steps], {
        "bound": loss_function(logits, images, posterior).item(),
        "squared error": error.item(),
    }


if __name__ == "__main__":
    main(train, steps=420)
