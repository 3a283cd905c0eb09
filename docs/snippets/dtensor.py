"""The program of docs/concepts/distributed.md that computes with tensors on a mesh, on four ranks that are threads."""

import threading

import mica
from mica import nn

found = []


def rank(r: int) -> None:
    mica.distributed.init_process_group("threads", rank=r, world_size=4, group_name="dtensor")
    # snippet: dtensor
    from mica.distributed.tensor import Replicate, Shard, distribute_tensor, init_device_mesh
    from mica.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "model"))
    x = distribute_tensor(mica.ones(6, 8), mesh, [Shard(0), Replicate()])  # rows among `data`
    w = distribute_tensor(mica.ones(8, 4), mesh, [Replicate(), Shard(0)]).requires_grad_()
    y = x @ w
    print(y.shape, y.placements)  # mica.Size([6, 4]) (Shard(dim=0), Partial(sum))
    y.relu().sum().backward()  # relu is of the sum: it is reduced first
    print(w.grad.placements, w.grad.full_tensor().shape)

    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))
    parallelize_module(net, mesh["model"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
    # end snippet
    found.append(
        (str(y.placements), str(w.grad.full_tensor().tolist()[0]), tuple(net(mica.ones(3, 8)).shape))
    )
    mica.distributed.destroy_process_group()


threads = [threading.Thread(target=rank, args=(r,)) for r in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert found == [("(Shard(dim=0), Partial(sum))", "[6.0, 6.0, 6.0, 6.0]", (3, 8))] * 4, found
