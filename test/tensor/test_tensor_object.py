"""The Python object of a tensor: identity, lifetime, subclasses, pickles, copies."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import weakref
from typing import Any

import pytest

import mica


def test_object_keeps_its_identity_through_the_graph() -> None:
    layer = mica.nn.Linear(2, 2)
    node = layer.weight.sum().grad_fn.next_functions[0][0]
    assert node.variable is layer.weight


def test_object_with_attributes_is_resurrected() -> None:
    layer = mica.nn.Linear(2, 2)
    layer.weight.tag = "kept"
    node = layer.weight.sum().grad_fn.next_functions[0][0]
    del layer
    gc.collect()
    assert type(node.variable) is mica.nn.Parameter
    assert node.variable.tag == "kept"


def test_object_dies_with_its_last_reference() -> None:
    x = mica.ones(2)
    reference = weakref.ref(x)
    del x
    assert reference() is None


def test_cycle_through_an_attribute_is_collected() -> None:
    x = mica.ones(1)
    x.me = x
    reference = weakref.ref(x)
    del x
    gc.collect()
    assert reference() is None


def test_objects_are_reused_without_leaking_attributes() -> None:
    for _ in range(3000):
        x = mica.ones(1)
        assert x.__dict__ == {}
        x.a = 1


def test_subclass() -> None:
    class Tagged(mica.Tensor):
        __slots__ = ("slot",)

    x = mica.Tensor._make_subclass(Tagged, mica.ones(2))
    x.slot = [1]
    assert isinstance(x, mica.Tensor) and type(x) is Tagged and x.tolist() == [1, 1]
    assert type(x + 1) is Tagged


@pytest.mark.parametrize("slots", [(), ("kept",)])
def test_collector_leaves_what_the_graph_holds(slots: tuple[str, ...]) -> None:
    """An object in a cycle of garbage, whose tensor a graph saved, keeps its attributes."""
    tagged = type("Tagged", (mica.Tensor,), {"__slots__": slots} if slots else {})
    x: Any = mica.Tensor._make_subclass(tagged, mica.ones(2))
    x.kept = [1, 2]
    y = mica.ones(2, requires_grad=True) * x
    number = id(x)
    cycle: list[Any] = [x]
    cycle.append(cycle)
    del x, cycle
    gc.collect()
    saved = [o for o in gc.get_objects() if id(o) == number]
    assert [o.kept for o in saved] == [[1, 2]] and y.requires_grad


@pytest.mark.parametrize(
    "value",
    [mica.float32, mica.device("cpu"), mica.Size([1, 2]), mica.channels_last, mica.strided, mica.bool],
    ids=repr,
)
def test_metadata_pickles(value: Any) -> None:
    assert pickle.loads(pickle.dumps(value)) == value


@pytest.mark.parametrize(
    "dtype", [mica.bool, mica.uint8, mica.int64, mica.float16, mica.bfloat16, mica.float32, mica.complex64]
)
def test_tensor_pickles(dtype: Any) -> None:
    x = mica.arange(6).reshape(2, 3).to(dtype).t()
    y = pickle.loads(pickle.dumps(x))
    assert y.dtype == dtype and y.stride() == x.stride() and bool((x == y).all())


def test_tensors_of_one_pickle_share_their_storage() -> None:
    x = mica.zeros(4)
    whole, part = pickle.loads(pickle.dumps((x, x[1:3])))
    whole[1] = 5
    assert part.tolist() == [5, 0]


def test_deep_copy() -> None:
    layer = mica.nn.Linear(2, 3)
    (layer.weight * 2).sum().backward()
    twin = copy.deepcopy(layer)
    assert type(twin.weight) is mica.nn.Parameter and twin.weight.requires_grad
    assert twin.weight.data_ptr() != layer.weight.data_ptr()
    assert twin.weight.grad.tolist() == layer.weight.grad.tolist()
    with pytest.raises(RuntimeError, match="leaf"):
        copy.deepcopy(layer.weight * 1)


def test_save_and_load() -> None:
    file = io.BytesIO()
    mica.save({"a": mica.ones(2), "b": [1, "x"]}, file)
    file.seek(0)
    loaded = mica.load(file)
    assert loaded["a"].tolist() == [1, 1] and loaded["b"] == [1, "x"]


def test_load_builds_nothing_foreign() -> None:
    class Evil:
        def __reduce__(self) -> Any:
            return (print, ("code ran",))

    file = io.BytesIO(pickle.dumps(Evil()))
    with pytest.raises(pickle.UnpicklingError, match="print"):
        mica.load(file)


def test_legacy_types() -> None:
    assert mica.LongTensor([1, 2]).dtype == mica.int64
    assert mica.FloatTensor(2, 3).shape == (2, 3)
    assert isinstance(mica.ones(1), mica.FloatTensor) and not isinstance(mica.ones(1), mica.LongTensor)
    assert mica.Tensor(2, 3).shape == (2, 3) and mica.Tensor([1, 2]).tolist() == [1, 2]
    assert not mica.cuda.is_available()


def test_a_tensor_of_a_storage_is_its_memory():
    storage = mica.FloatStorage([1.0, 2.0, 3.0])
    made = (
        mica.FloatTensor(storage),
        mica.Tensor(storage),
        mica.Tensor(storage.untyped()),
        mica.ones(1).new(storage),
    )
    for tensor in made:
        assert tensor.data_ptr() == storage.data_ptr() and tensor.tolist() == [1, 2, 3]
    made[0][1] = 5
    assert made[3].tolist() == [1, 5, 3]
