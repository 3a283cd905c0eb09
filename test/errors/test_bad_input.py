"""Wrong calls of every operator end in a clear exception and leave a process that works.

bad_input.py makes the calls in processes of its own, so that a crash or a hang is
reported here with the call that made it. MICA_TEST_SEED and MICA_TEST_CALLS choose
other calls, and more of them, than the ones that every run makes.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy
import pytest

import mica

PROGRAM = Path(__file__).parent / "bad_input.py"
SHARDS = 4
SEED = os.environ.get("MICA_TEST_SEED", "1")
CALLS = os.environ.get("MICA_TEST_CALLS", "60")


def make_calls(seed: str, calls: str, shard: int, tmp_path: Path) -> None:
    """Makes so many wrong calls of each operator of one shard."""
    log = tmp_path / "last call"
    command = [sys.executable, str(PROGRAM), seed, calls, str(shard), str(SHARDS), str(log)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=1800)
    assert run.returncode == 0, (
        f"The process ended with ({run.returncode}) in the call\n  {log.read_text()}{run.stderr[-2000:]}"
    )
    assert "WRONG" not in run.stdout, run.stdout
    made = int(run.stdout.split(" calls, ")[0].split()[-1])
    assert made > 100


@pytest.mark.parametrize("shard", range(SHARDS))
def test_operators_refuse_a_few_bad_inputs(shard: int, tmp_path: Path) -> None:
    make_calls("0", "3", shard, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("shard", range(SHARDS))
def test_operators_refuse_bad_input(shard: int, tmp_path: Path) -> None:
    make_calls(SEED, CALLS, shard, tmp_path)


# Calls that once crashed, hung or spoke in half sentences.
REFUSED = [
    *(
        (
            f"mica.nn.functional.scaled_dot_product_attention(*[mica.ones(1, 2, 4, 4)] * 3, {mask})",
            RuntimeError,
            words,
        )
        for mask, words in [
            ("mica.ones(2, 3)", "attn_mask"),
            ("mica.ones(3, 2, 4, 4)", "does not broadcast to the shape"),
            ("mica.ones(4, 5, dtype=mica.bool)", "attn_mask"),
            ("mica.ones(4, 4, dtype=mica.float64)", "attn_mask"),
        ]
    ),
    ("mica.tensor(2.0).roll([2, 3], [-1, -1])", IndexError, "dim"),
    ("ops._inverse_permute(mica.ones(2, 3), [-1])", RuntimeError, r"Number of dims \(1\)"),
    ("ops._plane_scatter(mica.ones(0), (), mica.ones(2))", RuntimeError, "expected planes"),
    (
        "ops.max_pool2d_with_indices_backward(mica.ones(3), mica.ones(2, 2, 3), [1, 1], [2, 3], [0, 0], [1, 1],"
        " True, mica.tensor([0, 1, 2]))",
        RuntimeError,
        "pooled shape",
    ),
    (
        "ops.nll_loss_backward(mica.ones(3), mica.ones(2, 3), mica.tensor([0]), None, 1, -100, mica.ones(1))",
        RuntimeError,
        "`target`",
    ),
    (
        "ops._convolution_backward_weight(mica.ones(1, 1, 2, 2), mica.ones(1, 1, 3, 3), [1, 1, 2, 2], [1], [0], [1],"
        " False, [0], 0)",
        RuntimeError,
        "groups",
    ),
    (
        "ops._convolution_backward_input(mica.ones(1, 1, 9, 9), mica.ones(1, 1, 2, 2), [1, 1, 3, 3], [1], [0], [1],"
        " False, [0], 1)",
        RuntimeError,
        "`grad_output`",
    ),
    ("nn.conv2d(mica.ones(1, 1, 3, 3), mica.ones(1, 1, 2, 2), padding=2**63 - 1)", RuntimeError, "2\\^31"),
    ("nn.conv2d(mica.ones(1, 1, 3, 3), mica.ones(1, 1, 0, 2))", RuntimeError, "kernel of at least 1"),
    ("nn.max_pool2d(mica.ones(1, 4, 4), 2**62)", RuntimeError, "out of range"),
    (
        "ops.native_layer_norm_backward(mica.ones(2, 3), mica.ones(2, 3), [3], mica.ones(2), mica.ones(2), None,"
        " None, [])",
        TypeError,
        "output_mask",
    ),
    (
        "ops.native_batch_norm_backward(mica.ones(9, 9), mica.ones(2, 3), None, None, None, None, None, True, 1.0,"
        " [True] * 3)",
        RuntimeError,
        "grad_out",
    ),
    (
        "ops.native_batch_norm_backward(mica.ones(2, 3, device='meta'), mica.ones(2, 3, device='meta'), None, None, None,"
        " None, None, False, 1.0, [True] * 3)",
        RuntimeError,
        "Running statistics",
    ),
    ("ops.unfold_backward(mica.ones(3), [1, 1], 0, 2, 2)", RuntimeError, "Window size"),
    ("ops.unfold_backward(mica.ones(3), [4, 4], 0, 2, 2)", RuntimeError, "windows"),
    ("ops._as_strided_backward(mica.tensor(2.0), mica.tensor(2.0), [-1], (), -1)", RuntimeError, "one view"),
    ("nn.pixel_shuffle(mica.ones(1, 2, 4, 4), 2**40)", RuntimeError, r"`upscale_factor` \(1099511627776\)"),
    ("mica.ones(3).narrow(0, 1, 2**63 - 1)", RuntimeError, "exceeds dimension size"),
    ("mica.ones(1).expand(2**63 - 1, 2**63 - 1)", RuntimeError, "2\\^63 - 1 bytes or elements"),
    ("mica.ones(1).as_strided([2**40, 2**40], [0, 0])", RuntimeError, "elements"),
    ("mica.arange(0, -2**63, -1)", RuntimeError, "too large|2\\^63"),
    ("mica.ones(3).tensor_split(2**40)", mica.OutOfMemoryError, "asks for"),
    ("mica.ones(0).chunk(2**40)", mica.OutOfMemoryError, "asks for"),
    ("mica.ones(2**40, device='meta').unbind()", mica.OutOfMemoryError, "asks for"),
    ("mica.ones(2**40)", mica.OutOfMemoryError, "has no memory for a request of"),
    ("mica.ones(2**31, 2**31, 2**31)", RuntimeError, "2\\^63"),
    ("mica.ones(2).select(0, 2**70)", OverflowError, "An integer of \\(71\\) bits"),
    (
        "mica.einsum('ij->ik', mica.ones(2, 3))",
        RuntimeError,
        r"output subscript k does not appear in the equation",
    ),
    ("mica.ones(2).type('foo')", ValueError, "foo"),
    ("nn.avg_pool2d(mica.ones(1, 1, 2, 2), 3)", RuntimeError, r"Output size is too small"),
    ("mica.ones(1).expand(3).copy_(mica.ones(3))", RuntimeError, "single memory location"),
    (
        "mica.take(mica.ones(3), mica.tensor([0, 1]), out=mica.ones(1).expand(2))",
        RuntimeError,
        "single memory location",
    ),
    ("mica.neg(mica.ones(2, dtype=mica.bool, device='meta'))", NotImplementedError, r"\(bool\) of `self`"),
    ("mica.ones(3, device='meta').nonzero()", NotImplementedError, "values of its tensors"),
    (
        "nn.scaled_dot_product_attention(mica.ones(2, 3, 4), *[mica.ones(2, 3, 5)] * 2)",
        RuntimeError,
        "(?s)`key`.*`query`",
    ),
    ("mica.ones(2) * 10**400", OverflowError, "bits does not fit"),
    ("ops.elu(mica.ones(2), 1j)", RuntimeError, "must not be a complex number"),
    ("mica.nan_to_num(mica.ones(2), 10**400)", OverflowError, "too large for a float"),
    ("nn.gelu(mica.ones(2), approximate='a\\0b')", RuntimeError, "a\0b"),
    ("nn.gelu(mica.ones(2), approximate='\\ud800')", ValueError, "lone surrogate"),
    ("mica.einsum('é', mica.ones(2))", (RuntimeError, ValueError), "."),
    ("mica.tensor([1]) // mica.tensor([0])", RuntimeError, "integer is divided by zero"),
    ("mica.ones(2).to('cpu', mica.float32, True, mica.ones(2))", RuntimeError, "."),
    ("mica.is_floating_point('a')", TypeError, "."),
    ("mica.cdist(mica.ones(2, 3), mica.ones(2, 3), 2.0, [1])", ValueError, "compute_mode"),
    ("mica.zeros(1).expand(3).uniform_()", RuntimeError, "single memory location"),
    ("mica.zeros(1).expand(3).index_fill_(0, mica.tensor([0]), 2.0)", RuntimeError, "single memory location"),
    (
        "mica.take(mica.ones(4), mica.tensor([0, 1]), out=mica.zeros(1).expand(2))",
        RuntimeError,
        "single memory location",
    ),
    (
        "mica.masked_select(mica.ones(2), mica.tensor([True] * 2), out=mica.zeros(1).expand(2))",
        RuntimeError,
        "single memory location",
    ),
    (
        "mica.split_with_sizes_copy(mica.ones(3), [2**63 - 1, 2**63 - 1])",
        RuntimeError,
        "beyond the range of int64",
    ),
    ("nn.pad(mica.ones(2, 3), [2**63 - 1, 2**63 - 1])", RuntimeError, "beyond the range of int64"),
    (
        "ops.native_group_norm(mica.ones(2, 3), None, None, -1, 2**63 - 1, 2, 1, 0.5)",
        RuntimeError,
        "beyond the range of int64",
    ),
    ("ops._constant_pad_backward(mica.ones(3), [-2**63])", RuntimeError, "beyond the range of int64"),
    ("mica.ones(()).index_add(0, mica.tensor([0]), mica.ones(1, 1, 1))", RuntimeError, "\\(3\\) of `source`"),
    ("'a' in mica.ones(3)", RuntimeError, "you passed in a <class 'str'>"),
    (
        "mica.use_deterministic_algorithms(True, warn_only=1)",
        TypeError,
        "argument 'warn_only' must be bool, not int",
    ),
    ("mica._check_not_implemented(False, lambda: 'words')", NotImplementedError, "words"),
    ("mica.DoubleTensor(mica.FloatStorage(2))", RuntimeError, "float64.*float32"),
    ("mica.tensor([1000], dtype=mica.uint8)", RuntimeError, "\\(1000\\) does not fit the dtype \\(uint8\\)"),
    ("mica.tensor([-256], dtype=mica.uint8)", RuntimeError, "\\(-256\\) does not fit"),
    ("mica.tensor([-129], dtype=mica.int8)", RuntimeError, "\\(-129\\) does not fit"),
    ("mica.ones(2, dtype=mica.uint8) < 256", RuntimeError, "\\(256\\) does not fit dtype \\(uint8\\)"),
    ("mica.ones(2, dtype=mica.uint8) % 300", RuntimeError, "\\(300\\) does not fit"),
    ("mica.full((2,), 300, dtype=mica.uint8)", RuntimeError, "\\(300\\) does not fit"),
    ("nn.pad(mica.ones(2, dtype=mica.uint8), (1, 1), value=300)", RuntimeError, "`value` \\(300\\)"),
    (
        "mica.zeros(2, dtype=mica.uint8).random_(0, 1000)",
        RuntimeError,
        "to - 1 is out of bounds.*\\(999\\).*0 to 255",
    ),
    (
        "mica.zeros(2, dtype=mica.int8).random_(-200, 100)",
        RuntimeError,
        "from is out of bounds.*\\(-200\\).*-128 to 127",
    ),
    ("mica.zeros(2, dtype=mica.float16).random_(0, 70000)", RuntimeError, "69999.*-65504 to 65504"),
    ("mica.zeros(2, dtype=mica.uint8).random_(300, None)", RuntimeError, "from=300 >= to=256"),
    ("mica.randint(0, 1000, (2,), dtype=mica.uint8)", RuntimeError, "0 to 255"),
    ("mica.ones(2, requires_grad=True).sum().backward(inputs=[])", RuntimeError, "`inputs` cannot be empty"),
    ("mica.ones(2).record_stream(None)", TypeError, "`stream` must be a Stream"),
    ("ops._pad_backward(mica.ones(3, 4), [2, 2, 2], 2)", RuntimeError, "\\(3\\) does not fit"),
    ("ops._pad_backward(mica.ones(3, 4), [2, 2], 2)", RuntimeError, "its padded size \\(4\\)"),
    ("ops._pad_backward(mica.ones(3, 4), [1, 2], 0)", RuntimeError, "its padded size \\(4\\)"),
    ("ops._pad_backward(mica.ones(3, 4), [1, 1], 3)", RuntimeError, "mode \\(3\\)"),
    ("ops._linear_scan(mica.ones(2, 2, 3), mica.ones(2, 3), -1)", RuntimeError, "is not the shape"),
    ("ops._pad_backward(mica.ones(3, 4), [-(2**63), 0], 1)", RuntimeError, "beyond the range of int64"),
    ("mica.ones(3, dtype=mica.uint8) < 2**63", RuntimeError, "."),
    ("mica.combinations(mica.ones(3), r=2**40)", mica.OutOfMemoryError, "."),
    ("mica.ones(2, 3).resize_([2**63 - 1, 2**63 - 1])", RuntimeError, "2\\^63"),
    ("mica.randint(3, [0], dtype=mica.complex64)", (RuntimeError, NotImplementedError), "complex64"),
    ("mica.ones(3, 3, device='meta').unique(dim=0)", NotImplementedError, "meta"),
    ("mica.split(3, 1)", TypeError, "."),
    ("mica.meshgrid([None])", TypeError, "."),
]


@pytest.mark.parametrize(("call", "kind", "words"), REFUSED, ids=[c[0][:60] for c in REFUSED])
def test_the_call_is_refused(call: str, kind: type[Exception], words: str) -> None:
    names = {"mica": mica, "ops": mica.ops.mica, "nn": mica.nn.functional}
    with pytest.raises(kind, match=words):
        eval(call, names)


RIGHT = [
    # Of an integer beyond the dtype the low bits count, where they decide those of the result.
    ("mica.tensor([1, 200], dtype=mica.uint8) + 1000", [233, 176]),
    ("mica.tensor([1, 200], dtype=mica.uint8).mul_(257)", [1, 200]),
    ("300 - mica.tensor([1, 200], dtype=mica.uint8)", [43, 100]),
    ("mica.tensor([1, -2], dtype=mica.int32) * 2654435761", [-1640531535, -1013904226]),
    ("mica.tensor([1, -2], dtype=mica.int32) & 0xFFFFFFFF", [1, -2]),
    ("mica.tensor([1, 200], dtype=mica.uint8) ^ 257", [0, 201]),
    ("mica.tensor([-1, -255, 255], dtype=mica.uint8)", [255, 1, 255]),
    ("list(mica.ones((numpy.array(3), numpy.int64(4))).shape)", [3, 4]),
    ("list(mica.ones(numpy.array(3)).shape)", [3]),
    ("mica.ones(2, 2).amax(dim=None)", 1.0),
    ("mica.arange(3).roll(1, dims=None)", [2, 0, 1]),
    ("mica.add(x1=mica.ones(2), x2=mica.ones(2))", [2.0, 2.0]),
    ("mica.sum(a=mica.ones(2, 2), axis=0, keepdims=True)", [[2.0, 2.0]]),
    ("mica.testing.make_tensor(9, dtype=mica.bool, device='cpu', low=-2, high=3).shape[0]", 9),
    ("list(mica.ones(1).new(size=(3, 4)).shape)", [3, 4]),
    ("mica.ones(1, dtype=mica.int32).type(mica.Tensor).dtype == mica.float32", True),
    ("mica.tensor([1.5, 2**70])", [1.5, 2.0**70]),
    ("mica.tensor(-(2**64), dtype=mica.float64)", -(2.0**64)),
    ("mica.tril_indices(3, 2, -1)", [[1, 2, 2], [0, 0, 1]]),
    ("mica.tril_indices(2, 4, 2)", [[0, 0, 0, 1, 1, 1, 1], [0, 1, 2, 0, 1, 2, 3]]),
    ("mica.tril_indices(2, 3, -5)", [[], []]),
    ("mica.triu_indices(3, 2, -1)", [[0, 0, 1, 1, 2], [0, 1, 0, 1, 1]]),
    ("mica.triu_indices(2, 3, 1)", [[0, 0, 1], [1, 2, 2]]),
    ("mica.triu_indices(2, 3, 9)", [[], []]),
    ("list(mica.combinations(mica.ones(6, device='meta'), 3, True).shape)", [56, 3]),
    ("list(mica.resize_as_(mica.ones(4), mica.ones(2, 2)).shape)", [2, 2]),
    ("mica.ones(2, 2).scatter(0, mica.tensor([], dtype=mica.int64), 2.5)", [[1.0, 1.0], [1.0, 1.0]]),
    ("mica.ones(2, 2).gather(0, mica.tensor([], dtype=mica.int64))", []),
    ("mica.empty(3, dtype=mica.uint8).fill_(128).view(mica.bool)", [True, True, True]),
    ("-(2**63) <= mica.tensor(3).random_(-(2**63), None).item() < 2**63", True),
    ("mica.eye(2).matrix_power(-(2**63))", [[1.0, 0.0], [0.0, 1.0]]),
    ("mica.arange(2**63 - 1, -2**63, -(2**62))", [2**63 - 1, 2**62 - 1, -1, -(2**62) - 1]),
    ("mica.arange(2**62, 2**62 + 2)", [2**62, 2**62 + 1]),
    ("mica.arange(5, -(2**63), -(2**63))", [5, 5 - 2**63]),
    ("mica.tensor(2.0).movedim(0, -1)", 2.0),
    ("mica.tensor(2.0).take_along_dim(mica.tensor(0), 0)", 2.0),
    ("[t.tolist() for t in mica.arange(3).chunk(2**63 - 1)]", [[0], [1], [2]]),
    ("[t.tolist() for t in mica.arange(3).split(2**63 - 1)]", [[0, 1, 2]]),
    ("mica.arange(3).roll(-2**63, 0)", [2, 0, 1]),
    ("mica.arange(3).roll([2**63 - 1, 2**63 - 1], [0, 0])", [1, 2, 0]),
    ("mica.arange(3).roll([1, 4, 2**40], [0, 0, 0])", [0, 1, 2]),
]


@pytest.mark.parametrize(("call", "expected"), RIGHT, ids=[c[0] for c in RIGHT])
def test_the_call_is_right(call: str, expected: object) -> None:
    result = eval(call, {"mica": mica, "numpy": numpy})
    assert (result.tolist() if isinstance(result, mica.Tensor) else result) == expected
