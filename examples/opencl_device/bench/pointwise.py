"""Pointwise operators made from data against OpenCL kernels written by hand, in one run.

    MICA_PLUGINS=build/mica_opencl.so python bench/pointwise.py build/libhandwritten.so

Both run on the same device in turns, so that noise meets both alike. Printed: the
median of the paired ratios (hand-written time / Mica's time; 1.00 is as fast), with
its quartiles. The results are compared, too: a wrong one fails.
"""

import argparse
import ctypes
import math
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
}


def library(path):
    hand = ctypes.CDLL(path)
    hand.hand_prepare.restype = ctypes.c_void_p
    hand.hand_run.argtypes = [ctypes.c_void_p]
    hand.hand_result.restype = ctypes.c_float
    hand.hand_result.argtypes = [ctypes.c_void_p, ctypes.c_uint]
    return hand


def seconds(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("--elements", type=int, default=1 << 22)
    parser.add_argument("--rounds", type=int, default=41)
    args = parser.parse_args()
    hand = library(args.library)
    n = np.arange(args.elements)
    values = [(n % 1000) / 250 - 2, n % 7, n % 3]
    x, y, z = (mica.from_numpy(v.astype(np.float32)).to(DEVICE) for v in values)
    out = mica.empty(args.elements, device=DEVICE)
    print(f"{'operator':10} {'by hand':>9} {'Mica':>9} {'ratio':>6}  quartiles   ({args.elements} float32)")
    failed = 0
    for name, operator in ROWS.items():
        handle = hand.hand_prepare(name.encode(), args.elements)

        def ours(operator=operator):
            operator(x, y, z, out)
            mica.synchronize(DEVICE)

        def theirs(handle=handle):
            hand.hand_run(handle)

        ours(), theirs()
        pairs = [(seconds(theirs), seconds(ours)) for _ in range(args.rounds)]
        ratios = sorted(a / b for a, b in pairs)
        low, middle, high = statistics.quantiles(ratios, n=4)
        by_hand, mine = (statistics.median(times) * 1e3 for times in zip(*pairs))
        print(f"{name:10} {by_hand:6.2f} ms {mine:6.2f} ms {middle:6.2f}  {low:.2f} to {high:.2f}")
        for i in (0, 1, 999, args.elements - 1):
            expected, given = hand.hand_result(handle, i), out[i].item()
            failed += not math.isclose(expected, given, rel_tol=1e-5, abs_tol=1e-6)
    assert failed == 0, f"{failed} elements differ"
    print(f"{len(ROWS)} passed, 0 failed")


if __name__ == "__main__":
    main()
