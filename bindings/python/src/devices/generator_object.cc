// mica.Generator and the functions about random state.
#include "dispatcher/devices/graphs.h"
#include "tensor/generator.h"

#include "bindings/python/src/creation/creation.h"
#include "bindings/python/src/operators/arguments.h"
#include "dispatcher/frames/frames.h"

namespace mica::python {
namespace {

struct GeneratorObject {
  PyObject_HEAD Generator* generator;  // an owned reference
};

// The seed of a fresh generator, as in torch.
constexpr uint64_t kDefaultSeed = 67280421310721;

PyObject* WrapGenerator(PyTypeObject* type, Generator* g) {
  PyObject* o = Check(type->tp_alloc(type, 0));
  auto* self = reinterpret_cast<GeneratorObject*>(o);
  self->generator = g;
  return o;
}

PyObject* GeneratorNew(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return Guarded([&] {
    static const char* names[] = {"device", "algorithm", nullptr};
    PyObject* device = nullptr;
    const char* algorithm = nullptr;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|Oz:Generator", const_cast<char**>(names), &device,
                                     &algorithm)) {
      throw PythonErrorIsSet();
    }
    const Device d = device ? ToDevice(device) : Device{};
    Generator* g = MakeGenerator(algorithm ? algorithm : d.is_cpu() ? "mt19937" : "philox4x32-10", d);
    g->ManualSeed(kDefaultSeed);
    return WrapGenerator(type, g);
  });
}

uint64_t ToSeed(PyObject* o) {
  if (!IsInt(o))
    Raise(PyExc_TypeError, std::string("A seed is an integer; this value is of type (") + TypeName(o) + ").");
  const Ref index = Own(PyNumber_Index(o));
  int overflow = 0;
  const long long v = PyLong_AsLongLongAndOverflow(index.get(), &overflow);
  if (!overflow) return static_cast<uint64_t>(v);  // negative seeds wrap, as in torch
  const unsigned long long u = PyLong_AsUnsignedLongLong(index.get());
  if (PyErr_Occurred()) {
    PyErr_Clear();
    Raise(PyExc_ValueError, "A seed must fit 64 bits.");
  }
  return u;
}

PyObject* BytesTensor(const std::string& bytes) {
  const Tensor t = EmptyTensor({static_cast<int64_t>(bytes.size())}, DType::kU8, Device{});
  std::copy(bytes.begin(), bytes.end(), t.data_as<char>());
  return Wrap(t);
}
std::string TensorBytes(PyObject* o) {
  if (!IsTensor(o) || Unwrap(o).dtype() != DType::kU8 || !Unwrap(o).is_contiguous() ||
      !Unwrap(o).device().is_cpu()) {
    Raise(PyExc_TypeError, "A random state is a contiguous uint8 tensor on cpu.");
  }
  const Tensor& t = Unwrap(o);
  frames::CheckReadable(t, "a random state");
  return std::string(t.data_as<char>(), static_cast<size_t>(t.numel()));
}

PyObject* ManualSeed(PyObject* self, PyObject* seed) {
  return Guarded([&] {
    RefuseSeeding(AsGenerator(self));
    AsGenerator(self)->ManualSeed(ToSeed(seed));
    return Py_NewRef(self);
  });
}
PyObject* Seed(PyObject* self, PyObject*) {
  return Guarded([&] {
    RefuseSeeding(AsGenerator(self));
    return PyLong_FromUnsignedLongLong(AsGenerator(self)->Seed());
  });
}
PyObject* InitialSeed(PyObject* self, PyObject*) {
  return Guarded([&] { return PyLong_FromUnsignedLongLong(AsGenerator(self)->InitialSeed()); });
}
PyObject* GetState(PyObject* self, PyObject*) {
  return Guarded([&] { return BytesTensor(RecordedState(*AsGenerator(self))); });
}
PyObject* SetState(PyObject* self, PyObject* state) {
  return Guarded([&] {
    SetRecordedState(*AsGenerator(self), TensorBytes(state));
    return Py_NewRef(self);
  });
}
PyObject* CloneState(PyObject* self, PyObject*) {
  return Guarded([&] { return WrapGenerator(&GeneratorType, AsGenerator(self)->Clone()); });
}
// Pickled as a device, the stream's algorithm and its state.
PyObject* Reduce(PyObject* self, PyObject*) {
  return Guarded([&] {
    const Ref state = Own(GetState(self, nullptr)), device = Own(FromDevice(AsGenerator(self)->device()));
    const Ref module = Own(PyImport_ImportModule("mica._devices.random_state"));
    return Py_BuildValue("N(OsO)", Check(PyObject_GetAttrString(module.get(), "_rebuild_generator")),
                         device.get(), std::string(AsGenerator(self)->algorithm()).c_str(), state.get());
  });
}
PyObject* GetDevice(PyObject* self, void*) {
  return Guarded([&] { return FromDevice(AsGenerator(self)->device()); });
}
PyObject* GetAlgorithm(PyObject* self, void*) { return NewStr(AsGenerator(self)->algorithm()); }

PyObject* SeedAll(PyObject*, PyObject* seed) {
  return Guarded([&] {
    RefuseSeeding(nullptr);
    ManualSeedAll(ToSeed(seed));
    return FromGenerator(&DefaultGenerator(Device{}));
  });
}
PyObject* DefaultGeneratorOf(PyObject*, PyObject* device) {
  return Guarded([&] { return FromGenerator(&DefaultGenerator(ToDevice(device))); });
}

PyMethodDef kMethods[] = {
    {"manual_seed", ManualSeed, METH_O, "manual_seed(seed) -> Generator"},
    {"seed", Seed, METH_NOARGS, "seed() -> int\n\nSeeds from the system's entropy; returns the seed."},
    {"initial_seed", InitialSeed, METH_NOARGS, "initial_seed() -> int\n\nThe last seed given."},
    {"get_state", GetState, METH_NOARGS, "get_state() -> Tensor\n\nThe state as bytes."},
    {"set_state", SetState, METH_O, "set_state(state) -> Generator"},
    {"clone_state", CloneState, METH_NOARGS, "clone_state() -> Generator\n\nA generator in the same state."},
    {"__reduce__", Reduce, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef kAttributes[] = {
    {"device", GetDevice, nullptr, "The device whose random numbers it draws.", nullptr},
    {"algorithm", GetAlgorithm, nullptr, "The name of the stream's algorithm.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMethodDef kFunctions[] = {{"_manual_seed", SeedAll, METH_O, nullptr},
                            {"_default_generator", DefaultGeneratorOf, METH_O, nullptr},
                            {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyTypeObject GeneratorType = {PyVarObject_HEAD_INIT(nullptr, 0)};

PyObject* FromGenerator(Generator* g) {
  g->Retain();
  return WrapGenerator(&GeneratorType, g);
}
Generator* AsGenerator(PyObject* o) { return reinterpret_cast<GeneratorObject*>(o)->generator; }

void InitGenerator(PyObject* module) {
  GeneratorType.tp_name = "mica.Generator";
  GeneratorType.tp_doc = "A stream of random numbers with a seed and a state.";
  GeneratorType.tp_basicsize = sizeof(GeneratorObject);
  GeneratorType.tp_flags = Py_TPFLAGS_DEFAULT;
  GeneratorType.tp_new = GeneratorNew;
  GeneratorType.tp_dealloc = [](PyObject* o) {
    AsGenerator(o)->Release();
    Py_TYPE(o)->tp_free(o);
  };
  GeneratorType.tp_methods = kMethods;
  GeneratorType.tp_getset = kAttributes;
  Check(PyType_Ready(&GeneratorType));
  Check(PyModule_AddObjectRef(module, "Generator", reinterpret_cast<PyObject*>(&GeneratorType)));
  Check(PyModule_AddFunctions(module, kFunctions));
}

}  // namespace mica::python
