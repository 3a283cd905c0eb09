"""The phrases of torch's errors and warnings that programs match on, in Mica's sentences for the same calls.

Each call runs on torch and on Mica under torch's name; Mica's sentence has the phrase, which is read off
torch's sentence here too, and the exception is of torch's class.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from linalg_calls import LINALG

import mica

CALLS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    **LINALG,
    "a power in place": (
        "operation's result requires dtype",
        lambda m: m.ones(3).float_power_(m.ones(3)),
    ),
    "places of an integral": (
        "There must be one `x` value for each sample point",
        lambda m: m.cumulative_trapezoid(m.ones(2, 3), m.ones(2)),
    ),
    "a parameter with a number for a name": (
        "parameter name should be a string. Got int",
        lambda m: m.nn.Module().register_parameter(1, None),
    ),
    "a buffer without a name": (
        "buffer name should be a string. Got NoneType",
        lambda m: m.nn.Module().register_buffer(None, None),
    ),
    "a module with a number for a name": (
        "module name should be a string. Got int",
        lambda m: m.nn.Module().add_module(1, None),
    ),
    "no gradient to check": (
        "Expected at least one of check_forward_ad or check_backward_ad to be True",
        lambda m: m.autograd.gradcheck(
            m.sin, m.ones(1, dtype=m.float64, requires_grad=True), check_backward_ad=False
        ),
    ),
    "a moved dimension twice": (
        "movedim: repeated dim in `source`",
        lambda m: m.ones(2, 3).movedim((0, 0), (0, 1)),
    ),
    "a place of two dimensions": (
        "movedim: repeated dim in `destination`",
        lambda m: m.ones(2, 3).movedim((0, 1), (-1, 1)),
    ),
    "inner products": (
        r"inner\(\) the last dimension must match on both input tensors but got shapes \[2, 3\] and \[2, 2\]",
        lambda m: m.inner(m.ones(2, 3), m.ones(2, 2)),
    ),
    "a real transform of complex numbers": (
        "rfft expects a real input tensor",
        lambda m: m.fft.rfft(m.ones(3, dtype=m.complex64)),
    ),
    "flat indices": (
        "expected 'indices' to be integer",
        lambda m: m.unravel_index(m.ones(()), (2, 2)),
    ),
    "a negative shape of flat indices": (
        r"'shape' cannot have negative values, but got \(2, -3\)",
        lambda m: m.unravel_index(m.tensor(0), (2, -3)),
    ),
    "a dimension out of range": (r"Dimension out of range \(expected to be in range of \[-1, 0\], but got 5\)", lambda m: m.ones(3).sum(5)),
    "a dimension twice": ("dim 0 appears multiple times in the list of dims", lambda m: m.ones(3).sum((0, 0))),
    "a negative size": (r"Trying to create tensor with negative dimension -3: \[2, -3\]", lambda m: m.ones(2, -3)),
    "sizes that do not broadcast": (
        r"The size of tensor a \(3\) must match the size of tensor b \(4\) at non-singleton dimension 0",
        lambda m: m.ones(3) + m.ones(4),
    ),
    "sizes to expand to": (
        r"The expanded size of the tensor \(4\) must match the existing size \(3\) at non-singleton dimension 0",
        lambda m: m.ones(3).expand(4),
    ),
    "a view": (r"shape '\[4\]' is invalid for input of size 3", lambda m: m.ones(3).view(4)),
    "an index": ("index 7 is out of bounds for dimension 1 with size 3", lambda m: m.ones(3, 3)[0, 7]),
    "an index tensor": ("index 7 is out of bounds for dimension 0 with size 3", lambda m: m.ones(3)[m.tensor([7])]),
    "too many indices": ("too many indices for tensor of dimension 1", lambda m: m.ones(3)[0, 0]),
    "slices without elements": (
        "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied",
        lambda m: m.unique(m.ones(3, 0, 2), dim=0),
    ),
    "consecutive slices without elements": (
        "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied",
        lambda m: m.unique_consecutive(m.ones(2, 0), dim=0),
    ),
    "no slices without elements": (
        "Number of zero sized dimensions is more than one, so unique cannot be applied",
        lambda m: m.unique(m.ones(0, 0), dim=1),
    ),
    "no consecutive slices without elements": (
        "Number of zero sized dimensions is more than one, so unique cannot be applied",
        lambda m: m.unique_consecutive(m.ones(0, 0), dim=0),
    ),
    "a product": (
        r"mat1 and mat2 shapes cannot be multiplied \(3x3 and 4x4\)",
        lambda m: m.ones(3, 3) @ m.ones(4, 4),
    ),
    "a join": (
        r"Sizes of tensors must match except in dimension 0. Expected size 3 but got size 2",
        lambda m: m.cat([m.ones(3, 3), m.ones(2, 2)]),
    ),
    "a dtype in place": (
        "result type Float can't be cast to the desired output type Int",
        lambda m: m.ones(3, dtype=m.int32).add_(1.5),
    ),
    "shared memory": (
        "unsupported operation: more than one element of the written-to tensor refers to a single memory location",
        lambda m: m.ones(3).expand(3, 3).add_(1),
    ),
    "a leaf": (
        "a leaf Variable that requires grad is being used in an in-place operation",
        lambda m: m.ones(3, requires_grad=True).add_(1),
    ),
    "no scalar": (
        "grad can be implicitly created only for scalar outputs",
        lambda m: (m.ones(3, requires_grad=True) * 2).backward(),
    ),
    "no graph": (
        "element 0 of tensors does not require grad and does not have a grad_fn",
        lambda m: m.ones(3).sum().backward(),
    ),
    "one number": ("a Tensor with 3 elements cannot be converted to Scalar", lambda m: m.ones(3).item()),
    "a truth value": (
        "Boolean value of Tensor with more than one value is ambiguous",
        lambda m: bool(m.ones(3)),
    ),
    "arguments": ("sum\\(\\) received an invalid combination of arguments - got \\(float\\)", lambda m: m.ones(3).sum(1.5)),
    "an out of nonzero": ("Expected out tensor to have scalar type Long", lambda m: m.nonzero(m.ones(3), out=m.ones(3))),
    "an out of any": (
        "any only supports bool tensor for result, got: Float",
        lambda m: m.any(m.ones(3, 3), 0, out=m.ones(3)),
    ),
    "linspace of complex numbers": ("inferred dtype", lambda m: m.linspace(0, 1j, 5, dtype=m.float32)),
    "a beta of integers": (
        "For integral input tensors, argument beta must not be a floating point number",
        lambda m: m.addr(*[m.ones(s, dtype=m.int32) for s in ((2, 2), 2, 2)], beta=2.0),
    ),
    "dtypes of lerp": ("expected dtype", lambda m: m.lerp(m.ones(2, dtype=m.float64), m.ones(2), 1)),
    "the weight of lerp": (
        "expected dtype",
        lambda m: m.lerp(m.ones(2), m.ones(2), m.ones(2, dtype=m.float64)),
    ),
    "addcdiv of integers": (
        "^Integer division.+is no longer supported.+",
        lambda m: m.addcdiv(*[m.ones(2, dtype=m.int32)] * 3),
    ),
    "complex of integers": (
        "Expected both inputs to be Half, Float or Double tensors but got",
        lambda m: m.complex(m.tensor([1]), m.tensor([1])),
    ),
    "polar of integers": (
        "Expected both inputs to be Half, Float or Double tensors but got",
        lambda m: m.polar(m.tensor([1]), m.tensor([1])),
    ),
    "float8 with float32": (
        "Promotion for Float8 Types is not supported",
        lambda m: m.promote_types(m.float8_e5m2, m.float32),
    ),
    "diff of a number": ("diff expects input to be at least one-dim", lambda m: m.diff(m.tensor(1))),
    "what diff prepends": (
        "diff expects prepend or append to be the same dimension as input",
        lambda m: m.ones(2, 3).diff(dim=0, prepend=m.ones(3)),
    ),
    "the shape that diff prepends": (
        "diff expects the shape of tensor to prepend or append to match that of input",
        lambda m: m.ones(2, 3).diff(dim=0, prepend=m.ones(1, 2)),
    ),
    "spacings of gradient": (
        "torch.gradient expected spacing to be",
        lambda m: m.gradient(m.ones(2, 2), spacing=(m.ones(2),)),
    ),
    "a matrix in meshgrid": ("Expected 0D or 1D tensor", lambda m: m.meshgrid(m.ones(2, 2), indexing="ij")),
    "a block of three dimensions": (
        "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input 1 has 3 dimensions",
        lambda m: m.block_diag(m.ones(2), m.ones(1, 1, 1)),
    ),
    "splitting a number": (
        "tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims",
        lambda m: m.tensor(1).tensor_split(2),
    ),
    "values of meta": ("Cannot copy out of meta tensor; no data!", lambda m: m.ones(2, device="meta").cpu()),
    "interpolating integers": (
        "not implemented for",
        lambda m: m.nn.functional.interpolate(m.ones(1, 1, 2, 2, dtype=m.int32), (3, 3), mode="bilinear"),
    ),
    "slices of nothing": (
        "self indexing axis dim should be positive",
        lambda m: m.index_select(m.ones(0, 3), 0, m.tensor([0])),
    ),
    "slices of a number": (
        "Index to scalar can have only 1 value",
        lambda m: m.index_select(m.tensor(1.0), 0, m.tensor([0, 0])),
    ),
    "a view of inference mode": (
        "A view was created in inference mode and is being modified inplace",
        lambda m: view_under(m, m.inference_mode()).add_(1),
    ),
    "a view of no_grad": (
        "A view was created in no_grad mode and is being modified inplace",
        lambda m: view_under(m, m.no_grad()).add_(1),
    ),
    "more bytes than there are": (
        "Storage size calculation overflowed",
        lambda m: m.empty_strided([8, 8], [2**61, 1], dtype=m.float64),
    ),
    "zeros that are not allowed": (
        "Expected allow_unused to be True or not passed when",
        lambda m: m.autograd.grad(
            *[m.ones(1, requires_grad=True)] * 2, allow_unused=False, materialize_grads=True
        ),
    ),
    "strict and vectorized": (
        "not supported together",
        lambda m: m.autograd.functional.jacobian(lambda x: x, m.ones(2), strict=True, vectorize=True),
    ),
    "growing what NumPy reads": (
        "Trying to resize storage that is not resizable",
        lambda m: [(x.resize_(100), kept) for x in [m.ones(2)] for kept in [x.numpy()]],
    ),
    "a result that would grow what NumPy reads": (
        "Trying to resize storage that is not resizable",
        lambda m: [(m.add(m.ones(100), 1, out=x), kept) for x in [m.ones(0)] for kept in [x.numpy()]],
    ),
    "growing what NumPy reads through data": (
        "Trying to resize storage that is not resizable",
        lambda m: [(x.resize_(100), kept) for x in [m.ones(2)] for kept in [x.data.numpy()]],
    ),
    "a size of tensors": (r"takes an iterable of 'int' \(item 0 is '", lambda m: m.Size(m.ones(2))),
    "the median of nothing": (
        r"median\(\): Expected reduction dim 1 to have non-zero size",
        lambda m: m.median(m.ones(2, 0), 1),
    ),
    "sizes without strides": (
        r"dimensionality of sizes \(1\) must match dimensionality of strides \(0\)",
        lambda m: m.ones(2).new_empty_strided((1,), ()),
    ),
    "sections that are no integers": (
        "expected tensor_indices_or_sections to have dtype of long, but got Float",
        lambda m: m.tensor_split(m.ones(4), m.tensor(2.0)),
    ),
    "a conjugate by another dtype": (
        "view is not supported for conjugate view tensors",
        lambda m: m.ones(2, dtype=m.complex64).conj().view(m.float32),
    ),
    "a check": ("Expected cond to be True", lambda m: m._check(False)),
    "no backward": (
        "must implement either the backward",
        lambda m: NoBackward[m.__name__].apply(x_of(m)).backward(),
    ),
    "an overlap of index_add_": (
        "unsupported operation: some elements of the input tensor",
        lambda m: onto_itself(m, "index_add_"),
    ),
    "an overlap of scatter_": (
        "unsupported operation: some elements of the input tensor",
        lambda m: onto_itself(m, "scatter_"),
    ),
    "negative deviations": (
        "normal expects all elements of std >= 0.0",
        lambda m: m.normal(m.zeros(2), m.tensor([-1.0, 1])),
    ),
    "a range wider than the dtype": (
        "uniform_ expects to-from <= std::numeric_limits<Half>::max",
        lambda m: m.empty(0, dtype=m.float16).uniform_(-60000, 60000),
    ),
    "a range out of the dtype": (
        "from is out of bounds for",
        lambda m: m.empty(1, dtype=m.float16).uniform_(-1e9, 0),
    ),
    "polar of two dtypes": (
        "Expected object of scalar type Double but got scalar type Float for second argument",
        lambda m: m.polar(m.ones(1, dtype=m.float64), m.ones(1)),
    ),
    "negative rtol": (
        "rtol must be greater than or equal to zero, but got -0.5",
        lambda m: m.isclose(m.ones(1), m.ones(1), rtol=-0.5),
    ),
    "negative atol": (
        "atol must be greater than or equal to zero, but got -0.5",
        lambda m: m.isclose(m.ones(1), m.ones(1), atol=-0.5),
    ),
    "a complex value": (
        "value cannot be converted to type .* without overflow",
        lambda m: m.ones(1).masked_fill(m.tensor([True]), m.tensor(1j)),
    ),
    "a quantile of integers": (
        r"quantile\(\) input tensor must be either float or double dtype",
        lambda m: m.quantile(m.arange(3), 0.5),
    ),
    "a value out of the dtype": (
        "value cannot be converted to type .* without overflow",
        lambda m: m.ones(1).masked_fill(m.tensor([True]), 1j),
    ),
    "a state of one row": (
        "doesn't match hidden",
        lambda m: m.nn.LSTMCell(4, 5)(m.ones(3, 4), (m.ones(3, 5), m.ones(1, 5))),
    ),
    "a state of other size": ("inconsistent hidden_size", lambda m: m.nn.GRUCell(4, 5)(m.ones(3, 4), m.ones(3, 1))),
    "a cell's input": ("inconsistent input_size", lambda m: m.nn.RNNCell(4, 5)(m.ones(3, 1))),
    "a projection of a GRU": (
        "proj_size argument is only supported for LSTM, not RNN or GRU",
        lambda m: m.nn.GRU(4, 5, proj_size=2),
    ),
    "no grid": ("meshgrid expects a non-empty TensorList", lambda m: m.meshgrid()),
    "a grid of two devices": (
        "meshgrid expects all tensors to have the same device",
        lambda m: m.meshgrid(m.ones(2), m.ones(2, device="meta"), indexing="ij"),
    ),
    "memory of another dtype": (
        "can't alias tensor with dtype '.*' into dtype '.*'",
        lambda m: m.asarray(m.ones(2), dtype=m.float64, copy=False),
    ),
    "memory of a list": (
        "can't alias arbitrary sequence into a tensor",
        lambda m: m.asarray([1], copy=False),
    ),
    "out of another dtype": (
        r"dtype Long does not match dtype of out parameter \(Float\)",
        lambda m: m.zeros(2, dtype=m.int64, out=m.ones(2)),
    ),
    "out on another device": (
        "device type meta does not match device type of out parameter",
        lambda m: m.rand(2, device="meta", out=m.ones(2)),
    ),
    "gradients of new integers": (
        "Only Tensors of floating point and complex dtype can require gradients",
        lambda m: m.ones(2, dtype=m.int64).new_zeros(2, requires_grad=True),
    ),
    "strides beyond int64": ("Stride calculation overflowed", lambda m: m.empty([0, 4, 2**61])),
    "a sequence without items": (
        "could not determine the shape of object type 'Hollow'",
        lambda m: m.tensor(Hollow()),
    ),
    "values at a mask": (
        "shape mismatch: value tensor of shape",
        lambda m: m.arange(4).__setitem__(m.arange(4) > 0, m.tensor([])),
    ),
    "blocks of fold": (
        "match the calculated number of sliding blocks",
        lambda m: m.nn.functional.fold(m.ones(1, 6, 10), (4, 5), (2, 3)),
    ),
    "a kernel beyond the image": (
        "calculated shape of the array of sliding blocks as",
        lambda m: m.nn.functional.fold(m.ones(1, 12, 12), (4, 5), (2, 2), dilation=8),
    ),
    "padding of no channels": (
        "Expected 3D or 4D .* with possibly 0 batch size and other non-zero dimensions",
        lambda m: m.nn.functional.pad(m.ones(3, 0, 4, 4), (1, 1, 1, 1), mode="reflect"),
    ),
}  # fmt: skip


def view_under(m: Any, mode: Any) -> Any:
    x = m.ones(3, requires_grad=True).clone()
    with mode:
        return x.view(3)


def x_of(m: Any) -> Any:
    return m.ones((), requires_grad=True)


class Hollow:
    """A sequence whose items cannot be read."""

    def __len__(self) -> int:
        return 3

    def __getitem__(self, i: int) -> Any:
        raise TypeError


def onto_itself(m: Any, name: str) -> Any:
    x = m.arange(3.0)
    return getattr(x, name)(0, m.tensor([2, 1, 0]), x)


def without_backward(m: Any) -> Any:
    class Twice(m.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

    return Twice


NoBackward = {m.__name__: without_backward(m) for m in (torch, mica)}


def written(m: Any) -> None:
    y = m.ones(3, requires_grad=True).exp()
    y.add_(1)
    y.sum().backward()


def twice(m: Any) -> None:
    x = m.ones(3, requires_grad=True)
    y = (x * x).sum()
    y.backward()
    y.backward()


CALLS["a value that was written"] = ("modified by an inplace operation", written)
CALLS["a graph twice"] = ("Trying to backward through the graph a second time", twice)


@pytest.mark.parametrize("name", CALLS)
def test_errors_carry_torch_phrase(name: str) -> None:
    phrase, call = CALLS[name]
    with pytest.raises(Exception, match=phrase) as theirs:
        call(torch)
    with pytest.raises(Exception, match=phrase) as ours:
        call(mica)
    for kind in (RuntimeError, IndexError, TypeError, ValueError):
        assert isinstance(ours.value, kind) == isinstance(theirs.value, kind)
    singular = isinstance(theirs.value, torch.linalg.LinAlgError)
    assert isinstance(ours.value, mica.linalg.LinAlgError) == singular


WARNINGS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "read-only memory": ("non-writable tensors", lambda m: m.frombuffer(b"abcd", dtype=m.uint8)),
    "meshgrid": (
        "it will be required to pass the indexing argument",
        lambda m: m.meshgrid(m.ones(2), m.ones(3)),
    ),
    "bounds of random_": ("to - 1 is out of bounds", lambda m: m.empty(3).random_(0, 2**30)),
    "float() of what has a gradient": (
        "Converting a tensor with requires_grad=True to a scalar",
        lambda m: float(m.ones(1, requires_grad=True).sum()),
    ),
    "T of three dimensions": ("on tensors of dimension other than 2", lambda m: m.ones(2, 2, 2).T),
    "a mask of uint8": (
        "indexing with dtype .*uint8 is now deprecated",
        lambda m: m.ones(3)[m.tensor([1, 0, 1], dtype=m.uint8)],
    ),
    "a resized out": (
        r"An output with one or more elements was resized since it had shape \[5\]",
        lambda m: m.kron(m.ones(2), m.ones(2), out=m.ones(5)),
    ),
    "numbers without keywords": (
        "This overload of addmm is deprecated",
        lambda m: m.addmm(2, m.ones(1, 1), 3, m.ones(1, 1), m.ones(1, 1)),
    ),
}


@pytest.fixture
def always() -> Any:
    """Warnings that come once in a process come each time."""
    torch.set_warn_always(True)
    mica._C._set_warn_always(True)
    yield
    torch.set_warn_always(False)
    mica._C._set_warn_always(False)


@pytest.mark.parametrize("name", WARNINGS)
def test_warnings_are_given_as_in_torch(name: str, always: None) -> None:
    phrase, call = WARNINGS[name]
    for m in (torch, mica):
        with pytest.warns(UserWarning, match=phrase):
            call(m)


def test_a_warning_is_given_once() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            mica._C._warn_once("test", "a test's warning")
    assert [re.sub("'", "", str(w.message)) for w in caught] == ["a tests warning"]


def test_the_older_order_of_numbers() -> None:
    a, b = torch.rand(2, 3, dtype=torch.float64), torch.rand(3, 2, dtype=torch.float64)
    t = torch.rand(2, 2, dtype=torch.float64)
    x, y, z = (mica.from_numpy(v.numpy()) for v in (a, b, t))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for ours, theirs in (
            (mica.addmm(2, z, 3, x, y), torch.addmm(2, t, 3, a, b)),
            (mica.addmm(2, z, x, y), torch.addmm(2, t, a, b)),
            (z.addmm(2, 3, x, y), t.addmm(2, 3, a, b)),
            (mica.add(z, 2, z), torch.add(t, 2, t)),
            (mica.addcdiv(z, 2, z, z), torch.addcdiv(t, 2, t, t)),
        ):
            assert torch.allclose(torch.from_numpy(ours.numpy()), theirs)


def test_what_out_gets() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import mica.torch._main as main

        out = mica.empty(0)
        assert main.range_(3, 1, -1, out=out) is out and out.tolist() == [3, 2, 1]
    x = mica.rand(2, 3, 4, 4).contiguous(memory_format=mica.channels_last)
    y = mica.rand(96)
    y.resize_as_(x, memory_format=mica.preserve_format)
    assert y.stride() == x.stride()
