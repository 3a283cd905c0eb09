"""Public functions whose signature torch shows: Mica shows one too, with torch's parameters first."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from mica.torch._modules import module

MODULES = ["torch", "nn", "nn.functional", "nn.init", "nn.utils", "nn.utils.rnn", "nn.utils.parametrize", "nn.utils.prune", "nn.attention", "optim", "optim.lr_scheduler", "optim.swa_utils", "utils.data", "utils.hooks", "utils.benchmark", "utils.dlpack", "utils._pytree", "linalg", "fft", "special", "autograd", "autograd.functional", "autograd.graph", "autograd.forward_ad", "distributions", "random", "func", "fx", "testing", "overrides", "utils.checkpoint", "serialization", "amp", "hub", "library", "profiler", "signal.windows", "masked", "futures", "storage", "distributed.checkpoint", "distributed.checkpoint.default_planner", "distributed.checkpoint.filesystem", "distributed.checkpoint.format_utils", "distributed.checkpoint.hf_storage", "distributed.checkpoint.metadata", "distributed.checkpoint.planner", "distributed.checkpoint.planner_helpers", "distributed.checkpoint.staging", "distributed.checkpoint.state_dict", "distributed.checkpoint.state_dict_loader", "distributed.checkpoint.state_dict_saver", "distributed.checkpoint.stateful", "distributed.checkpoint.storage"]  # fmt: skip
# Where Mica's parameters are others.
OTHERS = {
    "torch.TypedStorage": "made of a tensor",
    "torch.SymInt": "a session's",
    "torch.SymBool": "inert",
    "torch.SymFloat": "inert",
    "Tensor.index": "torch's is functorch.dim's, for tensors with named dimensions",
    "Tensor.unique": "the function's, whose first parameter is `input`",
    "Tensor.unique_consecutive": "the same",
    "autograd.set_multithreading_enabled": "inert",
    "autograd.graph.set_warn_on_accumulate_grad_stream_mismatch": "inert",
    "nn.attention.activate_flash_attention_impl": "inert",
    "utils.data.argument_validation": "inert",
    "utils.data.non_deterministic": "inert",
    "utils.data.runtime_validation": "inert",
    "library.register_torch_dispatch": "inert",
    "library.triton_op": "inert",
    "library.wrap_triton": "inert",
    "library.Library": "has a kind by default",
    "library.infer_schema": "lets what writes nothing say so by leaving it out",
    "utils.benchmark.Timer": "knows one language",
    "hub.load_state_dict_from_url": "loads weights alone unless told otherwise",
    "distributions.Wishart.rsample": "draws no matrix anew",
    "distributions.CorrCholeskyTransform.log_abs_det_jacobian": "keeps nothing between calls",
    "fx.Graph": "keeps no extras of its tracer",
    "fx.Graph.placeholder": "an Ellipsis says that there is no default",
    "fx.Graph.python_code": "one way to print",
    "fx.GraphModule.print_readable": "the same",
    "fx.Node.format_node": "the same",
    "distributed.checkpoint.HuggingFaceStorageWriter": "inert",
}


def _signature(function: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def _pairs(name: str) -> Iterator[tuple[str, Any, Any]]:
    """Public functions of a module, and public methods of its classes: their names, torch's, Mica's."""
    path = "" if name == "torch" else f".{name}"
    theirs, ours = importlib.import_module(f"torch{path}"), module(f"torch{path}")
    for public in getattr(theirs, "__all__", None) or [n for n in dir(theirs) if not n.startswith("_")]:
        a, b = getattr(theirs, public, None), getattr(ours, public, None)
        yield f"{name}.{public}", a, b
        if isinstance(a, type) and isinstance(b, type) and a.__module__.startswith("torch"):
            shown = "Tensor" if public == "Tensor" else f"{name}.{public}"
            for method, function in vars(a).items():
                if inspect.isfunction(function) and not method.startswith("_"):
                    yield f"{shown}.{method}", function, getattr(b, method, None)


def _plain(value: Any) -> Any:
    return value if isinstance(value, (int, float, str, bool, type(None))) else None


def _differ(a: inspect.Signature, b: inspect.Signature | None) -> bool:
    """Whether the second lacks a parameter of the first, by place or default."""
    theirs = list(a.parameters.values())
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in theirs):
        return b is None
    ours = list(b.parameters.values())[: len(theirs)] if b else []
    return [p.name for p in theirs] != [p.name for p in ours] or any(
        (p.default is p.empty) != (q.default is q.empty) or _plain(p.default) != _plain(q.default)
        for p, q in zip(theirs, ours)
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MODULES)
def test_parameters_are_torchs(name: str) -> None:
    found = []
    for path, a, b in _pairs(name):
        if b is not None and callable(a) and callable(b) and path not in OTHERS:
            mine, theirs = _signature(b), _signature(a)
            if theirs and _differ(theirs, mine):
                found.append(f"{path}: torch {theirs}, Mica {mine}")
    assert not found


def test_generated_functions_show_theirs() -> None:
    import mica

    assert str(inspect.signature(mica.nn.functional.glu)) == "(input, dim=-1)"
    assert str(inspect.signature(mica.Tensor.cumsum)) == "(self, /, dim, *, dtype=None, out=None)"
    assert "Short-time Fourier transform" in mica.stft.__doc__ and "--" not in mica.stft.__doc__
