// x[...] and x[...] = value, as NumPy and torch have them.
//
// One integer or slice takes the short way, a single view operator. Anything else
// is walked left to right: integers, slices, None and ... become views; tensors,
// lists and arrays are collected as index tensors for index and index_put_. A
// Boolean tensor of k dimensions stands for k index tensors when more follows it.
#include "bindings/python/src/creation/creation.h"
#include "bindings/python/src/interception/override.h"
#include "bindings/python/src/operators/arguments.h"
#include "bindings/python/src/tensor/item.h"
#include "dispatcher/frames/frames.h"
#include "dispatcher/plugins/host.h"
#include "mica/ops/alias.h"
#include "mica/ops/any.h"
#include "mica/ops/copy_.h"
#include "mica/ops/eq.h"
#include "mica/ops/fill.h"
#include "mica/ops/index.h"
#include "mica/ops/index_put_.h"
#include "mica/ops/nonzero.h"
#include "mica/ops/select.h"
#include "mica/ops/slice.h"
#include "mica/ops/unbind.h"
#include "mica/ops/unsqueeze.h"
#include "mica/ops/view.h"
#include "tensor/number_range.h"
#include "tensor/promote.h"

namespace mica::python {
namespace {

// `shown` is the dimension as the caller counts, who indexed some before.
Tensor Select(const Tensor& t, int64_t dim, int64_t index, int64_t shown) {
  MICA_CHECK_INDEX(
      t.ndim() > dim,
      t.ndim() == 0
          ? "invalid index of a 0-dim tensor. Use `tensor.item()` to convert a 0-dim tensor to a number."
          : "There are too many indices for tensor of fewer dimensions.");
  const int64_t size = t.impl()->dl.shape[dim];
  MICA_CHECK_INDEX(index >= -size && index < size, "The index ", index, " is out of bounds for dimension ",
                   shown, " with size ", size, ".");
  return ops::select(t, dim, index);
}

// A slice of all that is written is the tensor itself, so that what had its value before is forgotten.
Tensor Slice(const Tensor& t, int64_t dim, PyObject* slice, bool is_written) {
  Py_ssize_t start, stop, step;
  const auto* s = reinterpret_cast<PySliceObject*>(slice);
  MICA_CHECK_INDEX(t.ndim() > dim, "A slice indexes dimension (", dim, ") of a tensor that has ", t.ndim(),
                   ".");
  if (s->start == Py_None && s->stop == Py_None && s->step == Py_None) return t;
  Check(PySlice_Unpack(slice, &start, &stop, &step));
  MICA_CHECK_VALUE(step > 0, "The step must be greater than zero, and the step of a slice of a tensor is (",
                   step, "); use flip() to reverse.");
  if (is_written && start == 0 && step == 1 && t.size(dim) <= stop) return t;
  return ops::slice(t, dim, start, stop, step);
}

bool IsPlainInt(PyObject* o) { return PyLong_CheckExact(o); }
bool IsMask(const Tensor& t) { return t.dtype() == DType::kBool || t.dtype() == DType::kU8; }

// A key that becomes an index tensor: a list, an array, a range.
Tensor KeyTensor(PyObject* key) {
  if (IsTensor(key)) return Unwrap(key);
  Tensor t = TensorFromData(key, std::nullopt, Device{}, false);
  if (t.numel() == 0 && IsFloating(t.dtype())) return EmptyTensor(t.sizes(), DType::kI64, Device{});
  return t;
}

// A number of numpy's or a 0-d tensor; one of uint8 is a mask, as in torch.
bool IsIndexNumber(PyObject* key) {
  return IsIntSlow(key) && !(IsTensor(key) && (IsMask(Unwrap(key)) || StandsForBatch(Unwrap(key))));
}

int64_t DimsOfKey(PyObject* key) {
  if (key == Py_None || key == Py_Ellipsis || PyBool_Check(key)) return 0;
  if (IsTensor(key) && IsMask(Unwrap(key))) return Unwrap(key).ndim();
  return 1;
}

// The views that the key makes of a tensor, and the index tensors that are left.
struct Walk {
  Tensor view;
  std::vector<Tensor> indices;  // by dimension of `view`; undefined: all of it
  int64_t dim = 0;
  int64_t selected = 0;  // dimensions that integers took away
  bool is_written = false;

  // An index on the CPU goes where the indexed tensor is.
  void Record(Tensor index) {
    indices.resize(dim);
    if (index.device().is_cpu()) index = ConvertTensor(index, index.dtype(), view.device());
    indices.push_back(std::move(index));
    ++dim;
  }

  void Take(PyObject* key, int64_t skipped, bool last) {
    if (IsPlainInt(key)) {
      view = Select(view, dim, ToInt(key), dim + selected++);
    } else if (PySlice_Check(key)) {
      view = Slice(view, dim, key, is_written);
      ++dim;
    } else if (key == Py_None) {
      view = ops::unsqueeze(view, dim);
      ++dim;
    } else if (key == Py_Ellipsis) {
      dim += skipped;
    } else if (PyBool_Check(key)) {
      TakeBool(key == Py_True);
    } else if (IsIndexNumber(key)) {
      view = Select(view, dim, ToInt(key), dim + selected++);
    } else {
      TakeTensor(KeyTensor(key), last);
    }
  }

  void TakeBool(bool value) {
    view = ops::unsqueeze(view, dim);
    Tensor mask = EmptyTensor({1}, DType::kBool, Device{});
    *mask.data_as<bool>() = value;
    Record(mask);
  }

  void TakeTensor(Tensor index, bool last) {
    if (IsMask(index) && index.ndim() == 0) return TakeBool(ItemOf(index).ToBool());
    MICA_CHECK_INDEX(!IsDifferentiable(index.dtype()),
                     "tensors used as indices must be long, int, byte or bool tensors; this one is ",
                     index.ToString(), ".");
    if (!IsMask(index) || index.ndim() == 1 || last) return Record(std::move(index));
    for (int64_t d = 0; d < index.ndim(); ++d) {
      MICA_CHECK_INDEX(dim + d < view.ndim() && view.size(dim + d) == index.size(d), "The shape of the mask ",
                       ShapeText(index.sizes()), " at index ", d,
                       " does not match the shape of the indexed tensor ", ShapeText(view.sizes()),
                       " at index ", dim + d, ".");
    }
    if (index.dtype() == DType::kU8)
      HostWarn("indexing with dtype uint8 is now deprecated, please use a dtype bool instead.");
    const Tensor places = ops::nonzero(index);
    for (int64_t d = 0; d < index.ndim(); ++d) Record(ops::select(places, 1, d));
  }
};

// Whether a list stands for a tuple of indices, as in torch: x[[i, j]] is x[i, j] where i or j is
// a tensor, a list, a slice, None or .... A list of numbers, and one of 32 and more, is an index tensor.
bool IsListOfKeys(PyObject* key) {
  if (!PyList_Check(key) || PyList_GET_SIZE(key) >= 32) return false;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(key); ++i) {
    PyObject* const e = PyList_GET_ITEM(key, i);
    if (e == Py_None || e == Py_Ellipsis || PySlice_Check(e) || IsTensor(e) || PySequence_Check(e))
      return true;
  }
  return false;
}

Walk WalkKey(const Tensor& self, PyObject* key, bool is_written) {
  Walk w{self, {}, 0, 0, is_written};
  if (IsListOfKeys(key)) return WalkKey(self, Ref(PyList_AsTuple(key)).get(), is_written);
  if (!PyTuple_Check(key)) {
    w.Take(key, self.ndim(), true);
    return w;
  }
  const Py_ssize_t n = PyTuple_GET_SIZE(key);
  int64_t dims = 0;
  for (Py_ssize_t i = 0; i < n; ++i) {
    dims += DimsOfKey(PyTuple_GET_ITEM(key, i));
  }
  MICA_CHECK_INDEX(dims <= self.ndim(), "There are too many indices for tensor of dimension ", self.ndim(),
                   "; the key has ", dims, ".");
  for (Py_ssize_t i = 0; i < n; ++i) w.Take(PyTuple_GET_ITEM(key, i), self.ndim() - dims, i == n - 1);
  return w;
}

// Whether an index, or one of a tuple of them, wants the call.
bool MayOverrideKey(PyObject* self, PyObject* key) { return MayOverride(self, &key, 1); }

PyObject* GetItem(PyObject* self, PyObject* key) {
  return Guarded([&]() -> PyObject* {
    if (__builtin_expect(MayOverrideKey(self, key), 0))
      if (PyObject* result = Override({"__getitem__"}, self, key)) return result;
    const Tensor& t = Unwrap(self);
    if (IsPlainInt(key)) return Wrap(Select(t, 0, ToInt(key), 0));
    Walk w = WalkKey(t, key, false);
    if (w.indices.empty()) return Wrap(w.view.is_same(t) ? ops::alias(t) : std::move(w.view));
    return Wrap(Run(Work().Add(w.view).Add(w.indices), [&] { return ops::index(w.view, w.indices); }));
  });
}

// A value without leading dimensions of size 1 above `ndim` dimensions.
Tensor DropLeadingOnes(const Tensor& value, int64_t ndim) {
  int64_t drop = 0;
  while (value.ndim() - drop > ndim && value.size(drop) == 1) ++drop;
  return drop ? ops::view(value, value.sizes().subspan(drop, value.ndim() - drop)) : value;
}

[[noreturn]] void RaiseNoValue(PyObject* value, DType from, DType to) {
  Raise(PyExc_TypeError, "A value of type (" + std::string(TypeName(value)) + ") with the dtype (" +
                             Name(from) + ") is not assigned to elements of dtype (" + Name(to) +
                             "), which may not hold its numbers; convert it first.");
}

// An array, a list or another object that a tensor is made of, in the dtype of the elements
// that it is written to. Numbers in lists are checked one by one, an array by its dtype.
Tensor ConvertedValue(PyObject* value, DType dtype, Device device) {
  const Tensor own = TensorFromData(value, std::nullopt, device, false);
  if (!CanCast(own.dtype(), dtype)) RaiseNoValue(value, own.dtype(), dtype);
  if (PyList_Check(value) || PyTuple_Check(value)) return TensorFromData(value, dtype, device, false);
  if (IsInteger(dtype) && PromoteTypes(own.dtype(), dtype) != dtype) RaiseNoValue(value, own.dtype(), dtype);
  return ConvertTensor(own, dtype, std::nullopt);
}

// A number as elements of the dtype are given it: float16 and bfloat16 take one that is too large
// as infinity, as in torch, where fill_ refuses it.
Scalar Rounded(const Scalar& number, DType dtype) {
  if ((dtype != DType::kF16 && dtype != DType::kBF16) || number.is_complex()) return number;
  return dtype == DType::kF16 ? Scalar(static_cast<double>(static_cast<float>(number.To<Half>())))
                              : Scalar(static_cast<double>(static_cast<float>(number.To<BFloat16>())));
}

void CheckHeld(DType dtype, const Scalar& number) {
  MICA_CHECK(HoldsNumber(dtype, number), "The value (", number.ToString(), ") does not fit the dtype (",
             Name(dtype), ") of the indexed tensor and cannot be converted without overflow.");
}

Tensor NumberTensor(const Scalar& given, DType dtype, Device device) {
  const Scalar number = Rounded(given, dtype);
  CheckHeld(dtype, number);
  const Tensor t = EmptyTensor({}, dtype, Device{});
  WriteElement(t.data(), dtype, number);
  return ConvertTensor(frames::Adopt(t), std::nullopt, device);
}

// Whether one mask alone chooses elements: what is written is then one number, of any dtype.
bool IsByMask(const Walk& w) {
  int64_t masks = 0, others = 0;
  for (const Tensor& index : w.indices)
    if (index.defined()) ++(index.dtype() == DType::kBool ? masks : others);
  return masks == 1 && others == 0;
}

// A tensor that index_put_ writes, whose dtype must be that of the elements.
Tensor IndexedValue(const Walk& w, const Tensor& value) {
  Tensor v = DropLeadingOnes(value, 1);  // it broadcasts to them again
  const bool is_one = v.numel() == 1 && v.device().is_cpu();
  const DType dtype = w.view.dtype();
  if (is_one && IsByMask(w)) {
    if (v.ndim() > 0) v = ops::view(v, IntSpan{});
    const bool readable = !frames::Current() && !frames::IsWrapper(v) && (v.keys() & keys::kOfMemory).empty();
    if (v.dtype() != dtype && readable) CheckHeld(dtype, ReadElement(v.data(), v.dtype()));
    return ConvertTensor(v, dtype, w.view.device());
  }
  return is_one && v.ndim() == 0 ? ConvertTensor(v, std::nullopt, w.view.device()) : v;
}

void SetViaIndices(const Walk& w, PyObject* value) {
  const DType dtype = w.view.dtype();
  const Tensor v = IsTensor(value)        ? IndexedValue(w, Unwrap(value))
                   : IsPlainNumber(value) ? NumberTensor(ToScalar(value), dtype, w.view.device())
                                          : DropLeadingOnes(ConvertedValue(value, dtype, w.view.device()), 1);
  Run(Work().Add(w.view).Add(v), [&] { ops::index_put_(w.view, w.indices, v); });
}

int SetItem(PyObject* self, PyObject* key, PyObject* value) {
  return GuardedInt([&] {
    if (!value) Raise(PyExc_TypeError, "Elements of a tensor cannot be deleted.");
    if (__builtin_expect(MayOverrideKey(self, key) || WantsFunctions(value), 0)) {
      PyObject* const args[] = {key, value};
      if (const Ref result{Override({"__setitem__"}, self, args, 2, nullptr)}) return 0;
    }
    const Tensor& t = Unwrap(self);
    if (key == Py_False) return 0;  // no elements, whatever the value
    const Walk w = IsPlainInt(key)  ? Walk{Select(t, 0, ToInt(key), 0), {}}
                   : key == Py_True ? Walk{ops::unsqueeze(t, 0), {}, 0}
                                    : WalkKey(t, key, true);
    if (!w.indices.empty()) {
      SetViaIndices(w, value);
      return 0;
    }
    if (IsPlainNumber(value)) {
      const Scalar s = Rounded(ToScalar(value), w.view.dtype());
      Run(Work().Add(w.view), [&] { ops::fill_(w.view, s); });
      return 0;
    }
    const Tensor v = IsTensor(value) ? Unwrap(value) : ConvertedValue(value, w.view.dtype(), w.view.device());
    const Tensor source = DropLeadingOnes(v, w.view.ndim());
    Run(Work().Add(w.view).Add(source), [&] { ops::copy_(w.view, source); });
    return 0;
  });
}

Py_ssize_t Length(PyObject* self) {
  if (MayOverride(self)) {
    const Ref result(Guarded([&] { return Override({"__len__"}, self); }));
    if (result || PyErr_Occurred())
      return result ? PyNumber_AsSsize_t(result.get(), PyExc_OverflowError) : -1;
  }
  const Tensor& t = Unwrap(self);
  if (t.ndim() == 0) {
    PyErr_SetString(PyExc_TypeError, "A 0-d tensor has no len().");
    return -1;
  }
  return t.impl()->dl.shape[0];
}

int Contains(PyObject* self, PyObject* element) {
  return GuardedInt([&] {
    if (MayOverride(self, element))
      if (const Ref result{Override({"__contains__"}, self, element)}) return PyObject_IsTrue(result.get());
    const Tensor& t = Unwrap(self);
    if (!IsTensor(element) && !IsPlainNumber(element)) {
      Raise(PyExc_RuntimeError,
            std::string("Tensor.__contains__ only supports Tensor or scalar, but you passed in a <class '") +
                TypeName(element) + "'>.");
    }
    const Tensor same = IsTensor(element) ? ops::eq(t, Unwrap(element)) : ops::eq(t, ToScalar(element));
    return ItemOf(ops::op::any::call(same)).ToBool() ? 1 : 0;
  });
}

}  // namespace

PyMappingMethods kTensorMappingMethods = {Length, GetItem, SetItem};
PySequenceMethods kTensorSequenceMethods = {.sq_length = nullptr,
                                            .sq_concat = nullptr,
                                            .sq_repeat = nullptr,
                                            .sq_item = nullptr,
                                            .was_sq_slice = nullptr,
                                            .sq_ass_item = nullptr,
                                            .was_sq_ass_slice = nullptr,
                                            .sq_contains = Contains,
                                            .sq_inplace_concat = nullptr,
                                            .sq_inplace_repeat = nullptr};

PyObject* TensorIter(PyObject* self) {
  return Guarded([&] {
    if (MayOverride(self)) {
      const Ref dim = Own(PyLong_FromLong(0));
      if (const Ref parts{Override({"unbind"}, self, dim.get())}) return Check(PyObject_GetIter(parts.get()));
    }
    const Tensor& t = Unwrap(self);
    if (t.ndim() == 0) Raise(PyExc_TypeError, "A 0-d tensor cannot be iterated over.");
    const Ref parts(FromTensorList(ops::unbind(t, 0)));
    return Check(PyObject_GetIter(parts.get()));
  });
}

}  // namespace mica::python
