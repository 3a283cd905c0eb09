"""A PyTorch program with the idioms of torch.cuda: run it as `python -m mica.torch torch_program.py`."""

import copy
import io

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

assert torch.cuda.is_available()
print(torch.cuda.device_count(), torch.cuda.get_device_name(0), torch.cuda.get_device_capability())
assert torch.cuda.get_device_properties(0).total_memory > 0
torch.manual_seed(0)
torch.cuda.manual_seed_all(0)
torch.backends.cudnn.benchmark = True
torch.set_float32_matmul_precision("highest")
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

# Mixed precision with a scaler, batches from pinned memory, events around it.
model = nn.Sequential(
    *[nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()],
    *[nn.Linear(8 * 49, 32), nn.Dropout(0.1), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 10)],
).cuda()
assert next(model.parameters()).is_cuda
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
scaler = torch.amp.GradScaler("cuda")
images = TensorDataset(torch.randn(256, 1, 14, 14), torch.randint(0, 10, (256,)))
start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
start.record()
losses = []
for _ in range(4):
    for x, y in DataLoader(images, batch_size=64, shuffle=True, pin_memory=True):
        x, y = x.cuda(non_blocking=True), y.to(device, non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    schedule.step()
end.record()
torch.cuda.synchronize()
print("losses", losses[0], losses[-1], "in", start.elapsed_time(end), "ms")
assert losses[-1] < losses[0]

# Memory and streams.
assert torch.cuda.memory_allocated() > 0 and torch.cuda.memory_reserved() > 0
torch.cuda.reset_peak_memory_stats()
torch.cuda.empty_cache()
stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    square = torch.randn(100, 100, device="cuda")
    product = square @ square
torch.cuda.current_stream().wait_stream(stream)
product.record_stream(torch.cuda.current_stream())
assert torch.allclose(product.cpu(), square.cpu() @ square.cpu(), atol=1e-3)

# Checkpoints go to where they are asked to.
file = io.BytesIO()
torch.save(model.state_dict(), file)
for place, on_cuda in (("cpu", False), ("cuda:0", True), (None, True)):
    file.seek(0)
    state = torch.load(file, map_location=place)
    assert next(iter(state.values())).is_cuda == on_cuda
model.load_state_dict(state)

# Devices by name, number and block; generators; half precision; attention.
x = torch.zeros(3, device="cuda:0")
assert (x.get_device(), x.device.type, x.device.index) == (0, "cuda", 0) and torch.ones(2, device=0).is_cuda
with torch.cuda.device(0):
    assert torch.ones(2, device="cuda").is_cuda
with torch.inference_mode():
    print(model.eval()(images.tensors[0][:3].cuda()).argmax(1).tolist())
state = torch.cuda.get_rng_state()
drawn = torch.rand(3, device="cuda")
torch.cuda.set_rng_state(state)
assert torch.equal(drawn, torch.rand(3, device="cuda"))
generator = torch.Generator(device="cuda").manual_seed(3)
assert torch.rand(2, generator=generator, device="cuda").is_cuda
assert copy.deepcopy(model).half()(images.tensors[0][:3].cuda().half()).dtype == torch.float16
q = torch.randn(2, 4, 32, 16, device="cuda", requires_grad=True)
F.scaled_dot_product_attention(q, q, q, is_causal=True).sum().backward()
assert q.grad.abs().sum().item() > 0 and torch.cuda.is_bf16_supported()
print(torch.accelerator.current_accelerator())
