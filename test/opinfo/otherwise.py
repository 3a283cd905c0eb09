"""Where Mica does otherwise than torch, and why that is right: data, each with its sentence.

A row excuses the differences whose words its pattern finds. What cannot be asked of an operator at all
(an order, a phase, random numbers) is in rules.py.
"""

from __future__ import annotations

import fnmatch
import math
import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Otherwise:
    """What Mica does otherwise, and why that is right: the differences that match `pattern`.

    Of values that differ, those excused lie within `most` of torch's, relatively.
    """

    operator: str
    check: str
    pattern: str
    why: str
    most: float = math.inf


OTHERWISE = (
    Otherwise(
        "*polygamma*",
        "*",
        r"is inf, torch (2\.01|1\.738108e\+16)",
        "at 0, -1, -2, ... the function is infinite",
    ),
    Otherwise("matrix_exp", "*", "torch nan", "torch's exponential of half matrices overflows"),
    Otherwise(
        "as_strided_scatter",
        "gradients",
        "result 0",
        "torch gives `self` the gradient of the elements that `src` replaces",
    ),
    Otherwise(
        "nn.functional.hardsigmoid",
        "*",
        "value",
        "torch's float64 derivative has 1/6 rounded to float32",
        6e-8,
    ),
    Otherwise(
        "logcumsumexp",
        "tangents",
        "value|torch nan",
        "torch adds 1e-13 of the largest element to what it divides by; test_special_maths_torch.py has mpmath's",
        5e-6,
    ),
    Otherwise(
        "cholesky_inverse",
        "tangents",
        "value",
        "differences of torch's own results agree with Mica's tangents, and not with torch's",
        1e-4,
    ),
    Otherwise(
        "cov",
        "tangents",
        "value",
        "samples in float64 have weights in float32, which torch and Mica add up in another order",
        1e-6,
    ),
    *(
        Otherwise(
            n, "layouts", "strides", "torch's conj is a view that conjugates when read; Mica's computes"
        )
        for n in ("conj", "mH")
    ),
    Otherwise(
        "ldexp",
        "layouts",
        "strides",
        "torch's power of a number is contiguous; Mica's keeps the order of dimensions, as pointwise ones do",
    ),
    Otherwise(
        "*embedding*",
        "layouts",
        "expanded: RuntimeError: unsupported operation: more than one element of the written-to tensor",
        "`max_norm` writes to rows that share their memory; torch scales such a row once for each",
    ),
    Otherwise(
        "*median",
        "layouts",
        "empty: RuntimeError: `self` has no elements",
        "torch turns a NaN into an integer, which C leaves undefined",
    ),
    Otherwise(
        "median",
        "layouts",
        "expanded: derived 0",
        "torch gives values that the expanded input does not hold",
    ),
    Otherwise(
        "nansum",
        "out",
        "cast",
        "torch refuses an `out` of integers; Mica adds in the dtype of `out`, as sum does in both",
    ),
    Otherwise("addmv", "layouts", "empty: shape", "torch broadcasts `self` only where there are columns"),
    Otherwise(
        "nn.functional.scaled_dot_product_attention",
        "layouts",
        "empty: shape",
        "torch gives a result without elements the query's shape, and not the broadcast one",
    ),
    Otherwise(
        "nn.functional.adaptive_avg_pool1d",
        "layouts",
        "empty: RuntimeError: Dimension",
        "torch pools no elements into one window, and refuses to pool them into two",
    ),
    Otherwise(
        "nn.functional.linear",
        "out",
        "must match the size of tensor b",
        "torch's own out= needs a contiguous one here",
    ),
    Otherwise(
        "*matmul*", "out", "must match the size of tensor b", "torch's own out= needs a contiguous one here"
    ),
    Otherwise("__rdiv__", "errors", "AttributeError", "torch calls a method that a number lacks"),
    Otherwise("narrow_copy", "errors", "Expected dim <", "torch's error is an internal assertion"),
    Otherwise("cat", "errors", "foreign memory", "the test's `out` is NumPy's memory, which cannot grow"),
    Otherwise(
        "nn.functional.linear",
        "out",
        "doesn't match the broadcast shape",
        "torch's own out= needs a contiguous one here",
    ),
    Otherwise(
        "normal*",
        "out",
        "no error, torch RuntimeError: The size of tensor a",
        "torch's normal of two numbers does not resize its out=, which other operators do",
    ),
    Otherwise(
        "*",
        "layouts",
        r"empty: no error, torch (IndexError: select\(\)|ZeroDivisionError|RuntimeError: (cannot reshape|"
        r"step must be nonzero|Only zero batch|result type Float can't be cast))",
        "an operator inside torch's own refuses the empty input that the operator itself takes",
    ),
    Otherwise(
        "nn.functional.*norm*",
        "gradients",
        "torch (nan|-?inf)",
        "torch's half-precision gradient overflows inside, Mica's is computed in float32",
    ),
    Otherwise(
        "nn.functional.soft_margin_loss",
        "gradients",
        "torch (nan|-?inf)",
        "torch's half-precision gradient overflows inside, Mica's is computed in float32",
    ),
    Otherwise(
        "renorm",
        "gradients",
        "torch nan",
        "torch's gradient of the norm inf is NaN in complex64, and in complex128 what Mica's is in both",
    ),
    Otherwise(
        "masked.normalize",
        "gradients",
        "torch (nan|-?inf)",
        "torch's half-precision gradient overflows inside, Mica's is computed in float32",
    ),
    Otherwise(
        "masked.prod",
        "gradients",
        "value at .* is 65216, torch inf",
        "torch multiplies half-precision numbers beyond their range on the way to 65216",
    ),
    Otherwise(
        "take_along_dim",
        "layouts",
        "no error, torch RuntimeError: view size is not compatible",
        "an operator inside torch's own takes no expanded indices",
    ),
    Otherwise(
        "lu_*",
        "layouts",
        r"A pivot is \(0\) for",
        "torch takes pivots that no matrix has, and reads there",
    ),
    Otherwise(
        "*stack",
        "out",
        "torch TypeError: torch.cat",
        "torch's cat says TypeError where all others say RuntimeError",
    ),
    Otherwise(
        "cat",
        "out",
        "torch TypeError: torch.cat",
        "torch's cat says TypeError where all others say RuntimeError",
    ),
    Otherwise(
        "*",
        "sizes",
        "no error, torch RuntimeError: (view size is not compatible|grad_input must be contiguous|"
        ".* INTERNAL ASSERT FAILED)",
        "torch's own gradient, or an operator inside of its own, takes no such strides",
    ),
    Otherwise(
        "angle",
        "*",
        "strides",
        "torch makes the angles of complex numbers by way of a contiguous complex result; Mica's keep the order "
        "of dimensions, as pointwise ones do",
    ),
    *(
        Otherwise(
            n, "sizes", r"\(0, .* are not square", "torch asks for square matrices only where there are any"
        )
        for n in ("cholesky", "linalg.matrix_rank:hermitian")
    ),
    Otherwise(
        "gradient",
        "sizes",
        "of the places is no vector of the size",
        "torch takes three places for a dimension of another size, whose distances it broadcasts",
    ),
    Otherwise(
        "*", "sizes", r"no error, torch RuntimeError: \[enforce fail at alloc", "torch has no memory for it"
    ),
    Otherwise(
        "scatter_reduce:mean",
        "sizes",
        r"value at \S.* is -?\d+, torch -?\d+$",
        "torch's sums and counts of small integers wrap; Mica's means are those of the integers",
    ),
    Otherwise(
        "nn.functional.interpolate:linear",
        "sizes",
        "value",
        "torch takes a place that float32 does not tell from an element's for the element's",
        1e-3,
    ),
    Otherwise(
        "*trap*",
        "*",
        r"value at \[[\d, ]*\] is .*; off by (128|256|512|768), allowed",
        "steps and sums of narrow integers are those of int64; torch's wrap, so that a step of uint8 from 3 to 1 is 254",
    ),
    Otherwise(
        "nn.functional.multilabel_margin_loss",
        "sizes",
        "value",
        "torch adds up all pairs of elements one by one; Mica's sum of 8191 x 8191 pairs is within 1e-16 of the exact one",
        1e-11,
    ),
    Otherwise(
        "nn.functional.embedding_bag",
        "layouts",
        r"empty: RuntimeError: Table `weight` of shape \[0, 0\] has no rows",
        "torch looks at the indices into a table of no rows and no columns in some of its kernels, others take any",
    ),
    Otherwise(
        "nn.functional.embedding_bag",
        "sizes",
        "gradients .* value",
        "Mica's gradient of a maximum is the sum of equal shares of all its places, torch's goes to the first",
        1e-3,
    ),
    Otherwise(
        "linalg.cholesky_ex",
        "sizes",
        "gradients .* value",
        "a matrix that is not positive definite has no factor, and what was computed of one no gradient",
    ),
    Otherwise(
        "special.*polynomial*",
        "sizes",
        "value",
        "what a recurrence rounds are its terms, next to whose sum a polynomial's own value and slope may be small",
        4e-14,
    ),
    Otherwise(
        "ormqr",
        "sizes",
        "no error, torch RuntimeError: torch.ormqr: tau",
        "Mica multiplies by as many reflectors as there are; torch wants them all",
    ),
    Otherwise(
        "corrcoef",
        "*",
        "torch 0, reference 0",
        "a number's correlation with itself is 1: its gradient is what rounding leaves of two equal terms",
    ),
    Otherwise(
        "addbmm",
        "inplace",
        "doesn't match the broadcast shape",
        "an in-place form keeps the shape of `self`; torch's addbmm_ resizes it",
    ),
)


# What has no answer without values, and why; `pattern` as above. On meta alone.
_VALUES = (
    ("*", "Cannot copy out of meta tensor; no data!", "a copy from meta has no values"),
    (
        "argwhere nonzero masked_select unique unique_consecutive bincount",
        "NotImplementedError: (The result of|unique_dim has results whose sizes follow from values)",
        "the values decide the shape of the result",
    ),
    ("nn.functional.one_hot", "num_classes", "the largest value decides the number of classes"),
    ("nn.functional.embedding*", "mica::nonzero", "the values say which rows `max_norm` makes smaller"),
    ("index_put __getitem__", "mica::nonzero", "a mask's values decide how many elements it selects"),
    ("repeat_interleave", "_local_scalar_dense", "the repeats' sum is the size of the result"),
    ("narrow tensor_split", "_local_scalar_dense", "`start` or the sections are the values of a tensor"),
    ("nn.functional.ctc_loss", "has no values", "the lengths are the values of a tensor"),
    ("l*space:tensor_overload", "no item", "numbers are read from 0-d tensors"),
    ("gather scatter scatter_add", "is out of bounds", "indices are values"),
    ("gather", "is a view of a larger tensor", "indices are values, and are wrong before the `out` is"),
    ("cov multinomial", "no error on meta", "weights are values"),
    ("uniform normal*", "no error on meta", "a random fill's numbers are checked where it draws"),
    ("cat", "foreign memory", "meta has no memory that could not grow"),
)
OTHERWISE += tuple(
    Otherwise(name, "meta", pattern, why) for names, pattern, why in _VALUES for name in names.split()
)


# What cannot be mapped over, and why.
_UNMAPPED = (
    ("*", "returned a (bool|int|float|complex|type|tuple|device|str|Size|NoneType)", "it returns no tensor"),
    (
        "argwhere nonzero masked_select unique unique_consecutive __getitem__ index_put where",
        "returns a shape that depends on the values",
        "the values decide the shape of the result",
    ),
    ("nn.functional.embedding*", "_unique2", "the values say which rows `max_norm` makes smaller"),
    ("item allclose equal is_nonzero bool", "no single value", "it returns the value of its tensor"),
    ("*space:tensor_overload", "no single value", "numbers are read from 0-d tensors"),
    ("nn.functional.gaussian_nll_loss istft", "no single value", "it reads its values to check them"),
    ("nn.functional.ctc_loss", "lengths has no single value", "the lengths are the values of a tensor"),
    (
        "nn.functional.instance_norm nn.functional.batch_norm",
        "captured from outside",
        "running statistics are shared",
    ),
    ("resize_ resize_as_", "another shape", "a tensor that stands for a batch keeps its shape"),
)
OTHERWISE += tuple(
    Otherwise(name, "vmap", pattern, why) for names, pattern, why in _UNMAPPED for name in names.split()
)


# What lies otherwise in memory, or belongs to something else, and why.
_KINDS = (
    (
        "cholesky* geqrf linalg.* lu lu_solve ormqr pca_lowrank qr svd svd_lowrank triangular_solve",
        "strides",
        "torch hands out LAPACK's order of columns; Mica's results are contiguous, or transposed where that is free",
    ),
    (
        "fft.* stft",
        "strides",
        "torch's results lie as the passes of its FFT left them; Mica's are contiguous",
    ),
    (
        "unique unique_consecutive",
        "strides",
        "torch's are the transposed copy of its algorithm; Mica's are contiguous",
    ),
    (
        "unique unique_consecutive",
        r"\(0,\): memory is result 1",
        "two results that nobody asked for are one empty tensor",
    ),
    (
        "unravel_index",
        "strides|offset|view|memory",
        "torch's are columns of one matrix; Mica's are tensors of their own",
    ),
    (
        "rot90",
        "strides",
        "of an expanded tensor torch turns a copy that it flips; Mica's copy is the turned one",
    ),
    (
        "diagonal_scatter select_scatter slice_scatter",
        "strides|offset",
        "torch's copy of a stepped tensor keeps the gaps",
    ),
    (
        "nn.functional.conv_transpose3d",
        "channels_last: .*strides",
        "which of torch's libraries computes decides whether channels_last stays; in Mica it stays",
    ),
    ("put", "transposed: .*strides", "torch's copy keeps the order of the dimensions; Mica's is contiguous"),
    (
        "ldexp",
        "transposed: .*strides",
        "torch multiplies by powers of 2, whose order decides; Mica has no powers",
    ),
    (
        "nn.functional.max_unpool2d*",
        "strides",
        "torch keeps channels_last, which gains nothing where most elements are 0; Mica's are contiguous",
    ),
    (
        "unsafe_chunk unsafe_split",
        "view",
        "Mica's are views, so that a write keeps the graph right; torch's trust the caller",
    ),
    (
        "nonzero",
        "view",
        "coordinates are stored in columns, whose transposed view holds them alone; integers have no graph",
    ),
    (
        "heaviside histogram histogramdd geqrf linalg.householder_product linalg.ldl_solve",
        "requires_grad False|leaf True",
        "torch has no derivative and says so in backward; Mica's result has no gradient",
    ),
    (
        "linalg.norm*",
        "requires_grad True|leaf False",
        "the number of elements other than 0 has gradient 0 in Mica, none in torch",
    ),
    ("angle", "strides", "torch's angles of complex numbers are contiguous"),
)
OTHERWISE += tuple(
    Otherwise(name, "kind", pattern, why) for names, pattern, why in _KINDS for name in names.split()
)


def _within(most: float, found: str) -> bool:
    """Whether the values that a difference tells of are as near as that; True of what tells of no value, and
    of torch's NaN."""
    values = re.search(r", torch ([^\s,]+), .*off by ([^\s,]+)", found)
    if most == math.inf:
        return True
    if values is None:
        return "value at" not in found or "torch nan" in found
    return float(values[2]) <= most * abs(complex(values[1]))


def otherwise(key: str, check: str, found: str) -> Otherwise | None:
    """What excuses this difference. A grown sample's is one of the check that found it, in its layout."""
    checks = [check, found.split(" ", 1)[0], "layouts"] if check == "sizes" else [check]
    for rule in OTHERWISE:
        if (
            fnmatch.fnmatchcase(key, rule.operator)
            and any(fnmatch.fnmatchcase(c, rule.check) for c in checks)
            and re.search(rule.pattern, found)
            and _within(rule.most, found)
        ):
            return rule
    return None
