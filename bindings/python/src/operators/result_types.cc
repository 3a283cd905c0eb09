// The types of named results; see result_types.h.
#include "bindings/python/src/operators/result_types.h"

#include <map>
#include <string>
#include <vector>

#include "bindings/python/src/creation/convert.h"
#include "bindings/python/src/module/kept_text.h"
#include "bindings/python/src/module/library_name.h"

namespace mica::python {
namespace {

// By the name and its fields, "max values indices". Types live as long as the process.
std::map<std::string, PyTypeObject*>& Types() {
  static auto* const types = new std::map<std::string, PyTypeObject*>();
  return *types;
}

std::string Module() { return std::string(LibraryName()) + ".return_types"; }

// "torch.return_types.max(\nvalues=...,\nindices=...)", as torch prints it.
PyObject* ResultRepr(PyObject* o) {
  return Guarded([&] {
    auto* const type = reinterpret_cast<PyObject*>(Py_TYPE(o));
    const Ref name = Own(PyObject_GetAttrString(type, "__name__"));
    const Ref fields = Own(PyObject_GetAttrString(type, "__match_args__"));
    std::string text = Module() + "." + std::string(StrView(name.get()));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i) {
      const Ref value = Own(PyObject_Repr(PyTuple_GET_ITEM(o, i)));
      text += i ? ",\n" : "(\n";
      text +=
          std::string(StrView(PyTuple_GET_ITEM(fields.get(), i))) + "=" + std::string(StrView(value.get()));
    }
    return NewStr(text + ")");
  });
}

PyObject* ResultTypeOf(PyObject*, PyObject* args) {
  return Guarded([&]() -> PyObject* {
    const char* name;
    PyObject* names;
    if (!PyArg_ParseTuple(args, "sO!:_result_type", &name, &PyTuple_Type, &names)) throw PythonErrorIsSet();
    std::vector<std::string> texts;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i)
      texts.emplace_back(StrView(PyTuple_GET_ITEM(names, i)));
    std::vector<const char*> fields;
    for (const std::string& text : texts) fields.push_back(text.c_str());
    return Py_NewRef(
        reinterpret_cast<PyObject*>(NamedResultType(name, fields.data(), static_cast<int>(fields.size()))));
  });
}
PyMethodDef kFunctions[] = {{"_result_type", ResultTypeOf, METH_VARARGS, nullptr},
                            {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyTypeObject* NamedResultType(const char* name, const char* const* fields, int count) {
  std::string key = name;
  for (int i = 0; i < count; ++i) key += std::string(" ") + fields[i];
  PyTypeObject*& type = Types()[key];
  if (type) return type;
  std::vector<PyStructSequence_Field> members(static_cast<size_t>(count) + 1, {nullptr, nullptr});
  for (int i = 0; i < count; ++i) members[static_cast<size_t>(i)].name = Kept(fields[i]);
  PyStructSequence_Desc desc = {Kept(Module() + "." + name), "", members.data(), count};
  type = PyStructSequence_NewType(&desc);
  if (!type) throw PythonErrorIsSet();
  type->tp_repr = ResultRepr;
  PyType_Modified(type);
  return type;
}

void RenameResultTypes() {
  const Ref module = Own(NewStr(Module()));
  for (auto& [key, type] : Types()) {
    Check(PyDict_SetItemString(type->tp_dict, "__module__", module.get()));
    PyType_Modified(type);
  }
}

void InitResultTypes(PyObject* module) { Check(PyModule_AddFunctions(module, kFunctions)); }

}  // namespace mica::python
