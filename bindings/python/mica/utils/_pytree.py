"""Nested containers as flat lists of leaves, with a spec that builds them again.

Containers are lists, tuples, named tuples, dictionaries, OrderedDicts, defaultdicts
and deques, and what register_pytree_node() adds; everything else, None too, is a leaf."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple


class NodeDef(NamedTuple):
    """How a container comes apart into children and a context, and together again.

    `keys` gives the place of each child, for paths; `name`, `dump` and `load` write a spec as text.
    """

    flatten_fn: Callable[[Any], tuple[list[Any], Any]]
    unflatten_fn: Callable[[Iterable[Any], Any], Any]
    keys: Callable[[Any], list[tuple[Any, Any]]] | None = None
    name: str | None = None
    dump: Callable[[Any], Any] | None = None
    load: Callable[[Any], Any] | None = None

    @property
    def type(self) -> Any:
        """The class of the containers."""
        return next(cls for cls, node in SUPPORTED_NODES.items() if node is self)


def _flatten_named(t: Any) -> tuple[list[Any], Any]:
    return list(t), type(t)


def _flatten_default(d: Any) -> tuple[list[Any], Any]:
    return list(d.values()), [d.default_factory, list(d)]


def _items(d: Any) -> list[tuple[Any, Any]]:
    return [(MappingKey(k), v) for k, v in d.items()]


def _numbered(x: Any) -> list[tuple[Any, Any]]:
    return [(SequenceKey(i), v) for i, v in enumerate(x)]


def _fields_of(t: Any) -> list[tuple[Any, Any]]:
    return [(GetAttrKey(n), v) for n, v in zip(getattr(t, "_fields", None) or t.__match_args__, t)]


_NAMED = NodeDef(_flatten_named, lambda values, cls: cls(*values), _fields_of)
_STRUCT = NodeDef(_flatten_named, lambda values, cls: cls(list(values)), _fields_of)
# By class; a named tuple's is the function that makes such classes, as in torch.
SUPPORTED_NODES: dict[Any, NodeDef] = {
    list: NodeDef(lambda x: (x, None), lambda values, _: list(values), _numbered, "builtins.list"),
    tuple: NodeDef(lambda x: (list(x), None), lambda values, _: tuple(values), _numbered, "builtins.tuple"),
    dict: NodeDef(
        lambda d: (list(d.values()), list(d)),
        lambda values, keys: dict(zip(keys, values)),
        _items,
        "builtins.dict",
    ),
    OrderedDict: NodeDef(
        lambda d: (list(d.values()), list(d)),
        lambda values, keys: OrderedDict(zip(keys, values)),
        _items,
        "collections.OrderedDict",
    ),
    defaultdict: NodeDef(
        _flatten_default,
        lambda values, context: defaultdict(context[0], zip(context[1], values)),
        _items,
    ),
    deque: NodeDef(
        lambda d: (list(d), d.maxlen),
        lambda values, most: deque(values, maxlen=most),
        _numbered,
        "collections.deque",
    ),
    namedtuple: _NAMED,
}


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], Any],
    unflatten_fn: Callable[[Iterable[Any], Any], Any],
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Callable[[Any], Any] | None = None,
    from_dumpable_context: Callable[[Any], Any] | None = None,
    flatten_with_keys_fn: Callable[[Any], Any] | None = None,
    **_: Any,
) -> None:
    """Makes instances of `cls` containers: flatten_fn(x) gives (children, context).

    flatten_with_keys_fn(x) gives (place, child) pairs and the context, for paths; a name lets specs be
    written as text, with functions for contexts that JSON does not know.
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"The class ({cls.__name__}) is registered as a container already.")
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(
            "to_dumpable_context and from_dumpable_context belong together; one of them is given."
        )
    keys = None if flatten_with_keys_fn is None else lambda x: flatten_with_keys_fn(x)[0]
    SUPPORTED_NODES[cls] = NodeDef(
        flatten_fn, unflatten_fn, keys, serialized_type_name, to_dumpable_context, from_dumpable_context
    )


def _node(tree: Any) -> NodeDef | None:
    cls = type(tree)
    found = SUPPORTED_NODES.get(cls)
    if found is None and isinstance(tree, tuple):
        if hasattr(cls, "_fields"):
            return _NAMED
        if hasattr(cls, "n_sequence_fields"):  # the named results of operators
            return _STRUCT
    return found


def is_namedtuple(obj: Any) -> bool:
    """Whether it is a named tuple, or a class of them."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_namedtuple_instance(obj: Any) -> bool:
    """Whether it is a named tuple."""
    return not isinstance(obj, type) and is_namedtuple_class(type(obj))


def is_namedtuple_class(cls: type) -> bool:
    """Whether it is a class of named tuples."""
    return issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple)


def is_structseq(obj: Any) -> bool:
    """Whether it is a named result of an operator, or a class of them."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_class(cls: type) -> bool:
    """Whether it is a class of named results."""
    return issubclass(cls, tuple) and hasattr(cls, "n_sequence_fields")


class TreeSpec:
    """The shape of a tree: a container's class, its context and the specs of its children."""

    def __init__(self, type: Any, context: Any, children_specs: list[TreeSpec]) -> None:
        self.type, self.context, self.children_specs = type, context, children_specs
        self.num_leaves = sum([c.num_leaves for c in children_specs]) if type is not None else 1

    @property
    def num_children(self) -> int:
        return len(self.children_specs)

    @property
    def num_nodes(self) -> int:
        return 1 + sum(c.num_nodes for c in self.children_specs)

    def is_leaf(self) -> bool:
        return self.type is None

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        return tree_unflatten(leaves, self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeSpec) and (self.type, self.context, self.children_specs) == (
            other.type,
            other.context,
            other.children_specs,
        )

    def __hash__(self) -> int:
        return hash((self.type, repr(self.context), tuple(self.children_specs)))

    def __repr__(self, indent: int = 0) -> str:
        if self.is_leaf():
            return "*"
        parts = (",\n" + " " * (indent + 2)).join(c.__repr__(indent + 2) for c in self.children_specs)
        return f"TreeSpec({self.type.__name__}, {self.context}, [{parts}])"

    def children(self) -> list[TreeSpec]:
        """The specs of its children."""
        return list(self.children_specs)

    def child(self, index: int) -> TreeSpec:
        """The spec of one child."""
        return self.children_specs[index]

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """The parts of `tree` that stand where this spec has leaves."""
        if self.is_leaf():
            return [tree]
        node = _node(tree)
        if node is None or _get_node_type(tree) != self.type:
            raise ValueError(
                f"The tree has a ({type(tree).__name__}) where the spec has a ({self.type.__name__})."
            )
        children, context = node.flatten_fn(tree)
        if len(children) != self.num_children or context != self.context:
            raise ValueError(
                f"The container has {len(children)} children, context ({context}), where the spec has "
                f"{self.num_children}, context ({self.context})."
            )
        return [
            leaf for spec, child in zip(self.children_specs, children) for leaf in spec.flatten_up_to(child)
        ]


class _LeafMeta(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, TreeSpec) and instance.is_leaf()

    def __call__(cls) -> Any:
        return _LEAF


class LeafSpec(TreeSpec, metaclass=_LeafMeta):
    """The spec of a leaf: one object."""


_LEAF = TreeSpec(None, None, [])
PyTree = Any
Context = Any
IsLeaf = Callable[[Any], bool]


def tree_is_leaf(tree: Any, is_leaf: IsLeaf | None = None) -> bool:
    """Whether `tree` is no container."""
    return (is_leaf is not None and is_leaf(tree)) or _node(tree) is None


def tree_flatten(tree: Any, is_leaf: IsLeaf | None = None) -> tuple[list[Any], TreeSpec]:
    """The leaves in order, and the spec."""
    if _node(tree) is None:  # the common case, a single tensor
        return [tree], _LEAF
    leaves: list[Any] = []
    spec = _flatten_into(leaves, tree, is_leaf)
    return leaves, spec


# A function of the module and no closure: one that calls itself is a cycle, which would keep
# the leaves until the garbage collector comes.
def _flatten_into(leaves: list[Any], part: Any, is_leaf: IsLeaf | None) -> TreeSpec:
    node = _node(part)
    if node is None or (is_leaf is not None and is_leaf(part)):
        leaves.append(part)
        return _LEAF
    children, context = node.flatten_fn(part)
    return TreeSpec(
        _get_node_type(part), context, [_flatten_into(leaves, child, is_leaf) for child in children]
    )


def _get_node_type(part: Any) -> Any:
    """The class under which a container is registered."""
    return type(part) if type(part) in SUPPORTED_NODES or not hasattr(type(part), "_fields") else namedtuple


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """The tree of this spec with these leaves."""
    items = list(leaves)
    if treespec is _LEAF and len(items) == 1:
        return items[0]
    if len(items) != treespec.num_leaves:
        raise ValueError(
            f"The number of leaves ({len(items)}) differs from the spec's ({treespec.num_leaves})."
        )
    return _build(treespec, iter(items))


def _build(spec: TreeSpec, rest: Iterator[Any]) -> Any:
    if spec.is_leaf():
        return next(rest)
    node = SUPPORTED_NODES.get(spec.type, _STRUCT)
    return node.unflatten_fn([_build(child, rest) for child in spec.children_specs], spec.context)


def tree_iter(tree: Any, is_leaf: IsLeaf | None = None) -> Iterator[Any]:
    """The leaves in order."""
    yield from tree_flatten(tree, is_leaf)[0]


def tree_leaves(tree: Any, is_leaf: IsLeaf | None = None) -> list[Any]:
    """The leaves in order."""
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: IsLeaf | None = None) -> TreeSpec:
    """The spec."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf | None = None) -> Any:
    """A tree of func(leaf, ...) of the leaves of trees of one shape."""
    leaves, spec = tree_flatten(tree, is_leaf)
    others = []
    for rest in rests:
        flat, other = tree_flatten(rest, is_leaf)
        if other != spec:
            raise ValueError(f"The trees differ in shape: {spec} and {other}.")
        others.append(flat)
    return tree_unflatten(map(func, leaves, *others), spec)


def tree_map_(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf | None = None) -> Any:
    """Calls func on all leaves; gives the tree itself."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def map_only(wanted: Any, /) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Limits a function to leaves of a class, or of several, or that a predicate picks."""
    is_class = isinstance(wanted, (type, tuple))

    def limit(func: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return lambda x: func(x) if (isinstance(x, wanted) if is_class else wanted(x)) else x

    return limit


def tree_map_only(
    type_or_types_or_pred: Any, /, func: Callable[[Any], Any], tree: Any, is_leaf: IsLeaf | None = None
) -> Any:
    """tree_map of the leaves of a class alone; others stay."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(
    type_or_types_or_pred: Any, /, func: Callable[[Any], Any], tree: Any, is_leaf: IsLeaf | None = None
) -> Any:
    """tree_map_ of the leaves of a class alone."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf | None = None) -> bool:
    """Whether a predicate holds of all leaves."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf | None = None) -> bool:
    """Whether a predicate holds of a leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def arg_tree_leaves(*args: Any, **kwargs: Any) -> list[Any]:
    """The leaves of a call's arguments."""
    return tree_leaves((args, kwargs))


def _flatten_dict(d: Any) -> tuple[list[Any], Any]:
    return list(d.values()), list(d)


def _unflatten_dict(values: Iterable[Any], keys: Any) -> Any:
    return dict(zip(keys, values))


class MappingKey:
    """A place in a mapping, in the path of a leaf: its key. The other places derive from it."""

    _field = "key"

    def __init__(self, key: Any) -> None:
        setattr(self, self._field, key)

    def _value(self) -> Any:
        return getattr(self, self._field)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._value() == self._value()

    def __hash__(self) -> int:
        return hash((type(self), self._value()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._field}={self._value()!r})"

    def __str__(self) -> str:
        return f"[{self._value()!r}]"

    def get(self, parent: Any) -> Any:
        """What stands there in a container."""
        return parent[self._value()]


class SequenceKey(MappingKey):
    """A place in a sequence, in the path of a leaf."""

    _field = "idx"


class GetAttrKey(MappingKey):
    """An attribute, in the path of a leaf."""

    _field = "name"

    def __str__(self) -> str:
        return f".{self._value()}"

    def get(self, parent: Any) -> Any:
        return getattr(parent, self._value())


def _dict_flatten_with_keys(d: Any) -> tuple[list[Any], Any]:
    return _items(d), list(d)


_dict_flatten, _dict_unflatten = _flatten_dict, _unflatten_dict
_register_pytree_node = register_pytree_node
Context = Any


from mica.utils._pytree_paths import (  # noqa: E402
    _broadcast_to_and_flatten as _broadcast_to_and_flatten,
    key_get as key_get,
    keystr as keystr,
    register_constant as register_constant,
    register_dataclass as register_dataclass,
    tree_all_only as tree_all_only,
    tree_any_only as tree_any_only,
    tree_flatten_with_path as tree_flatten_with_path,
    tree_leaves_with_path as tree_leaves_with_path,
    tree_map_with_path as tree_map_with_path,
    treespec_dumps as treespec_dumps,
    treespec_loads as treespec_loads,
    treespec_pprint as treespec_pprint,
)
