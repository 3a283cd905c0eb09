"""The mechanism of checkpoint(): one Call for each, and the surroundings that its second
run gets back.

Saved-tensor hooks put a numbered place where a tensor would be saved. When a backward asks
for the first of them, the function runs again; what it saves goes to the places by number,
and to those alone that the graph still holds. The function's inputs are saved as an
operator's are: with their version, and through outer hooks, so that in nested checkpoints
the inner one's inputs are computed again too."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import Any

import mica
from mica import _C
from mica._C import Tensor
from mica.autograd.graph import saved_tensors_hooks
from mica.utils._pytree import tree_flatten, tree_unflatten


class CheckpointError(RuntimeError):
    """The second run of a checkpointed part saves something else than the first."""


class _Complete(BaseException):
    """Ends a second run in which nothing more is needed; no `except Exception` stops it."""


def tensors_of(arguments: Any) -> list[Tensor]:
    """The tensors among arguments, those in containers too."""
    return [leaf for leaf in tree_flatten(arguments)[0] if isinstance(leaf, Tensor)]


def is_apart(tensor: Tensor) -> bool:
    """Whether the tensor's device has a generator of its own beside the CPU's."""
    return tensor.device.type not in ("cpu", "meta")


class Surroundings:
    """What acts on the function from outside: random state, autocast, transforms."""

    def __init__(
        self, args: Any, kwargs: Any, context: AbstractContextManager[Any], preserve_rng_state: bool
    ) -> None:
        devices = {str(t.device): t.device.type for t in tensors_of((args, kwargs)) if is_apart(t)}
        self._context = context
        self._rng = (
            [(name, _C._default_generator(name).get_state()) for name in ("cpu", *devices)]
            if preserve_rng_state
            else []
        )
        self._autocast = [
            (
                kind,
                mica.get_autocast_dtype(kind),
                mica.is_autocast_enabled(kind),
                _C.is_autocast_cache_enabled(),
            )
            for kind in ("cpu", *sorted(set(devices.values())))
        ]
        self._frames = _C._frame_stack()

    @contextmanager
    def again(self) -> Iterator[None]:
        """The same surroundings for a second run."""
        with ExitStack() as stack:
            if self._rng:
                stack.enter_context(mica.random.fork_rng([name for name, _ in self._rng[1:]]))
                for name, state in self._rng:
                    _C._default_generator(name).set_state(state)
            for kind, dtype, enabled, cache in self._autocast:
                stack.enter_context(mica.autocast(kind, dtype, enabled, cache))
            self._enter_frames(stack)
            stack.enter_context(self._context)
            yield

    def _enter_frames(self, stack: ExitStack) -> None:
        """Those transforms of the first run that ended since (a vmap inside of the function
        that grad differentiates); tensors of theirs are at home in them again."""
        inside = {tag for _, tag, _ in _C._frame_stack()}
        ended: list[Any] = []
        for kind, tag, batch in reversed(self._frames):
            if tag in inside:
                break
            ended.append((kind, tag, batch))
        for kind, tag, batch in reversed(ended):
            if batch is not None:
                stack.callback(_C._vmap_exit, _C._vmap_enter(*batch, tag))
            else:
                stack.callback(_C._frame_exit, _C._frame_enter(kind, tag))


class _Place:
    """What the graph holds in a tensor's stead: its number, and its value in each backward
    that computed it again."""

    __slots__ = ("__weakref__", "number", "values")

    def __init__(self, number: int) -> None:
        self.number = number
        self.values: dict[int, Tensor] = {}


class Call:
    """One call of checkpoint()."""

    def __init__(
        self,
        function: Callable[..., Any],
        args: Any,
        kwargs: Any,
        surroundings: Surroundings,
        *,
        early_stop: bool,
        compare: bool,
        debug: bool,
    ) -> None:
        leaves, self._spec = tree_flatten((args, kwargs))
        self._inputs = [_C._save_tensor(leaf) if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        self._is_tensor = [isinstance(leaf, Tensor) for leaf in leaves]
        self._function = function
        self._surroundings = surroundings
        self._early_stop = early_stop
        self._compare = compare
        self._debug = debug
        self._places: list[weakref.ref[_Place]] = []
        self._looks: list[str] = []
        self._lines: list[str] = []
        self._ended = False  # of the first run; a backward inside of the function comes before
        self._computed: set[int] = set()  # the backwards that ran the function again

    @contextmanager
    def first_run(self) -> Iterator[None]:
        """In which the function runs first."""
        with saved_tensors_hooks(self._pack, self._unpack):
            yield
        self._ended = True

    def _pack(self, tensor: Tensor) -> _Place:
        place = _Place(len(self._places))
        self._places.append(weakref.ref(place))
        self._looks.append(_look(tensor))
        if self._debug:
            self._lines.append(_line())
        return place

    def _unpack(self, place: _Place) -> Tensor:
        backward = _C._backward_number()
        if backward is None:  # somebody looks at grad_fn._saved_...
            return self._run(lambda number: number == place.number)[place.number]
        if backward not in self._computed:
            self._fill(backward)
        return place.values[backward]

    def _fill(self, backward: int) -> None:
        def wanted(number: int) -> bool:
            return self._places[number]() is not None

        for number, value in self._run(wanted).items():
            place = self._places[number]()
            if place is not None:
                place.values[backward] = value
        self._computed.add(backward)
        here = weakref.ref(self)

        def forget() -> None:  # where the graph is retained
            call = here()
            if call is not None:
                call._computed.discard(backward)
                for place in filter(None, (ref() for ref in call._places)):
                    place.values.pop(backward, None)

        _C._queue_callback(forget)

    def _run(self, wanted: Callable[[int], bool]) -> dict[int, Tensor]:
        """What a second run saves at the wanted numbers."""
        values: dict[int, Tensor] = {}
        looks: list[str] = []
        lines: list[str] = []

        def keep(tensor: Tensor) -> Tensor:
            number = len(looks)
            looks.append(_look(tensor))
            if self._debug:
                lines.append(_line())
            # Without the history of this level; outer ones go on, and what belongs to them keeps theirs.
            own = _C._frame_kind() is None or (_C._frame_kind() == "grad" and _C._frame_owns(tensor))
            value = tensor.data if own else tensor
            if number < len(self._places) and wanted(number):
                values[number] = value
            if self._early_stop and number + 1 == len(self._places):
                raise _Complete
            return value

        try:
            self._rerun(keep)
            self._check(looks, lines)
            return dict(values)
        finally:
            values.clear()  # keep() lives as long as what it saved, which may hold it

    def _rerun(self, keep: Callable[[Tensor], Tensor]) -> None:
        with mica.enable_grad():
            inputs = [
                _C._unpack_saved(x) if is_tensor else x for x, is_tensor in zip(self._inputs, self._is_tensor)
            ]
            args, kwargs = tree_unflatten(inputs, self._spec)
            with (
                self._surroundings.again(),
                saved_tensors_hooks(keep, lambda tensor: tensor),
                suppress(_Complete),
            ):
                self._function(*args, **kwargs)

    def _check(self, looks: list[str], lines: list[str]) -> None:
        if not self._ended:
            looks = looks[: len(self._looks)]
        pairs = list(zip(self._looks, looks))
        differ = [i for i, (a, b) in enumerate(pairs) if a != b] if self._compare else []
        if not differ and len(looks) == len(self._looks):
            return
        text = [
            "A checkpointed function did not do the same when it ran again for backward"
            + (". A different number of tensors was saved" if len(looks) != len(self._looks) else "")
            + (" (trying to save more tensors during recomputation)" if len(looks) > len(self._looks) else "")
            + (". The recomputed tensors have different metadata" if differ else "")
            + ": it saved "
            f"({len(self._looks)}) tensors the first time and ({len(looks)}) the second."
        ]
        text += [
            f"  tensor ({i}): first {pairs[i][0]}, then {pairs[i][1]}{self._where(i, lines)}"
            for i in differ[:20]
        ]
        if not differ and self._debug:
            longer, which = (self._lines, "first") if len(self._lines) > len(lines) else (lines, "second")
            text.append(f"  the {which} run alone saved one at {longer[len(pairs)]}")
        text.append(
            "It must not depend on what changes between the two runs, as global state, a module's mode or "
            "random numbers that checkpoint does not know of"
            + ("." if self._debug else "; checkpoint(..., debug=True) says where each tensor is saved.")
        )
        raise CheckpointError("\n".join(text))

    def _where(self, number: int, lines: list[str]) -> str:
        return f" (saved at {self._lines[number]}, then at {lines[number]})" if self._debug else ""


def _look(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).rpartition('.')[2]}{list(tensor.shape)} on {tensor.device}"


def _line() -> str:
    """The innermost line that is not the package's own."""
    package = mica.__path__[0]
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(package):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
