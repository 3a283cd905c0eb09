"""Runs one program on torch and on Mica, a statement at a time, and stops at the first difference.

A program is a list of statements, each Python text that works on named values and calls its
library `torch`. A session holds three namespaces: torch, Mica, and torch once more with every
rounded result nudged by some units in the last place. The third, the shadow, says how much a
result may differ: where nudges move it, rounding may move it too, and where they change an
integer, a bool or a shape, the program depends on rounding there (`Chaotic` when it cannot go on).
nudges.py says what is nudged; where a difference is confirmed, also what is computed within a statement.
"""

from __future__ import annotations

import contextlib
import functools
import re
import sys
import types
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from nudges import EPSILON, Roundings, has_roundings, move, nudged

import mica

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
from both import _TOLERANCE, dtype_name, kind, to_numpy  # noqa: E402


@dataclass(frozen=True)
class Difference:
    """What differs after the last statement that ran."""

    kind: str  # value, dtype, shape, requires_grad, raises, ...
    where: str  # the named value
    text: str  # both results
    small: bool = False  # of a value: the difference may be rounding

    @property
    def silent(self) -> bool:
        """Whether both libraries ran the statement, so that nobody is told."""
        return self.kind not in ("raises", "accepts", "kind of error", "unreadable")

    def __str__(self) -> str:
        return f"{self.kind} of {self.where}: {self.text}"


class Chaotic(Exception):
    """The program's course depends on rounding, so that nothing is compared any more."""


class Wider(Exception):
    """Mica does what torch refuses to do."""


class Refused(Exception):
    """Both refuse a backward pass, after which gradients are in part there, or a call into `out`, which torch
    may have resized before."""


# torch's refusals that keep a program from a wrong result; Mica shares them. In others it may be wider: in its
# dtypes, operands and derivatives, and in writes to memory that is shared, since it reads the source first.
GUARDS = re.compile(
    "a (view of a )?leaf (variable|Variable) that requires grad|a leaf Variable"
    "|does not require grad|implicitly created only for scalar|out of (range|bounds)|must match"
    "|appears to not have been used|invalid for input of size|shapes? cannot be multiplied"
)


NARROW = re.compile(r"torch\.(?:float16|bfloat16|float32|(complex)64)\b")


def widened(statement: str) -> str:
    """A statement with float64 and complex128 in place of narrower dtypes."""
    return NARROW.sub(lambda found: "torch.complex128" if found[1] else "torch.float64", statement)


@functools.lru_cache(4096)
def compiled(statement: str) -> types.CodeType:
    return compile(statement, "<step>", "exec")


def is_tensor(value: Any) -> bool:
    return isinstance(value, (torch.Tensor, mica.Tensor))


def parts(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The tensors and plain values that a named value holds, each with its path."""
    if is_tensor(value):
        yield name, value
        try:
            held = value.requires_grad and (value.is_leaf or value.retains_grad)
        except RuntimeError:  # torch refuses to look at a view whose base was written in another mode
            raise Chaotic from None
        if held:
            yield f"{name}.grad", value.grad
    elif isinstance(value, (torch.nn.Module, mica.nn.Module)):
        for key, held in value.state_dict(keep_vars=True).items():
            yield from parts(f"{name}.{key}", held)
    elif isinstance(value, dict):
        for key, held in value.items():
            yield from parts(f"{name}[{key!r}]", held)
    elif isinstance(value, (list, tuple)):
        yield f"len({name})", len(value)
        for index, held in enumerate(value):
            yield from parts(f"{name}[{index}]", held)
    elif value is None or isinstance(value, (bool, int, float, complex, str)):
        yield name, value


def version(value: Any) -> int:
    return -1 if value.is_inference() else int(value._version)


class Session:
    """Three namespaces that the same statements run in, or four."""

    def __init__(self, nudges: int = 0, everything: bool = False, exact: bool = False) -> None:
        self.everything = everything  # short values are nudged, too
        self.within = exact  # and what is computed within a statement
        libraries = {"torch": torch, "shadow": torch, "mica": mica} | ({"exact": torch} if exact else {})
        self.spaces: dict[str, dict[str, Any]] = {
            name: {"torch": library, "log": []} for name, library in libraries.items()
        }
        self.noise = np.random.default_rng(nudges)
        self.epsilon = EPSILON["float64"]  # of the coarsest dtype so far
        self.tolerance = _TOLERANCE["float64"]
        self.recorded = 0  # backward passes that recorded their own graph
        self.normalizes = False
        self.finite = True  # all that was computed so far, gradients apart
        self.convolves = False  # torch adds the gradients of a convolution's bias one after another
        self.largest = 1  # elements of the largest tensor so far
        self.versions: dict[tuple[str, str], int] = {}
        self.exact: dict[str, Any] = {}  # the tensors and plain values of the fourth namespace
        torch.manual_seed(0)
        mica.manual_seed(0)
        # torch's stream of random numbers is one; the namespaces beside torch's own have theirs.
        self.random = dict.fromkeys(("shadow", "exact"), torch.get_rng_state())
        self.rounded: dict[str, np.ndarray] = {}  # Mica's results of the statement that differ from torch's
        self.gradients: set[str] = set()  # names of what transforms and autograd.grad gave

    @property
    def values(self) -> dict[str, Any]:
        """torch's named values."""
        return self.spaces["torch"]

    def same_flags(self, name: str) -> bool:
        """Whether both libraries say the same of a gradient's history."""
        a, b = self.spaces["torch"][name], self.spaces["mica"][name]
        return is_tensor(a) and is_tensor(b) and a.requires_grad == b.requires_grad

    def is_leaf(self, name: str) -> bool:
        value = self.values.get(name)
        return not isinstance(value, torch.Tensor) or value.is_leaf

    def step(self, statement: str) -> Difference | None:
        """Runs a statement everywhere and compares what it made and changed."""
        self.recorded += "create_graph=True" in statement
        self.normalizes |= "_norm(" in statement
        self.convolves |= "onv" in statement
        name, _, value = statement.partition(" = ")
        made = "torch.func." in value or "autograd.grad(" in value or value.endswith(".grad")
        if made or value.partition("[")[0] in self.gradients:  # of gradients, and another name of one
            self.gradients.add(name)
        errors = {}
        for name, space in self.spaces.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                errors[name] = self.attempt(name, statement, space)
        if kind_of(errors["torch"]) != kind_of(errors["shadow"]):
            raise Chaotic
        if kind_of(errors["torch"]) != kind_of(errors.get("exact", errors["torch"])):
            del self.spaces["exact"]  # mixes dtypes that are equal elsewhere: nothing more is excused
        if errors["torch"] is not None and errors["mica"] is None and not GUARDS.search(str(errors["torch"])):
            raise Wider
        raised = self.compare_errors(errors["torch"], errors["mica"])
        if (
            raised is None
            and errors["torch"] is not None
            and re.search(r"backward\(|\.grad\(|out=", statement)
        ):
            raise Refused  # how far a call comes before it refuses is not compared
        return raised or self.compare_values(errors["torch"] is not None)

    def attempt(self, name: str, statement: str, space: dict[str, Any]) -> Exception | None:
        state = torch.get_rng_state()
        if name in self.random:
            torch.set_rng_state(self.random[name])
        if name == "exact":
            torch.set_default_dtype(torch.float64)
        try:
            with Roundings(self.noise) if name == "shadow" and self.within else contextlib.nullcontext():
                exec(compiled(widened(statement) if name == "exact" else statement), space)
        except Exception as error:  # noqa: BLE001 - whatever is raised is compared
            return error
        finally:
            torch.set_default_dtype(torch.float32)
            if name in self.random:
                self.random[name] = torch.get_rng_state()
                torch.set_rng_state(state)
        return None

    def compare_errors(self, expected: Exception | None, found: Exception | None) -> Difference | None:
        # Mica says of all that it does not support that it is not implemented; torch has many words for it.
        if kind_of(expected) == kind_of(found) or (expected and isinstance(found, NotImplementedError)):
            return None
        a, b = sentence(found), sentence(expected)
        if expected is None:
            return Difference("raises", "the statement", f"Mica raises {a}; torch does not")
        if found is None:
            return Difference("accepts", "the statement", f"torch raises {b}; Mica does not")
        return Difference("kind of error", "the statement", f"Mica raises {a}; torch raises {b}")

    def compare_values(self, raised: bool) -> Difference | None:
        """Compares names, the flags of all values, and the content of what is new or written."""
        spaces = {name: self.leaves(space) for name, space in self.spaces.items()}
        expected, found, shadow = spaces["torch"], spaces["mica"], spaces["shadow"]
        self.exact = spaces.get("exact", {})
        for name in expected.keys() ^ found.keys():  # the gradient of a gradient that one of them records
            if name.count(".grad") + (name.partition("[")[0].partition(".")[0] in self.gradients) >= 2:
                for values in (expected, found, shadow):
                    values.pop(name, None)
        if expected.keys() != shadow.keys():
            raise Chaotic
        if expected.keys() != found.keys():
            odd = sorted(expected.keys() ^ found.keys())
            return Difference(
                "names", odd[0], f"of ({odd}) torch has ({sorted(expected.keys() - found.keys())})"
            )
        fresh = [name for name in expected if self.is_fresh(name, expected[name], found[name], raised)]
        for name in fresh:
            if isinstance(expected[name], torch.Tensor) and expected[name].numel():
                self.note(expected[name])
        for name, value in expected.items():
            different = self.difference(name, value, found[name], shadow[name], name in fresh, raised)
            if different is not None:
                return different
        for name in fresh:
            if isinstance(shadow[name], torch.Tensor):
                self.nudge(shadow[name], self.rounded.pop(name, None))
            exact = self.exact.get(name)
            if isinstance(exact, torch.Tensor) and isinstance(found[name], mica.Tensor):
                move(exact, torch.from_numpy(to_numpy(mica, found[name].detach().clone())))
        for name, leaves in (("torch", expected), ("mica", found)):
            self.versions |= {(name, path): version(v) for path, v in leaves.items() if is_tensor(v)}
        return None

    def leaves(self, space: dict[str, Any]) -> dict[str, Any]:
        names = [name for name in space if name != "torch" and not name.startswith("__")]
        return {path: value for name in names for path, value in parts(name, space[name])}

    def is_fresh(self, name: str, a: Any, b: Any, raised: bool) -> bool:
        """Whether the content is to be looked at: a new value, a written one, a gradient."""
        if not is_tensor(a) or not is_tensor(b) or ".grad" in name:
            return True
        return self.versions.get(("torch", name)) != version(a) or self.versions.get(
            ("mica", name)
        ) != version(b)

    def note(self, value: torch.Tensor) -> None:
        self.epsilon = max(self.epsilon, EPSILON.get(dtype_name(value.dtype), 0))
        self.tolerance = max(self.tolerance, _TOLERANCE.get(dtype_name(value.dtype), 0))
        self.largest = max(self.largest, value.numel())

    def difference(
        self, name: str, expected: Any, found: Any, shadow: Any, fresh: bool, raised: bool
    ) -> Difference | None:
        gradient = ".grad" in name or name.partition("[")[0] in self.gradients
        if gradient and (found is None or expected is None):
            given = expected if found is None else found
            if given is None or (is_tensor(given) and not bool(given.any())):
                return None  # no gradient, or one of zeros: the same
        if name.endswith(".grad") and self.recorded and not self.is_leaf(name.removesuffix(".grad")):
            return (
                None  # which results in between a formula is written with, and so what they get, is its own
            )
        if not isinstance(expected, torch.Tensor):
            return self.plain_difference(name, expected, found, shadow)
        if not isinstance(found, mica.Tensor):
            return Difference("type", name, f"Mica has {found!r:.60}; torch a tensor")
        flags = {
            "dtype": lambda x: dtype_name(x.dtype),
            "shape": lambda x: tuple(x.shape),
            "requires_grad": lambda x: x.requires_grad,
            "is_leaf": lambda x: x.is_leaf,
            "is_inference": lambda x: x.is_inference(),
            "device": lambda x: x.device.type,
        }
        for flag, of in flags.items():
            # torch's formulas of several products say of a gradient that it depends on what they get.
            if gradient and flag in ("requires_grad", "is_leaf"):
                continue
            if of(found) != of(expected):
                if flag == "shape" and of(expected) != of(shadow):
                    raise Chaotic
                return Difference(flag, name, f"Mica has ({of(found)}), torch ({of(expected)})")
        before = [self.versions.get((library, name)) for library in ("torch", "mica")]
        if None not in before and not raised and not gradient:
            written = [version(x) != old for x, old in zip((expected, found), before)]
            if written[0] != written[1]:
                return Difference(
                    "version", name, f"Mica counts a write ({written[1]}), torch ({written[0]})"
                )
        if not fresh:
            return None
        different = self.content_difference(name, expected, found, shadow, gradient)
        # torch's third derivatives of layer_norm and batch_norm leave the statistics' part out
        return None if gradient and self.normalizes and self.recorded > 1 else different

    def plain_difference(self, name: str, expected: Any, found: Any, shadow: Any) -> Difference | None:
        if type(expected) is not type(found):
            return Difference("type", name, f"Mica has {found!r:.80}, torch {expected!r:.80}")
        if expected == found or expected != shadow or (expected != expected and found != found):
            return None
        close = self.epsilon * np.sqrt(1 + self.largest / 1024)  # as of tensors: longer sums round more
        if isinstance(expected, (float, complex)) and abs(expected - found) <= close * (
            64 * abs(expected) + 4
        ):
            return None
        return Difference("value", name, f"Mica has {found!r:.80}, torch {expected!r:.80}")

    def content_difference(
        self, name: str, expected: Any, found: Any, shadow: Any, gradient: bool
    ) -> Difference | None:
        if tuple(shadow.shape) != tuple(expected.shape) or shadow.dtype != expected.dtype:
            raise Chaotic
        # Copies: a storage that NumPy has seen cannot be resized any more.
        e, s = (to_numpy(torch, x.detach().clone()) for x in (expected, shadow))
        try:
            f = to_numpy(mica, found.detach().clone())
        except RuntimeError as error:
            return Difference("unreadable", name, f"Mica raises {sentence(error)}")
        self.finite &= gradient or bool(np.isfinite(e).all())
        if e.dtype == f.dtype and e.tobytes() == f.tobytes():
            return None
        self.rounded[name] = f
        with np.errstate(all="ignore"):
            same = self.same(e, f, s)
            if gradient and e.dtype.kind in "fc":  # which products of 0 and infinity a formula has is its own
                same |= np.isnan(e) | (np.isnan(f) & (np.isinf(e) | (not self.finite)))
                same |= np.isinf(e) & np.isinf(f)  # a pole times what only rounding keeps from 0
            same |= self.is_exact(name, f, e)
        if same.all():
            return None
        at = tuple(int(k) for k in np.argwhere(~same)[0])
        wrong = int(same.size - same.sum())
        text = f"({wrong}) of ({same.size}) elements differ; at {list(at)} Mica has ({f[at]!r}), torch ({e[at]!r})"
        return Difference("value", name, text, self.is_small(e, f))

    def is_exact(self, name: str, f: np.ndarray, e: np.ndarray) -> np.ndarray:
        """Where Mica's result is what float64 gives for Mica's values, or where torch's is no nearer to that.

        Within one operator values cancel that nobody nudges: where torch is off by a little (d) in some element,
        Mica may be off by 4 d, in half types by 8 d.
        """
        exact = self.exact.get(name)
        if not isinstance(exact, torch.Tensor) or tuple(exact.shape) != f.shape:
            return np.zeros(f.shape, bool)
        x = to_numpy(torch, exact.detach().clone())
        agrees = self.same(x, f, x)
        if e.dtype.kind not in "fc":
            return agrees
        little = np.maximum(np.abs(x) / 20, 16 * self.tolerance)
        error = np.abs(e - x)
        worst = np.max(error, where=error <= little, initial=0)
        times = 8 if self.epsilon > 1e-4 else 4
        agrees |= np.isinf(e) & np.isfinite(x) & np.isfinite(f)  # torch's overflowed on the way
        return agrees | (np.abs(f - x) <= times * np.minimum(np.maximum(error, worst), little))

    @staticmethod
    def is_small(e: np.ndarray, f: np.ndarray) -> bool:
        """Whether floats differ by less than a tenth of their size."""
        if e.dtype.kind not in "fc":
            return False
        with np.errstate(all="ignore"):
            finite = np.isfinite(e) & np.isfinite(f)
            scale = np.max(np.abs(e), where=finite, initial=0)
            apart = np.max(np.abs(e - f), where=finite, initial=0)
        return bool(np.array_equal(np.isnan(e), np.isnan(f)) and apart <= 0.1 * scale)

    def same(self, e: np.ndarray, f: np.ndarray, s: np.ndarray) -> np.ndarray:
        """Where two results agree as far as rounding allows."""
        if e.dtype.kind not in "fc":
            return np.asarray((e == f) | (e != s))
        if e.dtype.kind == "c":
            e, f, s = (np.stack([x.real, x.imag], -1) for x in (e, f, s))
            broken = [~np.isfinite(x).all(-1) for x in (e, f, s)]  # which part is NaN is not said
            return np.asarray(self.same(e, f, s).all(-1) | (broken[0] & (broken[1] | broken[2])))
        e, f, s = (x.astype(np.float64) for x in (e, f, s))
        finite = np.isfinite(e) & np.isfinite(s)
        drift = np.where(finite, np.abs(e - s), 0)
        scale = np.sqrt(np.mean(np.square(np.where(finite & (np.abs(e) < 1e9), e, 0)))) if e.size else 0
        spread = np.percentile(drift, 75) if e.size else 0
        share = self.tolerance * np.sqrt(1 + self.largest / 1024)
        share = max(share, self.epsilon * self.largest / 8) if self.convolves else share
        tolerance = (
            share * (np.abs(e) + scale)
            + 16 * drift
            + 8 * spread
            + (4 if self.epsilon < 1e-4 else 0.25) * share
        )
        unstable = (np.isnan(e) != np.isnan(s)) | (np.isinf(e) != np.isinf(s)) | (np.isinf(e) & (e != s))
        close = np.isfinite(e) & np.isfinite(f) & (np.abs(e - f) <= tolerance)
        return np.asarray(close | (e == f) | (np.isnan(e) & np.isnan(f)) | unstable)

    def nudge(self, value: torch.Tensor, found: np.ndarray | None) -> None:
        """Moves a shadow's tensor: to what Mica has, where that is rounded in another way, and some units further."""
        if found is not None:
            move(value, torch.from_numpy(found))
        # bfloat16 has too few bits to tell rounded values from short ones; its unit covers both.
        if has_roundings(value) and value.dtype != torch.bfloat16:
            move(value, nudged(value, self.noise, self.everything))


def kind_of(error: Exception | None) -> str:
    return "" if error is None else kind(error)


def sentence(error: Exception | None) -> str:
    return f"{type(error).__name__} ({str(error).splitlines()[0] if str(error) else ''})"


def run(
    program: list[str], nudges: int = 0, everything: bool = False, exact: bool = False
) -> tuple[int, Difference] | None:
    """The index of the first statement after which the two differ, and what differs."""
    session = Session(nudges, everything, exact)
    try:
        for index, statement in enumerate(program):
            found = session.step(statement)
            if found is not None:
                return index, found
    except (Chaotic, Wider, Refused):
        pass
    return None


def confirmed(program: list[str], kinds: str = "", runs: int = 6) -> Difference | None:
    """The difference after the program's last statement, if it does not depend on the nudges.

    One that may be rounding has to outlast nudges of all values, exact ones with them; one of values, that
    float64 says otherwise, too.
    """
    found = None
    for nudges in range(runs):
        everything = found is not None and found.small
        result = run(program, nudges, everything, exact=True)
        if result is None or result[0] != len(program) - 1 or kinds not in ("", result[1].kind):
            return None
        found = result[1]
    return found
