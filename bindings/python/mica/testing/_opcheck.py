"""mica.testing.opcheck: whether an operator does what its schema and its kernels promise.

`CHECKS` lists what is checked, by name; each takes an `_Operator` and the arguments of
a sample call and raises an OpCheckError, or an error of the operator itself. A check
joins for each layer that an operator has to serve.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import mica
from mica import _C
from mica._C import Tensor


class OpCheckError(AssertionError):
    """An operator breaks a promise of its schema or its kernels; the message says which."""


class _Operator:
    """An overload, with the aliases that its schema names."""

    def __init__(self, op: Any) -> None:
        if isinstance(op, str):
            name = op
        elif hasattr(op, "_opoverload"):
            name = op._opoverload.name()
        elif hasattr(op, "overloads"):
            name = getattr(op, op.overloads()[0]).name()
        else:
            name = op.name()
        found = _C._find_operator(name)
        if found is None:
            raise ValueError(f"No operator is named ({name}).")
        self.name: str = name
        self.call = found
        text: str = found.schema
        arguments, _, returns = text[text.index("(") + 1 :].rpartition(") -> ")
        self.names: list[str] = [name for name, *_ in found._schema_info()[0]]
        # The alias set ("a") and whether it is written, of each argument and each result.
        pieces = [p for p in _split(arguments) if p != "*"]
        self.arguments = dict(zip(self.names, map(_alias, pieces)))
        inner = returns[1:-1] if returns.startswith("(") else returns
        self.results = [_alias(piece) for piece in _split(inner)]

    def bind(self, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        return {**dict(zip(self.names, args)), **kwargs}

    def run(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
        """The results, as many as the schema says."""
        result = self.call(*args, **kwargs)
        if len(self.results) == 0:
            return []
        if len(self.results) == 1:
            return [result]
        return list(result)


def _split(text: str) -> list[str]:
    """The pieces between the commas that stand in no brackets."""
    pieces, depth, piece = [], 0, ""
    for c in text + ",":
        depth += (c in "([") - (c in ")]")
        if c == "," and depth == 0:
            pieces.append(piece.strip())
            piece = ""
        else:
            piece += c
    return [p for p in pieces if p]


def _alias(text: str) -> tuple[str, bool]:
    found = re.match(r"\w+\((\w+)(!?)", text)
    return (found[1], bool(found[2])) if found else ("", False)


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for v in value:
            yield from _tensors(v)


def _mapped(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, (list, tuple)):
        return type(value)(_mapped(v, change) for v in value)
    return value


def _copied(
    args: Sequence[Any], kwargs: dict[str, Any], change: Callable[[Tensor], Tensor]
) -> tuple[Any, Any]:
    return [_mapped(a, change) for a in args], {k: _mapped(v, change) for k, v in kwargs.items()}


def _copy(t: Tensor) -> Tensor:
    return t.detach().clone()


def _same(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and bool(((a == b) | ((a != a) & (b != b))).all())


def _share(a: Tensor, b: Tensor) -> bool:
    return bool(a.numel() and b.numel()) and a._storage_ptr() == b._storage_ptr()


def _check_schema(op: _Operator, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Only arguments that the schema marks are written; results have its types."""
    args, kwargs = _copied(args, kwargs, _copy)
    before = {name: [_copy(t) for t in _tensors(v)] for name, v in op.bind(args, kwargs).items()}
    results = op.run(args, kwargs)
    for name, value in op.bind(args, kwargs).items():
        written = op.arguments[name][1]
        if not written and not all(map(_same, _tensors(value), before[name])):
            raise OpCheckError(
                f"{op.name} wrote its argument `{name}`, which its schema ({op.call.schema}) does not mark with `!`."
            )
    if len(results) != len(op.results):
        raise OpCheckError(f"{op.name} gave {len(results)} results; its schema says {len(op.results)}.")


def _check_aliasing(op: _Operator, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Results share memory with arguments exactly where the schema says so."""
    args, kwargs = _copied(args, kwargs, _copy)
    results = op.run(args, kwargs)
    given = op.bind(args, kwargs)
    for i, (result, (alias, _)) in enumerate(zip(results, op.results)):
        for name, value in given.items():
            shared = any(_share(r, a) for r in _tensors(result) for a in _tensors(value))
            promised = bool(alias) and op.arguments[name][0] == alias
            if shared and not promised:
                raise OpCheckError(
                    f"Result ({i}) of {op.name} shares memory with its argument `{name}`, which its schema "
                    f"({op.call.schema}) does not say."
                )
            if promised and not shared and any(r.numel() for r in _tensors(result)):
                raise OpCheckError(
                    f"Result ({i}) of {op.name} shares no memory with its argument `{name}`, though its schema "
                    f"({op.call.schema}) says so."
                )
        for j in range(i):
            if not alias and any(_share(a, b) for a in _tensors(result) for b in _tensors(results[j])):
                raise OpCheckError(f"Results ({j}) and ({i}) of {op.name} share memory.")


def _on_meta(t: Tensor) -> Tensor:
    return mica.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="meta")


def _check_meta(op: _Operator, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """On meta tensors the results have the shapes, strides and dtypes of the real ones."""
    real = op.run(*_copied(args, kwargs, _copy))
    positional, keyword = _copied(args, kwargs, _on_meta)
    if "device" in op.names and not list(_tensors([*args, *kwargs.values()])):
        keyword["device"] = mica.device("meta")  # a factory: no tensor says the device
    computed = op.run(positional, keyword)
    pairs = zip(_tensors(real), _tensors(computed))
    if len(list(_tensors(real))) != len(list(_tensors(computed))):
        raise OpCheckError(f"{op.name} gives another number of tensors on meta.")
    for i, (r, m) in enumerate(pairs):
        if m.device.type != "meta":
            raise OpCheckError(f"Result ({i}) of {op.name} on meta tensors is on {m.device}.")
        for what, a, b in (
            ("shape", tuple(r.shape), tuple(m.shape)),
            ("dtype", r.dtype, m.dtype),
            ("strides", r.stride() if r.numel() else (), m.stride() if r.numel() else ()),
        ):
            if a != b:
                raise OpCheckError(
                    f"The {what} of result ({i}) of {op.name} is {b} on meta and {a} on {r.device}."
                )


def _check_gradients(op: _Operator, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """The gradients of arguments that require grad equal finite differences, in float64."""
    wide = {mica.float32: mica.float64, mica.float16: mica.float64, mica.bfloat16: mica.float64}

    def leaf(t: Tensor) -> Tensor:
        copy = _copy(t).to(wide.get(t.dtype, mica.complex128 if t.is_complex() else t.dtype))
        return copy.requires_grad_(t.requires_grad)

    args, kwargs = _copied(args, kwargs, leaf)
    leaves = [t for t in _tensors([*args, *kwargs.values()]) if t.requires_grad]
    if not leaves:
        return

    def function(*values: Tensor) -> Any:
        replaced = {id(old): new for old, new in zip(leaves, values)}
        positional, keyword = _copied(args, kwargs, lambda t: replaced.get(id(t), t))
        written = [n for n, (_, writes) in op.arguments.items() if writes]
        bound = op.bind(positional, keyword)
        bound.update({n: _mapped(bound[n], lambda t: t.clone()) for n in written if n in bound})
        results = op.run([], bound)
        outputs = tuple(t for t in _tensors(results) if t.is_floating_point() or t.is_complex())
        # An operator may say of some results, and not of all, that they have no gradient.
        return tuple(t for t in outputs if t.requires_grad) or outputs

    mica.autograd.gradcheck(function, tuple(leaves))


def _check_autocast(op: _Operator, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Under autocast the operator gives what it gives on arguments that a policy casts."""
    args, kwargs = _copied(args, kwargs, _copy)
    given = {t.dtype for t in _tensors([*args, *kwargs.values()]) if t.is_floating_point()}
    device = next((t.device.type for t in _tensors([*args, *kwargs.values()])), "")
    if not given & {mica.float32, mica.float16, mica.bfloat16} or any(w for _, w in op.arguments.values()):
        return  # nothing is cast: float64, and what is written in place

    def cast(dtype: mica.dtype | None) -> Callable[[Tensor], Tensor]:
        return lambda t: (
            t.to(dtype) if dtype and t.is_floating_point() and t.dtype != mica.float64 else t.clone()
        )

    for lower in (mica.bfloat16, mica.float16):
        state = mica.get_rng_state()
        with mica.autocast(device, lower):
            results = list(_tensors(op.run(*_copied(args, kwargs, Tensor.clone))))
        for dtype in (None, lower, mica.float32, mica.float16, mica.bfloat16):
            mica.set_rng_state(state)
            try:
                explicit = list(_tensors(op.run(*_copied(args, kwargs, cast(dtype)))))
            except (RuntimeError, TypeError, NotImplementedError):
                continue  # it refuses a dtype that it is not cast to, then
            if [t.dtype for t in explicit] == [t.dtype for t in results] and all(
                map(_same, explicit, results)
            ):
                break
        else:
            raise OpCheckError(
                f"Under autocast to {lower} {op.name} gives neither what it gives on its arguments as they "
                f"are, nor on arguments cast to another dtype."
            )


def _example(value: Any, chosen: set[int], example: int) -> Any:
    """An argument of one example: the tensors of `chosen`, by id, are rolled by its number."""
    return _mapped(
        value, lambda t: t.reshape(-1).roll(example).reshape(t.shape) if id(t) in chosen else t.clone()
    )


def _close(a: Tensor, b: Tensor) -> bool:
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if not (a.is_floating_point() or a.is_complex()):
        return _same(a, b)
    rtol = {2: 2e-2, 4: 1e-4}.get(a.itemsize, 1e-7)
    return mica.allclose(a, b, rtol=rtol, atol=rtol / 10, equal_nan=True)


def _check_vmap(op: _Operator, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """vmap over each tensor, and over all, gives what a loop over the examples gives."""
    args, kwargs = _copied(args, kwargs, _copy)
    tensors = list(_tensors([*args, *kwargs.values()]))
    results = [list(_tensors(op.run(*_copied(args, kwargs, Tensor.clone)))) for _ in range(2)]
    writes = any(w for _, w in op.arguments.values())
    if writes or not tensors or not results[0] or not all(map(_same, *results)):
        return  # it has nothing to map over, or draws random numbers
    for chosen in [[t] for t in tensors] + ([tensors] if len(tensors) > 1 else []):
        _check_mapped(op, args, kwargs, chosen)


def _check_mapped(
    op: _Operator, args: Sequence[Any], kwargs: dict[str, Any], chosen: list[Tensor], examples: int = 3
) -> None:
    ids = {id(t) for t in chosen}
    loop = []
    for e in range(examples):
        example = [_example(a, ids, e) for a in args], {k: _example(v, ids, e) for k, v in kwargs.items()}
        loop.append(list(_tensors(op.run(*example))))
    if any([t.shape for t in results] != [t.shape for t in loop[0]] for results in loop):
        return  # shapes depend on the values: there is no batch of such results
    batches = [mica.stack([_example(t, ids, e) for e in range(examples)]) for t in chosen]

    def function(*values: Tensor) -> tuple[Tensor, ...]:
        replaced = {id(old): new for old, new in zip(chosen, values)}
        positional, keyword = _copied(args, kwargs, lambda t: replaced.get(id(t), t))
        return tuple(_tensors(op.run(positional, keyword)))

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "vmap has no batch rule")
        mapped = mica.func.vmap(function)(*batches)
    names = [n for n, v in op.bind(args, kwargs).items() if any(id(t) in ids for t in _tensors(v))]
    for i, got in enumerate(mapped):
        if not _close(got, mica.stack([results[i] for results in loop])):
            raise OpCheckError(
                f"Result ({i}) of vmap of {op.name} over {', '.join(names)} differs from a loop over the examples."
            )


CHECKS: dict[str, Callable[[_Operator, Sequence[Any], dict[str, Any]], None]] = {
    "test_schema": _check_schema,
    "test_aliasing": _check_aliasing,
    "test_meta": _check_meta,
    "test_gradients": _check_gradients,
    "test_autocast": _check_autocast,
    "test_vmap": _check_vmap,
}


def opcheck(
    op: Any,
    args: Sequence[Any],
    kwargs: dict[str, Any] | None = None,
    *,
    test_utils: str | Sequence[str] = tuple(CHECKS),
    raise_exception: bool = True,
) -> dict[str, Any]:
    """Checks that an operator keeps what its schema and its kernels promise, on one call.

    As `torch.library.opcheck`, with checks of Mica's: "test_schema" (types of results), "test_aliasing"
    (what is written and shared), "test_meta" (shapes without data), "test_gradients" (against finite
    differences), "test_autocast" and "test_vmap" (against a loop).

    Args:
        op (object): An operator of `mica.ops`, a result of `mica.library.custom_op`, or a name such as
            "acme::scale".
        args (sequence): Positional arguments of a call that it takes; they are copied first. Gradients
            are checked for Tensors that require grad.
        kwargs (dict, optional): Keyword arguments of the call.
        test_utils (str or sequence of str): The checks to make. Default: all.
        raise_exception (bool): Raise where a check fails; else go on. Default: True.

    Returns:
        dict: For each check "SUCCESS", or the exception it ended with.

    Raises:
        OpCheckError: A check fails.
        ValueError: No operator has the name, or a check is unknown.

    Example:
        >>> mica.testing.opcheck("mica::exp", (mica.ones(2),), test_utils=["test_schema", "test_meta"])
        {'test_schema': 'SUCCESS', 'test_meta': 'SUCCESS'}
    """
    operator = _Operator(op)
    verdicts: dict[str, Any] = {}
    for name in [test_utils] if isinstance(test_utils, str) else test_utils:
        if name not in CHECKS:
            raise ValueError(f"The check ({name}) is unknown; expected one of {', '.join(CHECKS)}.")
        try:
            CHECKS[name](operator, args, kwargs or {})
        except Exception as error:
            if raise_exception:
                raise OpCheckError(f"opcheck of {operator.name} failed in {name}: {error}") from error
            verdicts[name] = error
        else:
            verdicts[name] = "SUCCESS"
    return verdicts
