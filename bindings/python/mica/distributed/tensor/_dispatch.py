"""What an operator does with tensors that lie on a mesh: by its rule, by its parts, or on the whole of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import mica
from mica._C import Tensor
from mica.distributed.tensor._call import (
    Kind,
    Place,
    kind_of,
    places_of,
    results_of,
    run,
    signature,
    with_tensors,
)
from mica.distributed.tensor._class_data import named_rule
from mica.distributed.tensor._layout import strides_like
from mica.distributed.tensor._moves import redistributed
from mica.distributed.tensor._named_rules import decomposed
from mica.distributed.tensor._plan import Layout, Plan, planned, rule_of
from mica.distributed.tensor._sources import Source, local_of, was_written
from mica.distributed.tensor.placement_types import Replicate
from mica.ops import OpOverload
from mica.utils.python_dispatch import DispatchMode

# The words (`batch_rule:`) of operators that read values: of the whole, on every rank.
_READS_VALUES = ("Whole", "kernel")
_MOST = 20_000


class _Replicated(DispatchMode):
    """What a composite makes of no tensor is the same on all ranks."""

    def __init__(self, kind: Any, mesh: Any) -> None:
        super().__init__()
        self._kind, self._mesh = kind, mesh
        self.was_used = False

    def __mica_dispatch__(self, func: OpOverload, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        if type(made) is Tensor and not places_of([*args, *(kwargs or {}).values()]):
            self.was_used = True
            made = agreed(made, self._mesh) if signature(func).draws else made
            return self._kind._of_local(made, self._mesh, (Replicate(),) * self._mesh.ndim)
        return made


class _Quick(NamedTuple):
    """How a call is computed that needs no redistribution and gives one tensor."""

    way: int  # one of those below
    layout: Layout = ()
    kind: Any = None
    key: int = 0  # of the result
    sizes: Any = ()  # of a view's local tensor
    device: Any = None


_NEW, _WRITTEN, _RESHAPED, _PARTS = range(4)
# Such calls by what their arguments say.
_quick: dict[Any, _Quick] = {}
_make_wrapper = Tensor._make_wrapper_subclass


def dispatch(kind: Any, func: OpOverload, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
    """An operator's result: `__mica_dispatch__` of `kind`, the class DTensor.

    Raises:
        NotImplementedError: The operator has no rule, and a tensor is not replicated.
        RuntimeError: Tensors lie on different meshes, or a plain tensor that requires grad is among them.
    """
    key: Any = None
    if not kwargs:
        # What says how a call is computed, of DTensors and numbers alone, the first a DTensor.
        key = (func,)
        for i, a in enumerate(args):
            cls = type(a)
            if cls is kind and (a._key or a._identified()):
                key += (a._key,)
            elif len(key) > 1 and (cls is int or cls is float or cls is bool):
                key += (cls,) if i in signature(func).numbers else (cls, a)
            elif len(key) > 1 and cls is list and all(type(size) is int for size in a):
                key += (tuple(a),)
            else:
                key = None
                break
    known = _quick.get(key)
    if known is None:
        return _dispatched(kind, func, args, kwargs or {}, key)
    way, layout, about, identity, sizes, device = known
    first = args[0]
    if way == _NEW:
        local = func._operator(*[a._local_tensor if type(a) is kind else a for a in args])
        shape, stride, dtype, _ = about
        if local.dtype is not dtype:  # the default dtype is another one
            return _dispatched(kind, func, args, {}, None)
        made = _make_wrapper(kind, shape, stride, None, None, dtype, None, device)
        made._local_tensor = local
        made._mesh = first._mesh
        made._placements = layout
        made._key = identity
        return made
    if way == _PARTS:
        made = func._operator._decompose(args, {})
        return kind._of_local(made, first._mesh, layout) if type(made) is Tensor else made
    if way == _WRITTEN:
        func._operator(*[a._local_tensor if type(a) is kind else a for a in args])
        was_written(first)
        return first
    try:
        local = first._local_tensor.view(sizes)
    except RuntimeError:  # not in order, as another one of its layout was
        return _dispatched(kind, func, args, {}, None)
    made = kind._view_of(first, local, layout, about)
    made._key = identity
    return made


def _dispatched(kind: Any, func: OpOverload, args: Sequence[Any], kwargs: dict[str, Any], key: Any) -> Any:
    positional, named = func.bind(*args, **kwargs)
    values = [*positional, *named.values()]
    places = places_of(values)
    tensors = [_at(values, place) for place in places]
    mesh = _mesh_of(kind, func, tensors)
    if func._opname in _RESHAPES and isinstance(tensors[0], kind):
        return _unshaped(func, tensors[0], values)
    if func.name() == "mica::new_empty_strided" and list(tensors[0].shape) == list(values[1]):
        return _new_strided(kind, tensors[0], values[2], named["dtype"])
    if func.op_class == "random":
        return _on_the_whole(kind, func, values, places, tensors, mesh, drawn=True)
    if rule_of(func) is None:
        return _without_rule(kind, func, values, places, tensors, mesh, key)
    made = decomposed(func, values)
    if made is not NotImplemented:
        return made
    return _planned(kind, func, values, places, tensors, mesh, key)


# Operators that give a tensor another shape in place, and what a program calls instead.
_RESHAPES = {
    "_become_view_": "A view in place (t_(), transpose_(), squeeze_(), unsqueeze_(), ...)",
    "resize_": "resize_(), also of an `out=` of another shape than the result's,",
}


def _unshaped(func: OpOverload, t: Any, values: list[Any]) -> Any:
    """Refuses to give a DTensor another shape; resize_ to its own is nothing."""
    if func._opname == "resize_" and list(values[1]) == list(t.shape):
        return t
    raise NotImplementedError(
        f"{_RESHAPES[func._opname]} of a DTensor of shape {list(t.shape)} and placements {t._placements} is not there "
        f"({func.name()}): DTensors keep shape and layout. Take the new tensor: x = x.t(), or an `out=` of the right shape."
    )


def _check_outs(kind: Any, func: OpOverload, values: list[Any], shapes: Sequence[Any]) -> None:
    """Refuses results that a DTensor among `out=` would have to be resized for."""
    for argument, shape in zip(signature(func).of_argument, shapes):
        t = None if argument is None else values[argument]
        if isinstance(t, kind) and tuple(t.shape) != tuple(shape):
            raise NotImplementedError(
                f"{func.name()} gives a result of shape {list(shape)}, and its `out=` is a DTensor of shape {list(t.shape)}, "
                "which keeps its shape: give one of the result's, or none."
            )


def _new_strided(kind: Any, t: Any, strides: Sequence[int], dtype: Any) -> Any:
    """new_empty_strided of a tensor's own shape, where it lies: gradients come into such."""
    local = local_of(t)
    made = local.new_empty_strided(local.shape, strides_like(strides, local.shape), dtype=dtype)
    return kind._of_kind(made, t._mesh, t._placements, Kind(tuple(t.shape), tuple(strides), made.dtype))


def _at(values: Sequence[Any], place: Place) -> Tensor:
    value = values[place.argument]
    found: Tensor = value if place.item is None else value[place.item]
    return found


def _mesh_of(kind: Any, func: OpOverload, tensors: Sequence[Tensor]) -> Any:
    """The mesh that all tensors lie on."""
    mesh = None
    for t in tensors:
        if not isinstance(t, kind):
            if t.requires_grad:
                raise RuntimeError(
                    f"{func.name()} got mixed Tensor and DTensor: a plain tensor of shape {list(t.shape)} requires grad, and "
                    "ranks would not agree on its gradient; make it a DTensor with distribute_tensor() or DTensor.from_local()."
                )
            continue
        if mesh is None:
            mesh = t._mesh
            if mesh.get_coordinate() is None:
                raise RuntimeError(
                    f"{func.name()} gets a DTensor on {mesh}, of which this rank is not: it has no part of the tensor; call "
                    "operators on the ranks of the mesh alone."
                )
        elif mesh is not t._mesh and mesh != t._mesh:
            raise RuntimeError(
                f"{func.name()} gets DTensors on different meshes, {mesh} and {t._mesh}; redistribution between meshes "
                "is not there: call full_tensor() and distribute_tensor() first."
            )
    return mesh


def _without_rule(
    kind: Any,
    func: OpOverload,
    values: list[Any],
    places: list[Place],
    tensors: list[Tensor],
    mesh: Any,
    key: Any,
) -> Any:
    """Parts of a composite; what reads values; replicated tensors."""
    if named_rule(func) in _READS_VALUES and not signature(func).written:
        made = run(func, with_tensors(values, places, [_whole(kind, t) for t in tensors]))
        replicated = (Replicate(),) * mesh.ndim
        if not isinstance(made, Tensor):
            return made
        return kind._of_local(agreed(made, mesh) if signature(func).draws else made, mesh, replicated)
    if func.op_class == "decompose":
        with _Replicated(kind, mesh) as mode:
            made = func.decompose(*values[: signature(func).by_place], **_named(func, values))
        if made is not NotImplemented:
            if key is not None and not mode.was_used:
                _remember(key, _Quick(_PARTS, (Replicate(),) * mesh.ndim))
            return made
    if signature(func).draws:
        return _on_the_whole(kind, func, values, places, tensors, mesh, drawn=True)
    return _planned(kind, func, values, places, tensors, mesh)


def _planned(
    kind: Any,
    func: OpOverload,
    values: list[Any],
    places: list[Place],
    tensors: list[Tensor],
    mesh: Any,
    key: Any = None,
) -> Any:
    replicated = (Replicate(),) * mesh.ndim
    kinds = [kind_of(t) for t in tensors]
    layouts: list[Layout] = [t._placements if isinstance(t, kind) else replicated for t in tensors]
    plan = planned(func, values, mesh, places, kinds, layouts)
    if plan.results is not None:
        _check_outs(kind, func, values, [k.shape for k in plan.results])
    if plan.whole:
        return _on_the_whole(kind, func, values, places, tensors, mesh)
    made = _by_plan(kind, func, plan, values, places, tensors, layouts, mesh)
    if key is not None and isinstance(made, kind):
        _remember(key, _way(func, plan, made))
    return made


def _remember(key: Any, how: _Quick | None) -> None:
    if how is None:
        return
    if len(_quick) >= _MOST:
        _quick.clear()
    _quick[key] = how


def _way(func: OpOverload, plan: Plan, made: Any) -> _Quick | None:
    """How a call is computed the next time, where that is quick."""
    about = signature(func)
    if plan.moved or plan.outputs is None or plan.results is None or plan.local_results is None:
        return None
    if about.written:
        return _Quick(_WRITTEN) if about.of_argument == [0] and plan.sizes is None else None
    identity = made._identified()
    if not about.is_view and plan.sizes is None:
        device = made._local_tensor.device
        return _Quick(_NEW, plan.outputs[0], plan.results[0], identity, device=device)
    if plan.as_view and identity and not about.is_detached:
        return _Quick(_RESHAPED, plan.outputs[0], plan.results[0], identity, plan.local_results[0])
    return None


def _named(func: OpOverload, values: list[Any]) -> dict[str, Any]:
    about = signature(func)
    return dict(zip(about.names[about.by_place :], values[about.by_place :]))


def _whole(kind: Any, t: Tensor) -> Tensor:
    """All of a tensor, on every rank."""
    if not isinstance(t, kind):
        return t
    return redistributed(local_of(t), t._mesh, t.shape, t._placements, (Replicate(),) * t._mesh.ndim)


def _by_plan(
    kind: Any,
    func: OpOverload,
    plan: Plan,
    values: list[Any],
    places: list[Place],
    tensors: list[Tensor],
    layouts: list[Layout],
    mesh: Any,
) -> Any:
    given = list(values)
    if plan.sizes is not None:
        given[plan.sizes[0]] = plan.sizes[1]
    local = []
    for t, old, new in zip(tensors, layouts, plan.inputs):
        mine = local_of(t) if isinstance(t, kind) else t
        local.append(mine if old == new else redistributed(mine, mesh, t.shape, old, new))
    if signature(func).is_view:
        return _view(kind, func, plan, given, places, tensors, local, mesh)
    made = run(func, with_tensors(given, places, local))
    return _wrapped(kind, func, plan, values, made, mesh)


def _view(
    kind: Any,
    func: OpOverload,
    plan: Plan,
    values: list[Any],
    places: list[Place],
    tensors: list[Tensor],
    local: list[Tensor],
    mesh: Any,
) -> Any:
    """A view of a tensor, or of a copy of it where it has to be redistributed, or its local tensor has no such view."""
    base, replica = tensors[0], local[0]

    def seen(mine: Tensor) -> Tensor:
        if plan.as_view:
            assert plan.local_results is not None
            return mine.view(plan.local_results[0])
        view: Tensor = run(func, with_tensors(values, places, [mine, *local[1:]]))
        return view

    try:
        made = seen(replica)
    except RuntimeError:
        if replica.is_contiguous():
            raise
        replica = replica.contiguous()
        made = seen(replica)
    view = _wrapped(kind, func, plan, values, made, mesh, base if isinstance(base, kind) else None)
    if isinstance(base, kind) and (replica is not base._local_tensor or base._source is not None):
        view._source = Source(base, plan.inputs[0], replica, seen)
    return view


def _wrapped(
    kind: Any, func: OpOverload, plan: Plan, values: list[Any], made: Any, mesh: Any, base: Any = None
) -> Any:
    """The results of a local call as tensors on the mesh; those that are written arguments as those."""
    about = signature(func)
    if not isinstance(made, (Tensor, list, tuple)):
        return made
    replicated = (Replicate(),) * mesh.ndim
    results = []
    for i, x in enumerate(results_of(made)):
        argument = about.of_argument[i] if i < len(about.of_argument) else None
        if argument is not None:
            results.append(_written(kind, values[argument]))
        elif not isinstance(x, Tensor):
            results.append(x)
        elif plan.outputs is None or plan.results is None or plan.local_results is None:
            results.append(kind._of_local(x, mesh, replicated))
        else:
            if list(x.shape) != plan.local_results[i]:
                raise AssertionError(
                    f"The sharding rule of {func.name()} is wrong: the local result has the shape {list(x.shape)}, "
                    f"not {plan.local_results[i]}, where the whole has {list(plan.results[i].shape)}."
                )
            if base is not None:
                results.append(kind._view_of(base, x, plan.outputs[i], plan.results[i], about.is_detached))
            else:
                results.append(kind._of_kind(x, mesh, plan.outputs[i], plan.results[i]))
    if isinstance(made, (list, tuple)):
        return type(made)(results) if type(made) in (list, tuple) else tuple(results)
    return results[0]


def _written(kind: Any, t: Any) -> Any:
    """A written argument, after the write."""
    if isinstance(t, kind):
        was_written(t)
    return t


def _on_the_whole(
    kind: Any,
    func: OpOverload,
    values: list[Any],
    places: list[Place],
    tensors: list[Tensor],
    mesh: Any,
    drawn: bool = False,
) -> Any:
    """Computes the whole on every rank, and brings what was written back to where it lies.

    `drawn`: random numbers are those of the first rank, so that ranks need no seed in common.
    """
    about = signature(func)
    replicated = (Replicate(),) * mesh.ndim
    whole = []
    for t, place in zip(tensors, places):
        x = _whole(kind, t)
        mine = local_of(t) if isinstance(t, kind) else t
        whole.append(x.clone() if place.argument in about.written and x is mine else x)
    made = run(func, with_tensors(values, places, whole))
    _check_outs(kind, func, values, [x.shape for x in results_of(made) if isinstance(x, Tensor)])
    for t, x, place in zip(tensors, whole, places):
        if place.argument in about.written and isinstance(t, kind):
            x = agreed(x, mesh) if drawn else x
            t._local_tensor.copy_(redistributed(x, mesh, t.shape, replicated, t._placements))
            was_written(t)
    results = []
    for i, x in enumerate(results_of(made)):
        argument = about.of_argument[i] if i < len(about.of_argument) else None
        if argument is not None:
            results.append(values[argument])
            continue
        first = next((t for t in tensors if isinstance(t, kind)), None)
        x = agreed(x, mesh) if drawn else x
        cut = (
            drawn
            and first is not None
            and first.shape == x.shape
            and not any(p.is_partial() for p in first._placements)
        )
        layout = first._placements if cut and first is not None else replicated
        mine = redistributed(x, mesh, x.shape, replicated, layout)
        results.append(kind._of_kind(mine, mesh, layout, kind_of(x)))
    return tuple(results) if isinstance(made, (list, tuple)) else results[0]


def agreed(x: Tensor, mesh: Any) -> Tensor:
    """The first rank's tensor."""
    for dim in range(mesh.ndim):
        x = mica.ops.collectives.broadcast(x.contiguous(), mesh.get_group(dim).handle, 0)
    return x
