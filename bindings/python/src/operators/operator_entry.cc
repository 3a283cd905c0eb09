#include "bindings/python/src/operators/operator_entry.h"

#include <mica/opcodes.h>
#include "dispatcher/layers/layers_extension.h"

namespace mica::python {
namespace {

// A list of make(0), make(1), ...
template <typename F>
Ref ListOf(int64_t n, F&& make) {
  Ref list = Own(PyList_New(n));
  for (int64_t i = 0; i < n; ++i) PyList_SET_ITEM(list.get(), i, Check(make(i)));
  return list;
}

PyObject* StepOf(const MicaInstruction& in) {
  const OpcodeInfo& opcode = kOpcodeInfo[in.opcode];
  const uint8_t registers[] = {in.a, in.b, in.c};
  const Ref read = ListOf(opcode.arity, [&](int64_t i) { return PyLong_FromLong(registers[i]); });
  return Py_BuildValue("(siOi)", opcode.name, in.dst, read.get(), in.aux);
}

}  // namespace

PyObject* EquationOf(const Operator& op) { return NewStr(InfoOf(op).equation); }

PyObject* ProgramOf(const Operator& op) {
  const MicaProgram* const p = InfoOf(op).programs[static_cast<int>(DTypeKind::kFloating)];
  if (!p || p->next || p->map.size || p->index.size || p->keep.size || !p->main.size) return NewNone();
  const Ref codes = Own(PyDict_New());
  for (const auto& [name, code] :
       {std::pair("main", p->main), {"combine", p->combine}, {"finish", p->finish}}) {
    const Ref steps = ListOf(code.size, [code = code](int64_t i) { return StepOf(code.data[i]); });
    Check(PyDict_SetItemString(codes.get(), name, steps.get()));
  }
  const Ref constants =
      ListOf(p->num_constants, [&](int64_t i) { return PyFloat_FromDouble(p->constants[i].f); });
  const Ref inputs = ListOf(p->num_inputs, [&](int64_t i) { return PyLong_FromLong(p->input_args[i]); });
  const Ref scalars = ListOf(p->num_scalars, [&](int64_t i) { return PyLong_FromLong(p->scalar_args[i]); });
  return Py_BuildValue("(sOOOO)", p->source, codes.get(), constants.get(), inputs.get(), scalars.get());
}

}  // namespace mica::python
