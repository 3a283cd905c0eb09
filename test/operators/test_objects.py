"""Objects of Python classes as arguments and results of operators, through every layer."""

from __future__ import annotations

import copy
import gc
import itertools
import threading
import weakref
from typing import Any

import pytest

import mica
from mica import library
from mica.fx.experimental.proxy_tensor import make_fx
from mica.utils.python_dispatch import DispatchMode

_numbers = itertools.count()


class Group:
    def __init__(self, size: float) -> None:
        self.size = size
        self.log: list[str] = []


library.register_object_type("objects_test.Group", Group)


class Subgroup(Group):
    pass


class Stranger:
    pass


library.register_object_type("objects_test.Stranger", Stranger)


def operator(schema: str, kernel: Any, key: str = "cpu") -> Any:
    """An operator of its own namespace with one kernel."""
    ns = f"objects_test{next(_numbers)}"
    name = schema.split("(")[0]
    library.define(f"{ns}::{name}", schema.removeprefix(name))
    library.impl(f"{ns}::{name}", key, kernel)
    return getattr(getattr(mica.ops, ns), name)


def times() -> Any:
    """x * group.size, as a decomposition."""
    return operator(
        "times(Tensor x, objects_test.Group group) -> Tensor", lambda x, group: x * group.size, "default"
    )


def opaque() -> Any:
    """The same by a kernel alone, with its gradient registered."""
    op = operator("times(Tensor x, objects_test.Group group) -> Tensor", lambda x, group: x * group.size)
    name = op.default.name()
    library.register_fake(name, lambda x, group: mica.empty_like(x))
    library.register_autograd(
        name,
        lambda ctx, grad: (op(grad, ctx.group), None),
        setup_context=lambda ctx, inputs, output: setattr(ctx, "group", inputs[1]),
    )
    return op


def test_kernel_gets_the_object_itself() -> None:
    seen: list[Any] = []

    def note(x: mica.Tensor, group: Group | None = None) -> Group | None:
        seen.append(group)
        return group

    op = operator("note(Tensor x, objects_test.Group? group=None) -> objects_test.Group?", note)
    group, sub = Group(2), Subgroup(3)
    x = mica.ones(1)
    assert op(x, group) is group
    assert op(x, group=sub) is sub
    assert op(x) is None and op(x, None) is None
    assert seen == [group, sub, None, None]


@pytest.mark.parametrize("make", [times, opaque])
def test_layers_pass_the_object_on(make: Any) -> None:
    op, group = make(), Group(3.0)
    x = mica.tensor([1.0, 2.0], requires_grad=True)
    y = op(x, group)
    y.sum().backward()
    assert (y.tolist(), x.grad.tolist()) == ([3.0, 6.0], [3.0, 3.0])
    assert mica.func.grad(lambda t: op(t, group).sum())(mica.ones(2)).tolist() == [3.0, 3.0]
    rows = mica.arange(6.0).reshape(2, 3)
    assert mica.func.vmap(op, in_dims=(0, None))(rows, group).tolist() == (rows * 3).tolist()
    assert mica.func.functionalize(op)(mica.ones(2), group).tolist() == [3.0, 3.0]
    assert op(mica.empty(2, 3, device="meta"), group).shape == (2, 3)
    with mica.autocast("cpu"):
        assert op(mica.ones(2), group).tolist() == [3.0, 3.0]
    with mica.no_grad():
        assert not op(x, group).requires_grad


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_trace_keeps_the_object_as_a_constant(mode: str) -> None:
    op = opaque()

    def traced() -> tuple[Any, Any]:
        group = Group(4.0)
        module = make_fx(lambda x: op(x, group) + 1, tracing_mode=mode)(mica.ones(3))
        [call] = [n for n in module.graph.nodes if "times" in str(n.target)]
        assert call.args[1] is group
        return module, weakref.ref(group)

    module, kept = traced()
    gc.collect()
    assert kept() is not None
    assert module(mica.ones(2)).tolist() == [5.0, 5.0]
    del module
    gc.collect()
    assert kept() is None


def test_rules_of_python_get_the_object() -> None:
    op, group = opaque(), Group(3.0)
    seen: list[Any] = []

    @library.register_vmap(op.default.name())
    def _(info: Any, in_dims: Any, x: mica.Tensor, given: Group) -> Any:
        seen.append((in_dims, given))
        return op(x, given), 0

    library.register_autocast(op.default.name(), "cpu", mica.bfloat16)
    assert mica.func.vmap(op, in_dims=(0, None))(mica.ones(2, 3), group).tolist() == [[3.0] * 3] * 2
    assert seen == [((0, None), group)]
    with mica.autocast("cpu"):
        assert op(mica.ones(2), group).dtype == mica.bfloat16


def test_mode_sees_and_replaces_the_object() -> None:
    op, group, other = opaque(), Group(2.0), Group(5.0)

    class Replace(DispatchMode):
        def __mica_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            assert all(a is group for a in args if isinstance(a, Group))
            return func(*(other if a is group else a for a in args), **(kwargs or {}))

    with Replace():
        assert op(mica.ones(2), group).tolist() == [5.0, 5.0]


def test_explain_takes_an_object() -> None:
    op = opaque()
    assert op.default.name() in str(mica.explain(op.default.name(), mica.ones(1), Group(1.0)))


def test_wrong_objects_are_refused_by_name() -> None:
    op, x = times(), mica.ones(1)
    name = op.default.name()
    with pytest.raises(TypeError) as refused:
        op(x, Stranger())
    assert (
        f"The argument `group` of {name} is an object of the type (objects_test.Stranger), where one of the type "
        "(objects_test.Group) is expected."
    ) in str(refused.value)
    with pytest.raises(TypeError, match=r"`group` has type \(int\); expected objects_test.Group"):
        op(x, 3)
    with pytest.raises(TypeError, match=r"`group` has type \(NoneType\); expected objects_test.Group"):
        op(x, None)
    with pytest.raises(TypeError, match="lacks the argument `group` of type objects_test.Group"):
        op(x)
    gives = operator("gives() -> objects_test.Group", Stranger)
    with pytest.raises(TypeError, match=r"for its result 0 an object of the type \(objects_test.Stranger\)"):
        gives()
    listed = operator("listed(objects_test.Group[] groups) -> int", len)
    with pytest.raises(
        NotImplementedError, match=r"a list type that Python cannot give \(objects_test.Group\[\]\)"
    ):
        listed([Group(1.0)])
    with pytest.raises(RuntimeError, match=r"Default \(1\) does not fit type \(objects_test.Group\)"):
        operator("f(objects_test.Group group=1) -> int", len)


def test_layers_say_what_becomes_of_an_object_that_is_made() -> None:
    made = operator("made(Tensor x) -> objects_test.Group", lambda x: Group(x.sum().item()))
    x = mica.ones(2, requires_grad=True)
    assert made(x).size == 2
    assert mica.func.functionalize(lambda t: t * made(t).size)(mica.ones(2)).tolist() == [2.0, 2.0]
    with pytest.raises(
        NotImplementedError, match="returns a number, a truth value or an object, of which a batch"
    ):
        mica.func.vmap(made)(mica.ones(2))
    with pytest.raises(RuntimeError, match="or an object, inside of a trace"):
        make_fx(lambda t: t * made(t).size)(mica.ones(2))


@pytest.mark.filterwarnings("ignore:vmap has no batch rule")
def test_objects_that_vmap_refuses_are_let_go() -> None:
    made: list[Any] = []

    def new() -> Group:
        group = Group(1.0)
        made.append(weakref.ref(group))
        return group

    alone = operator("alone(Tensor x) -> objects_test.Group", lambda x: new())
    pair = operator("pair(Tensor x) -> (Tensor, objects_test.Group)", lambda x: (x + 1, new()))
    listed = operator("listed(Tensor x) -> (objects_test.Group, Tensor[])", lambda x: (new(), [x + 1]))
    x = mica.ones(2)
    for op in (alone, pair, listed):
        with pytest.raises(NotImplementedError, match="returns a number, a truth value or an object"):
            mica.func.vmap(op)(x)
    gc.collect()
    assert [g() for g in made] == [None] * len(made)


def test_results_that_jvp_refuses_are_let_go() -> None:
    made: list[Any] = []

    def both(x: mica.Tensor) -> Any:
        group = Group(1.0)
        made.append(weakref.ref(group))
        return x + 1, group

    op = operator("refused_by_jvp(Tensor x) -> (Tensor, objects_test.Group)", both)
    x = mica.ones(2)
    with pytest.raises(NotImplementedError, match="no rule for the frame kind \\(jvp\\)"):
        mica.func.jvp(lambda t: op(t)[0], (x,), (x,))
    gc.collect()
    assert [group() for group in made] == [None]


def test_trace_refuses_an_object_that_is_made_beside_a_tensor() -> None:
    made: list[Any] = []

    def kernel(x: mica.Tensor, group: Group | None = None) -> Any:
        if group is None:
            group = Group(x.sum().item())
            made.append(weakref.ref(group))
        return x + 1, group

    schema = "beside(Tensor x, objects_test.Group? group=None) -> (Tensor, objects_test.Group)"
    op, scaled, group = operator(schema, kernel), times(), Group(3.0)
    with pytest.raises(RuntimeError, match="makes an object inside of a trace, and the graph would keep"):
        make_fx(lambda x: scaled(*op(x)))(mica.ones(2))
    gc.collect()
    assert [g() for g in made] == [None]
    assert make_fx(lambda x: scaled(*op(x, group)))(mica.ones(2))(mica.zeros(2)).tolist() == [3.0, 3.0]
    first = operator(
        "first(Tensor x, objects_test.Group group) -> (objects_test.Group, Tensor)", lambda x, g: (g, x * 2)
    )
    library.register_fake(first.default.name(), lambda x, g: (g, mica.empty_like(x)))
    assert make_fx(lambda x: first(x, group)[1])(mica.ones(2))(mica.ones(2)).tolist() == [2.0, 2.0]


def test_registration_refuses_what_is_no_type() -> None:
    for name in ("Group", "acme.", "a b.c", "acme.Group?", "", "__torch__.torch.classes.acme.Group", "int[]"):
        with pytest.raises(ValueError, match="is not made of two or more names with dots between"):
            library.register_object_type(name, Group)
    with pytest.raises(
        RuntimeError, match=r"\(objects_test.Group\) is registered already, for <class '.*Group'>"
    ):
        library.register_object_type("objects_test.Group", Stranger)
    for wrong in ((3, Group), ("objects_test.Three", 3)):
        with pytest.raises(TypeError, match="takes the name of a type and a class"):
            library.register_object_type(*wrong)
    assert library.register_object_type("objects_test.Group", Group) is Group


def test_class_that_is_written_anew_takes_its_name() -> None:
    def cell() -> type:
        @library.register_object_type("objects_test.Cell")
        class Cell:
            pass

        return Cell

    op = operator("kind(objects_test.Cell cell) -> objects_test.Cell", lambda cell: cell)
    old, new = cell(), cell()
    made = new()
    assert op(made) is made
    with pytest.raises(TypeError, match=r"`cell` has type \(Cell\); expected objects_test.Cell"):
        op(old())


def test_class_that_registers_others_while_it_is_asked() -> None:
    numbers = itertools.count()

    class Meta(type):
        def __instancecheck__(cls, instance: object) -> bool:
            for _ in range(100):
                library.register_object_type(f"objects_test.Asked{next(numbers)}", type("Asked", (), {}))
            return False

    class Asked(metaclass=Meta):
        pass

    class Other:
        pass

    library.register_object_type("objects_test.Asked", Asked)
    op = operator("kind(objects_test.Asked asked) -> int", lambda asked: 1)
    for _ in range(3):
        with pytest.raises(TypeError, match=r"`asked` has type \(Other\); expected objects_test.Asked"):
            op(Other())


def test_results_before_one_that_is_refused_are_let_go() -> None:
    groups: list[Any] = []

    def kernel(x: mica.Tensor) -> Any:
        group = Group(1.0)
        groups.append(weakref.ref(group))
        return group, 3

    op = operator("pair(Tensor x) -> (objects_test.Group, Tensor)", kernel)
    with pytest.raises(TypeError, match=r"got \(int\) from Python for its result 1"):
        op(mica.ones(1))
    gc.collect()
    assert [g() for g in groups] == [None]


def test_schema_is_inferred_from_a_registered_class() -> None:
    @library.custom_op(f"objects_test{next(_numbers)}::scaled", mutates_args=())
    def scaled(x: mica.Tensor, group: Group, *, other: Group | None = None) -> mica.Tensor:
        return x * (other or group).size

    schema = scaled._opoverload.schema
    assert str(schema).endswith(
        "::scaled(Tensor x, objects_test.Group group, *, objects_test.Group? other=None) -> Tensor"
    )
    assert scaled(mica.ones(1), Group(2.0), other=Group(7.0)).tolist() == [7.0]
    mica.testing.opcheck(scaled, (mica.ones(2), Group(2.0)))


def test_torchs_spelling_is_the_same_type() -> None:
    op = operator(
        "spelt(__torch__.torch.classes.objects_test.Group group) -> float", lambda group: float(group.size)
    )
    assert op(Group(2.5)) == 2.5


def test_object_lives_as_long_as_somebody_holds_it() -> None:
    kept: list[Any] = []
    op = operator("keep(Tensor x, objects_test.Group group) -> Tensor", lambda x, group: x + group.size)
    group = Group(1.0)
    gone = weakref.ref(group)
    op(mica.ones(1), group)
    kept.append(group)
    del group
    gc.collect()
    assert gone() is not None
    kept.clear()
    gc.collect()
    assert gone() is None


def test_many_threads_pass_one_object() -> None:
    op, group = times(), Group(2.0)
    wrong: list[Any] = []

    def run() -> None:
        for _ in range(200):
            if op(mica.ones(1), group).tolist() != [2.0]:
                wrong.append(1)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_copy_of_a_graph_with_an_object_copies_pythons_own() -> None:
    op, group = opaque(), Group(4.0)
    module = make_fx(lambda x: op(x, group))(mica.ones(1))
    assert copy.deepcopy(module)(mica.ones(1)).tolist() == [4.0]
