"""The README's program for Python users: it trains a small network on points in the plane."""

# snippet: quick_start
import mica
from mica import nn, optim

mica.manual_seed(0)
x = mica.randn(256, 2)
y = (x[:, 0] * x[:, 1] > 0).long()
net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 2))
optimizer = optim.Adam(net.parameters(), lr=0.05)
for _ in range(100):
    loss = nn.functional.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(f"accuracy {(net(x).argmax(1) == y).float().mean().item():.2f}")
# end snippet
assert (net(x).argmax(1) == y).float().mean().item() > 0.95
