"""`import torch` gives Mica: the finder, the command, child processes, the table, --check.

Every program runs in a process of its own, since the shim changes what this one imports.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mica._torch_names import table
from mica._torch_names.version import VERSION
from mica.torch import _check, _inert, describe

ROOT = Path(__file__).resolve().parent.parent.parent
USAGE = ROOT / "test" / "data" / "torch_api_usage.tsv"
# Statements that must print the text on the right.
PROGRAMS = {
    "import torch; print(torch.__version__ >= '2.9', torch.__version__ < (3, 0))": "True True",
    "import torch.nn.functional as F; print(F.relu(F.linear.__class__ is not None or 0) if 0 else 'ok')": "ok",
    "from torch import nn; import torch; print(nn is torch.nn, isinstance(nn.Linear(2, 3), torch.nn.Module))": "True True",
    "import importlib.metadata as m; print(m.version('torch'))": VERSION,
    "import importlib.util as u; print(u.find_spec('torch') is not None, u.find_spec('torch.nowhere'))": "True None",
    "import torch; print(torch.jit.is_scripting(), torch.cuda.is_available(), torch.distributed.is_available())": "False False False",
    "import torch, warnings; warnings.simplefilter('error')\ntry: torch.compile(len)\nexcept UserWarning: print('said', torch.compile(len) is len)": "said True",
    "import torch\ntry: torch.nowhere\nexcept AttributeError as e: print('torch.nowhere' in str(e) and 'torch_coverage' in str(e))": "True",
    "import torch\ntry: torch.jit.save(len, 'f')\nexcept NotImplementedError as e: print('torch.jit.save' in str(e))": "True",
    "import torch, copy; n = torch.nn.Linear(2, 3); c = copy.copy(torch.compile(n)).eval(); print(c._orig_mod is n, n.training, [*c.state_dict()], c(torch.ones(2)).shape == (3,), isinstance(c, torch._dynamo.eval_frame.OptimizedModule), torch.jit.trace(n, torch.ones(2)) is n)": "True False ['_orig_mod.weight', '_orig_mod.bias'] True True True",
    "import os, tempfile, torch, torch.distributed.checkpoint as d; from torch.distributed.checkpoint.state_dict_loader import _load_state_dict_from_keys as load; f = tempfile.mkdtemp(); d.save({'x': torch.ones(2).bfloat16()}, checkpoint_id=f, no_dist=True); print(load(storage_reader=d.FileSystemReader(f)), os.path.isfile(f + '/.metadata'))": "{'x': tensor([1., 1.], dtype=torch.bfloat16)} True",
    "import torch; from torch.distributed.checkpoint import state_dict as d; n = torch.compile(torch.nn.Linear(1, 1)); s = d.get_model_state_dict(n); d.set_model_state_dict(n, {k: v * 0 + 2 for k, v in s.items()}, options=d.StateDictOptions(strict=True)); print(sorted(s), n.weight.item())": "['bias', 'weight'] 2.0",
    "import torch; from torch.testing._internal.common_utils import TestCase as T; T().assertEqual({'a': [torch.ones(2)]}, {'a': [torch.ones(2)]})\ntry: T().assertEqual([torch.ones(2)], [torch.zeros(2)])\nexcept AssertionError: print('differs')": "differs",
    "import torch; a = [torch.zeros(1)]; torch.ops.aten._foreach_maximum_.Scalar(a, 2.0); x = torch.ones(1, requires_grad=True); print(a[0].item(), 'Scalar' in torch.ops.aten._foreach_maximum_.overloads(), torch.autograd.grad(x * x, x, None, False, False, True)[0].item())": "2.0 True 2.0",
    "from torch import TensorType; from torch.utils.data._utils.collate import np_str_obj_array_pattern as p; from torch.utils.data.dataloader import _collate_fn_t, _worker_init_fn_t; from torch.distributed._tensor.experimental import implicit_replication; print(bool(p.search('<U3')), bool(p.search('<f4')))": "True False",
    "import torch; f = torch.testing.assert_allclose; n = float('nan'); f([n, 1.0], torch.tensor([n, 1.0]).double())\ntry: f(n, n, equal_nan=False, msg='no')\nexcept AssertionError as e: print(e)": "no",
    # A packet keeps its overloads: it lists all names once, and again where none of them fits.
    "import torch, mica; t = torch.library.Library('late', 'DEF'); x = torch.zeros(1); f = torch.ops.late.f if t.define('f(Tensor x) -> Tensor') else 0; t.impl('f', lambda x: x + 1, 'CPU'); f(x); names = mica._C._overload_names; mica._C._overload_names = None; a = f(x).item(); mica._C._overload_names = names; t.define('f.two(Tensor x, Tensor y) -> Tensor'); t.impl('f.two', lambda x, y: x + y + 5, 'CPU'); print(a, f(x, x).item(), f(x).item())": "1.0 5.0 1.0",
    "import torch; print(torch.ops.load_library('/x/torchvision/_C.so'), torch.library.register_fake('torchvision::nms')(len) is len, torch.ops.torchvision.nms(torch.rand(0, 4), torch.rand(0), 0.5).shape == (0,))": "None True True",
    "import torch; print(torch.backends.cudnn.benchmark); torch.backends.cudnn.benchmark = True; print(torch.backends.cudnn.benchmark)": "False\nTrue",
    "import torch, unittest.mock as k\nwith k.patch('torch.nn.functional.linear', lambda *a: 7): print(torch.nn.Linear(1, 1)(0))\nprint(torch.nn.Linear(1, 1)(torch.ones(1)).shape)": "7\ntorch.Size([1])",
    "import torch; x = torch.ones(1); print(x.type(), x.type('torch.LongTensor').type(), torch.device('cuda').type)": "torch.FloatTensor torch.LongTensor cuda",
    "import torch; print(torch.accelerator.current_accelerator(), torch.autocast('cuda', enabled=False) is not None)": "None True",
    "import torch.library as L\n@L.register_fake('theirs::op')\ndef f(x): return x\nfrom mica.torch import _library; print(_library.waiting())": "['theirs::op']",
    "import torch; a = torch.ops.aten; print({a._sparse_addmm.default: 1} != {}, hasattr(a, 'nowhere'))\ntry: a._pin_memory(torch.ones(1))\nexcept NotImplementedError as e: print('torch.ops.aten._pin_memory' in str(e))": "True False\nTrue",
    "import torch\ntry: torch.ops.load_library('/nowhere.so')\nexcept OSError: print('OSError')": "OSError",
    "import torch; print(torch.device('cuda:1').index, torch.device('cuda', 1) == torch.device('cuda:1'))": "1 True",
    "import torch\ntry: torch.ones(2, device='cuda' if not torch.cuda.is_available() else 'cuda:99')\nexcept RuntimeError as e: print('does not exist' in str(e))": "True",
    "import sys; print(sys.argv)": "['-c', 'one', '--two']",
    "import torch; print(torch.optim.adam.Adam is torch.optim.Adam, torch.nn.modules.linear.Linear is torch.nn.Linear)": "True True",
    "import torch; print('Linear' in dir(torch.nn), torch.nn.parallel.DistributedDataParallel.__module__)": "True torch.nn.parallel.distributed",
    "import torch, pickle; print(pickle.loads(pickle.dumps(torch)) is torch)": "True",
    # What a program asks of classes: where they live, their source, their annotations, pickles of them.
    "import torch; print(torch.Tensor.__module__, torch.nn.Linear.__module__, torch.optim.AdamW.__module__, torch.zeros(2).dtype, torch.Size([1]))": "torch torch.nn.modules.linear torch.optim.adamw torch.float32 torch.Size([1])",
    "import torch, inspect; print(inspect.getsource(torch.nn.Linear).split(':')[0], inspect.getsource(torch.optim.Adam).split(':')[0])": "class Linear(Module) class Adam(GroupOptimizer)",
    "import torch; print('Normal' in vars(torch.distributions), 'Linear' in torch.nn.__dict__, 'add' in vars(torch))": "True True True",
    "import torch, typing; print('training' in typing.get_type_hints(torch.nn.Linear), typing.get_type_hints(torch.nn.Linear.__init__)['bias'])": "True <class 'bool'>",
    "import torch, pickle; c = torch.distributions.Normal; print(c.__module__, pickle.loads(pickle.dumps(c)) is c)": "torch.distributions.normal True",
    "from torch.optim.adam import Adam; import torch.optim.sgd, torch; print(Adam is torch.optim.Adam, torch.optim.sgd.SGD is torch.optim.SGD)": "True True",
    "import torch, warnings\nwith warnings.catch_warnings(record=True) as w:\n    warnings.simplefilter('always'); [torch.jit.script(len) for _ in range(3)]; f = torch.compile(dynamic=True)(len); print(len(w), f is len)": "2 True",
    "try: import torch.nowhere\nexcept ModuleNotFoundError as e: print(e.name)\ntry: from torch.nn import nowhere\nexcept ImportError as e: print('nowhere' in str(e))": "torch.nowhere\nTrue",
    "import torch\nfor kind in (AssertionError, RuntimeError):\n    try: torch.ones(1).cuda()\n    except kind: print(kind.__name__)": "AssertionError\nRuntimeError",
    "import torch\nfor f in (torch.jit.load, torch.onnx.export, torch.export.export, torch.distributed.rpc.init_rpc, torch.jit.ScriptModule, torch.utils.cpp_extension.load):\n    try: f()\n    except NotImplementedError as e: print(str(e).split()[0])": "torch.jit.load\ntorch.onnx.export\ntorch.export.export\ntorch.distributed.rpc.init_rpc\ntorch.jit.ScriptModule\ntorch.utils.cpp_extension.load",
    "from torch.nn.functional import *; from torch import *; print(relu(tensor([-1.0])), linear is not None)": "tensor([0.]) True",
    "import torch; print('Any' in dir(torch.types), 'annotations' in dir(torch.nn.functional), 'relu' in dir(torch.nn.functional))": "False False True",
    # Names that stand in a module inside of one that is a plain file of Mica.
    "import torch; print(torch.mps.Event.__module__, hasattr(torch.xpu, 'Stream'), torch.backends.kleidiai.is_available())": "torch.mps.event True False",
    "import torch\nfor f in (torch.cuda.Stream, torch.cuda.Event, torch.xpu.Event, torch.mps.Event):\n    try: f()\n    except RuntimeError as e: print(str(e).split()[8])": "'cuda';\n'cuda';\n'xpu';\n'mps';",
    # A module behind a function of its name stays behind it, and internal operators are torch's underscored functions.
    "import torch.nn.utils.weight_norm, torch; from torch.nn.utils.weight_norm import WeightNorm; from torch.nn.utils.spectral_norm import SpectralNorm; m = torch.nn.utils.weight_norm(torch.nn.Linear(2, 2)); print(isinstance(next(iter(m._forward_pre_hooks.values())), WeightNorm), torch._softmax(torch.zeros(2), 0, False).tolist(), hasattr(torch, '_nowhere'))": "True [0.5, 0.5] False",
    "import torch, tempfile; f = tempfile.NamedTemporaryFile(); f.write(bytes(range(16))); f.flush(); t = torch.from_file(f.name, True, 4, dtype=torch.int32); t[3] = 7; print(t.shape, t[0].item() == 0x03020100, open(f.name, 'rb').read()[12:])\ntry: torch.frombuffer(b'', dtype=torch.uint8)\nexcept ValueError: print('empty')": "torch.Size([4]) True b'\\x07\\x00\\x00\\x00'\nempty",
    "import torch; from torch.nn.attention import sdpa_kernel, SDPBackend as B; c = torch.backends.cuda; f = lambda: [c.flash_sdp_enabled(), c.math_sdp_enabled(), c.mem_efficient_sdp_enabled()]\nwith sdpa_kernel([B.MATH, B.EFFICIENT_ATTENTION]): print(f())\nprint(f())": "[False, True, True]\n[True, True, True]",
    # import torch is quick: none of these is loaded for it.
    "import torch, sys; print([m for m in ('numpy', 'inspect', 'dataclasses', 'asyncio', 'mica.nn', 'mica.optim', 'importlib.metadata') if m in sys.modules])": "[]",
}


def run(*words: str, **env: str) -> str:
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, timeout=100, env={**os.environ, **env}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_of_torch_prints(program: str) -> None:
    assert run("-m", "mica.torch", "-c", program, "one", "--two") == PROGRAMS[program]


def test_children_see_the_shim(tmp_path: Path) -> None:
    script = tmp_path / "spawns.py"
    script.write_text(
        "import multiprocessing as mp, subprocess, sys, torch\n"
        "def double(x): return (torch.ones(2) * x).tolist()\n"
        "if __name__ == '__main__':\n"
        "    with mp.get_context('spawn').Pool(1) as pool: print(pool.map(double, [3]))\n"
        "    print(subprocess.check_output([sys.executable, '-c', 'import torch; print(torch.__version__)'], text=True))\n"
    )
    assert run("-m", "mica.torch", str(script)).split("\n") == ["[[3.0, 3.0]]", VERSION]


def test_modules_and_arguments(tmp_path: Path) -> None:
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "__init__.py").write_text("")
    (tmp_path / "program" / "__main__.py").write_text(
        "import sys, torch\nprint(torch.arange(3).tolist(), sys.argv[1:])\n"
    )
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    assert run("-m", "mica.torch", "-m", "program", "-x", PYTHONPATH=path) == "[0, 1, 2] ['-x']"


def test_a_process_without_the_shim_sees_no_torch() -> None:
    assert run("-c", "import mica.torch, importlib.util as u; print(u.find_spec('torch'))") == "None"


def test_install_after_torch_is_refused() -> None:
    program = "import sys, types; sys.modules['torch'] = types.ModuleType('torch')\nimport mica.torch\ntry: mica.torch.install()\nexcept RuntimeError as e: print('before the first' in str(e))"
    assert run("-c", program) == "True"


def test_every_line_of_the_table_makes_something() -> None:
    assert len(table.hand()) > 1000
    for name, line in table.hand().items():
        if line.kind in ("module", "hidden"):
            assert line.later or table.is_module(name), name
            table.real_modules(name)
        elif line.kind != "absent":
            table._made(name, line)
            assert line.kind in {"=", "is", *_inert._MAKERS}, name


def test_no_line_waits_for_what_mica_has() -> None:
    """A line marked `later` that Mica's own name has overtaken says nothing any more."""
    for name, line in table.hand().items():
        parent, _, last = name.rpartition(".")
        overtaken = any(hasattr(real, last) for real in table.real_modules(parent))
        empty = line.kind == "module" and not line.detail
        assert not line.later or not (overtaken or empty and table.real_modules(name)), name


def test_every_name_of_the_usage_table_is_described() -> None:
    names = [line.split("\t")[0] for line in USAGE.read_text().splitlines()]
    kinds = {describe(name)[0] for name in names}
    assert len(names) == 2330
    assert kinds == {"present", "inert", "absent"}
    assert describe("torch.nn.Linear") == ("present", "")
    assert describe("Tensor.shape") == ("present", "")
    assert describe("torch.jit.is_scripting") == ("inert", "gives")
    assert describe("torch.nn.Linear.nowhere")[0] == "absent"
    assert describe("torch.torch.Tensor") == ("present", "")
    assert describe("torch.multiprocessing.spawn") == ("present", "")
    assert describe("torch.multiprocessing.spawn.ProcessRaisedException") == ("present", "")


def test_inert_classes_answer_isinstance_and_refuse_instances() -> None:
    cls = table.resolve("torch.distributed.fsdp.FullyShardedDataParallel")
    assert not isinstance(1, cls)
    with pytest.raises(NotImplementedError, match="torch.distributed.fsdp.FullyShardedDataParallel"):
        cls()


@pytest.mark.parametrize("guard", ["_IncludeDispatchKeyGuard", "_ExcludeDispatchKeyGuard"])
def test_guards_of_dispatch_keys_refuse_to_act(guard: str) -> None:
    keys, guarded = table.resolve("torch._C.DispatchKey"), table.resolve(f"torch._C.{guard}")
    with guarded(keys.Undefined):
        pass
    with pytest.raises(NotImplementedError, match="DispatchKey.Python"):
        guarded(keys.Python)


def test_check_names_what_lacks(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text(
        "from torch import nn as layers\nlayers.Linear; layers.nowhere_else\n"
    )
    script = tmp_path / "program.py"
    script.write_text(
        "import torch, beside\nfrom torch.nn import functional as F\nF.relu(torch.ones(2)); torch.nowhere(1)\n"
    )
    found, unread = _check.collect([script])
    assert not unread
    assert found[""] == {
        "torch.nn.functional": 1,
        "torch.nn.functional.relu": 1,
        "torch.ones": 1,
        "torch.nowhere": 1,
    }
    assert found["beside"]["torch.nn.nowhere_else"] == 1
    lines, missing = _check.report(found)
    assert missing == 1
    assert any("75.0 % covered" in line for line in lines)
    assert _check.main([str(script)]) == 1


def test_check_reads_names_and_not_texts() -> None:
    source = """import torch as t, os; from torch.nn import (  # layers
    Linear as L,
    functional as F,
)
'torch.in_a_string'; f"t.in_a_text"  # t.in_a_comment
x.t.of_another; t . nn \\
  .ReLU; F.relu(L(1, 2)); self.F.no
def f():
    '''t.in a
    docstring'''
    import torch; return torch.ones
"""
    uses = _check.uses_of(source)
    assert uses.names == {
        "torch.nn.Linear": 1,
        "torch.nn.functional": 1,
        "torch.nn.ReLU": 1,
        "torch.nn.functional.relu": 1,
        "torch.ones": 1,
    }
    assert uses.imports == {"torch", "os", "torch.nn"}


def test_check_takes_modules_and_leaves_arguments(tmp_path: Path) -> None:
    package = tmp_path / "mine"
    package.mkdir()
    for name, text in {
        "__init__": "",
        "__main__": "from .net import Net\n",
        "net": "import torch\ntorch.nn.Net = torch.nn.nowhere\n",
        "broken": "def (:\n",
    }.items():
        (package / f"{name}.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "mica.torch", "--check", "-m", "mine"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=100,
    )
    assert (done.returncode, "mine: 2 names of torch" in done.stdout, done.stderr) == (0, True, "")
    assert _check.main([str(package / "net.py"), "--epochs", "3"]) == 1  # nn.nowhere is absent
    assert _check.main([str(package / "__main__.py"), "--no-packages", "3"]) == 0
    assert _check.main([str(package / "broken.py")]) == 1
