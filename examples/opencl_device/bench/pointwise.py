"""Pointwise operators made from data against OpenCL kernels written by hand, in one run.

    MICA_PLUGINS=build/mica_opencl.so python bench/pointwise.py build/libhandwritten.so

Both run on the same device in turns, in either order, so that noise meets both alike.
Printed: the median of the paired ratios (hand-written time / Mica's time; 1.00 is as
fast), with its quartiles. The row `by hand` is the hand-written add against itself: what
differs from 1.00 there is noise. The results are compared, too: a wrong one fails.
`--cpu` counts the CPU time of all threads instead, for a machine that others use.
"""

import argparse
import ctypes
import statistics
import time

import numpy as np

import mica

DEVICE = "opencl"
ROWS = {
    "add": lambda x, y, z, out: mica.add(x, y, alpha=1.5, out=out),
    "mul": lambda x, y, z, out: mica.mul(x, y, out=out),
    "gelu": lambda x, y, z, out: mica.ops.mica._gelu.out(x, out=out),
    "gelu_tanh": lambda x, y, z, out: mica.ops.mica._gelu_tanh.out(x, out=out),
    "addcmul": lambda x, y, z, out: mica.addcmul(x, y, z, value=0.5, out=out),
    "sigmoid": lambda x, y, z, out: mica.sigmoid(x, out=out),
    "where": lambda x, y, z, out: mica.where(z, x, y, out=out),
    "mul_row": lambda x, y, z, out: mica.mul(x.view(-1, 1024), y[:1024], out=out.view(-1, 1024)),
}


def library(path):
    hand = ctypes.CDLL(path)
    hand.hand_prepare.restype = ctypes.c_void_p
    hand.hand_prepare.argtypes = [ctypes.c_char_p, *[ctypes.c_void_p] * 4, ctypes.c_uint]
    hand.hand_run.argtypes = [ctypes.c_void_p]
    return hand


def seconds(run, clock):
    start = clock()
    run()
    return clock() - start


def pairs_of(first, second, rounds, clock):
    """Times of `first` and `second`, taken in turns; every other pair begins with `second`."""
    pairs = []
    for turn in range(rounds):
        if turn % 2:
            b = seconds(second, clock)
            pairs.append((seconds(first, clock), b))
        else:
            pairs.append((seconds(first, clock), seconds(second, clock)))
    return pairs


def show(name, pairs):
    low, middle, high = statistics.quantiles((a / b for a, b in pairs), n=4)
    by_hand, mine = (statistics.median(times) * 1e3 for times in zip(*pairs))
    print(f"{name:10} {by_hand:6.2f} ms {mine:6.2f} ms {middle:6.2f}  {low:.2f} to {high:.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("--elements", type=int, default=1 << 22)
    parser.add_argument("--rounds", type=int, default=41)
    parser.add_argument("--cpu", action="store_true")
    args = parser.parse_args()
    clock = time.process_time if args.cpu else time.perf_counter
    hand = library(args.library)
    n = np.arange(args.elements)
    values = [(n % 1000) / 250 - 2, n % 7, n % 3]
    x, y, z = (mica.from_numpy(v.astype(np.float32)).to(DEVICE) for v in values)
    mask = z != 0
    out = mica.empty(args.elements, device=DEVICE)
    print(f"{'operator':10} {'by hand':>9} {'Mica':>9} {'ratio':>6}  quartiles   ({args.elements} float32)")
    failed = 0
    for name, operator in ROWS.items():
        third = mask if name == "where" else z
        pointers = [t.data_ptr() for t in (out, x, y, third)]
        handles = [hand.hand_prepare(name.encode(), *pointers, args.elements) for _ in range(2)]

        def ours(operator=operator, third=third):
            operator(x, y, third, out)
            mica.synchronize(DEVICE)

        theirs, again = (lambda handle=handle: hand.hand_run(handle) for handle in handles)
        theirs(), again()
        expected = out.cpu().numpy()
        ours()
        failed += not np.allclose(out.cpu().numpy(), expected, rtol=1e-5, atol=1e-6)
        if name == "add":
            show("by hand", pairs_of(theirs, again, args.rounds, clock))
        show(name, pairs_of(theirs, ours, args.rounds, clock))
    assert failed == 0, f"{failed} operators differ from the kernels written by hand"
    print(f"{len(ROWS)} passed, 0 failed")


if __name__ == "__main__":
    main()
