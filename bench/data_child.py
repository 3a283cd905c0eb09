"""Loads data in one of some ways, again and again, as told line by line.

`python data_child.py NAME` does it on torch, `python -m mica.torch data_child.py NAME` on Mica;
data_rows.py is the other side. A line of input is a JSON with the number of steps; its answer has
the seconds that they took.
"""

import json
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path

import torch
from torch.utils.data import DataLoader, Dataset

GIGABYTE = 1 << 30
WARM_UP = 12  # batches: the workers have started, and what is allocated once is


class Images(Dataset):
    """Samples of a data set that is in memory."""

    def __init__(self, *shape):
        self.images = torch.rand(64, *shape)

    def __len__(self):
        return 1 << 30

    def __getitem__(self, index):
        return self.images[index % 64], index


def loader(shape, batch, workers):
    def steps(count):
        batches = iter(DataLoader(Images(*shape), batch, num_workers=workers))
        for _ in range(WARM_UP):
            next(batches)
        start = time.perf_counter()
        for _ in range(count):
            images, _ = next(batches)
            assert images.shape[0] == batch
        return time.perf_counter() - start

    return steps


def checkpoint(nbytes, mapped):
    path = Path(tempfile.mkdtemp(prefix="mica_bench_")) / "large.pt"
    torch.save({"first": torch.ones(4), "rest": torch.zeros(nbytes // 4)}, path)

    def steps(count):
        start = time.perf_counter()
        for _ in range(count):
            assert torch.load(path, mmap=mapped)["first"][0] == 1
        return time.perf_counter() - start

    return steps, path


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")  # more workers than cores
    torch.set_num_threads(1)
    name, path = sys.argv[1], None
    if name == "images":
        steps = loader((3, 224, 224), 32, 4)
    elif name == "rows":
        steps = loader((16,), 64, 2)
    else:
        steps, path = checkpoint(GIGABYTE if name == "mapped" else GIGABYTE // 16, name == "mapped")
    for line in sys.stdin:
        answers.write(json.dumps({"seconds": steps(json.loads(line)["steps"])}) + "\n")
        answers.flush()
    if path is not None:
        path.unlink()
        path.parent.rmdir()


if __name__ == "__main__":
    main()
