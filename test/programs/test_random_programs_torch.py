"""What test/programs finds: a planted fault, shrunk to few statements, and nothing where both agree."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import known
import pytest
import steps_autograd  # noqa: F401
import steps_layers  # noqa: F401
import steps_values  # noqa: F401
import steps_views  # noqa: F401
from draw import grow
from session import confirmed, run
from shrink import shrunk

import mica

AGREED = """
torch.manual_seed(3)
v1 = torch.randn((3, 4), dtype=torch.float32).requires_grad_()
v2 = v1.transpose(0, 1) * 2
v2[1:].add_(1)
v2.register_hook(lambda g: log.append(tuple(g.shape)))
v3 = torch.softmax(v2, 0)
(v3 * v2).sum().backward()
v4 = v1.sum() / 0
"""


def test_agreement():
    assert run(known.statements(AGREED)) is None


def long_program(statement: str) -> list[str]:
    """Steps around one that differs."""
    lines = ["v1 = torch.arange(3000).to(torch.float32)", "v2 = v1 * 0.5", "v3 = v2.sin()", "v4 = v3 + v1"]
    lines += ["v5 = v4.reshape(2, 1500)", "v6 = v5[:, ::2]", "v7 = torch.ones(4)", "v8 = v7.sum()"]
    return [*lines, statement]


@pytest.mark.parametrize("statement", ["v9 = torch.cos(v6)", "v9 = torch.cos(v2.reshape(1, 3000)) + v8"])
def test_planted_fault_is_found_and_shrunk(monkeypatch, statement):
    right = mica.cos

    def wrong(x):
        y = right(x)
        return y if x.numel() <= 1024 else mica.cat([y.reshape(-1)[:-1], y.new_zeros(1)]).reshape(y.shape)

    monkeypatch.setattr(mica, "cos", wrong)
    program = long_program(statement)
    found = run(program)
    assert found is not None and found[0] == len(program) - 1 and found[1].kind == "value"
    small = shrunk(program, lambda tried: confirmed(tried, "value", 1) is not None, 60)
    assert len(small) <= 3 and confirmed(small, "value") is not None
    assert "cos" in small[-1]


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("requires_grad", lambda x: x.detach().exp()),
        ("dtype", lambda x: right_exp(x).double()),
        ("shape", lambda x: right_exp(x)[None]),
        ("raises", lambda x: x.no_such_name),
        ("version", lambda x: right_exp(x.mul_(1))),
    ],
)
def test_planted_kinds(monkeypatch, fault, kind):
    monkeypatch.setattr(mica, "exp", kind)
    program = ["v1 = torch.ones(3, requires_grad=True)", "v2 = v1 * 2", "v3 = torch.exp(v2)"]
    found = run(program)
    assert found is not None and found[0] == 2 and found[1].kind == fault


right_exp = mica.exp


def test_missing_write_through_a_view_is_found(monkeypatch):
    monkeypatch.setattr(mica.Tensor, "relu_", lambda x: x.copy_(x.clone().relu()) if x.numel() > 9 else x)
    program = ["v1 = torch.arange(-3., 5.)", "v2 = v1[::2]", "v2.relu_()"]
    assert run([*program[:2], "v2.zero_()"]) is None
    found = run(program)
    assert found is not None and found[0] == 2


def test_rounding_is_no_difference(monkeypatch):
    right = mica.sin
    monkeypatch.setattr(mica, "sin", lambda x: right(x) * (1 + 2.0**-22))
    program = [
        "torch.manual_seed(1)\nv1 = torch.randn(300)",
        "v2 = torch.sin(v1)",
        "v3 = v2 - torch.sin(v1.clone())",
        "v4 = v2.cumsum(0).sum()",
    ]
    assert run(program) is None


INEXACT = [
    # torch keeps the mean of bfloat16 in bfloat16 for the gradient.
    [
        "torch.manual_seed(5)\nv1 = torch.randn((2, 4, 2), dtype=torch.bfloat16).requires_grad_()",
        "torch.manual_seed(1)\nv2 = torch.randn((2, 4, 2), dtype=torch.bfloat16)",
        "v3 = torch.nn.functional.layer_norm(v1, (2,), v2[0, 0].clone(), v2[0, 1].clone())",
        "(v3 * v2).sum().backward()",
    ],
    # torch's exponential overflows before i0 does.
    ["v1 = torch.arange(85, 95)", "v2 = torch.i0(v1)"],
]


@pytest.mark.parametrize("program", INEXACT)
def test_where_torch_is_inexact_mica_has_to_be_exact(monkeypatch, program):
    assert run(program) is not None and confirmed(program) is None
    right = mica.i0
    monkeypatch.setattr(mica, "i0", lambda x: right(x) * 1.25)
    monkeypatch.setattr(
        mica.Tensor, "backward", lambda x: (right_backward(x), [g.mul_(2) for g in leaves(x)])
    )
    assert confirmed(program) is not None


right_backward = mica.Tensor.backward


def leaves(x: mica.Tensor) -> list[mica.Tensor]:
    """The gradients of the leaves that a result was computed from."""
    found, open_nodes = [], [x.grad_fn]
    while open_nodes:
        node = open_nodes.pop()
        found += [node.variable.grad] if hasattr(node, "variable") else []
        open_nodes += [next_node for next_node, _ in node.next_functions if next_node is not None]
    return found


def test_a_spectrum_that_is_zero_but_for_rounding_is_no_difference():
    program = [
        "v1 = torch.fft.fft(torch.ones(5, dtype=torch.float64)).conj()",
        "v2 = torch.count_nonzero(v1)",
    ]
    assert run(program) is None


PLANTED = """
import argparse, os, runpy, signal, sys
sys.path.insert(0, {folder!r})
import draw, mica, session, torch
import steps_autograd, steps_layers, steps_values, steps_views  # they register theirs
draw.STEPS = [(1, lambda d: d.emit("torch.expm1(v1)"))]
{planted} = lambda *values: os.kill(os.getpid(), signal.SIGKILL)
run_all = runpy.run_path({folder!r} + "/__main__.py", run_name="programs")["run_all"]
print(dict(run_all(argparse.Namespace(seed=8, programs=2, seconds=0, shrink=1))))
"""


@pytest.mark.parametrize(
    ("planted", "end", "said"),
    [
        (
            "torch.expm1",
            "ended by torch",
            "torch ended the process (SIGKILL) in program 8000001, which Mica alone",
        ),
        ("mica.expm1", "found", "FAILED program 8000001 ended the process (SIGKILL); Mica alone ends it"),
        (
            "session.Session.compare_values",
            "found",
            "FAILED program 8000001 ended the process (SIGKILL); neither library",
        ),
    ],
)
def test_a_run_goes_on_after_a_program_that_ends_its_process(planted, end, said):
    # In a process without threads: a fork of this one, whose pools have run, may wait for them for ever.
    code = PLANTED.format(folder=str(Path(__file__).parent), planted=planted)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True
    )
    assert said in done.stdout
    assert done.stdout.splitlines()[-1] == str({end: 2})


def test_a_seed_draws_one_program():
    assert grow(7)[0] == grow(7)[0] != grow(8)[0]


def test_known_differences_match_and_are_reported_when_they_are_gone():
    text = "# It adds.\nmatch value: torch\\.add\nv1 = torch.ones(2)\nv2 = torch.add(v1, v1)"
    listed = known.Known(text)
    assert [entry.reason for entry in listed.mended()] == ["It adds."]
    assert len(listed.entries[0].program) == 2


def test_a_listed_program_that_differs_in_another_way_is_reported():
    text = "# Its dtype.\nmatch dtype: torch\\.cummax\nv1 = torch.cummax(torch.ones((), dtype=torch.complex64), 0)"
    assert [entry.reason for entry in known.Known(text).mended()] == ["Its dtype."]


def test_every_listed_difference_is_there():
    listed = known.Known()
    assert [entry.reason for entry in listed.mended()] == []
    for entry in listed.here():
        found = confirmed(entry.program)
        assert found is not None and entry.matches(entry.program, found), entry.reason
