// mica.Size: a tuple of integers that prints as a size, has numel(), and stays a
// Size when sliced, added or repeated.
#include "bindings/python/src/creation/convert.h"
#include "bindings/python/src/module/library_name.h"
#include "bindings/python/src/tensor/metadata_objects.h"

namespace mica::python {
namespace {

PyObject* SizeOfTuple(PyObject* tuple) {
  if (!tuple || !PyTuple_Check(tuple)) return tuple;
  const Ref items(tuple);
  const Py_ssize_t n = PyTuple_GET_SIZE(tuple);
  PyObject* size = SizeType.tp_alloc(&SizeType, n);
  if (!size) return nullptr;
  for (Py_ssize_t i = 0; i < n; ++i) {
    PyObject* item = PyTuple_GET_ITEM(tuple, i);
    Py_INCREF(item);
    PyTuple_SET_ITEM(size, i, item);
  }
  return size;
}

PyObject* SizeNew(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  return Guarded([&]() -> PyObject* {
    const Ref tuple = Own(PyTuple_Type.tp_new(&PyTuple_Type, args, kwargs));
    Dims dims;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple.get()); ++i) {
      PyObject* const item = PyTuple_GET_ITEM(tuple.get(), i);
      const Ref index(PyNumber_Index(item));
      if (!index)
        Raise(PyExc_TypeError, "Size() takes an iterable of 'int' (item " + std::to_string(i) + " is '" +
                                   std::string(TypeName(item)) + "')");
      dims.push_back(ToInt(index.get()));
    }
    return FromSizes(dims);
  });
}

PyObject* SizeRepr(PyObject* o) {
  return Guarded([&] {
    std::string text = std::string(LibraryName()) + ".Size([";
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i) {
      const Ref item = Own(PyObject_Repr(PyTuple_GET_ITEM(o, i)));
      text += i ? ", " : "";
      text += StrView(item.get());
    }
    return NewStr(text + "])");
  });
}

PyObject* SizeNumel(PyObject* o, PyObject*) {
  return Guarded([&] {
    int64_t n = 1;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i) n *= ToInt(PyTuple_GET_ITEM(o, i));
    return PyLong_FromLongLong(n);
  });
}

PyObject* SizeReduce(PyObject* o, PyObject*) {
  return Guarded(
      [&] { return Py_BuildValue("O(N)", &SizeType, Check(PyTuple_GetSlice(o, 0, PyTuple_GET_SIZE(o)))); });
}

PyMethodDef kSizeMethods[] = {
    {"numel", SizeNumel, METH_NOARGS, "The number of elements of a tensor of this size."},
    {"__reduce__", SizeReduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyNumberMethods g_number;
PySequenceMethods g_sequence;
PyMappingMethods g_mapping;

}  // namespace

PyTypeObject SizeType = {PyVarObject_HEAD_INIT(nullptr, 0)};

PyObject* FromSizes(IntSpan sizes) {
  PyObject* o = Check(SizeType.tp_alloc(&SizeType, sizes.size()));
  for (int64_t i = 0; i < sizes.size(); ++i) PyTuple_SET_ITEM(o, i, PyLong_FromLongLong(sizes[i]));
  return o;
}

PyObject* FromInts(IntSpan ints) {
  PyObject* o = Check(PyTuple_New(ints.size()));
  for (int64_t i = 0; i < ints.size(); ++i) PyTuple_SET_ITEM(o, i, PyLong_FromLongLong(ints[i]));
  return o;
}

void InitSize(PyObject* module) {
  g_sequence.sq_concat = [](PyObject* a, PyObject* b) {
    return SizeOfTuple(PyTuple_Type.tp_as_sequence->sq_concat(a, b));
  };
  // `(1,) + size` is a Size too, which only a number's slot hears of.
  g_number.nb_add = [](PyObject* a, PyObject* b) {
    if (!PyTuple_Check(a) || !PyTuple_Check(b)) Py_RETURN_NOTIMPLEMENTED;
    return SizeOfTuple(PyTuple_Type.tp_as_sequence->sq_concat(a, b));
  };
  g_sequence.sq_repeat = [](PyObject* a, Py_ssize_t n) {
    return SizeOfTuple(PyTuple_Type.tp_as_sequence->sq_repeat(a, n));
  };
  g_sequence.sq_item = PyTuple_Type.tp_as_sequence->sq_item;
  g_sequence.sq_length = PyTuple_Type.tp_as_sequence->sq_length;
  g_sequence.sq_contains = PyTuple_Type.tp_as_sequence->sq_contains;
  g_mapping.mp_length = PyTuple_Type.tp_as_mapping->mp_length;
  g_mapping.mp_subscript = [](PyObject* o, PyObject* key) {
    return SizeOfTuple(PyTuple_Type.tp_as_mapping->mp_subscript(o, key));
  };
  SizeType.tp_name = "mica.Size";
  SizeType.tp_doc = "The sizes of a tensor's dimensions.";
  SizeType.tp_base = &PyTuple_Type;
  SizeType.tp_flags = Py_TPFLAGS_DEFAULT;
  SizeType.tp_new = SizeNew;
  SizeType.tp_repr = SizeRepr;
  SizeType.tp_methods = kSizeMethods;
  SizeType.tp_as_number = &g_number;
  SizeType.tp_as_sequence = &g_sequence;
  SizeType.tp_as_mapping = &g_mapping;
  Check(PyType_Ready(&SizeType));
  Check(PyModule_AddObjectRef(module, "Size", reinterpret_cast<PyObject*>(&SizeType)));
}

}  // namespace mica::python
