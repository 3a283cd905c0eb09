"""Modes and subclasses, where torch is no oracle: Mica's own names, errors, what pickles and
binds, threads, and memory that is not there. test_*_modes_torch.py hold the rest."""

from __future__ import annotations

import copy
import gc
import inspect
import pickle
import threading
import timeit
import weakref
from typing import Any

import pytest
from process import ran

import mica
from mica import overrides
from mica.utils.python_dispatch import DispatchMode, no_dispatch, transform_subclass

F = mica.nn.functional


class Log(DispatchMode):
    def __init__(self) -> None:
        self.names: list[str] = []

    def __mica_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(func.name())
        return func(*args, **(kwargs or {}))


class Wrapped(mica.Tensor):
    inner: mica.Tensor

    @staticmethod
    def __new__(cls: Any, inner: mica.Tensor) -> Any:
        self = mica.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
        self.inner = inner
        return self

    @classmethod
    def __mica_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return cls(func(*(a.inner if isinstance(a, cls) else a for a in args), **(kwargs or {})))

    def __tensor_flatten__(self) -> Any:
        return ["inner"], None

    @staticmethod
    def __tensor_unflatten__(inner: Any, context: Any, size: Any, stride: Any) -> Any:
        return Wrapped(inner["inner"])


class Direct(mica.Tensor):
    """Over data of its own; lets operators go on."""

    seen: list[str] = []

    @classmethod
    def __mica_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.seen.append(func.packet_name)
        return super().__mica_dispatch__(func, types, args, kwargs)


class Lost(mica.Tensor):
    """Whose operators give plain tensors."""

    __torch_function__ = mica._C._disabled_torch_function_impl


def test_operators_are_single_objects() -> None:
    log: list[Any] = []

    class Keep(DispatchMode):
        def __mica_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            log.append((func, args, kwargs))
            return func(*args, **(kwargs or {}))

    x = mica.ones(2, 2)
    with Keep():
        x.sum(0)
        mica.add(x, x, alpha=2)
        x.add(x)
    (first, args, kwargs), (second, _, alpha), (third, _, none) = log
    assert first is mica.ops.mica.sum.dim_IntList is mica.ops.aten.sum.dim_IntList
    assert (args[1:], kwargs, alpha, none) == (([0],), {}, {"alpha": 2}, {})
    assert second is third and second.overloadpacket is mica.ops.mica.add and second.op_class == "pointwise"
    assert str(second) == "mica.add.Tensor" and second._schema.arguments[2].kwarg_only
    assert pickle.loads(pickle.dumps(second)) is second and copy.deepcopy(second) is second
    assert mica.ops.mica.t.default.is_view and not second.is_view
    assert mica.ops.mica.add_.Tensor.tags == ["pointwise", "inplace"]
    assert mica.ops.mica.add.out.tags == ["pointwise", "out"]
    assert mica.ops.mica.add_.Tensor._schema.returns[0].alias_info == (0, True)


def test_mode_sees_a_library_operator_and_its_decomposition() -> None:
    lib = mica.library.Library("test_modes", "DEF")
    lib.define("twice(Tensor x) -> Tensor")
    lib.impl("twice", lambda x: x + x)
    with Log() as log:
        mica.ops.test_modes.twice(mica.ones(2))
    assert log.names == ["mica::ones", "mica::add.Tensor"]
    lib._destroy()


def test_nearest_class_decides_between_spellings() -> None:
    asked: list[str] = []

    class Base(mica.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            asked.append("base")
            return super().__torch_function__(func, types, args, kwargs or {})

    class Derived(Base):
        @classmethod
        def __mica_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            asked.append("derived")
            return super().__torch_function__(func, types, args, kwargs)

    mica.ones(1).as_subclass(Derived) + 1
    mica.ones(1).as_subclass(Base) + 1
    assert asked == ["derived", "base", "base"]
    Base.__torch_function__ = mica._C._disabled_torch_function_impl  # a type may change
    assert type(mica.ones(1).as_subclass(Base) + 1) is mica.Tensor and asked == ["derived", "base", "base"]


def test_a_type_is_asked_once_what_it_wants() -> None:
    """Later calls do not walk through its bases again, however many there are."""

    def seconds(bases: int) -> float:
        cls: Any = mica.nn.Parameter
        for _ in range(bases):
            cls = type("Deeper", (cls,), {})
        return min(timeit.repeat(cls(mica.ones(2)).dim, number=200, repeat=20))

    # 4 times as long, for the check that it is a tensor; more than 90 where each call asks.
    assert seconds(400) < 25 * seconds(1)


@pytest.mark.parametrize(
    "function", [F.relu, F.cross_entropy, mica.einsum, mica.Tensor.backward, mica.Tensor.split]
)
def test_functions_of_python_stay_functions(function: Any) -> None:
    assert pickle.loads(pickle.dumps(function)) is function and copy.copy(function) is function
    assert inspect.signature(function).parameters and inspect.unwrap(function).__code__ is function.__code__
    assert function.__name__ in repr(function) and function.__doc__ and function.__module__.startswith("mica")


def test_subclass_over_data_of_its_own() -> None:
    Direct.seen.clear()
    x: Any = mica.Tensor._make_subclass(Direct, mica.ones(2), True)
    y = x * 2
    y.sum().backward()
    assert Direct.seen[0] == "mul" and x.grad.tolist() == [2, 2] and x.tolist() == [1, 1]
    with no_dispatch():
        Direct.seen.clear()
        assert (x.detach() + 1).tolist() == [2, 2] and Direct.seen == []


def test_wrapper_protocols() -> None:
    x: Any = Wrapped(mica.ones(2))
    assert mica.utils.python_dispatch.is_traceable_wrapper_subclass(x)
    assert not mica.utils.python_dispatch.is_traceable_wrapper_subclass(mica.ones(1))
    assert transform_subclass(x, lambda name, t: t * 3).inner.tolist() == [3, 3]
    assert copy.deepcopy(x).inner.tolist() == [1, 1] and x.data_ptr() == 0
    assert (x + x)[0].inner.item() == 2 and type(x.detach()) is Wrapped


@pytest.mark.parametrize(
    "read",
    [
        lambda x: x.tolist(),
        lambda x: x.numpy(),
        lambda x: mica.tensor([x, x]),
        lambda x: mica.utils.dlpack.to_dlpack(x),
        lambda x: memoryview(mica._C._TensorBuffer(x)),
        lambda x: mica.Generator().set_state(Wrapped(mica.zeros(5056, dtype=mica.uint8))),
        lambda x: mica.nn.utils.rnn.pack_padded_sequence(mica.ones(3, 2, 1), Wrapped(mica.tensor([3, 2]))),
    ],
)
def test_what_reads_memory_refuses_a_wrapper(read: Any) -> None:
    with pytest.raises((NotImplementedError, BufferError), match="no memory of its own"):
        read(Wrapped(mica.ones(2)))


def test_operators_refuse_a_wrapper_without_dispatch() -> None:
    x: Any = Wrapped(mica.ones(2))
    for call in (
        lambda: x + 1,
        lambda: mica.ones(2) @ x,
        lambda: x.add_(1),
        lambda: x.sum(),
    ):
        with (
            no_dispatch(),
            pytest.raises(RuntimeError, match="wrapper subclass, which has no memory of its own"),
        ):
            call()


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (
            lambda: mica.Tensor._make_wrapper_subclass(mica.Tensor, (2,)),
            TypeError,
            "has no __mica_dispatch__",
        ),
        (lambda: mica.Tensor._make_wrapper_subclass(int, (2,)), TypeError, "takes a subclass of mica.Tensor"),
        (lambda: mica.Tensor._make_wrapper_subclass(Wrapped, (-1,)), ValueError, "negative"),
        (
            lambda: mica.Tensor._make_wrapper_subclass(Wrapped, (2,), (1, 1)),
            ValueError,
            "are 2 where its sizes",
        ),
        (lambda: mica.Tensor._make_wrapper_subclass(Wrapped, (2,), None, -1), ValueError, "is negative"),
        (lambda: mica.Tensor._make_wrapper_subclass(Wrapped, (2**62, 2**62)), RuntimeError, "bytes"),
        (lambda: mica.Tensor._make_wrapper_subclass(Wrapped, "two"), TypeError, "list of ints"),
        (
            lambda: mica.Tensor._make_wrapper_subclass(Wrapped, (2,), view_of=2),
            TypeError,
            "`view_of` .* is a Tensor",
        ),
        (
            lambda: mica.Tensor._make_wrapper_subclass(Wrapped, (2,), dispatch_sizes_strides_policy="sizes"),
            NotImplementedError,
            "not supported",
        ),
        (lambda: mica.Tensor._make_subclass(mica.Tensor, 3), TypeError, "Tensor"),
        (lambda: mica.ones(1).as_subclass(int), TypeError, "takes a subclass"),
        (
            lambda: mica.nn.Parameter(mica.Tensor._make_subclass(Lost, mica.ones(1))),
            RuntimeError,
            "by detach",
        ),
        (lambda: mica._C._pop_dispatch_mode(), RuntimeError, "No dispatch mode is active"),
        (lambda: mica._C._pop_function_mode(), RuntimeError, "No function mode is active"),
    ],
)
def test_bad_input(call: Any, kind: Any, words: str) -> None:
    with pytest.raises(kind, match=words):
        call()


def test_modes_without_their_method() -> None:
    with DispatchMode(), pytest.raises(NotImplementedError, match="defines no __mica_dispatch__"):
        mica.ones(1)
    with overrides.FunctionMode(), pytest.raises(NotImplementedError, match="defines no __mica_function__"):
        mica.ones(1)
    mica._C._push_dispatch_mode(3)
    with pytest.raises(TypeError, match="lacks the method __mica_dispatch__; it is of type \\(int\\)"):
        mica.ones(1)
    mica._C._pop_dispatch_mode()
    assert mica.ones(1).tolist() == [1]


@pytest.mark.parametrize("result", [None, 3, "text", [1, 2]])
def test_mode_that_returns_what_is_no_tensor(result: Any) -> None:
    class Wrong(DispatchMode):
        def __mica_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return result

    x = mica.ones(2)
    with Wrong():
        try:
            got = x + x
        except TypeError as error:
            assert "result 0" in str(error)
        else:
            assert result is None and got is None or isinstance(got, mica.Tensor)


def test_gradient_of_a_mode_in_one_thread_while_another_reads_it() -> None:
    """The sum of gradients is made without the lock that `x.grad` takes."""
    x = mica.ones(4, requires_grad=True)
    x.grad = mica.zeros(4)
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            assert x.grad is not None

    thread = threading.Thread(target=read)
    thread.start()
    with Log():
        for _ in range(200):
            (x * 2).sum().backward()
    stop.set()
    thread.join(timeout=30)
    assert not thread.is_alive() and x.grad.tolist() == [400.0] * 4


def test_modes_leave_nothing_behind() -> None:
    mode = Log()
    alive = weakref.ref(mode)
    x = mica.ones(2, requires_grad=True)
    with mode:
        (x * 2).sum().backward()
    wrapped: Any = Wrapped(mica.ones(2))
    gone = weakref.ref(wrapped)
    wrapped + 1
    del mode, wrapped
    gc.collect()
    assert alive() is None and gone() is None
    assert mica._C._dispatch_modes() == [] and mica._C._function_modes() == []


def test_a_thread_and_a_process_may_end_within_a_mode() -> None:
    program = (
        "import mica, threading\n"
        "from mica.utils.python_dispatch import DispatchMode\n"
        "from mica.overrides import BaseMode\n"
        "def enter():\n"
        "    DispatchMode().__enter__()\n"
        "    BaseMode().__enter__()\n"
        "for _ in range(4):\n"
        "    t = threading.Thread(target=enter); t.start(); t.join()\n"
        "print(mica.ones(2).tolist(), flush=True)\n"
        "enter()\n"
    )
    done = ran(program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[1.0, 1.0]\n", "")


def test_a_subclass_enters_a_mode_for_the_alias_of_a_result() -> None:
    inside, outside = Log(), Log()

    class Entering(Wrapped):
        @classmethod
        def __mica_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            with inside:
                return cls(func(args[0].inner, *args[1:]))

    with outside, mica.autograd.forward_ad.dual_level():
        assert type(Entering(mica.ones(2)) + 1) is Entering  # the class is put on an alias
        mica.ones(2).sin()
    assert inside.names == ["mica::add.Scalar", "mica::alias"]
    assert "mica::alias" not in outside.names and outside.names[-1] == "mica::sin"


def test_reentrant_dispatch_records_again() -> None:
    class Squared(DispatchMode):
        def __mica_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func.packet_name != "sin":
                return func(*args, **(kwargs or {}))
            with overrides.enable_reentrant_dispatch(), mica.enable_grad():
                x = args[0].detach().requires_grad_()
                (grad,) = mica.autograd.grad((x * x).sum(), x)
            return grad

    with Squared():
        assert mica.ones(2).sin().tolist() == [2, 2]


def test_explain_shows_the_layers() -> None:
    with Log():
        text = mica.explain("mul.Tensor", mica.ones(1, requires_grad=True), mica.ones(1))
    assert text.index("Autograd") < text.index("DispatchMode") < text.index("cpu:")


def test_overridable_functions_have_names() -> None:
    functions = overrides.get_overridable_functions()
    assert (
        mica.add in functions[mica] and F.relu in functions[F] and mica.Tensor.add in functions[mica.Tensor]
    )
    assert not overrides.get_ignored_functions() & set(functions[mica])
    for space in functions.values():
        assert all(overrides.resolve_name(f) for f in space)
    assert overrides.resolve_name(mica.Tensor.shape.__get__) == "mica.Tensor.shape.__get__"
    assert overrides.resolve_name(mica.ops.mica.add.Tensor) == "mica.add.Tensor"


def test_a_wrapper_that_is_a_view_of_another_shares_its_versions() -> None:
    base = Wrapped(mica.ones(3, 2))
    view = mica.Tensor._make_wrapper_subclass(Wrapped, (3,), (2,), 1, view_of=base)
    assert view._base is base and view._is_view()
    mica.autograd.graph.increment_version(view)
    assert base._version == view._version == 1
    detached = mica.Tensor._make_wrapper_subclass(Wrapped, (3,), (2,), 1, view_of=base, detached=True)
    assert not detached._is_view() and detached._version == 1
    with pytest.raises(RuntimeError):
        mica.Tensor._make_wrapper_subclass(Wrapped, (4,), (2,), 1, view_of=base)  # leaves the memory


def test_operators_tell_layers_what_their_entries_say() -> None:
    def said(name: str, word: str) -> str | None:
        return mica.ops.overload(f"mica::{name}")._operator._policy(word)

    assert said("cumsum", "class") == "scan(dim=dim)" == said("cumsum.out", "class")
    assert said("sum.dim_IntList", "class") == "reduction(dims=dim, keepdim=keepdim, none=all)"
    assert said("convolution", "batch_rule") == "Convolution" and said("add.Tensor", "class") is None
