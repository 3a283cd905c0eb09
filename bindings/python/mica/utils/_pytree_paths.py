"""Trees beyond their leaves: the paths to leaves, specs as text, and classes of one's own as containers.

mica.utils._pytree shows all of it.
"""

from __future__ import annotations

import importlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from mica.utils import _pytree
from mica.utils._pytree import (
    SUPPORTED_NODES,
    IsLeaf,
    TreeSpec,
    _node,
    register_pytree_node,
    tree_flatten,
    tree_leaves,
    tree_unflatten,
)

KeyPath = tuple[Any, ...]


def _walk(tree: Any, path: KeyPath, is_leaf: IsLeaf | None, found: list[tuple[KeyPath, Any]]) -> None:
    node = _node(tree)
    if node is None or (is_leaf is not None and is_leaf(tree)):
        found.append((path, tree))
        return
    if node.keys is None:
        raise ValueError(
            f"The class ({type(tree).__name__}) has no paths: register_pytree_node() takes flatten_with_keys_fn."
        )
    for key, child in node.keys(tree):
        _walk(child, (*path, key), is_leaf, found)


def tree_flatten_with_path(
    tree: Any, is_leaf: IsLeaf | None = None
) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """The leaves in order, each with the path to it, and the spec."""
    return tree_leaves_with_path(tree, is_leaf), tree_flatten(tree, is_leaf)[1]


def tree_leaves_with_path(tree: Any, is_leaf: IsLeaf | None = None) -> list[tuple[KeyPath, Any]]:
    """The leaves in order, each with the path to it."""
    found: list[tuple[KeyPath, Any]] = []
    _walk(tree, (), is_leaf, found)
    return found


def tree_map_with_path(
    func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf | None = None
) -> Any:
    """A tree of func(path, leaf, ...) of the leaves of trees of one shape."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    return tree_unflatten([func(path, leaf, *more) for (path, leaf), *more in zip(pairs, *others)], spec)


def keystr(kp: KeyPath) -> str:
    """A path as Python writes it behind the tree: "['a'][0].x"."""
    return "".join(str(key) for key in kp)


def key_get(obj: Any, kp: KeyPath) -> Any:
    """What stands at a path."""
    for key in kp:
        obj = key.get(obj)
    return obj


def tree_all_only(
    type_or_types: Any, /, pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf | None = None
) -> bool:
    """Whether a predicate holds of all leaves of a class."""
    return all(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if isinstance(leaf, type_or_types))


def tree_any_only(
    type_or_types: Any, /, pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf | None = None
) -> bool:
    """Whether a predicate holds of a leaf of a class."""
    return any(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if isinstance(leaf, type_or_types))


def _broadcast_to_and_flatten(
    tree: Any, treespec: TreeSpec, is_leaf: IsLeaf | None = None
) -> list[Any] | None:
    """The leaves of a tree that has one where the spec has a container, repeated; None if it does not fit."""
    if _node(tree) is None or (is_leaf is not None and is_leaf(tree)):
        return [tree] * treespec.num_leaves
    if treespec.is_leaf():
        return None
    children, context = _node(tree).flatten_fn(tree)  # type: ignore[union-attr]
    same = _pytree._type_of(tree) == treespec.type and context == treespec.context
    if not same or len(children) != treespec.num_children:
        return None
    found: list[Any] = []
    for child, spec in zip(children, treespec.children_specs):
        part = _broadcast_to_and_flatten(child, spec, is_leaf)
        if part is None:
            return None
        found += part
    return found


# ---- specs as text

PROTOCOL = 1


def _dump_factory(context: Any) -> str:
    factory, keys = context
    return json.dumps(
        {
            "default_factory_module": factory.__module__,
            "default_factory_name": factory.__qualname__,
            "dict_context": keys,
        }
    )


def _load_factory(text: str) -> Any:
    content = json.loads(text)
    factory = getattr(
        importlib.import_module(content["default_factory_module"]), content["default_factory_name"]
    )
    return [factory, content["dict_context"]]


SUPPORTED_NODES[defaultdict] = SUPPORTED_NODES[defaultdict]._replace(
    name="collections.defaultdict", dump=_dump_factory, load=_load_factory
)


def _as_data(spec: TreeSpec) -> dict[str, Any]:
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    node = SUPPORTED_NODES.get(spec.type)
    if node is None or node.name is None:
        raise NotImplementedError(
            f"A spec with a ({spec.type.__name__}) has no text: register_pytree_node() takes serialized_type_name."
        )
    try:
        context = (node.dump or json.dumps)(spec.context)
    except TypeError as error:
        raise TypeError(
            f"The context of a ({spec.type.__name__}) is nothing that JSON knows; register_pytree_node() takes "
            "to_dumpable_context."
        ) from error
    children = [_as_data(child) for child in spec.children_specs]
    return {"type": node.name, "context": context, "children_spec": children}


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """A spec as JSON text."""
    if protocol not in (None, PROTOCOL):
        raise ValueError(f"The protocol ({protocol}) of a spec's text is unknown; there is {PROTOCOL}.")
    return json.dumps([PROTOCOL, _as_data(treespec)])


def _of_data(data: dict[str, Any]) -> TreeSpec:
    if data["type"] is None:
        return _pytree._LEAF
    for cls, node in SUPPORTED_NODES.items():
        if node.name == data["type"]:
            children = [_of_data(child) for child in data["children_spec"]]
            return TreeSpec(cls, (node.load or json.loads)(data["context"]), children)
    raise NotImplementedError(f"No registered container has the name ({data['type']}) of a spec's text.")


def treespec_loads(serialized: str) -> TreeSpec:
    """The spec of a text that treespec_dumps() wrote."""
    protocol, data = json.loads(serialized)
    if protocol != PROTOCOL:
        raise ValueError(f"The protocol ({protocol}) of a spec's text is unknown; there is {PROTOCOL}.")
    return _of_data(data)


class _Star:
    def __repr__(self) -> str:
        return "*"


def treespec_pprint(treespec: TreeSpec) -> str:
    """A tree of the spec, with a star for each leaf."""
    return repr(tree_unflatten([_Star()] * treespec.num_leaves, treespec))


# ---- classes of one's own


def register_dataclass(
    cls: Any,
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Makes a dataclass a container of its fields; those that are None are left out."""
    import dataclasses

    if not dataclasses.is_dataclass(cls):
        raise ValueError(f"register_dataclass() takes a dataclass; ({cls}) is none.")
    names = field_names if field_names is not None else [f.name for f in dataclasses.fields(cls) if f.init]
    left = set(drop_field_names or ())

    def pairs(obj: Any) -> tuple[list[tuple[Any, Any]], Any]:
        held = [n for n in names if n not in left and getattr(obj, n) is not None]
        empty = [n for n in names if n not in left and getattr(obj, n) is None]
        return [(_pytree.GetAttrKey(n), getattr(obj, n)) for n in held], [held, empty]

    def flatten(obj: Any) -> tuple[list[Any], Any]:
        found, context = pairs(obj)
        return [value for _, value in found], context

    def unflatten(values: Iterable[Any], context: Any) -> Any:
        return cls(**dict(zip(context[0], values)), **dict.fromkeys(context[1]))

    register_pytree_node(
        cls, flatten, unflatten, serialized_type_name=serialized_type_name, flatten_with_keys_fn=pairs
    )


def register_constant(cls: type) -> None:
    """Makes instances of a class part of a tree's spec: containers of nothing."""
    if cls.__eq__ is object.__eq__ or cls.__hash__ is None:
        raise TypeError(
            f"The class ({cls.__name__}) compares by identity or has no hash; a constant of a spec needs both "
            "__eq__ and __hash__."
        )
    register_pytree_node(
        cls, lambda x: ([], x), lambda _, context: context, flatten_with_keys_fn=lambda x: ([], x)
    )
