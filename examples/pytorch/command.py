"""The command line that the programs of this folder share: steps, seed, a file for the losses."""

import argparse
import json
import time

import torch


def main(train, steps):
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=steps)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--json", help="write the losses, the measures and the seconds here")
    args = parser.parse_args()
    if args.threads:
        torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    start = time.perf_counter()
    losses, measures = train(args.steps)
    seconds = time.perf_counter() - start
    for i in range(0, len(losses), max(1, len(losses) // 10)):
        print(f"step {i:5d}  loss {losses[i]:.4f}")
    print(f"step {len(losses) - 1:5d}  loss {losses[-1]:.4f}")
    for name, value in measures.items():
        print(f"{name} {value:.4f}")
    print(f"{seconds:.1f} s, torch {torch.__version__}")
    if args.json:
        with open(args.json, "w") as f:
            json.dump({"losses": losses, "measures": measures, "seconds": seconds}, f)
