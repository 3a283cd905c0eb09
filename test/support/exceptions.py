"""What the checks of every operator find and may find, each with its reason: one table.

A row belongs to a check (every_operator.py) and names operators. It excuses the findings that its
pattern matches, or those of the calls that it numbers. Findings that no row excuses fail, and so
does a row that excuses nothing any more.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    check: str
    operators: str  # overloads, with blanks between
    reason: str
    excuses: str = ""  # a pattern of findings; every finding where it is empty
    calls: tuple[int, ...] = ()  # the sample calls whose findings it excuses, each of which has some


_SHAPE = "the shape of the result depends on the values"
_NUMBER = "a 0-d src for an index of one dimension, which the loop takes as of one element"
_LAPACK = "LAPACK works in place on column-major matrices"

ROWS = [
    Row(
        "conjugate views",
        "view.dtype view_copy.dtype",
        "the memory has other numbers than the tensor shows: refused, as in torch",
        "is not supported for",
    ),
    Row(
        "conjugate views",
        "view_as_real view_as_real_copy",
        "the memory has other numbers than the tensor shows: refused, as in torch",
        "is not supported for",
    ),
    # Gradients against finite differences.
    Row(
        "gradients",
        "zeros_like ones_like full_like new_zeros new_full",
        "the values of the input do not enter",
        "no result requires grad",
    ),
    Row(
        "gradients",
        "embedding",
        "the row of padding_idx gets no gradient, so that training leaves it alone",
        calls=(1,),
    ),
    Row("gradients", "to.dtype", "the steps of finite differences are below those of float16", calls=(3,)),
    Row(
        "gradients",
        "_keep_history",
        "it gives the values of one tensor the history of another",
        calls=(0, 1, 2, 4),
    ),
    # Tangents against differences and gradients; gradients under mica.func against plain backward.
    Row(
        "tangents",
        "embedding",
        "the row of padding_idx gets no gradient, so that training leaves it alone",
        calls=(1,),
    ),
    Row("tangents", "to.dtype", "the steps of differences are below those of float16", calls=(3,)),
    Row(
        "tangents",
        "_keep_history",
        "it gives the values of one tensor the history of another",
        calls=(0, 1, 2, 4),
    ),
    Row("func", "to.dtype", "float16 rounds on the way, at other places in each order", calls=(3,)),
    # vmap against a loop.
    Row(
        "vmap", "where nonzero nonzero_numpy argwhere masked_select index.Tensor index_put", _SHAPE, "Error: "
    ),
    Row("vmap", "_unique2 unique_consecutive unique_dim", _SHAPE, "Error: "),
    Row(
        "vmap",
        "tensor_split.tensor_indices_or_sections",
        "the values say which elements belong together, or how many",
        "Error: ",
    ),
    Row(
        "vmap",
        "allclose equal is_nonzero is_same_size result_type.Tensor is_complex is_floating_point numel item",
        "it returns no tensor",
        "Error: ",
    ),
    Row(
        "vmap",
        "native_batch_norm batch_norm",
        "it writes the running statistics, which are not mapped over",
        "Error: ",
    ),
    Row(
        "vmap of every rank",
        "as_strided as_strided_copy",
        "its sentence tells the storage's bytes, and a batch's examples share one storage",
    ),
    Row("vmap of every rank", "scatter_add", _NUMBER),
    Row("vmap of every rank in place", "scatter_add", _NUMBER),
    Row(
        "vmap of every rank",
        "native_layer_norm layer_norm",
        "the loop takes a weight of another shape with as many elements",
    ),
    Row("vmap of every rank", "nll_loss_forward", "the total weight of one example without reduction"),
    # functionalize against the program itself.
    Row(
        "functionalize views",
        "unfold",
        "windows that overlap are written: each element many times, in any order",
        "gradients: ",
    ),
    Row(
        "functionalized graph",
        "narrow.Tensor tensor_split.tensor_indices_or_sections",
        "the result depends on the values of an argument, and so has no graph",
    ),
    # Traces of the backward.
    Row(
        "trace of the backward",
        "cov histogram.bin_ct linalg_lstsq narrow.Tensor tensor_split.tensor_indices_or_sections",
        "its checks, or its pieces, depend on values, and its gradient is that of its parts",
        "number or truth value of the values",
    ),
    # What is allocated: beside a given result, as a copy of an input, beside the results of the functional form.
    Row(
        "memory of given results",
        "convolution",
        "a bias with stride 0 is made dense for the library, a number a channel",
    ),
    Row("memory of given results", "linalg_solve_triangular geqrf linalg_ldl_solve", _LAPACK),
    Row("copies of inputs", "linalg_solve_triangular geqrf", _LAPACK),
    Row(
        "results held twice",
        "lu_unpack linalg_lu linalg_qr qr svd",
        "LAPACK gives a result column by column, and `out` lies by rows",
    ),
    Row("results held twice", "put", "elements are written into a copy, whose shape is flat"),
    # bools in bytes other than 0 and 1.
    Row("bytes of bools", "as_strided as_strided_copy", "read what lies between the elements"),
    # Beside torch: values, forms, gradients (test_operators_torch.py), and the dtypes of autocast.
    Row(
        "torch forward",
        "_neg_view",
        "bool has no negatives: torch makes the view, and refuses whatever reads it",
        "_neg_view is not supported on bool",
    ),
    Row(
        "torch forward",
        "trapezoid.x trapz.x cumulative_trapezoid.x",
        "steps of narrow integers are those of int64; torch's wrap, so that a step of uint8 from 3 to 1 is 254",
        r"^uint8 \w+ call \d: value",
    ),
    Row(
        "torch forward",
        "matrix_exp linalg_matrix_exp",
        "half types are computed in float32; torch's own arithmetic in them ends in NaN",
        r"^b?float16 contiguous call \d: value .* torch np.float\d+\(nan\)",
    ),
    Row(
        "torch forward",
        "pow.Scalar log_sigmoid",
        "results of pointwise operators keep the memory order of their input, here too, so that nothing is reordered later",
        r"^\w+ transposed call \d: strides \((12, )?1, 3\), torch \((12, )?4, 1\)",
    ),
    Row(
        "torch forward",
        "cummax cummin",
        "complex numbers have no order, in 0-d and in empty tensors too, which torch lets pass",
        r"^complex\d+ \w+ call [23]: NotImplementedError: .* does not support the dtype",
    ),
    Row(
        "torch forward",
        "softmax.int log_softmax.int",
        "integers and complex numbers have no softmax; torch says so only where there are elements",
        r"^(bool|u?int\d+|complex\d+) \w+ call 3: NotImplementedError: .* does not support the dtype",
    ),
    Row(
        "torch forward",
        "native_layer_norm",
        "statistics of half types are float32, as torch has them on GPUs: the gradient is more accurate",
        r"^b?float16 contiguous call \d: result 1: dtype mica.float32",
    ),
    Row(
        "torch forward",
        "special_bessel_y0 special_bessel_y1 polygamma",
        "mpmath confirms Mica's value (test_special_maths_torch.py); torch's float64 is off by 1e-8 and more",
        r"^float64 \w+ call \d: value",
    ),
    Row(
        "torch forward",
        "embedding_dense_backward",
        "sums are divided by the counts; torch divides first, in integers, which no gradient is",
        r"^(bool|int\d+|uint8) \w+ call 1: value",
    ),
    Row(
        "torch out",
        "nansum",
        "an integer `out` gets the sum of integers, as from sum; torch refuses it",
        r"^int32 call \d: .*is not the cast of",
    ),
    Row(
        "torch out",
        "nonzero",
        "an `out` that is resized is row-major, as for every operator; torch's is column-major",
        r"^resized call \d: strides",
    ),
    Row(
        "torch out",
        "pow.Scalar",
        "the dtype of `out` is checked for every base; torch forgets it for the base 1",
        r"^int32 call 2: RuntimeError.*(cannot|can't) be cast",
    ),
    Row(
        "torch out",
        "matmul",
        "an `out` of the right shape keeps its strides, as for every operator",
        r"^strided call 1: strides",
    ),
    Row(
        "torch out",
        "inverse cholesky_inverse lu_solve orgqr ormqr",
        "a resized `out` is row-major, as everywhere; torch's is what LAPACK leaves",
        r"^resized call \d: strides",
    ),
    Row(
        "torch out",
        "narrow_copy",
        "torch writes a strided `out` as if it were contiguous; Mica's equals its functional result",
        r"^strided call 0: value",
    ),
    Row(
        "torch gradients",
        "linalg_vector_norm",
        "the count of elements other than 0 (ord=0) has gradients of zeros; torch's has none",
        r"call 6: first gradients exist for \[True\], torch \[False\]",
    ),
    Row(
        "torch gradients",
        "as_strided_scatter",
        "finite differences confirm it (test_gradients.py); torch 2.13 gives the replaced places a gradient and the kept ones none",
        r"^(float64|complex128) \w+ call \d: first gradient: value",
    ),
    Row(
        "torch gradients",
        "embedding_dense_backward",
        "finite differences confirm it (test_gradients.py); torch forgets the counts of scale_grad_by_freq",
        r"^float64 \w+ call 1: first gradient: value",
    ),
    Row(
        "torch autocast",
        "pad",
        "padding copies values and needs no precision; torch widens the modes other than constant",
    ),
    Row(
        "torch autocast",
        "inner",
        "its product runs in the lower dtype as any other; torch's of vectors is its dot",
    ),
    Row(
        "torch autocast",
        "bilinear",
        "it is made of products, which run in the lower dtype; torch's CPU kernel has no policy",
    ),
]
