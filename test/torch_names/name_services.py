"""Programs over L (torch or Mica) for rows of names*.txt: operators from Python, files, utilities, services."""

from __future__ import annotations

import importlib
import os
import tempfile
from collections import OrderedDict
from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PurePath
from typing import Any

from name_programs import Pair, raises, refused, with_

from mica.torch._modules import module as namespace_module

__all__ = ["Decimal", "Fraction", "Pair", "Path", "PurePath", "with_"]

# ---- operators from Python

_made = [0]


def _fresh(L: Any) -> str:
    _made[0] += 1
    return f"names{_made[0]}"


def custom_op(L: Any, fake: Any = None, autograd: Any = None) -> Any:
    def cubed(v: Any) -> Any:
        return v**3

    cubed.__annotations__ = {"v": L.Tensor, "return": L.Tensor}
    cube = L.library.custom_op(f"{_fresh(L)}::cube", cubed, mutates_args=())
    found = []
    if fake is not None:
        fake(cube._qualname)(lambda v: L.empty_like(v))
        found.append(cube(L.empty(2, 3, device="meta")).shape)
    v = L.tensor([2.0, 3.0], requires_grad=autograd is not None)
    if autograd is not None:
        autograd(
            cube._qualname,
            lambda ctx, g: g * 3 * ctx.saved_tensors[0] ** 2,
            setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
        )
        cube(v).sum().backward()
        found.append(v.grad)
    return [*found, cube(v)]


def library(L: Any, implement: Any) -> Any:
    name = _fresh(L)
    lib = L.library.Library(name, "DEF")
    lib.define("twice(Tensor v) -> Tensor")
    implement(lib)
    return getattr(L.ops, name).twice(L.tensor([1.5]))


def dispatched(L: Any, off: Any = None) -> Any:
    names = []

    class Count(L.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, f: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            names.append(str(f).split(".", 1)[1])
            return f(*args, **(kwargs or {}))

    with Count():
        L.ones(2).exp()
        if off is not None:
            with off():
                L.ones(2).sin()
    return names


def functions_seen(L: Any) -> Any:
    names = []

    class Count(L.overrides.TorchFunctionMode):
        def __torch_function__(self, f: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            names.append(f.__name__)
            return f(*args, **(kwargs or {}))

    with Count():
        L.exp(L.ones(2)).sin()
    return names


def flops(L: Any) -> Any:
    counter = L.utils.flop_counter.FlopCounterMode(display=False)
    with counter:
        L.nn.Linear(3, 4)(L.ones(5, 3)) @ L.ones(4, 2)
    return counter.get_total_flops()


# ---- files


def hub_file(L: Any, download: Any = None, load: Any = None) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, "w-abc.pt")
        L.save({"w": L.ones(2)}, source)
        copy = os.path.join(folder, "copy.pt")
        (download or L.hub.download_url_to_file)(f"file://{source}", copy, progress=False)
        load = load or L.hub.load_state_dict_from_url
        found = load(f"file://{folder}/copy.pt", model_dir=folder, progress=False)
        return [found, os.path.getsize(copy) == os.path.getsize(source)]


def hub_folder(L: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "hubconf.py").write_text(
            "dependencies = []\ndef seven(n=1):\n    'Seven.'\n    return 7 * n\n"
        )
        return L.hub.load(folder, "seven", n=2, source="local")


def hub_dir(L: Any) -> Any:
    before = L.hub.get_dir()
    try:
        L.hub.set_dir("somewhere")
        return L.hub.get_dir()
    finally:
        L.hub.set_dir(before)


def known(L: Any, name: str, ask: Any = None) -> bool:
    """Whether the checkpoint reader allows a global of this name."""
    found = (ask or L.serialization.get_safe_globals)()
    return name in [getattr(v, "__name__", "") for v in found]


def allowed(L: Any, name: str, change: Any, ask: Any = None) -> Any:
    """The same before a change, after it, and when it is undone."""
    before = L.serialization.get_safe_globals()
    found = [known(L, name)]
    change()
    found.append(known(L, name, ask))
    L.serialization.clear_safe_globals()
    L.serialization.add_safe_globals(before)
    return [*found, known(L, name)]


def unsafe_globals(L: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        L.save({"p": Path("a"), "t": L.ones(1)}, f"{folder}/a.pt")
        return sorted(L.serialization.get_unsafe_globals_in_checkpoint(f"{folder}/a.pt"))


# ---- utilities


def handle(L: Any) -> Any:
    hooks: Any = OrderedDict()
    h = L.utils.hooks.RemovableHandle(hooks)
    hooks[h.id] = 1
    h.remove()
    return hooks


def registered_node(L: Any, register: Any) -> Any:
    class Box:
        def __init__(self, inside: Any) -> None:
            self.inside = inside

    register(Box, lambda b: ([b.inside], None), lambda v, _: Box(*v))
    return L.utils._pytree.tree_map(lambda v: v + 1, Box(1)).inside


def constant_node(L: Any) -> Any:
    class Constant:
        def __eq__(self, other: Any) -> bool:
            return isinstance(other, Constant)

        def __hash__(self) -> int:
            return 1

    L.utils._pytree.register_constant(Constant)
    return L.utils._pytree.tree_leaves([1, Constant(), 2])


def called(value: int) -> int:
    return value + 1


def flag(of: Any, name: str, other: bool) -> Any:
    """A switch before, while it is set, and after it was set back."""
    before = getattr(of, name)
    try:
        setattr(of, name, other)
        return [before, getattr(of, name)]
    finally:
        setattr(of, name, before)


def patched(config: Any, name: str, value: Any) -> Any:
    """A configuration's value within patch as a block and as a decorator, and after each."""
    found = [getattr(config, name)]
    with config.patch(**{name: value}):
        found.append(getattr(config, name))
    found.append(config.patch({name: value})(lambda: getattr(config, name))())
    return [*found, getattr(config, name), raises(lambda: config.patch(no_such_name=1).__enter__())]


def ordered(kind: Any) -> Any:
    some = kind([3, 1, 2, 1])
    some.add(0)
    some.discard(1)
    other = kind([0, 9, 3])
    found = [list(v) for v in (some | other, some & other, some - other, some ^ other, some.union([7], [3]))]
    return [*found, repr(some), some.pop(), list(reversed(some)), some == kind([3, 2]), len(some), 2 in some]


def completed(L: Any, value: Any) -> Any:
    done = L.futures.Future()
    done.set_result(value)
    return done


def future(L: Any) -> Any:
    first, seen = L.futures.Future(), []
    second = first.then(lambda f: f.value() + 1)
    first.add_done_callback(lambda f: seen.append(f.wait()))
    before = first.done()
    first.set_result(4)
    failed = L.futures.Future()
    failed.set_exception(KeyError("a"))
    return [
        before,
        first.done(),
        second.wait(),
        seen,
        raises(failed.wait),
        raises(lambda: first.set_result(5)),
    ]


def failing(index: int) -> None:
    raise ValueError(f"worker {index}")


def exiting(index: int) -> None:
    os._exit(3)


def print_nothing(index: int, value: int) -> None:
    assert (index, value) == (0, 1)


def raises_is(f: Any, kind: type) -> Any:
    """Whether f raises this class, with its exit code if it has one."""
    try:
        f()
    except kind as error:
        return [kind.__name__, getattr(error, "exit_code", None)]
    return "nothing"


def module(L: Any, path: str) -> Any:
    """torch.<path> where an attribute of the same name hides the module."""
    if L.__version__.endswith("+mica"):
        return namespace_module(f"torch.{path}")
    return importlib.import_module(f"torch.{path}")


def same_twice(m: Any) -> bool:
    return m.weight is m.weight


def measured(L: Any, times: list[float], **spec: Any) -> Any:
    common = module(L, "utils.benchmark.utils.common")
    task = {"stmt": "f(x)", "setup": "x = 1", "label": "L", "sub_label": "s", "description": "d", **spec}
    return common.Measurement(number_per_run=10, raw_times=times, task_spec=common.TaskSpec(**task))


def measurement(L: Any) -> Any:
    """What a measurement of given times says of itself."""
    m = measured(L, [1e-4, 1.2e-4, 1.1e-4, 1.3e-4, 5e-4], num_threads=2)
    others = [measured(L, [2e-4, 2.01e-4, 2.02e-4]), measured(L, [0.5])]
    found = [[v.median, v.mean, v.iqr, v.significant_figures, v.has_warnings, v.times] for v in (m, *others)]
    text = repr(m).splitlines()[1:6]
    return [found, text, m.title, m.as_row_name, m.env, [v.raw_times for v in type(m).merge([m, *others, m])]]


def compared(L: Any) -> Any:
    """Tables of given times, with all digits and with the significant ones."""
    parts = [
        measured(L, [1e-4, 1.2e-4, 1.1e-4, 1.3e-4], num_threads=2),
        measured(L, [2e-4] * 4, num_threads=2, sub_label="longer name"),
        measured(L, [3e-4] * 4, num_threads=2, description="e"),
        measured(L, [2.5e-3] * 4, description="e"),
    ]
    table = L.utils.benchmark.Compare(parts)
    found = [str(table)]
    table.trim_significant_figures()
    return [*found, str(table), refused(lambda: L.utils.benchmark.Compare([3]))]


def timed(L: Any) -> Any:
    """What a timer measured, less the times."""
    ticks = iter(range(10**9))
    clock = L.utils.benchmark.Timer("y = x + 1", "x = 3", label="a", timer=lambda: next(ticks) * 1e-3)
    one = clock.timeit(50)
    some = L.utils.benchmark.Timer("y + 1", globals={"y": 2}).blocked_autorange(min_run_time=0.01)
    return [
        one.number_per_run,
        one.raw_times,
        one.title,
        sum(some.raw_times) >= 0.01,
        some.number_per_run > 9,
    ]


def piped(L: Any) -> Any:
    """A pipe of one's own, under a functional name."""
    name = f"doubled_{_fresh(L)}"

    @L.utils.data.functional_datapipe(name)
    class Doubled(L.utils.data.IterDataPipe):
        def __init__(self, source: Any) -> None:
            self.source = source

        def __iter__(self) -> Any:
            return (v * 2 for v in self.source)

    return list(getattr(L.utils.data.datapipes.iter.IterableWrapper([1, 2]), name)())


def files(L: Any) -> Any:
    """Names and contents of a folder's files, by pipes."""
    pipes = L.utils.data.datapipes.iter
    with tempfile.TemporaryDirectory() as folder:
        for name in ("a.txt", "b.txt", "c.dat"):
            Path(folder, name).write_text(name * 2)
        opened = pipes.FileOpener(pipes.FileLister(folder, "*.txt"), mode="r")
        return sorted((os.path.basename(name), stream.read()) for name, stream in opened)
