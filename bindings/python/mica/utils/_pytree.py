"""Nested containers as flat lists of leaves, with a spec that builds them again.

Containers are lists, tuples, named tuples, dictionaries, OrderedDicts, defaultdicts
and deques, and what register_pytree_node() adds; everything else, None too, is a leaf."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple


class NodeDef(NamedTuple):
    """How a container comes apart into children and a context, and together again."""

    flatten_fn: Callable[[Any], tuple[list[Any], Any]]
    unflatten_fn: Callable[[Iterable[Any], Any], Any]


def _flatten_named(t: Any) -> tuple[list[Any], Any]:
    return list(t), type(t)


def _flatten_default(d: Any) -> tuple[list[Any], Any]:
    return list(d.values()), (d.default_factory, list(d))


_NAMED = NodeDef(_flatten_named, lambda values, cls: cls(*values))
SUPPORTED_NODES: dict[type, NodeDef] = {
    list: NodeDef(lambda x: (x, None), lambda values, _: list(values)),
    tuple: NodeDef(lambda x: (list(x), None), lambda values, _: tuple(values)),
    dict: NodeDef(lambda d: (list(d.values()), list(d)), lambda values, keys: dict(zip(keys, values))),
    OrderedDict: NodeDef(
        lambda d: (list(d.values()), list(d)), lambda values, keys: OrderedDict(zip(keys, values))
    ),
    defaultdict: NodeDef(
        _flatten_default, lambda values, context: defaultdict(context[0], zip(context[1], values))
    ),
    deque: NodeDef(lambda d: (list(d), d.maxlen), lambda values, most: deque(values, maxlen=most)),
}


def register_pytree_node(
    cls: type, flatten_fn: Callable[[Any], Any], unflatten_fn: Callable[[Iterable[Any], Any], Any], **_: Any
) -> None:
    """Makes instances of `cls` containers: flatten_fn(x) gives (children, context)."""
    if cls in SUPPORTED_NODES:
        raise ValueError(f"The class ({cls.__name__}) is registered as a container already.")
    SUPPORTED_NODES[cls] = NodeDef(flatten_fn, unflatten_fn)


def _node(tree: Any) -> NodeDef | None:
    found = SUPPORTED_NODES.get(type(tree))
    if found is None and isinstance(tree, tuple) and hasattr(type(tree), "_fields"):
        return _NAMED
    return found


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

    def __repr__(self) -> str:
        if self.is_leaf():
            return "*"
        return (
            f"TreeSpec({self.type.__name__}, {self.context}, [{', '.join(map(repr, self.children_specs))}])"
        )


_LEAF = TreeSpec(None, None, [])
LeafSpec = lambda: _LEAF  # noqa: E731 - torch's name, called as a class
PyTree = Any
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
    return TreeSpec(type(part), context, [_flatten_into(leaves, child, is_leaf) for child in children])


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
    node = SUPPORTED_NODES.get(spec.type, _NAMED)
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
    wanted: Any, /, func: Callable[[Any], Any], tree: Any, is_leaf: IsLeaf | None = None
) -> Any:
    """tree_map of the leaves of a class alone; others stay."""
    return tree_map(map_only(wanted)(func), tree, is_leaf=is_leaf)


def tree_map_only_(
    wanted: Any, /, func: Callable[[Any], Any], tree: Any, is_leaf: IsLeaf | None = None
) -> Any:
    """tree_map_ of the leaves of a class alone."""
    return tree_map_(map_only(wanted)(func), tree, is_leaf=is_leaf)


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


class MappingKey(NamedTuple):
    """A place in a mapping, in the path of a leaf."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"


class SequenceKey(NamedTuple):
    """A place in a sequence, in the path of a leaf."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"


class GetAttrKey(NamedTuple):
    """An attribute, in the path of a leaf."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


def _dict_flatten_with_keys(d: Any) -> tuple[list[Any], Any]:
    values, keys = _flatten_dict(d)
    return [(MappingKey(k), v) for k, v in zip(keys, values)], keys


_dict_flatten, _dict_unflatten = _flatten_dict, _unflatten_dict
_register_pytree_node = register_pytree_node
Context = Any


def is_namedtuple_instance(obj: Any) -> bool:
    """Whether an object is of a named tuple's class."""
    return isinstance(obj, tuple) and hasattr(type(obj), "_fields")


def _get_node_type(tree: Any) -> Any:
    """The class that a tree's root counts as."""
    from collections import namedtuple

    return namedtuple if is_namedtuple_instance(tree) and type(tree) not in SUPPORTED_NODES else type(tree)
