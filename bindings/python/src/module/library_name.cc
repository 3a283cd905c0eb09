// The name of the library, and the types that carry it; see library_name.h.
#include "bindings/python/src/module/library_name.h"

#include <cstring>

#include "bindings/python/src/creation/convert.h"
#include "bindings/python/src/operators/result_types.h"
#include "bindings/python/src/tensor/metadata_objects.h"

namespace mica::python {
namespace {

bool g_torch = false;

// A static type's module is what stands before the last dot of its name.
struct Named {
  PyTypeObject* type;
  const char* mica;
  const char* torch;
};
const Named kNamed[] = {
    {&TensorType, "mica.Tensor", "torch.Tensor"},
    {&DTypeType, "mica.dtype", "torch.dtype"},
    {&DeviceType, "mica.device", "torch.device"},
    {&LayoutType, "mica.layout", "torch.layout"},
    {&MemoryFormatType, "mica.memory_format", "torch.memory_format"},
    {&SizeType, "mica.Size", "torch.Size"},
    {&GeneratorType, "mica.Generator", "torch._C.Generator"},
};

PyObject* SetLibraryName(PyObject*, PyObject* name) {
  return Guarded([&] {
    g_torch = PyUnicode_Check(name) && StrView(name) == "torch";
    for (const Named& n : kNamed) {
      n.type->tp_name = g_torch ? n.torch : n.mica;
      PyType_Modified(n.type);
    }
    RenameResultTypes();
    return NewNone();
  });
}

PyObject* GetLibraryName(PyObject*, PyObject*) { return PyUnicode_FromString(LibraryName()); }

PyMethodDef kFunctions[] = {{"_library_name", GetLibraryName, METH_NOARGS, nullptr},
                            {"_set_library_name", SetLibraryName, METH_O, nullptr},
                            {nullptr, nullptr, 0, nullptr}};

}  // namespace

const char* LibraryName() { return g_torch ? "torch" : "mica"; }

void InitLibraryName(PyObject* module) { Check(PyModule_AddFunctions(module, kFunctions)); }

}  // namespace mica::python
