"""The checks of one operator on one sample: forward, layouts, out=, in-place, gradients, meta, errors;
forward mode is in tangents.py.

Each check yields (name of the check, what differs or "", whether free strides differ). Both
libraries get copies of the same sample, and the same seed before each call.
"""

from __future__ import annotations

import dataclasses
import functools
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from agree import References, Rules, differs, flatten
from layouts import map_tensors, relaid
from meta import differs as forms_differ, on_meta, says_device
from rules import OUT_CONTIGUOUS, adds_terms, is_random, rules, transforms
from scope import key
from sentences import lacks
from translate import AbsentError, device, function, is_mica_absence, to_mica, to_torch
from truth import exact

import mica

Found = tuple[str, str, bool]
_WIDE = {
    **dict.fromkeys((torch.float16, torch.bfloat16, torch.float32), torch.float64),
    torch.complex64: torch.complex128,
}
_LOW = {torch.float64: torch.float32, torch.complex128: torch.complex64}
_KINDS = (IndexError, NotImplementedError, TypeError, ValueError, OverflowError, RuntimeError)

warnings.simplefilter("ignore")


def _none() -> None:
    return None


_NO_REFERENCES = References(_none, _none, _none)


def kind(error: BaseException) -> type:
    """The exception's kind, as Python code would catch it."""
    return next((base for base in _KINDS if isinstance(error, base)), type(error))


def attempt(call: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[Any, Exception | None]:
    try:
        return call(*args, **kwargs), None
    except Exception as error:
        return None, error


def say(error: Exception) -> str:
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]:.200}"


def copied(value: Any) -> Any:
    """Copies with the same strides; tensors that share memory go on sharing."""
    storages: dict[int, Any] = {}

    def one(x: torch.Tensor) -> torch.Tensor:
        if x.device.type != "cpu":
            return x
        if x.is_conj() or x.is_neg():
            return x.detach().clone().requires_grad_(x.requires_grad)
        storage = x.untyped_storage()
        if storage.data_ptr() not in storages or storage.nbytes() == 0:
            storages[storage.data_ptr()] = storage.clone()
        made = torch.empty(0, dtype=x.dtype)
        made.set_(storages[storage.data_ptr()], x.storage_offset(), x.shape, x.stride())
        return made.requires_grad_(x.requires_grad)

    return map_tensors(value, one)


def _cast(value: Any, to: dict[Any, Any], signs: tuple[int, int] | None = None) -> Any:
    """The same arguments in other dtypes: tensors, and dtypes that are arguments.

    With `signs`, floats are replaced by their magnitudes with the first sign for the first
    tensor and the second for the others, so that terms add up that else cancel.
    """
    left = list(signs or ())

    def one(x: torch.Tensor) -> torch.Tensor:
        made = x.detach().to(to.get(x.dtype, x.dtype))
        if left and (made.is_floating_point() or made.is_complex()):
            made = (left.pop(0) if len(left) > 1 else left[0]) * made.abs().to(made.dtype)
        return made.requires_grad_(x.requires_grad)

    def leaf(v: Any) -> Any:
        if isinstance(v, torch.dtype):
            return to.get(v, v)
        if signs and isinstance(v, float):
            return abs(v)
        if isinstance(v, (tuple, list)) and type(v) in (tuple, list):
            return type(v)(leaf(x) for x in v)
        if isinstance(v, dict):
            return {k: leaf(x) for k, x in v.items()}
        return one(v) if isinstance(v, torch.Tensor) else v

    return leaf(value)


def _moved(value: Any, seed: int, by_norm: bool) -> Any:
    """The same arguments in float64, each float, in tensors and alone, moved by one eps, up or down.

    `by_norm`: matrices of n rows or columns move by n eps of their norm, as what LAPACK's results are exact of.
    """
    generator = torch.Generator().manual_seed(seed)

    def sign(shape: Any) -> torch.Tensor:
        return torch.randint(0, 2, shape, generator=generator) * 2 - 1

    def one(x: torch.Tensor) -> torch.Tensor:
        made = x.detach().to(_WIDE.get(x.dtype, x.dtype))
        if by_norm and made.ndim > 1 and made.numel() and made.dtype in _LOW:
            m, n = sorted(made.shape[-2:])
            each = (n + 8) * torch.finfo(x.dtype).eps / (m**0.5 + n**0.5)  # some n eps of the norm altogether
            made = made + sign(x.shape) * each * torch.linalg.matrix_norm(made, keepdim=True)
        elif made.is_floating_point() or made.is_complex():
            made = made * (1 + sign(x.shape) * torch.finfo(x.dtype).eps)
        return made.requires_grad_(x.requires_grad)

    def leaf(v: Any) -> Any:
        if isinstance(v, (tuple, list)) and type(v) in (tuple, list):
            return type(v)(leaf(x) for x in v)
        if isinstance(v, dict):
            return {k: leaf(x) for k, x in v.items()}
        return (
            v * (1 + int(sign(())) * torch.finfo(torch.float64).eps) if isinstance(v, (float, complex)) else v
        )

    return _cast(leaf(map_tensors(value, one)), _WIDE)


def widened(value: Any) -> Any:
    """The same arguments in float64 and complex128."""
    return _cast(value, _WIDE)


def seeded(library: Any, call: Callable[..., Any], args: Any, kwargs: Any) -> tuple[Any, Exception | None]:
    if library is mica and device() != "cpu":
        mica.manual_seed(11)
        return attempt(_waited, call, args, kwargs)
    library.default_generator.manual_seed(11)
    return attempt(call, *args, **kwargs)


def _waited(call: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """A call on a device, whose errors may come when it is waited for."""
    result = call(*args, **kwargs)
    mica.synchronize(device())
    return result


class Operator:
    """One OpInfo in both libraries. Raises AbsentError where Mica lacks it."""

    def __init__(self, op: Any) -> None:
        self.op, self.key = op, key(op)
        self.theirs, self.ours = op.op, function(op.op, op.name)
        self.rules: Rules = rules(op)
        self.adds_terms, self.transforms = adds_terms(op), transforms(op)
        self.by_norm = False  # whether its error is judged by a matrix' norm
        self.their_gradcheck = op.gradcheck_wrapper
        self.our_gradcheck = function(op.gradcheck_wrapper) if op.gradcheck_wrapper else None

    def references(
        self,
        call: Callable[..., Any],
        args: Any,
        kwargs: Any,
        of_magnitudes: Callable[..., Any] | None = None,
        along: Callable[[], list[torch.Tensor]] | None = None,
        back: bool = False,
    ) -> References:
        """Torch's results of the same call in float64, of magnitudes, and in float32; exact values.

        `along`, `back`: the call's results are derivatives, as `truth.exact` takes them.
        """
        if of_magnitudes is None and self.adds_terms:
            of_magnitudes = call

        def run(
            call: Callable[..., Any],
            to: dict[Any, Any],
            default: torch.dtype,
            signs: tuple[int, int] | None = None,
        ) -> Any:
            before = torch.get_default_dtype()
            torch.set_default_dtype(default)
            try:
                return flatten(seeded(torch, call, *_cast((args, kwargs), to, signs))[0])
            finally:
                torch.set_default_dtype(before)

        def terms() -> Any:
            """The larger of two sums of terms: of a + b, and of a - b. Of a transform, its largest number."""
            if self.transforms:
                found = [
                    r.detach().abs() for r in run(call, _WIDE, torch.float64) if isinstance(r, torch.Tensor)
                ]
                return [r.max().expand_as(r) if r.numel() else r for r in found]
            if of_magnitudes is None:
                return None
            sums = [run(of_magnitudes, _WIDE, torch.float64, signs) for signs in ((1, 1), (1, -1))]
            tensors = [[r.detach().abs() for r in s if isinstance(r, torch.Tensor)] for s in sums]
            pairs = zip(*tensors) if len(tensors[0]) == len(sums[0]) else ()
            return [torch.maximum(a, b) if a.shape == b.shape else a for a, b in pairs]

        def moved() -> list[Any]:
            before = torch.get_default_dtype()
            torch.set_default_dtype(torch.float64)
            try:
                draws = (_moved((args, kwargs), seed, self.by_norm) for seed in range(6))
                return [flatten(seeded(torch, call, *draw)[0]) for draw in draws]
            finally:
                torch.set_default_dtype(before)

        def finite() -> bool:
            tensors = [x for x in flatten([*args, *kwargs.values()]) if isinstance(x, torch.Tensor)]
            return all(bool(x.isfinite().all()) for x in tensors)

        if is_random(self.op):
            return References(_none, _none, _none, (args, kwargs))
        return References(
            functools.cache(lambda: run(call, _WIDE, torch.float64)),
            functools.cache(terms),
            functools.cache(lambda: run(call, _LOW, torch.float32)),
            (args, kwargs),
            moved=functools.cache(moved),
            finite=finite,
            exact=exact(self.key, args, kwargs, along, back),
        )


# What torch refuses and Mica may do: what torch has no kernel for; a number in the place of
# a tensor, which the array API standard asks for (2024.12, atan2 and others); writing where
# the input lies, which Mica then reads first; an `out` of another dtype that can hold the
# result; tensors of more than 64 dimensions; and transforms of an empty batch.
_MAY = re.compile(
    r"not implemented for|\(position \d\) must be Tensor, not (int|float|bool)"
    r"|some elements of the input tensor and the written-to tensor refer to a single memory location"
    r"|Expected out tensor to have dtype|for argument 'out'|expects Long tensor out|got \(int, int\)|only tensors with up to 64 dims"
    r"|MKL FFT error"
)


def judge(
    got: tuple[Any, Exception | None],
    expected: tuple[Any, Exception | None],
    rules: Rules,
    references: References,
) -> tuple[str, bool]:
    """Compares results, or the kinds of exceptions."""
    (mine, my_error), (theirs, their_error) = got, expected
    if their_error is not None:
        if my_error is None:
            lacks = isinstance(their_error, NotImplementedError) or _MAY.search(str(their_error))
            return ("" if lacks else f"no error, torch {say(their_error)}"), False
        # NotImplementedError is a RuntimeError, so that code for torch catches it.
        may = isinstance(their_error, NotImplementedError) or _MAY.search(str(their_error))
        same = isinstance(my_error, kind(their_error)) or may
        return ("" if same else f"{say(my_error)}, torch {say(their_error)}"), False
    if my_error is not None:
        return say(my_error), False
    return differs(mine, theirs, rules, references)


def forward(o: Operator, args: Any, kwargs: Any) -> Iterator[Found]:
    """Results, their dtypes, shapes and strides, and inputs that are written."""
    my_args, my_kwargs = to_mica((args, kwargs))
    their_args, their_kwargs = copied((args, kwargs))
    versions = [x._version for x in flatten(list(their_args)) if isinstance(x, torch.Tensor)]
    expected = seeded(torch, o.theirs, their_args, their_kwargs)
    got = seeded(mica, o.ours, my_args, my_kwargs)
    if got[1] is not None and is_mica_absence(got[1]):
        raise AbsentError(str(got[1]))
    inputs = [x for x in flatten([*their_args, *their_kwargs.values()]) if isinstance(x, torch.Tensor)]
    memory = frozenset(x.untyped_storage().data_ptr() for x in inputs if x.numel())
    references = dataclasses.replace(o.references(o.theirs, args, kwargs), memory=memory)
    found, loose = judge(got, expected, o.rules, references)
    if not found and expected[1] is None:
        pairs = zip(flatten(list(my_args)), flatten(list(their_args)))
        tensors = [(m, t) for m, t in pairs if isinstance(t, torch.Tensor)]
        written = [pair for pair, version in zip(tensors, versions) if pair[1]._version != version]
        wrong = filter(None, (differs(m, t, o.rules, _NO_REFERENCES)[0] for m, t in written))
        found = next((f"an input after the call: {w}" for w in wrong), "")
    yield "forward", found, loose


def layout(o: Operator, args: Any, kwargs: Any, name: str) -> Iterator[Found]:
    """The same in another layout."""
    args, kwargs = relaid((args, kwargs), name)
    for _, found, loose in forward(o, args, kwargs):
        yield "layouts", found and f"{name}: {found}", loose


_OUT_STYLES = ("fitting", "strided", "resized", "cast")


# A dtype that can hold the result, or one that cannot.
_CASTS = {
    torch.float64: torch.int64,
    torch.float16: torch.int32,
    torch.complex64: torch.complex128,
    torch.complex128: torch.complex64,
}


def _outs(results: list[torch.Tensor], style: str) -> list[torch.Tensor]:
    """Tensors to write results to, in one style."""
    if style == "resized":
        return [torch.empty(0, dtype=r.dtype) for r in results]
    if style == "strided":
        return [
            torch.zeros([*r.shape[::-1]], dtype=r.dtype).permute(list(range(r.ndim))[::-1]) for r in results
        ]
    if style == "cast":
        return [torch.zeros(r.shape, dtype=_CASTS.get(r.dtype, torch.float64)) for r in results]
    return [torch.zeros(r.shape, dtype=r.dtype) for r in results]


def _coarser(a: torch.dtype, b: torch.dtype) -> torch.dtype | None:
    """Of two float dtypes the one of lower precision."""
    both = [d for d in (a, b) if d.is_floating_point or d.is_complex]
    return max(both, key=lambda d: torch.finfo(d).eps) if len(both) == 2 else None


def out(o: Operator, args: Any, kwargs: Any, number: int) -> Iterator[Found]:
    """The out= form, in a style that changes from sample to sample."""
    results, error = seeded(torch, o.theirs, *copied((args, kwargs)))
    results = flatten(results)
    if error is not None or not all(isinstance(r, torch.Tensor) for r in results):
        return
    style = _OUT_STYLES[number % len(_OUT_STYLES)]
    if style == "strided" and o.op.name in OUT_CONTIGUOUS:
        style = "fitting"
    their_outs = _outs(results, style)
    my_outs = [to_mica(x) for x in their_outs]
    single = len(results) == 1
    their_args, their_kwargs = copied((args, kwargs))
    my_args, my_kwargs = to_mica((args, kwargs))
    their_kwargs = {**their_kwargs, "out": their_outs[0] if single else tuple(their_outs)}
    my_kwargs = {**my_kwargs, "out": my_outs[0] if single else tuple(my_outs)}
    expected = seeded(torch, o.theirs, their_args, their_kwargs)
    got = seeded(mica, o.ours, my_args, my_kwargs)
    if expected[1] is None and style != "cast":
        # Of torch's two forms the functional one is right: not avg_pool3d's out=, nor ihfftn's.
        for theirs, result in zip(their_outs, results):
            theirs.resize_(result.shape).copy_(result)
    if style == "cast" and expected[1] is not None and got[1] is None:
        # Every result of Mica may be cast to an `out` that can hold it; some of torch may not.
        their_outs, expected = [r.to(x.dtype) for r, x in zip(results, their_outs)], (None, None)
    expected = (their_outs, expected[1])
    strict = dataclasses.replace(o.rules, strides=style in ("fitting", "strided"))
    if style == "cast":
        strict = dataclasses.replace(strict, precision=_coarser(results[0].dtype, their_outs[0].dtype))
    found, loose = judge((my_outs, got[1]), expected, strict, o.references(o.theirs, args, kwargs))
    yield "out", found and f"{style}: {found}", loose


def inplace(o: Operator, ours: Any, args: Any, kwargs: Any) -> Iterator[Found]:
    """The in-place form: what the first input holds after it."""
    their_args, their_kwargs = copied((args, kwargs))
    my_args, my_kwargs = to_mica((args, kwargs))
    expected = seeded(torch, o.op.inplace_variant, their_args, their_kwargs)
    got = seeded(mica, ours, my_args, my_kwargs)
    references = o.references(o.theirs, args, kwargs)
    found, loose = judge((my_args[0], got[1]), (their_args[0], expected[1]), o.rules, references)
    yield "inplace", found, loose


def _differentiable(value: Any, library: Any) -> list[Any]:
    return [x for x in flatten(value) if isinstance(x, library.Tensor) and x.requires_grad]


def differentiable_inputs(value: Any, library: Any) -> list[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [x for v in value for x in differentiable_inputs(v, library)]
    return [value] if isinstance(value, library.Tensor) and value.requires_grad else []


def normal_like(tensors: list[torch.Tensor], seed: int) -> list[torch.Tensor]:
    """Normal numbers in the tensors' shapes and dtypes, drawn in double precision: equal for every dtype."""
    generator = torch.Generator().manual_seed(seed)
    return [
        torch.randn(x.shape, dtype=torch.complex128 if x.is_complex() else torch.float64,
                    generator=generator).to(x.dtype)
        for x in tensors
    ]  # fmt: skip


def nothing(gradient: Any) -> bool:
    """Whether it is undefined or zeros."""
    return gradient is None or not bool(to_torch(gradient).any())


def gradients(o: Operator, sample: Any) -> Iterator[Found]:
    """Gradients of all inputs for fixed cotangents."""
    args, kwargs = (sample.input, *sample.args), sample.kwargs

    def call(library: Any, operator: Any, wrapper: Any, process: Any, weights: Any) -> Callable[..., Any]:
        def run(*a: Any, **k: Any) -> Any:
            inputs = list({id(x): x for x in differentiable_inputs((a, k), library)}.values())
            results = process(wrapper(operator, *a, **k) if wrapper else operator(*a, **k))
            outputs = _differentiable(results, library)
            if not outputs or not inputs:
                return []
            return list(
                library.autograd.grad(outputs, inputs, weights(outputs), allow_unused=True),
            )

        return run

    fixed: list[torch.Tensor] = []

    def torch_weights(outputs: list[torch.Tensor]) -> list[torch.Tensor]:
        if not fixed:
            fixed.extend(normal_like(outputs, seed=5))
        return [w.to(x.dtype) for w, x in zip(fixed, outputs)]

    their_process = sample.output_process_fn_grad
    theirs = call(torch, o.theirs, o.their_gradcheck, their_process, torch_weights)
    of_magnitudes = call(
        torch,
        o.theirs,
        o.their_gradcheck,
        their_process,
        lambda outputs: [w.abs() for w in torch_weights(outputs)],
    )
    expected = seeded(torch, theirs, *copied((args, kwargs)))
    process, absent = attempt(function, sample.output_process_fn_grad)
    if absent is not None:
        yield "gradients", say(absent), False
        return
    ours = call(mica, o.ours, o.our_gradcheck, process, lambda outputs: [to_mica(w) for w in fixed])
    my_args, my_kwargs = to_mica((args, kwargs))
    got = seeded(mica, ours, my_args, my_kwargs)
    if expected[1] is None and not expected[0]:
        return
    references = o.references(theirs, args, kwargs, of_magnitudes, lambda: fixed, back=True)
    if expected[1] is None and got[1] is None:
        # An input that does not matter has no gradient, or zeros.
        mine = got[0] or [None] * len(expected[0])
        none = [nothing(m) and nothing(t) for m, t in zip(mine, expected[0])]
        got = ([None if n else m for m, n in zip(mine, none)], None)
        expected = ([None if n else t for t, n in zip(expected[0], none)], None)
    found, _ = judge(got, expected, Rules(terms=o.rules.terms), references)
    yield "gradients", found, False


def meta(o: Operator, args: Any, kwargs: Any) -> Iterator[Found]:
    """The same call on tensors without values: the results' form, and the same refusal."""
    if any(x.device.type != "cpu" for x in flatten([*args, *kwargs.values()]) if isinstance(x, torch.Tensor)):
        return
    try:
        my_args, my_kwargs = to_mica(copied((args, kwargs)))
    except AbsentError:
        return  # `errors` and `forward` tell
    if not says_device([*my_args, my_kwargs]):
        return  # a factory without `device`
    meta_args, meta_kwargs = on_meta((tuple(my_args), my_kwargs))
    result, error = seeded(mica, o.ours, my_args, my_kwargs)
    if error is None and not any(isinstance(x, mica.Tensor) for x in flatten(result)):
        return  # a number, which only values give
    promised, refusal = seeded(mica, o.ours, meta_args, meta_kwargs)
    found = ""
    if error is None:
        found = say(refusal) if refusal is not None else forms_differ(result, promised)
    elif refusal is None:
        found = f"no error on meta, otherwise {say(error)}"
    elif kind(refusal) is not kind(error):
        found = f"{say(refusal)}, otherwise {say(error)}"
    yield "meta", found, False


def errors(o: Operator, sample: Any) -> Iterator[Found]:
    """A call that torch refuses: the same kind of exception, and a sentence that says enough."""
    args, kwargs = (sample.input, *sample.args), sample.kwargs
    their_args, their_kwargs = copied((args, kwargs))
    _, their_error = seeded(torch, o.theirs, their_args, their_kwargs)
    if their_error is None:
        return
    try:
        my_args, my_kwargs = to_mica((args, kwargs))
    except AbsentError:
        return  # nobody can say it in Mica: layout=mica.sparse_coo
    result, my_error = seeded(mica, o.ours, my_args, my_kwargs)
    found, _ = judge((result, my_error), (None, their_error), o.rules, _NO_REFERENCES)
    if not found and my_error is not None and device() == "cpu":  # what a device says late names no argument
        found = lacks(str(my_error), str(their_error), [args, kwargs])
        found = found and f"the sentence {found}: {say(my_error)}"
    yield "errors", found, False
