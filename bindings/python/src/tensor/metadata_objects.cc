// mica.dtype, mica.layout, mica.memory_format and mica.device.
#include "bindings/python/src/tensor/metadata_objects.h"

#include <charconv>
#include <cstring>
#include <vector>

#include "bindings/python/src/creation/convert.h"
#include "bindings/python/src/module/library_name.h"
#include "dispatcher/calls/thread_state.h"
#include "tensor/dtype.h"

namespace mica::python {
namespace {

struct NumberedObject {  // dtype, layout, memory_format
  PyObject_HEAD int number;
  const char* name;
};
struct DeviceObject {
  PyObject_HEAD Device device;
  int number;  // as it was given, -1 for none: device("cuda") is the backend's current one
};

NumberedObject g_dtypes[kDTypeCount];
NumberedObject g_layouts[1];
NumberedObject g_formats[kMemoryFormatCount];
constexpr const char* kFormatNames[] = {"contiguous_format", "preserve_format", "channels_last",
                                        "channels_last_3d"};

// Further names of dtypes, as torch has them.
struct Alias {
  const char* alias;
  DType dtype;
};
constexpr Alias kAliases[] = {{"float", DType::kF32},  {"double", DType::kF64},  {"half", DType::kF16},
                              {"short", DType::kI16},  {"int", DType::kI32},     {"long", DType::kI64},
                              {"cfloat", DType::kC64}, {"cdouble", DType::kC128}};

DType DTypeOfObject(PyObject* o) { return static_cast<DType>(reinterpret_cast<NumberedObject*>(o)->number); }

PyObject* NumberedRepr(PyObject* o) {
  return PyUnicode_FromFormat("%s.%s", LibraryName(), reinterpret_cast<NumberedObject*>(o)->name);
}
// Pickled by name.
PyObject* Reduce(PyObject* o, PyObject*) {
  return Guarded([&] {
    const Ref module = Own(PyImport_ImportModule("mica._C"));
    return Py_BuildValue("N(s)", Check(PyObject_GetAttrString(module.get(), "_metadata_object")),
                         reinterpret_cast<NumberedObject*>(o)->name);
  });
}
PyMethodDef kNumberedMethods[] = {{"__reduce__", Reduce, METH_NOARGS, nullptr},
                                  {nullptr, nullptr, 0, nullptr}};

PyObject* DTypeToComplex(PyObject* o, PyObject*) {
  return Guarded([&] {
    const DType d = DTypeOfObject(o);
    MICA_CHECK(IsComplex(d) || d == DType::kF16 || d == DType::kBF16 || d == DType::kF32 || d == DType::kF64,
               "No complex dtype lies over ", Name(d), "; there are those over float32 and float64.");
    return FromDType(d == DType::kF64 || d == DType::kC128 ? DType::kC128 : DType::kC64);
  });
}
PyObject* DTypeToReal(PyObject* o, PyObject*) {
  return Guarded([&] {
    const DType d = DTypeOfObject(o);
    MICA_CHECK(IsComplex(d) || IsFloating(d), "No complex dtype lies over ", Name(d),
               ", whose parts to_real() names.");
    return FromDType(RealOf(d));
  });
}
PyMethodDef kDTypeMethods[] = {
    {"__reduce__", Reduce, METH_NOARGS, nullptr},
    {"to_complex", DTypeToComplex, METH_NOARGS, "The complex dtype over this one."},
    {"to_real", DTypeToReal, METH_NOARGS, "The dtype of a complex number's parts."},
    {nullptr, nullptr, 0, nullptr}};

PyGetSetDef kDTypeAttributes[] = {
    {"itemsize", [](PyObject* o, void*) { return PyLong_FromLongLong(ItemSize(DTypeOfObject(o))); }, nullptr,
     "The bytes of one element.", nullptr},
    {"is_floating_point", [](PyObject* o, void*) { return NewBool(IsFloating(DTypeOfObject(o))); }, nullptr,
     "Whether elements are floating-point numbers.", nullptr},
    {"is_complex", [](PyObject* o, void*) { return NewBool(IsComplex(DTypeOfObject(o))); }, nullptr,
     "Whether elements are complex numbers.", nullptr},
    {"is_signed",
     [](PyObject* o, void*) {
       const DTypeKind k = Kind(DTypeOfObject(o));
       return NewBool(k != DTypeKind::kBoolean && k != DTypeKind::kUnsigned);
     },
     nullptr, "Whether elements can be negative.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

int NumberOf(PyObject* o) { return reinterpret_cast<DeviceObject*>(o)->number; }
// Without a number: the thread's current device of the backend.
Device DeviceOf(PyObject* o) {
  const Device d = reinterpret_cast<DeviceObject*>(o)->device;
  return NumberOf(o) >= 0 ? d : Device{d.backend, static_cast<int16_t>(CurrentDeviceNumber(d.backend))};
}

PyObject* NewDevice(Device d, int number) {
  auto* o = PyObject_New(DeviceObject, &DeviceType);
  if (!o) throw PythonErrorIsSet();
  o->device = d;
  o->number = number;
  return reinterpret_cast<PyObject*>(o);
}

PyObject* DeviceNew(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  return Guarded([&]() -> PyObject* {
    static const char* names[] = {"type", "index", nullptr};
    static const char* other_names[] = {"device", nullptr};  // device(device="cuda:0")
    PyObject* type = nullptr;
    PyObject* index = Py_None;
    const bool other = kwargs && PyDict_GetItemString(kwargs, "device");
    if (other ? !PyArg_ParseTupleAndKeywords(args, kwargs, "O:device", const_cast<char**>(other_names), &type)
              : !PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:device", const_cast<char**>(names), &type,
                                             &index))
      return nullptr;
    if (IsDevice(type) && index == Py_None) return Py_NewRef(type);
    const Device d = ToDevice(type);
    if (index != Py_None) {
      const int64_t number = ToInt(index);
      return NewDevice(Device::Parse(absl::StrCat(BackendName(d.backend), ":", number)),
                       static_cast<int>(number));
    }
    if (!PyUnicode_Check(type)) return NewDevice(d, d.index);  // the number of an accelerator
    const std::string_view text = StrView(type);
    const size_t colon = text.find(':');
    int number = -1;
    if (colon != std::string_view::npos)
      std::from_chars(text.data() + colon + 1, text.data() + text.size(), number);
    return NewDevice(d, number);
  });
}
PyObject* DeviceRepr(PyObject* o) {
  const Device d = DeviceOf(o);
  const std::string& name = BackendName(d.backend);
  if (NumberOf(o) < 0) return PyUnicode_FromFormat("device(type='%s')", name.c_str());
  return PyUnicode_FromFormat("device(type='%s', index=%d)", name.c_str(), NumberOf(o));
}
PyObject* DeviceStr(PyObject* o) {
  return Guarded([&] {
    const Device d = DeviceOf(o);
    return NewStr(NumberOf(o) < 0 ? BackendName(d.backend)
                                  : absl::StrCat(BackendName(d.backend), ":", NumberOf(o)));
  });
}
PyObject* DeviceCompare(PyObject* a, PyObject* b, int op) {
  if (!IsDevice(a) || !IsDevice(b) || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  const bool same = DeviceOf(a).backend == DeviceOf(b).backend && NumberOf(a) == NumberOf(b);
  return NewBool(same == (op == Py_EQ));
}
PyObject* DeviceReduce(PyObject* o, PyObject*) {
  return Guarded([&] { return Py_BuildValue("O(N)", &DeviceType, DeviceStr(o)); });
}
// The default device of this thread's factories, as it was given.
struct Default {
  Device device;
  bool follows = false;  // the backend's current device, as no number was given
};
thread_local bool t_default_follows = false;

void SetDefault(const Default& d) {
  const int number = d.follows ? CurrentDeviceNumber(d.device.backend) : d.device.index;
  CurrentThread().default_device = {d.device.backend, static_cast<int16_t>(number)};
  t_default_follows = d.follows;
}
// `with device:` makes it the default; blocks nest.
std::vector<Default>& DefaultsBefore() {
  static thread_local std::vector<Default> defaults;
  return defaults;
}
PyObject* DeviceEnter(PyObject* o, PyObject*) {
  DefaultsBefore().push_back({CurrentThread().default_device, t_default_follows});
  MakeDefault(o);
  return Py_NewRef(o);
}
PyObject* DeviceExit(PyObject*, PyObject*) {
  return Guarded([&] {
    if (DefaultsBefore().empty())
      Raise(PyExc_RuntimeError, "A device is left that was not entered on this thread.");
    SetDefault(DefaultsBefore().back());
    DefaultsBefore().pop_back();
    return NewNone();
  });
}
// As a decorator: the function runs inside a block of the device.
PyObject* DeviceCall(PyObject* o, PyObject* args, PyObject* kwargs) {
  return Guarded([&] {
    const Ref module = Own(PyImport_ImportModule("mica._functions"));
    const Ref decorate = Own(PyObject_GetAttrString(module.get(), "_on_device"));
    PyObject* function = nullptr;
    if (kwargs || !PyArg_ParseTuple(args, "O:device", &function)) throw PythonErrorIsSet();
    return Check(PyObject_CallFunctionObjArgs(decorate.get(), o, function, nullptr));
  });
}
PyMethodDef kDeviceMethods[] = {{"__reduce__", DeviceReduce, METH_NOARGS, nullptr},
                                {"__enter__", DeviceEnter, METH_NOARGS, nullptr},
                                {"__exit__", DeviceExit, METH_VARARGS, nullptr},
                                {nullptr, nullptr, 0, nullptr}};
PyGetSetDef kDeviceAttributes[] = {
    {"type", [](PyObject* o, void*) { return NewStr(BackendName(DeviceOf(o).backend)); }, nullptr,
     "The name of the backend.", nullptr},
    {"index",
     [](PyObject* o, void*) -> PyObject* {
       return NumberOf(o) < 0 ? NewNone() : PyLong_FromLong(NumberOf(o));
     },
     nullptr, "The number of the device; None where none was given.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

void ReadyNumbered(PyTypeObject& type, const char* name, const char* doc) {
  type.tp_name = name;
  type.tp_doc = doc;
  type.tp_basicsize = sizeof(NumberedObject);
  type.tp_flags = Py_TPFLAGS_DEFAULT;
  type.tp_repr = NumberedRepr;
  if (!type.tp_methods) type.tp_methods = kNumberedMethods;
  Check(PyType_Ready(&type));
}

void AddNumbered(PyObject* module, NumberedObject& object, PyTypeObject& type, int number, const char* name) {
  PyObject_Init(reinterpret_cast<PyObject*>(&object), &type);
  object.number = number;
  object.name = name;
  Check(PyModule_AddObjectRef(module, name, reinterpret_cast<PyObject*>(&object)));
}

PyObject* Borrowed(NumberedObject& o) {
  Py_INCREF(&o);
  return reinterpret_cast<PyObject*>(&o);
}

}  // namespace

PyTypeObject DTypeType = {PyVarObject_HEAD_INIT(nullptr, 0)};
PyTypeObject LayoutType = {PyVarObject_HEAD_INIT(nullptr, 0)};
PyTypeObject MemoryFormatType = {PyVarObject_HEAD_INIT(nullptr, 0)};
PyTypeObject DeviceType = {PyVarObject_HEAD_INIT(nullptr, 0)};

PyObject* FromDType(DType d) { return Borrowed(g_dtypes[static_cast<int>(d)]); }
PyObject* FromLayout(Layout) { return Borrowed(g_layouts[0]); }
PyObject* FromMemoryFormat(MemoryFormat f) { return Borrowed(g_formats[static_cast<int>(f)]); }
PyObject* FromDevice(Device d) { return NewDevice(d, d.is_cpu() || d.is_meta() ? -1 : d.index); }
DType AsDType(PyObject* o) { return DTypeOfObject(o); }
Device AsDevice(PyObject* o) { return DeviceOf(o); }
void MakeDefault(PyObject* o) { SetDefault({DeviceOf(o), NumberOf(o) < 0}); }
void MakeCurrent(Device device) {
  SetCurrentDeviceNumber(device);
  if (t_default_follows) SetDefault({CurrentThread().default_device, true});
}
MemoryFormat AsMemoryFormat(PyObject* o) {
  return static_cast<MemoryFormat>(reinterpret_cast<NumberedObject*>(o)->number);
}

void InitMetadataObjects(PyObject* module) {
  DTypeType.tp_getset = kDTypeAttributes;
  DTypeType.tp_methods = kDTypeMethods;
  ReadyNumbered(DTypeType, "mica.dtype", "The type of a tensor's elements.");
  ReadyNumbered(LayoutType, "mica.layout", "How a tensor's elements lie in memory.");
  ReadyNumbered(MemoryFormatType, "mica.memory_format", "The order of a tensor's dimensions in memory.");
  for (int i = 0; i < kDTypeCount; ++i)
    AddNumbered(module, g_dtypes[i], DTypeType, i, Name(static_cast<DType>(i)));
  for (const Alias& a : kAliases) {
    Check(PyModule_AddObjectRef(module, a.alias,
                                reinterpret_cast<PyObject*>(&g_dtypes[static_cast<int>(a.dtype)])));
  }
  AddNumbered(module, g_layouts[0], LayoutType, 0, "strided");
  for (int i = 0; i < kMemoryFormatCount; ++i)
    AddNumbered(module, g_formats[i], MemoryFormatType, i, kFormatNames[i]);

  DeviceType.tp_name = "mica.device";
  DeviceType.tp_doc = "A backend's name and a number: device('cuda', 1) or device('cuda:1').";
  DeviceType.tp_basicsize = sizeof(DeviceObject);
  DeviceType.tp_flags = Py_TPFLAGS_DEFAULT;
  DeviceType.tp_new = DeviceNew;
  DeviceType.tp_repr = DeviceRepr;
  DeviceType.tp_str = DeviceStr;
  DeviceType.tp_call = DeviceCall;
  DeviceType.tp_hash = [](PyObject* o) -> Py_hash_t {
    return DeviceOf(o).backend * 1000003 + NumberOf(o) + 7;
  };
  DeviceType.tp_richcompare = DeviceCompare;
  DeviceType.tp_methods = kDeviceMethods;
  DeviceType.tp_getset = kDeviceAttributes;
  Check(PyType_Ready(&DeviceType));
  for (PyTypeObject* type : {&DTypeType, &LayoutType, &MemoryFormatType, &DeviceType}) {
    const char* dot = strrchr(type->tp_name, '.');
    Check(PyModule_AddObjectRef(module, dot + 1, reinterpret_cast<PyObject*>(type)));
  }
}

}  // namespace mica::python
