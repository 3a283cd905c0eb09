# ruff: noqa: E402
"""The code of docs/guides/torch-programs.md."""

# snippet: install
import mica.torch

mica.torch.install()

import torch
from torch import nn

net = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
net(torch.ones(1, 2)).sum().backward()
# end snippet

assert net[0].weight.grad is not None

# snippet: checkpoints
torch.save({"net": net.state_dict()}, "net.pt")  # torch 2.13 loads this file
state = torch.load("net.pt", mmap=True)  # and this loads torch's
net.load_state_dict(state["net"])
# end snippet

# snippet: safe
import collections

with torch.serialization.safe_globals([collections.ChainMap]):
    torch.load("net.pt")
# end snippet

import os

os.unlink("net.pt")

# snippet: look
import mica

print(mica.utils.summary(net, torch.ones(8, 2)))  # on the device meta: nothing is computed

with torch.profiler.profile(record_shapes=True) as p, torch.profiler.record_function("step"):
    net(torch.ones(8, 2)).sum().backward()
print(p.key_averages().table(sort_by="cpu_time_total", row_limit=5))
p.export_chrome_trace("trace.json")  # for Perfetto
# end snippet

os.unlink("trace.json")
