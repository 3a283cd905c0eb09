"""Trains one program of examples/pytorch again and again, as told line by line.

`python program_child.py NAME` runs it on torch, `python -m mica.torch program_child.py NAME`
on Mica. A line of input is a JSON of steps, seed, threads and onednn
(whether torch may use it); its answer, a line too, has
losses, measures and seconds. programs.py is the other side.
"""

import importlib
import json
import os
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples" / "pytorch"))

import torch  # noqa: E402
from torch.nn import functional  # noqa: E402


def dropout_from_uniforms(input, p=0.5, training=True, inplace=False):
    """Dropout whose mask is drawn the same way everywhere: on Intel torch draws its own from MKL."""
    return input * (torch.rand_like(input) >= p) / (1 - p) if training else input


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a program prints is for people
    program = importlib.import_module(sys.argv[1])
    for line in sys.stdin:
        task = json.loads(line)
        torch.set_num_threads(task["threads"])
        torch.manual_seed(task["seed"])
        random.seed(task["seed"])
        torch.backends.mkldnn.enabled = task["onednn"]
        functional.dropout = dropout_from_uniforms
        start = time.perf_counter()
        losses, measures = program.train(task["steps"])
        seconds = time.perf_counter() - start
        answers.write(json.dumps({"losses": losses, "measures": measures, "seconds": seconds}) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
